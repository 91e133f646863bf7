"""Stochastic gradient Langevin dynamics for topics."""

from math import sqrt
from typing import Any

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.sgld import sgld_step
from sgmcmc_lab.samplers.models.topics import textbook
from sgmcmc_lab.samplers.models.topics.stochastic_gradient import STEP, StochasticGradient
from sgmcmc_lab.samplers.parameters import Option, Real


@jit.loop(STEP)
def expanded_step(rng, theta, momentum, totals, counts, pull, factor, prior, n_topics, params):
    step_size = params[0]
    scale = sqrt(2 * step_size)
    totals[:] = 0
    for w in range(len(theta)):
        for k in range(n_topics):
            x = theta[w, k]
            grad = pull[k] - (prior - 1 + factor * counts[w, k]) / x
            x = abs(sgld_step(x, grad, step_size, scale, rng.standard_normal()))
            theta[w, k] = x
            totals[k] += x
    return totals.sum()


@jit.loop(STEP)
def original_step(rng, theta, momentum, totals, counts, pull, factor, prior, n_topics, params):
    step_size = params[0]
    scale = sqrt(2 * step_size)
    moved = np.zeros(n_topics)
    for w in range(len(theta)):
        for k in range(n_topics):
            phi = theta[w, k] / totals[k]
            grad = -(prior - 1 + factor * counts[w, k]) / phi
            x = sgld_step(phi, grad, step_size, scale, rng.standard_normal())
            theta[w, k] = x
            moved[k] += x
    totals[:] = 0
    for w in range(len(theta)):
        for k in range(n_topics):
            # Back to the plane Σ_w φ_kw = 1, and reflected.
            x = abs(theta[w, k] - (moved[k] - 1) / len(theta))
            theta[w, k] = x
            totals[k] += x
    return totals.sum()


class SGLD(StochasticGradient):
    """Stochastic gradient Langevin dynamics with reflection (Welling & Teh 2011; Patterson & Teh 2013).

    Expanded mean, on θ: θ ← |θ + ε((β − 1 + (D/n)B_kw)/θ − 1 − (D/n)B_k·/θ_k·) + √(2ε) ξ|.
    Original, on φ itself: the gradient (β − 1 + (D/n)B_kw)/φ and the noise are projected on the plane Σ_w φ_kw = 1,
    |·| reflects at 0, and the row is normalised again. Its step sizes are those of φ, about 1e-10.
    Invariant distribution: the posterior as ε → 0. Near 0 the gradient has no bound, and rare steps throw a small θ
    far: there the bias falls so slowly with ε that no ε is both right and fast.
    """

    key = "lda_sgld"
    title = "SGLD"
    update = (
        r"\theta_{kw} \leftarrow \Bigl|\,\theta_{kw} + \epsilon\Bigl(\tfrac{\beta - 1 + \frac Dn B_{kw}}{\theta_{kw}} - 1 - \tfrac{\frac Dn B_{k\cdot}}{\theta_{k\cdot}}\Bigr)"
        r" + \sqrt{2\epsilon}\;\xi\Bigr|"
    )
    source = "Welling & Teh 2011; Ma, Chen & Fox 2015, section 4.2"
    step = expanded_step
    compiled = (*StochasticGradient.compiled, expanded_step, original_step)

    parameterisation = Option(
        default="expanded_mean",
        objects=["expanded_mean", "original"],
        label="Parameterisation",
        doc="Expanded mean: θ > 0 with φ = θ/Σθ. Original: the topics φ themselves, on the simplex; its step sizes are much smaller.",
    )
    step_size = Real(
        1e-4,
        bounds=(1e-14, 1.0),
        log=True,
        tex=r"\epsilon",
        label="First step size ε",
        doc="The time that the first step advances.",
    )

    def compiled_step(self) -> Any:
        return expanded_step if self.parameterisation == "expanded_mean" else original_step

    exact_at = ({**textbook.FULL, "step_size": 0.01}, 40_000, 0.015)
    tried_at = (
        {**textbook.FEW, "step_size": 0.1},
        {**textbook.FEW, "step_size": 1e-3, "parameterisation": "original"},
    )

    @textbook.over_minibatches
    def textbook_step(self, rng, theta, momentum, counts, h, beta):
        noise = sqrt(2 * h) * textbook.normals(rng, theta)
        if self.parameterisation == "expanded_mean":
            theta[:] = np.abs(theta + h * textbook.slope(beta, theta, counts) + noise)
        else:
            phi = theta / theta.sum(axis=0)
            move = h * (beta - 1 + counts) / phi + noise
            theta[:] = np.abs(phi + move - move.mean(axis=0))
