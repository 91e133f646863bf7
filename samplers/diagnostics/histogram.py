"""A column's histogram as a picture shows it: densities of groups of its bins, where its draws are, and quantiles."""

import numpy as np
from numba import types
from numpy.typing import ArrayLike, NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.running_statistics import N_BINS, Statistics
from sgmcmc_lab.samplers.targets.base import Array

LOWEST, HIGHEST = 0.001, 0.999
"""The bins between these quantiles of the draws count as occupied."""
ROOM = 8
"""The margin at either end is one bin for this many occupied ones."""
LEAST_ROOM = 4


@jit.reading(types.void(jit.integer_matrix, jit.int64, jit.integers))
def add_counts(bins, k, out):
    """Add the histogram of column ``k`` to out (N_BINS + 2,)."""
    for i in range(bins.shape[1]):
        out[i] += bins[k, i]


@jit.reading(jit.int64(jit.integers, jit.integers))
def occupied_bins(counts, out):
    """The first edge and the last of the bins that hold the draws, but for a thousandth at either end, with some room.

    counts (N_BINS + 2,), out (2,). Returns 0 where no draw is within the histogram, else 1.
    """
    n, total = counts.shape[0] - 2, 0
    for i in range(n):
        total += counts[i + 1]
    if total == 0:
        return 0
    first, last, below = -1, -1, 0
    for i in range(n):
        below += counts[i + 1]
        if first < 0 and below >= LOWEST * total:
            first = i
        if last < 0 and below >= HIGHEST * total:
            last = i
            break
    room = max(LEAST_ROOM, (last - first) // ROOM)
    out[0], out[1] = max(first - room, 0), min(last + room, n)
    return 1


@jit.reading(jit.int64(jit.int64, jit.int64, jit.int64, jit.int64, jit.integers, jit.integers))
def bars_of_bins(first, last, bars, n_bins, starts, ends):
    """The edges where bars start and end, about ``bars`` of them from the edge ``first`` to ``last`` and one bin to
    either side, of which each is a whole number of ``n_bins`` bins. Returns how many.

    starts and ends: (2·bars + 4,).
    """
    group, rest = (last - first) // bars, (last - first) % bars
    if 2 * rest > bars or (2 * rest == bars and group % 2 == 1):
        group += 1
    group, n = max(group, 1), 0
    for edge in range(max(first - 1, 0), min(last + 1, n_bins), group):
        starts[n], ends[n] = edge, min(edge + group, n_bins)
        n += 1
    return n


@jit.reading(types.void(jit.integer_matrix, jit.int64, jit.integers, jit.integers, jit.vector, jit.int64, jit.vector))
def bar_densities(bins, k, starts, ends, widths, total, out):
    """The share of draws of the weight ``total`` with column ``k`` between the edges ``starts`` and ``ends``,
    over the width of each.
    """
    for j in range(starts.shape[0]):
        count = 0
        for i in range(starts[j] + 1, ends[j] + 1):
            count += bins[k, i]
        out[j] = count / (max(total, 1) * widths[j])


@jit.reading(types.void(jit.integer_matrix, jit.matrix, jit.vector, jit.matrix, jit.vector))
def box_quantiles(bins, positions, levels, out, least):
    """Quantiles at ascending ``levels`` of each of the first columns, linear within a bin, out (columns, levels), and
    the lower edge of the lowest bin that was hit, least (columns,).

    positions (columns, N_BINS + 1): where the edges are. Values outside are put at the ends.
    """
    last = positions.shape[1] - 1
    for j in range(positions.shape[0]):
        total = 0
        for i in range(bins.shape[1]):
            total += bins[j, i]
        below, level, hit = 0, 0, False
        for i in range(bins.shape[1]):
            before, below = below, below + bins[j, i]
            left, right = positions[j, max(i - 1, 0)], positions[j, min(i, last)]
            if not hit and below >= 1:
                hit, least[j] = True, left
            while level < levels.shape[0] and below >= levels[level] * total:
                out[j, level] = left + (levels[level] * total - before) / (below - before) * (right - left)
                level += 1
            if hit and level == levels.shape[0]:
                break


def occupied(statistics: list[Statistics], k: int) -> tuple[int, int] | None:
    """The first edge and the last of the bins of column ``k`` that hold the draws of all these together, but for a
    thousandth at either end, with some room; None where there are none.
    """
    jit.prepare([add_counts, occupied_bins])
    counts, out = np.zeros(N_BINS + 2, dtype=np.int64), np.empty(2, dtype=np.int64)
    for each in statistics:
        add_counts(each.sums.bins, k, counts)
    return (int(out[0]), int(out[1])) if occupied_bins(counts, out) else None


def groups(first: int, last: int, bars: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The edges where about so many bars start and end, each of whole bins, from the edge ``first`` to ``last``."""
    jit.prepare([bars_of_bins])
    starts, ends = np.empty((2, 2 * bars + 4), dtype=np.int64)
    n = bars_of_bins(first, last, bars, N_BINS, starts, ends)
    return starts[:n], ends[:n]


def densities(
    statistics: Statistics, k: int, starts: NDArray[np.int64], ends: NDArray[np.int64], widths: Array
) -> Array:
    """The density of column ``k`` in groups of bins, from the edges ``starts`` to ``ends``, that are so wide."""
    jit.prepare([bar_densities])
    out = np.empty(len(starts))
    bar_densities(statistics.sums.bins, k, starts, ends, widths, statistics.total, out)
    return out


def quantiles(statistics: Statistics, positions: Array, levels: ArrayLike) -> tuple[Array, Array]:
    """Quantiles of the first columns at ascending ``levels`` (columns, levels), and the lowest bins that were hit
    (columns,), as positions, of which the edges (columns, N_BINS + 1) have these; of no column without draws.
    """
    jit.prepare([box_quantiles])
    at = np.array(levels, dtype=np.float64)
    d = len(positions) if statistics.n_draws else 0
    out, least = np.empty((d, len(at))), np.empty(d)
    box_quantiles(statistics.sums.bins, positions[:d], at, out, least)
    return out, least
