"""Pareto k̂ of leave-one-out cross-validation by importance sampling (Vehtari, Gelman & Gabry 2017).

The posterior without row i has the weights 1/p(row i | θ) on draws of the whole posterior. k̂ is the shape of the
generalised Pareto distribution that fits the largest of them (Vehtari et al. 2024). Where it is above about .7, the row
moves the posterior too far, and the weighted mean cannot be trusted.
"""

from math import log10

import numpy as np

from sgmcmc_lab.samplers.targets.base import Array

MOST_NUMBERS = 1_000_000
"""Numbers log p(row | θ) that are looked at: of every row for every draw."""


def limit(n: int) -> float:
    """k̂ up to which ``n`` draws give a mean that can be trusted, min(1 − 1/log₁₀ n, .7)."""
    return min(1 - 1 / log10(n), 0.7)


def shapes(log_likelihood: Array) -> tuple[Array, float]:
    """k̂ of each row, (rows,), and the sum of the log scores of rows left out, of log p(row | θ) (draws, rows).

    k̂ is nan of a row whose largest weights are all the same.
    """
    from arviz_stats.base import array_stats

    found, total = np.full(log_likelihood.shape[1], np.nan), 0.0
    for i, row in enumerate(log_likelihood.T):
        try:
            # It takes log p, the negative of the log weights.
            weights, found[i] = array_stats.psislw(row)
        except ValueError:
            weights = -row - np.logaddexp.reduce(-row)
        total += np.logaddexp.reduce(weights + row)
    return found, float(total)
