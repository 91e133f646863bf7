"""The Kolmogorov–Smirnov distance D_n = sup |F_n − F| to the target, and what exact draws would have.

The score of Baker et al. 2018 (Fig 2) is the mean of D_n over the columns of ``target.ks_columns``: on the
simplex these are the d − 1 odds of the Rosenblatt transform, which are independent under the target.
"""

from math import exp, isnan, log
from weakref import WeakKeyDictionary

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.running_statistics import Statistics, bin_edges
from sgmcmc_lab.samplers.targets.base import Array, Column, Target

_EDGES: WeakKeyDictionary[Column, tuple[Array, Array]] = WeakKeyDictionary()


def edges_and_cdf(column: Column) -> tuple[Array, Array]:
    """The N_BINS + 1 edges of a column's histogram and its exact CDF there. Kept as long as the column lives."""
    found = _EDGES.get(column)
    if found is None:
        edges = bin_edges(column)
        found = _EDGES[column] = edges, np.asarray(column.cdf(edges))
    return found


def prepare(target: Target) -> None:
    """Find the exact CDFs with which draws of this target are compared, once for all who ask."""
    for k in target.ks_columns:
        edges_and_cdf(target.columns[k])


def is_ready(target: Target) -> bool:
    """Whether they are known. Some take a tenth of a second."""
    return all(target.columns[k] in _EDGES for k in target.ks_columns)


@jit.reading(jit.float64(jit.integer_matrix, jit.int64, jit.vector, jit.int64))
def largest_gap(bins, k, cdf, total):
    """D_n of column ``k``: sup |F_n − F| over the edges of its histogram, where F is ``cdf``; nan without draws.

    ``total``: the weight of all draws.
    """
    worst, below = 0.0, 0
    for i in range(cdf.shape[0]):
        below += bins[k, i]
        gap = abs(below / total - cdf[i])
        if not gap <= worst:
            worst = gap
            if isnan(gap):
                break
    return worst


def empirical_cdf(statistics: Statistics, k: int) -> Array:
    """F_n of column ``k`` at the edges of its histogram, (N_BINS + 1,)."""
    return np.cumsum(statistics.counts(k)[:-1]) / statistics.total


def distance(statistics: Statistics, k: int) -> float:
    """D_n of column ``k``: sup |F_n − F| over the edges of its histogram; nan without draws.

    F_n is exact at every edge, so this is at most the sup over all x, and below it by at most the largest
    exact mass of a bin.
    """
    jit.prepare([largest_gap])
    _, cdf = edges_and_cdf(statistics.columns[k])
    return largest_gap(statistics.sums.bins, k, cdf, statistics.total)


def mean_distance(statistics: Statistics, target: Target) -> float:
    """The mean of :func:`distance` over ``target.ks_columns``: the score of Baker et al. 2018."""
    return float(np.mean([distance(statistics, k) for k in target.ks_columns]))


_TERMS = 100_000
"""The largest number of terms of a continued fraction; their number grows like the root of the shapes."""
_SMALLEST = 1e-300


@jit.helper
def _fraction(a, b, x):
    """The continued fraction of I_x(a, b) (DLMF 8.17.22), by the method of Lentz."""
    above, below = 1.0, 1 - (a + b) * x / (a + 1)
    below = 1 / (below if abs(below) > _SMALLEST else _SMALLEST)
    value = below
    for m in range(1, _TERMS):
        for part in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            below, above = 1 + part * below, 1 + part / above
            below = 1 / (below if abs(below) > _SMALLEST else _SMALLEST)
            above = above if abs(above) > _SMALLEST else _SMALLEST
            value *= below * above
        if not abs(below * above - 1) > 1e-15:
            break
    return value


@jit.helper
def _odds_cdf(odds, a, b, log_beta):
    """P(X/(1 − X) < odds) of X ~ Beta(a, b), where ``log_beta`` is log B(a, b)."""
    if odds <= 0:
        return 0.0
    # The share and the rest have all their digits.
    share, rest = (odds / (1 + odds), 1 / (1 + odds)) if odds < 1 else (1 / (1 + 1 / odds), 1 / odds / (1 + 1 / odds))
    if rest <= 0:
        return 1.0
    front = exp(a * log(share) + b * log(rest) - log_beta)
    if share < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, share) / a
    return 1 - front * _fraction(b, a, rest) / b


@jit.reading(jit.float64(jit.vector, jit.float64, jit.float64, jit.float64))
def odds_gap(values, a, b, log_beta):
    """D_n of ascending odds of a Beta(a, b) share: max_i max(i/n − F(x_i), F(x_i) − (i−1)/n); nan where F is."""
    worst, n = 0.0, values.size
    for i in range(n):
        below = _odds_cdf(values[i], a, b, log_beta)
        gap = max((i + 1) / n - below, below - i / n)
        if not gap <= worst:
            worst = gap
            if isnan(gap):
                break
    return worst


def odds_constants(column: Column) -> tuple[float, float, float] | None:
    """The constants of :func:`odds_gap` for a column; None where it is not one of odds."""
    return None if column.odds_of is None else (*column.odds_of, float(special.betaln(*column.odds_of)))


def of_values(column: Column, values: Array, weights: Array | None = None) -> float:
    """The exact one-sample D_n of ``values`` (n,): max_i max(i/n − F(x_(i)), F(x_(i)) − (i−1)/n).

    ``weights`` (n,): of the values, where they are not equal.
    """
    if weights is not None:
        order = np.argsort(values)
        above = np.cumsum(weights[order]) / weights.sum()
        exact, below = np.asarray(column.cdf(values[order])), np.concatenate([[0.0], above[:-1]])
        return float(max((above - exact).max(), (exact - below).max()))
    constants = odds_constants(column)
    if constants is not None:
        jit.prepare([odds_gap])
        return float(odds_gap(np.sort(values), *constants))
    cdf = np.asarray(column.cdf(np.sort(values)))
    rank = np.arange(len(cdf) + 1) / len(cdf)
    return float(max((rank[1:] - cdf).max(), (cdf - rank[:-1]).max()))


def of_draws(target: Target, theta: Array, weights: Array | None = None) -> float:
    """The score of Baker et al. 2018 for stored draws θ (n, dim): the mean of :func:`of_values` over ``ks_columns``."""
    values = target.values(theta)
    columns = target.columns
    return float(np.mean([of_values(columns[k], values[:, k], weights) for k in target.ks_columns]))
