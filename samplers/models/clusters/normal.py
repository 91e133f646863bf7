"""Gaussian clusters in the plane under their conjugate prior, compiled.

μ, Σ ~ NIW(0, κ₀, ν₀, S₀): Σ ~ IW(ν₀, S₀) and μ | Σ ~ N(0, Σ/κ₀). Given n points with the sum s and the sum of squares
q it is NIW(m, κ, ν, S) again, with κ = κ₀ + n, ν = ν₀ + n, m = s/κ, S = S₀ + q − κ m mᵀ, and the next point has
Student's t distribution with ν − 1 degrees of freedom, the mean m and the scale S (κ + 1)/(κ (ν − 1)).
"""

from math import exp, inf, lgamma, log, log1p, pi, sqrt

import numpy as np

from sgmcmc_lab.samplers.compile import jit

KNOWN = 6
"""The statistics of a cluster: n, s₁, s₂, q₁₁, q₁₂, q₂₂."""
NEXT = 7
"""The numbers of the next point: the mean, the inverse scale matrix (11, 12, 22), the log density at the mean, ν −
1."""
DRAWN = 5
"""A drawn cluster: μ₁, μ₂, and the Cholesky factor L of Σ⁻¹ = LLᵀ (11, 21, 22)."""


@jit.helper
def add(known, x, sign):
    """Add a point x (2,), or take it away; of an empty cluster nothing is left that rounding would have left."""
    known[0] += sign
    if known[0] < 0.5:
        known[:] = 0.0
        return
    known[1] += sign * x[0]
    known[2] += sign * x[1]
    known[3] += sign * x[0] * x[0]
    known[4] += sign * x[0] * x[1]
    known[5] += sign * x[1] * x[1]


@jit.helper
def posterior(known, prior):
    """κ, ν, m₁, m₂, S₁₁, S₁₂, S₂₂; ``prior`` is (κ₀, ν₀, s) with S₀ = s I."""
    kappa, nu = prior[0] + known[0], prior[1] + known[0]
    m1, m2 = known[1] / kappa, known[2] / kappa
    return (
        kappa,
        nu,
        m1,
        m2,
        prior[2] + known[3] - kappa * m1 * m1,
        known[4] - kappa * m1 * m2,
        prior[2] + known[5] - kappa * m2 * m2,
    )


@jit.helper
def predict(known, prior, out):
    """Write the distribution of the next point, (NEXT,)."""
    kappa, nu, m1, m2, s11, s12, s22 = posterior(known, prior)
    freedom = nu - 1
    scale = (kappa + 1) / (kappa * freedom)
    determinant = s11 * s22 - s12 * s12
    out[0], out[1] = m1, m2
    out[2], out[3], out[4] = s22 / (determinant * scale), -s12 / (determinant * scale), s11 / (determinant * scale)
    # Γ((ν + 1)/2)/Γ((ν − 1)/2) = (ν − 1)/2: in the plane the constant is that of a Gaussian.
    out[5] = -log(2 * pi) - log(determinant * scale * scale) / 2
    out[6] = freedom


@jit.helper
def next_log_density(x, fit):
    """The log density of the next point at x, by what :func:`predict` wrote."""
    d1, d2 = x[0] - fit[0], x[1] - fit[1]
    square = fit[2] * d1 * d1 + 2 * fit[3] * d1 * d2 + fit[4] * d2 * d2
    return fit[5] - (fit[6] / 2 + 1) * log1p(square / fit[6])


@jit.helper
def log_evidence(known, prior):
    """log p(the points of a cluster), with μ and Σ integrated out, but for what is the same of every cluster."""
    kappa, nu, _, _, s11, s12, s22 = posterior(known, prior)
    # log Γ₂(ν/2) is log Γ(ν − 1) − ν log 2 and a constant.
    log_gammas = lgamma(nu - 1) - lgamma(prior[1] - 1) - known[0] * log(2 * pi)
    log_scales = prior[1] * log(prior[2]) - nu / 2 * log(s11 * s22 - s12 * s12)
    return log_gammas + log_scales + log(prior[0] / kappa)


