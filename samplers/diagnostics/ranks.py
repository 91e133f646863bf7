"""The ranks of each chain's draws among those of all chains (Vehtari et al. 2021, Section 5)."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sgmcmc_lab.samplers.targets.base import Array

BINS = 20


def counts(draws: Array, bins: int = BINS) -> NDArray[np.int64]:
    """How many draws of each chain have a rank in each of ``bins`` even parts of all ranks, (chains, bins), of draws
    (chains, n). Equal draws have their mean rank.
    """
    ranks = stats.rankdata(draws, axis=None).reshape(draws.shape)
    # Ranks are 1 to the number of draws, and a mean rank is half of a whole number: integers alone decide.
    part = (2 * ranks - 1).astype(np.int64) * bins // (2 * draws.size)
    return np.array([np.bincount(row, minlength=bins) for row in part])


@lru_cache(maxsize=256)
def band(chains: int, n: int, level: float = 0.99, bins: int = BINS) -> tuple[float, float]:
    """The ends between which a count is with this probability, where all draws are independent and of one distribution:
    hypergeometric, for a bin has a fixed share of all ranks.
    """
    law = stats.hypergeom(chains * n, n, round(chains * n / bins))
    low, high = law.ppf([(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
