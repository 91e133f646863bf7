"""Effective sample sizes of quantiles, and of the first draws of a run (Vehtari et al. 2021, Sections 4.3 and 4.4)."""

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from sgmcmc_lab.samplers import convergence
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.convergence import below, effective_size
from sgmcmc_lab.samplers.targets.base import Array

LEVELS = np.arange(1, 20) / 20
"""The probabilities of the quantiles: 5 % to 95 %."""
PARTS = 10
"""Lengths of the run at which its effective sizes are known."""


class Growth(NamedTuple):
    """Bulk and tail ESS of the first draws of each chain."""

    draws: NDArray[np.int64]
    """Draws of all chains."""
    bulk: Array
    tail: Array


@jit.loop(types.void(jit.cube, jit.vector, jit.matrix, jit.vector))
def quantile_sizes(history, limits, work, out):
    """The effective sizes, out (limits,), of the indicators of draws (chains, n, 1) that are at most each limit."""
    chains, kept = history.shape[0], history.shape[1]
    for i in range(limits.shape[0]):
        below(history, kept, 0, limits[i], work[0])
        out[i] = effective_size(work[0], 2 * chains, kept // 2, work[1])


def of_quantiles(history: Array, column: int) -> Array:
    """The ESS of each quantile of ``LEVELS`` of one column of draws (chains, n, columns); nan where there is none."""
    if convergence.refusal(history, column):
        return np.full(len(LEVELS), np.nan)
    jit.prepare([quantile_sizes])
    draws = np.array(history[..., [column]], dtype=float, order="C")
    out = np.empty(len(LEVELS))
    quantile_sizes(draws, np.quantile(draws, LEVELS), np.empty((2, draws.size)), out)
    return out


def of_growth(history: Array, column: int) -> Growth:
    """The ESS of the first tenth of the draws (chains, n, columns), of the first two tenths, and so on."""
    chains, kept = history.shape[:2]
    lengths = np.unique(np.arange(1, PARTS + 1) * kept // PARTS)
    lengths = lengths[lengths >= convergence.FEWEST]
    found = [convergence.summary(history[:, :n], column) for n in lengths]
    bulk, tail = (np.array([getattr(one, name) for one in found]) for name in ("ess_bulk", "ess_tail"))
    return Growth(lengths * chains, bulk, tail)