@jit.helper
def draw(rng, known, prior, out):
    """Draw μ and Σ⁻¹ ~ W(ν, S⁻¹) by Bartlett's decomposition, (DRAWN,)."""
    kappa, nu, m1, m2, s11, s12, s22 = posterior(known, prior)
    c11 = sqrt(s22 / (s11 * s22 - s12 * s12))
    c22 = 1 / sqrt(s22)
    c21 = -s12 * c11 / s22
    a11 = sqrt(2 * rng.standard_gamma(nu / 2))
    a21 = rng.standard_normal()
    a22 = sqrt(2 * rng.standard_gamma((nu - 1) / 2))
    out[2], out[3], out[4] = c11 * a11, c21 * a11 + c22 * a21, c22 * a22
    # μ − m = L⁻ᵀ ξ/√κ.
    first, second = rng.standard_normal() / sqrt(kappa), rng.standard_normal() / sqrt(kappa)
    out[1] = second / out[4]
    out[0] = m1 + (first - out[3] * out[1]) / out[2]
    out[1] += m2


@jit.helper
def log_density(x, cluster):
    """log N(x; μ, Σ) of a drawn cluster."""
    d1, d2 = x[0] - cluster[0], x[1] - cluster[1]
    u1, u2 = cluster[2] * d1 + cluster[3] * d2, cluster[4] * d2
    return log(cluster[2] * cluster[4] / (2 * pi)) - (u1 * u1 + u2 * u2) / 2


@jit.helper
def squared_size(cluster):
    """tr Σ of a drawn cluster."""
    determinant = (cluster[2] * cluster[4]) ** 2
    return (cluster[2] ** 2 + cluster[3] ** 2 + cluster[4] ** 2) / determinant


@jit.helper
def draw_concentration(rng, alpha, n_clusters, n_points):
    """α given how many clusters the points have, with α ~ Gamma(1, 1) (Escobar & West 1995)."""
    one = rng.standard_gamma(alpha + 1)
    rate = 1 - log(one / (one + rng.standard_gamma(float(n_points))))
    odds = n_clusters / (n_points * rate)
    shape = n_clusters + (rng.random() * (1 + odds) < odds)
    return rng.standard_gamma(float(shape)) / rate


@jit.helper
def pick(rng, weights, n, total):
    """An index below n in proportion to the weights, whose sum is ``total``."""
    left = rng.random() * total
    last = 0
    for k in range(n):
        if weights[k] > 0:
            last = k
            left -= weights[k]
            if left < 0:
                break
    return last


@jit.helper
def weigh(logs, n):
    """Turn the first n logs of weights into the weights, over the largest, in place; their sum, 0 where all are −∞.

    All densities of a point that lies far from every cluster would underflow.
    """
    largest, total = -inf, 0.0
    for k in range(n):
        largest = max(largest, logs[k])
    for k in range(n):
        logs[k] = exp(logs[k] - largest) if logs[k] > -inf else 0.0
        total += logs[k]
    return total


@jit.helper
def seat(rng, known, logs, top, new):
    """Draw the slot of a point: k below ``top`` with probability ∝ N_k e^``logs[k]``, the first free one ∝ e^``new``.

    Returns it, and a number that is above every slot in use, the point's included.
    """
    free = -1
    for k in range(top):
        if known[k, 0] > 0:
            logs[k] += log(known[k, 0])
        else:
            logs[k] = -inf
            if free < 0:
                free = k
    if free < 0:
        free, top = top, top + 1
    logs[free] = new
    chosen = pick(rng, logs, top, weigh(logs, top))
    if known[top - 1, 0] == 0 and chosen < top - 1:
        top -= 1
    return chosen, top


@jit.helper
def count_together(z, shown, together):
    """Count which of the points that are shown are in one cluster, (shown, shown)."""
    for i in range(shown.size):
        for j in range(shown.size):
            together[i, j] += z[shown[i]] == z[shown[j]]


def sums_of(x: np.ndarray, z: np.ndarray, n_slots: int) -> np.ndarray:
    """The statistics of each cluster, (slots, KNOWN), from the points (N, 2) and their clusters (N,)."""
    each = np.column_stack([np.ones(len(x)), x, x[:, 0] ** 2, x[:, 0] * x[:, 1], x[:, 1] ** 2])
    return np.array([np.bincount(z, column, n_slots) for column in each.T]).T.copy()
