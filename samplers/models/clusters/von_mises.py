"""Clusters of directions on the sphere S^{d−1} under their conjugate prior at a fixed concentration κ, compiled.

x ~ vMF(μ, κ) has the density C(κ) e^{κ μ·x} with C(r) = r^ν/((2π)^{d/2} I_ν(r)), ν = d/2 − 1, and μ ~ vMF(m, κ₀).
Given n directions with the sum s, μ ~ vMF(R/‖R‖, ‖R‖) with R = κ₀m + κs. Their evidence is C(κ₀) C(κ)ⁿ/C(‖R‖), and the
next direction has the density C(κ) C(‖R‖)/C(‖R + κx‖) (Banerjee et al. 2005; Gopal & Yang 2014).
"""

from math import exp, expm1, log, log1p, pi, sqrt

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.targets.base import Array

KAPPA, LOG_C, LOG_C0, FIRST = range(4)
"""The prior is a matrix of one row: κ, log C(κ), log C(κ₀), and from FIRST on κ₀m."""
MORE = 3
"""The numbers that :func:`predict` writes behind R: ‖R‖², log C(κ) C(‖R‖), κ."""
LARGE_ORDER = 40
"""From this order on the expansion for large orders has an error below 3e-10."""
SMALL = 1e-6
"""The concentration on S² up to which C differs from C(0) by less than rounding."""


@jit.helper
def log_scaled_bessel(order, x):
    """log I_ν(x)/x^ν for orders of LARGE_ORDER or more: the uniform expansion (DLMF 10.41.3)."""
    z = x / order
    root = sqrt(1 + z * z)
    p = 1 / root
    q = p * p
    u1 = p * (3 - 5 * q) / 24
    u2 = q * (81 - q * (462 - 385 * q)) / 1152
    u3 = p * q * (30375 - q * (369603 - q * (765765 - 425425 * q))) / 414720
    u4 = q * q * (4465125 - q * (94121676 - q * (349922430 - q * (446185740 - 185910725 * q)))) / 39813120
    terms = log1p((u1 + (u2 + (u3 + u4 / order) / order) / order) / order)
    return order * (root - log(order * (1 + root))) - log(2 * pi * order * root) / 2 + terms


@jit.helper
def log_c(dim, r):
    """log C(r) on the sphere of unit vectors of ``dim`` numbers, for r ≥ 0, to within 5e-10.

    Elementary on S². Else by h_ν = g_{ν+1}/g_ν = 1/(2(ν + 1) + x² h_{ν+1}) for g_ν = I_ν(x)/x^ν, from a large order
    down, the direction in which errors shrink.
    """
    if dim == 3:
        return -log(4 * pi) if r < SMALL else log(r / (2 * pi)) - r - log(-expm1(-2 * r))
    order = dim / 2 - 1
    steps = max(0, int(np.ceil(LARGE_ORDER - order)))
    total = log_scaled_bessel(order + steps, r)
    if steps:
        ratio = exp(log_scaled_bessel(order + steps + 1, r) - total)
        for k in range(steps - 1, -1, -1):
            ratio = 1 / (2 * (order + k + 1) + r * r * ratio)
            total -= log(ratio)
    return -dim / 2 * log(2 * pi) - total


@jit.helper
def add(known, x, sign):
    """Add a direction x (d,) to n, Σx, or take it away; of an empty cluster nothing is left."""
    known[0] += sign
    if known[0] < 0.5:
        known[:] = 0.0
        return
    for j in range(x.size):
        known[1 + j] += sign * x[j]


@jit.helper
def squared_length(known, prior):
    """‖R‖²."""
    total = 0.0
    for j in range(known.size - 1):
        total += (prior[0, FIRST + j] + prior[0, KAPPA] * known[1 + j]) ** 2
    return total


@jit.helper
def predict(known, prior, out):
    """Write the distribution of the next direction, (d + MORE,)."""
    dim, kappa = known.size - 1, prior[0, KAPPA]
    for j in range(dim):
        out[j] = prior[0, FIRST + j] + kappa * known[1 + j]
    square = squared_length(known, prior)
    out[dim] = square
    out[dim + 1] = prior[0, LOG_C] + log_c(dim, sqrt(square))
    out[dim + 2] = kappa


@jit.helper
def next_log_density(x, fit):
    """The log density of the next direction at x, by what :func:`predict` wrote."""
    dim, dot = x.size, 0.0
    for j in range(dim):
        dot += fit[j] * x[j]
    kappa = fit[dim + 2]
    return fit[dim + 1] - log_c(dim, sqrt(max(fit[dim] + kappa * (2 * dot + kappa), 0.0)))


@jit.helper
def log_evidence(known, prior):
    """log p(the directions of a cluster), with μ integrated out."""
    dim = known.size - 1
    return prior[0, LOG_C0] + known[0] * prior[0, LOG_C] - log_c(dim, sqrt(squared_length(known, prior)))


@jit.helper
def draw(rng, known, prior, out):
    """Draw μ ~ vMF(R/‖R‖, ‖R‖) by Wood's rejection (1994), (d,)."""
    dim = known.size - 1
    r = sqrt(squared_length(known, prior))
    b = (dim - 1) / (2 * r + sqrt(4 * r * r + (dim - 1) ** 2))
    x0 = (1 - b) / (1 + b)
    # 1 − x₀², without the digits that the difference loses.
    c = r * x0 + (dim - 1) * log(4 * b / (1 + b) ** 2)
    while True:
        one, two = rng.standard_gamma((dim - 1) / 2), rng.standard_gamma((dim - 1) / 2)
        z = one / (one + two)
        # 1 − w = 2bz/(1 − (1 − b)z), small where r is large.
        below = 2 * b * z / (1 - (1 - b) * z)
        w = 1 - below
        if r * w + (dim - 1) * log(1 - x0 * w) - c >= -rng.standard_exponential():
            break
    along, square = 0.0, 0.0
    for j in range(dim):
        out[j] = rng.standard_normal()
        along += out[j] * (prior[0, FIRST + j] + prior[0, KAPPA] * known[1 + j]) / r
    for j in range(dim):
        out[j] -= along * (prior[0, FIRST + j] + prior[0, KAPPA] * known[1 + j]) / r
        square += out[j] * out[j]
    across = sqrt(below * (2 - below) / square)
    for j in range(dim):
        out[j] = across * out[j] + w * (prior[0, FIRST + j] + prior[0, KAPPA] * known[1 + j]) / r


@jit.helper
def log_density(x, cluster, prior):
    """log C(κ) e^{κ μ·x} of a drawn cluster."""
    dot = 0.0
    for j in range(x.size):
        dot += cluster[j] * x[j]
    return prior[0, LOG_C] + prior[0, KAPPA] * dot


@jit.helper
def spread(known, cluster):
    """Σ (1 − μ·x) of a drawn cluster's directions."""
    total = known[0]
    for j in range(cluster.size):
        total -= cluster[j] * known[1 + j]
    return total


def prior_of(kappa: float, mean: Array, weight: float) -> Array:
    """The prior's matrix, (1, FIRST + d), of κ, m and κ₀."""
    dim = len(mean)
    return np.concatenate([[kappa, log_c(dim, kappa), log_c(dim, weight)], weight * mean])[None].copy()


def sums_of(x: Array, z: np.ndarray, n_slots: int) -> Array:
    """The statistics of each cluster, (slots, 1 + d), from the directions (N, d) and their clusters (N,)."""
    each = np.column_stack([np.ones(len(x)), x])
    return np.array([np.bincount(z, column, n_slots) for column in each.T]).T.copy()
