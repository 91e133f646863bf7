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
    """k̂ of each row, (rows,), and the sum of the log scores of rows left out, of log p(row | θ) (draws, rows)."""
    from arviz_stats.base import array_stats

    weights, found = array_stats.psislw(-log_likelihood, axis=0)
    # Normalised: log Σ w p.
    total = np.logaddexp.reduce(weights + log_likelihood, axis=0)
    return np.asarray(found), float(total.sum())
