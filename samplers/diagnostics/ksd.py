"""The kernel Stein discrepancy of draws from a target, from the gradient ∇U alone (Gorham & Mackey 2017).

With the score s = −∇U, the inverse multiquadric kernel k(x, y) = (c² + ‖x − y‖²)^β, u = c² + ‖x − y‖² and δ = x − y,
the Stein kernel is

    k_p(x, y) = s(x)·s(y) k + s(x)·∇_y k + s(y)·∇_x k + ∇_x·∇_y k
              = u^β s(x)·s(y) − 2β u^{β−1} (s(x) − s(y))·δ − 2β d u^{β−1} − 4β(β − 1) u^{β−2} ‖δ‖².

E k_p(x, Y) = 0 for Y from the target and every x, so that the V-statistic KSD² = Σ_ij k_p(x_i, x_j)/n² of exact
independent draws has the expectation E k_p(X, X)/n: the terms i ≠ j have mean 0. With −1 < β < 0 the discrepancy goes
to 0 only where the draws converge to the target, for targets with tails like the Gaussian's (their Theorem 8). It reads
gradients where the draws are, and no normalising constant: of modes far apart it can tell neither the weights nor that
one is missing (Wenliang & Kanagawa 2020).

Distances are in the standard deviations of the target's columns, a linear change of coordinates that leaves all this as
it is: the discrepancy does not depend on the units of θ.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.running_statistics import Statistics
from sgmcmc_lab.samplers.targets.base import LINE, Array, Target

C, BETA = 1.0, -0.5
"""The kernel's c, in standard deviations of the target, and the exponent of Gorham & Mackey."""
MOST = 1_000
"""Draws in the double sum, whose cost is n²d/2."""
MOST_NUMBERS = 100_000_000
"""Numbers that the gradients of these draws look at: with much data there are fewer draws."""
FEWEST = 100
"""Draws that are taken of whatever size the data are."""


class Discrepancy(NamedTuple):
    """The kernel Stein discrepancy of some draws."""

    value: float
    """The root of the V-statistic."""
    expected: float
    """The root mean square of as many independent draws from the target: that of the mean of k_p(x, x)/n."""


@jit.loop(types.void(jit.matrix, jit.matrix, types.float64, types.float64, jit.vector))
def stein_sums(points, scores, c, beta, out):
    """Σ k_p(x_i, x_j) over all i ≠ j, and Σ k_p(x_i, x_i), out (2,), of points (n, d) with the scores −∇U."""
    n, dim = points.shape
    apart = alone = 0.0
    for i in range(n):
        row = 0.0
        for j in range(i):
            distance = scored = crossed = 0.0
            for k in range(dim):
                delta = points[i, k] - points[j, k]
                distance += delta * delta
                scored += scores[i, k] * scores[j, k]
                crossed += (scores[i, k] - scores[j, k]) * delta
            u = c * c + distance
            power = u**beta if beta != -0.5 else 1 / np.sqrt(u)
            first = 2 * beta * power / u
            row += power * scored - first * (crossed + dim) - 2 * (beta - 1) * first / u * distance
        apart += row
        square = 0.0
        for k in range(dim):
            square += scores[i, k] * scores[i, k]
        alone += (c * c) ** beta * square - 2 * beta * dim * (c * c) ** (beta - 1)
    out[0], out[1] = 2 * apart, alone


def is_defined(target: Target) -> bool:
    """Whether the target has one: a density on all of ℝᵈ whose coordinates are the columns.

    On (0, ∞) and on the simplex the integration by parts behind it has terms at the boundary.
    """
    return target.support == LINE and target.of_coordinates


def of_scores(points: Array, scores: Array, c: float = C, beta: float = BETA) -> Discrepancy:
    """The discrepancy of points (n, d) with the scores −∇U there, in units of about the target's width."""
    jit.prepare([stein_sums])
    out, n = np.empty(2), len(points)
    stein_sums(np.array(points, dtype=float, order="C"), np.array(scores, dtype=float, order="C"), c, beta, out)
    apart, alone = out.tolist()
    # The V-statistic is a squared norm; rounding may put it below 0.
    return Discrepancy(float(np.sqrt(max(apart + alone, 0.0))) / n, float(np.sqrt(alone)) / n)


def of_draws(target: Target, theta: Array) -> Discrepancy:
    """The discrepancy of all draws θ (n, dim); nan if a gradient is not finite."""
    scales = np.sqrt([column.variance for column in target.columns])
    with np.errstate(all="ignore"):
        return of_scores(theta / scales, -target.gradient_at(theta) * scales)


def thinned(statistics: Statistics, target: Target) -> Array:
    """Draws (n, dim) of the history of all its chains, evenly spaced, as many as the double sum takes; a copy."""
    history = statistics.history()
    chains, kept, dim = history.shape
    most = min(MOST, max(FEWEST, MOST_NUMBERS // (max(len(target.data()), 1) * dim)))
    n = min(kept, max(most // chains, 1))
    at = np.arange(1, n + 1) * kept // max(n, 1) - 1
    return np.array(history[:, at].reshape(-1, dim), order="C")


def of_statistics(statistics: Statistics, target: Target) -> Discrepancy:
    """The discrepancy of the :func:`thinned` history."""
    return of_draws(target, thinned(statistics, target))
