"""Stochastic gradient Riemannian Langevin dynamics for clusters of documents."""

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.sgrld import sgrld_step
from sgmcmc_lab.samplers.models.mixture.method import MOVE, TINY, StochasticMixture
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.targets.base import Array


@jit.loop(MOVE)
def move(rng, x, prior, counts, factor, sizes, top, params):
    totals, seen = np.zeros(top), np.zeros(top)
    for r in range(len(x)):
        for k in range(top):
            totals[k] += x[r, k]
            seen[k] += factor * counts[r, k]
    for r in range(len(x)):
        for k in range(top):
            shape = prior[r] + factor * counts[r, k]
            if sizes[k] > 0:
                drift = shape - x[r, k] - seen[k] * x[r, k] / totals[k]
                x[r, k] = max(sgrld_step(x[r, k], drift, params[0], rng.standard_normal()), TINY)
            else:
                x[r, k] = max(rng.standard_gamma(shape), TINY)


class MixtureSGRLD(StochasticMixture):
    """Stochastic gradient Riemannian Langevin dynamics in the slice sampler (Baker et al. 2018, section 4.2).

    Update: as the slice sampler, for the z of a minibatch; then x_kw ← |x_kw + ε(a − x_kw + (N/n)(B_kw − θ_kw B_k·)) +
    √(2εx_kw) ξ|, and γ_k0, γ_k1 likewise with the step size η, 1 and α for a, and the documents in the cluster and
    after it for words. This corrects the released code: in the drift of γ_k1 the factor before (N/n) Σ_{l≥k} B_l
    is 1 − v_k. A cluster without documents is drawn anew from the prior.
    Invariant distribution: p(z, θ, w, α | x) as ε, η → 0 with all documents in a step; near 0, where most of a
    cluster's words are, the bias of every ε > 0 is large.
    """

    key = "mixture_sgrld"
    title = "SGRLD"
    update = (
        r"x_{kw} \leftarrow \Bigl|\,x_{kw} + \epsilon\Bigl(a - x_{kw} + \tfrac{N}{n}(B_{kw} - B_{k\cdot}\,\theta_{kw})\Bigr)"
        r" + \sqrt{2\epsilon\,x_{kw}}\;\xi\Bigr|"
    )
    source = "Patterson & Teh 2013; Baker et al. 2018, section 4.2"
    move = move

    step_size = Real(
        0.02,
        bounds=(1e-6, 1.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε of words",
        doc="The time that the words of the clusters advance in a step.",
    )
    stick_step = Real(
        0.02,
        bounds=(1e-6, 1.0),
        log=True,
        tex=r"\eta",
        label="Step size η of sticks",
        doc="The time that the sticks advance in a step.",
    )

    tried_at = ({"batch_size": 4, "start_clusters": 3, "step_size": 0.2, "stick_step": 0.1},)

    def packed(self, sticks: bool) -> Array:
        return np.array([self.stick_step if sticks else self.step_size])

    def textbook_move(self, rng, x, shape, pull, sticks):
        h = self.stick_step if sticks else self.step_size
        return abs(x + h * (shape - x - pull * x) + np.sqrt(2 * h * x) * rng.standard_normal())
