"""The rungs of tempered samplers: chains at higher temperatures beside each chain, and the swaps of neighbours.

A chain has K rungs. The first is θ, whose distribution is e^{−U}; rung k has e^{−U/T_k}. Behind θ each hotter rung has
a block of its position (dim numbers), the swaps with the rung below it that were proposed, and those that were made.
"""

from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.parameters import Count, Real
from sgmcmc_lab.samplers.targets.base import Target


@jit.helper
def temperatures(n_rungs, hottest):
    """T_k = T_K^{(k−1)/(K−1)}, (K,)."""
    out = np.empty(n_rungs)
    for k in range(n_rungs):
        out[k] = exp(log(hottest) * k / (n_rungs - 1))
    return out


@jit.helper
def take_rungs(state, rungs):
    """Copy the rungs of all chains to ``rungs`` (K, chains, dim), where each rung is one matrix."""
    n_rungs, n_chains, dim = rungs.shape
    rungs[0] = state.position
    for k in range(1, n_rungs):
        for c in range(n_chains):
            for i in range(dim):
                rungs[k, c, i] = state.momentum[c, (k - 1) * (dim + 2) + i]


@jit.helper
def put_rungs(state, rungs):
    """Copy them back."""
    n_rungs, n_chains, dim = rungs.shape
    for k in range(n_rungs):
        for c in range(n_chains):
            for i in range(dim):
                if k == 0:
                    state.position[c, i] = rungs[k, c, i]
                else:
                    state.momentum[c, (k - 1) * (dim + 2) + i] = rungs[k, c, i]


@jit.inlined
def swap(rng, state, rungs, c, low, log_ratio):
    """Swap the rungs ``low`` and ``low`` + 1 of a chain with probability min(1, e^log_ratio); whether it did.

    A ratio that is not finite swaps nothing: there one of the two energies is not a number to compare.
    """
    dim = rungs.shape[2]
    at = low * (dim + 2) + dim
    state.momentum[c, at] += 1
    accepted = rng.random() < exp(log_ratio) and abs(log_ratio) < inf
    if accepted:
        state.momentum[c, at + 1] += 1
        for i in range(dim):
            kept = rungs[low, c, i]
            rungs[low, c, i] = rungs[low + 1, c, i]
            rungs[low + 1, c, i] = kept
    return accepted


@jit.start
def start(rng, position, auxiliary, model, params):
    """All rungs of a chain begin where the chain does."""
    dim = position.shape[1]
    for c in range(position.shape[0]):
        for k in range(auxiliary.shape[1] // (dim + 2)):
            for i in range(dim):
                auxiliary[c, k * (dim + 2) + i] = position[c, i]


class Tempered(Sampler):
    """A sampler with K rungs at temperatures in geometric progression, T_k = T_K^{(k−1)/(K−1)}."""

    stationary_start = False
    start = start

    rungs = Count(
        4,
        bounds=(2, 12),
        tex="K",
        label="Rungs K",
        doc="How many chains at different temperatures each chain consists of. Neighbours swap more often where there are more.",
    )
    hottest = Real(
        10.0,
        bounds=(1.05, 1000.0),
        log=True,
        tex="T_K",
        label="Hottest temperature",
        doc="The temperature of the last rung; those between are in geometric progression. It must be high enough for that rung to cross the barriers.",
    )

    @property
    def ladder(self) -> NDArray[np.float64]:
        """The temperatures of the rungs, (K,)."""
        return np.asarray(self.hottest ** (np.arange(self.rungs) / (self.rungs - 1)))

    @property
    def gradients_per_step(self) -> int:
        return int(self.rungs)

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return np.zeros((self.rungs - 1) * (target.dim + 2))
