"""The stochastic CIR process for clusters of documents."""

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.cir import scale_and_rate, transition
from sgmcmc_lab.samplers.models.mixture.method import MOVE, TINY, StochasticMixture
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.targets.base import Array


@jit.loop(MOVE)
def move(rng, x, prior, counts, factor, sizes, top, params):
    scale, rate = scale_and_rate(params[0])
    for r in range(len(x)):
        for k in range(top):
            shape = prior[r] + factor * counts[r, k]
            if sizes[k] > 0:
                x[r, k] = max(transition(rng, x[r, k], shape, scale, rate), TINY)
            else:
                x[r, k] = max(rng.standard_gamma(shape), TINY)


class MixtureSCIR(StochasticMixture):
    """The stochastic CIR process in the slice sampler (Baker et al. 2018, section 4.2), for words and sticks.

    Update: as the slice sampler, for the z of a minibatch; then x and γ by the exact transition of dx = (â − x) dt +
    √(2x) dW over the time h, with â = a + (N/n) B_kw from the minibatch, for sticks 1 + (N/n) B_k and
    α + (N/n) Σ_{l>k} B_l. A cluster without documents is drawn anew from the prior.
    Invariant distribution: p(z, θ, w, α | x) at every h with all documents in a step; otherwise that with the noise of
    the minibatches, which falls with h.
    """

    key = "mixture_scir"
    title = "SCIR"
    update = (
        r"x_{kw} \leftarrow (1 - e^{-h})\,\mathrm{Gamma}(\hat a + K, 1),\quad K \sim \mathrm{Poisson}\Bigl(x_{kw}\,\frac{e^{-h}}{1 - e^{-h}}\Bigr),"
        r"\quad \hat a = a + \tfrac{N}{n} B_{kw},\quad \theta_{kw} = x_{kw}/x_{k\cdot}"
    )
    source = "Baker et al. 2018, Algorithm 1 and section 4.2"
    move = move

    step_size = Real(
        0.1,
        bounds=(1e-4, 10.0),
        log=True,
        tex="h",
        label="Step size h",
        doc="The time between two minibatches, for words and sticks. Small steps average over many minibatches; there is no discretisation error at any h.",
    )

    tried_at = ({"batch_size": 4, "start_clusters": 3, "step_size": 0.7}, {"batch_size": 100, "start_clusters": 2})

    def packed(self, sticks: bool) -> Array:
        return np.array([self.step_size])

    def textbook_move(self, rng, x, shape, pull, sticks):
        h = self.step_size
        jumps = rng.poisson(x * np.exp(-h) / (1 - np.exp(-h)))
        return (1 - np.exp(-h)) * rng.standard_gamma(shape + jumps)
