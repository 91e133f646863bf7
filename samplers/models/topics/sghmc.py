"""Stochastic gradient Hamiltonian Monte Carlo for topics."""

from math import sqrt
from typing import Any

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.sghmc import sghmc_kick
from sgmcmc_lab.samplers.models.topics import textbook
from sgmcmc_lab.samplers.models.topics.stochastic_gradient import STEP, Array, StochasticGradient, reflected
from sgmcmc_lab.samplers.parameters import Option, Real


@jit.loop(STEP)
def expanded_step(rng, theta, momentum, totals, counts, pull, factor, prior, n_topics, params):
    step_size, friction = params[0], params[1]
    damping, scale = 1 - step_size * friction, sqrt(2 * step_size * friction)
    totals[:] = 0
    for w in range(len(theta)):
        for k in range(n_topics):
            x = theta[w, k]
            grad = pull[k] - (prior - 1 + factor * counts[w, k]) / x
            r = sghmc_kick(momentum[w, k], grad, damping, step_size, scale, rng.standard_normal())
            x, r = reflected(x + step_size * r, r)
            theta[w, k], momentum[w, k] = x, r
            totals[k] += x
    return totals.sum()


@jit.loop(STEP)
def original_step(rng, theta, momentum, totals, counts, pull, factor, prior, n_topics, params):
    step_size, friction = params[0], params[1]
    n_words = len(theta)
    damping, scale = 1 - step_size * friction, sqrt(2 * step_size * friction)
    mean = np.zeros(n_topics)
    for w in range(n_words):
        for k in range(n_topics):
            phi = theta[w, k] / totals[k]
            grad = -(prior - 1 + factor * counts[w, k]) / phi
            r = sghmc_kick(momentum[w, k], grad, damping, step_size, scale, rng.standard_normal())
            theta[w, k], momentum[w, k] = phi, r
            mean[k] += r / n_words
    totals[:] = 0
    for w in range(n_words):
        for k in range(n_topics):
            r = momentum[w, k] - mean[k]
            x, r = reflected(theta[w, k] + step_size * r, r)
            theta[w, k], momentum[w, k] = x, r
            totals[k] += x
    return totals.sum()


class SGHMC(StochasticGradient):
    """Stochastic gradient Hamiltonian Monte Carlo with reflection (Chen, Fox & Guestrin 2014).

    The recipe with H = U + r²/2, D = diag(0, C), Q = [[0, −I], [I, 0]], in expanded mean:
    r ← (1 − εC) r + ε((β − 1 + (D/n)B_kw)/θ − 1 − (D/n)B_k·/θ_k·) + √(2εC) ξ, θ ← θ + εr; where θ < 0 both change
    their sign. Original, on φ itself: the momentum is projected on the plane Σ_w φ_kw = 1 instead, and the row is
    normalised again. Its step sizes are those of φ, about 1e-5.
    Invariant distribution: the posterior as ε → 0, near θ = 0 very slowly, as for SGLD; the minibatch's noise is not
    subtracted and heats it.
    """

    key = "lda_sghmc"
    title = "SGHMC"
    update = (
        r"\begin{aligned}r_{kw} &\leftarrow (1 - \epsilon C)\,r_{kw} + \epsilon\Bigl(\tfrac{\beta - 1 + \frac Dn B_{kw}}{\theta_{kw}} - 1 - \tfrac{\frac Dn B_{k\cdot}}{\theta_{k\cdot}}\Bigr) + \sqrt{2\epsilon C}\;\xi\\"
        r"\theta_{kw} &\leftarrow |\theta_{kw} + \epsilon\,r_{kw}|\end{aligned}"
    )
    source = "Chen, Fox & Guestrin 2014; Ma, Chen & Fox 2015, section 4.2"
    has_momentum = True
    step = expanded_step
    compiled = (*StochasticGradient.compiled, expanded_step, original_step)

    parameterisation = Option(
        default="expanded_mean",
        objects=["expanded_mean", "original"],
        label="Parameterisation",
        doc="Expanded mean: θ > 0 with φ = θ/Σθ. Original: the topics φ themselves, on the simplex; its step sizes are much smaller.",
    )
    step_size = Real(
        0.01,
        bounds=(1e-8, 1.0),
        log=True,
        tex=r"\epsilon",
        label="First step size ε",
        doc="The time that the first step advances.",
    )
    friction = Real(
        10.0,
        bounds=(0.01, 1e6),
        log=True,
        tex="C",
        label="Friction C",
        doc="How fast the momentum forgets; steps of εC > 1 overshoot.",
    )

    def packed(self, step_size: float) -> Array:
        return np.array([step_size, self.friction])

    def compiled_step(self) -> Any:
        return expanded_step if self.parameterisation == "expanded_mean" else original_step

    exact_at = ({**textbook.FULL, "step_size": 0.1, "friction": 1.0}, 30_000, 0.015)
    tried_at = (
        {**textbook.FEW, "step_size": 0.1},
        {**textbook.FEW, "step_size": 0.02, "parameterisation": "original"},
    )

    @textbook.over_minibatches
    def textbook_step(self, rng, theta, momentum, counts, h, beta):
        momentum *= 1 - h * self.friction
        momentum += sqrt(2 * h * self.friction) * textbook.normals(rng, theta)
        if self.parameterisation == "expanded_mean":
            momentum += h * textbook.slope(beta, theta, counts)
            theta[:], momentum[:] = textbook.reflected(theta + h * momentum, momentum)
        else:
            phi = theta / theta.sum(axis=0)
            momentum += h * (beta - 1 + counts) / phi
            momentum -= momentum.mean(axis=0)
            theta[:], momentum[:] = textbook.reflected(phi + h * momentum, momentum)
