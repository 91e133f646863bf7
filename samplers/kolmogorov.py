"""The Kolmogorov–Smirnov distance D_n of n exact independent draws: its mean and its band."""

from functools import lru_cache

import numpy as np
from scipy import stats

KOLMOGOROV_MEAN = float(np.sqrt(np.pi / 2) * np.log(2))
"""E sup |B| of a Brownian bridge B, .8687: the limit of √n E D_n."""


def baseline(n: float) -> float:
    """E D_n of ``n`` exact independent draws, √(π/2)·ln 2/√n = .8687/√n; the mean over columns has the same."""
    return KOLMOGOROV_MEAN / float(np.sqrt(n))


def band(n: float, level: float = 0.9, columns: int = 1) -> tuple[float, float]:
    """The central interval that holds the mean D_n of ``columns`` independent columns with probability ``level``.

    From the Kolmogorov distribution P(√n D_n ≤ x) = 1 − 2 Σ_{i≥1} (−1)^{i−1} e^{−2i²x²}, for n exact independent draws.
    """
    low, high = _kolmogorov_interval(level, columns)
    return low / float(np.sqrt(n)), high / float(np.sqrt(n))


@lru_cache(maxsize=64)
def _kolmogorov_interval(level: float, columns: int) -> tuple[float, float]:
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    if columns == 1:
        low, high = stats.kstwobign.ppf(tails)
        return float(low), float(high)
    # The distribution of the mean: the CDF's increments on a fine grid, convolved with themselves.
    grid = np.linspace(0, 3, 2**12 + 1)
    mass = np.diff(stats.kstwobign.cdf(grid))
    size = 2 ** int(np.ceil(np.log2(mass.size * columns)))
    total = np.fft.irfft(np.fft.rfft(mass, size) ** columns, size).cumsum()
    # A sum counts its own cell, so it holds up to half a cell above the middles of its parts.
    means = (np.arange(size) + (columns + 1) / 2) * grid[1] / columns
    low, high = np.interp(tails, np.maximum.accumulate(total), means)
    return float(low), float(high)
