"""Stochastic gradient Riemann Hamiltonian Monte Carlo for topics."""

from math import exp, sqrt

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.topics import textbook
from sgmcmc_lab.samplers.models.topics.stochastic_gradient import STEP, Array, StochasticGradient, reflected
from sgmcmc_lab.samplers.parameters import Real


@jit.loop(STEP)
def step(rng, theta, momentum, totals, counts, pull, factor, prior, n_topics, params):
    step_size, friction = params[0], params[1]
    totals[:] = 0
    for w in range(len(theta)):
        for k in range(n_topics):
            root, r = sqrt(theta[w, k]), momentum[w, k]
            r += step_size * ((prior - 0.5 + factor * counts[w, k]) / max(root, step_size) - root * pull[k])
            root, r = reflected(root + step_size * r / 4, r)
            kept = exp(-step_size * friction * root * root)
            r = kept * r + sqrt(1 - kept * kept) * rng.standard_normal()
            root, r = reflected(root + step_size * r / 4, r)
            x = root * root
            theta[w, k], momentum[w, k] = x, r
            totals[k] += x
    return totals.sum()


class SGRHMC(StochasticGradient):
    """Stochastic gradient Riemann Hamiltonian Monte Carlo (Ma, Chen & Fox 2015), with G(θ) = diag(θ)⁻¹.

    The recipe with H = U + r²/2, D = diag(0, Cθ), Q = [[0, −√θ], [√θ, 0]], and so Γ_r = ∂√θ/∂θ = 1/(2√θ):

        dr = ((β − ½ + N_kw)/√θ − √θ(1 + N_k·/θ_k·)) dt − Cθ r dt + √(2Cθ) dW,    dθ = √θ r dt

    It corrects the signs of the printed eq (17); C = 1 is the paper's. The paper's Euler step is unstable where
    εCθ > 1, at every word with more than a few counts. So the parts are solved one after the other, each exactly: the
    force over ε, then θ over ε/2, the friction with its noise over ε, and θ over ε/2 again, reflected at 0 with its
    momentum. The force has no bound as θ → 0: below θ = ε², which one step crosses, it is that at ε².
    Invariant distribution: the posterior as ε → 0 and D/n → 1; near 0 the bias of every ε > 0 is large where β < ½.
    """

    key = "lda_sgrhmc"
    title = "SGRHMC"
    update = (
        r"\begin{aligned}r_{kw} &\leftarrow r_{kw} + \epsilon\Bigl(\tfrac{\beta - \frac12 + \frac Dn B_{kw}}{\sqrt{\theta_{kw}}} - \sqrt{\theta_{kw}}\bigl(1 + \tfrac{\frac Dn B_{k\cdot}}{\theta_{k\cdot}}\bigr)\Bigr)\\"
        r"\sqrt{\theta_{kw}} &\leftarrow \bigl|\sqrt{\theta_{kw}} + \tfrac\epsilon4 r_{kw}\bigr|,\quad r_{kw} \leftarrow e^{-\epsilon C\theta_{kw}} r_{kw} + \sqrt{1 - e^{-2\epsilon C\theta_{kw}}}\;\xi,\quad "
        r"\sqrt{\theta_{kw}} \leftarrow \bigl|\sqrt{\theta_{kw}} + \tfrac\epsilon4 r_{kw}\bigr|\end{aligned}"
    )
    source = "Ma, Chen & Fox 2015, section 3.2 and 4.2"
    has_momentum = True
    step = step

    step_size = Real(
        0.5,
        bounds=(1e-5, 2.0),
        log=True,
        tex=r"\epsilon",
        label="First step size ε",
        doc="The time that the first step advances.",
    )
    friction = Real(
        10.0,
        bounds=(0.01, 1e3),
        log=True,
        tex="C",
        label="Friction C",
        doc="How fast the momentum forgets, in units of θ.",
    )

    def packed(self, step_size: float) -> Array:
        return np.array([step_size, self.friction])

    exact_at = ({**textbook.FULL, "step_size": 0.1, "friction": 1.0}, 30_000, 0.02)
    tried_at = ({**textbook.FEW, "step_size": 0.4, "friction": 2.0},)

    @textbook.over_minibatches
    def textbook_step(self, rng, theta, momentum, counts, h, beta):
        root = np.sqrt(theta)
        force = (beta - 0.5 + counts) / np.maximum(root, h) - root * (1 + counts.sum(axis=0) / theta.sum(axis=0))
        root, r = textbook.reflected(root + h / 4 * (momentum + h * force), momentum + h * force)
        kept = np.exp(-h * self.friction * root**2)
        r = kept * r + np.sqrt(1 - kept**2) * textbook.normals(rng, theta)
        root, momentum[:] = textbook.reflected(root + h / 4 * r, r)
        theta[:] = root**2
