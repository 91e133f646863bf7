"""Stochastic gradient Riemannian Langevin dynamics for topics."""

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.sgrld import sgrld_step
from sgmcmc_lab.samplers.models.topics import textbook
from sgmcmc_lab.samplers.models.topics.stochastic_gradient import STEP, StochasticGradient
from sgmcmc_lab.samplers.parameters import Real


@jit.loop(STEP)
def step(rng, theta, momentum, totals, counts, pull, factor, prior, n_topics, params):
    step_size = params[0]
    totals[:] = 0
    for w in range(len(theta)):
        for k in range(n_topics):
            x = theta[w, k]
            drift = prior + factor * counts[w, k] - x * pull[k]
            x = sgrld_step(x, drift, step_size, rng.standard_normal())
            theta[w, k] = x
            totals[k] += x
    return totals.sum()


class SGRLD(StochasticGradient):
    """Stochastic gradient Riemannian Langevin dynamics with reflection (Patterson & Teh 2013).

    The recipe with D = diag(θ), Q = 0, Γ = 1: θ ← |θ + ε(β − θ + (D/n)(B_kw − B_k· φ_kw)) + √(2εθ) ξ|.
    Invariant distribution: the posterior of θ as ε → 0; near 0 the bias of every ε > 0 is large.
    """

    key = "lda_sgrld"
    title = "SGRLD"
    update = (
        r"\theta_{kw} \leftarrow \Bigl|\,\theta_{kw} + \epsilon\Bigl(\beta - \theta_{kw} + \tfrac{D}{n}(B_{kw} - B_{k\cdot}\,\phi_{kw})\Bigr)"
        r" + \sqrt{2\epsilon\,\theta_{kw}}\;\xi\Bigr|"
    )
    source = "Patterson & Teh 2013; Baker et al. 2018, section 4.1"
    step = step

    step_size = Real(
        0.05,
        bounds=(1e-6, 1.0),
        log=True,
        tex=r"\epsilon",
        label="First step size ε",
        doc="The time that the first step advances.",
    )

    exact_at = ({**textbook.FULL, "step_size": 0.05}, 30_000, 0.01)
    tried_at = ({**textbook.FEW, "step_size": 0.2},)

    @textbook.over_minibatches
    def textbook_step(self, rng, theta, momentum, counts, h, beta):
        drift = beta - theta + counts - counts.sum(axis=0) * theta / theta.sum(axis=0)
        theta[:] = np.abs(theta + h * drift + np.sqrt(2 * h * theta) * textbook.normals(rng, theta))
