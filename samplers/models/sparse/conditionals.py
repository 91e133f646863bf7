"""The full conditionals of the probit lasso and of the lasso, compiled, and the loop that draws from them.

Latent variables are the z of the data, of a probit lasso, and the scales τ of a lasso's coefficients. The global half
of a sweep draws the variables given all of them, by sums that each fresh one updates.
"""

from math import exp, sqrt

import numpy as np
from numba import types

from sgmcmc_lab.samplers.compile import jit

FLAT = 0.45
"""From here on, in standard deviations above the mean, a tail is drawn by way of an exponential."""
TINY = 1e-100
"""The smallest |w| that a scale is drawn for: so that nothing is divided by 0."""


@jit.helper
def above_zero(rng, mean):
    """N(mean, 1) above 0 (Robert 1995): normals until one is, or an exponential that is tangent to the tail."""
    low = -mean
    if low < FLAT:
        while True:
            e = rng.standard_normal()
            if e > low:
                return mean + e
    rate = (low + sqrt(low * low + 4)) / 2
    while True:
        e = rng.standard_exponential() / rate
        away = low + e - rate
        # So that a mean that is no number ends the search, too.
        if not rng.random() > exp(-away * away / 2):
            return e


@jit.helper
def inverse_gaussian(rng, mean, shape):
    """A draw of InverseGaussian(mean, shape) (Michael, Schucany & Haas 1976).

    The smaller root is mean/(1 + r + √(2r + r²)), r = mean·y/2·shape: as a difference, the usual form, it cancels where
    the mean is large, that is where a coefficient is small.
    """
    y = rng.standard_normal()
    r = mean * y * y / (2 * shape)
    ratio = 1 / (1 + r + sqrt(r) * sqrt(2 + r))
    if rng.random() * (1 + ratio) <= 1:
        return mean * ratio
    return mean / ratio


@jit.helper
def draw_precision(rng, w, rate, sd):
    """1/τ² of one coefficient: InverseGaussian(λσ/|w|, λ²)."""
    return inverse_gaussian(rng, rate * sd / max(abs(w), TINY), rate * rate)


@jit.helper
def factor_and_solve(gram, precisions, linear, factor, solved):
    """The Cholesky factor L of A = XᵀX + D⁻¹, and v = L⁻¹Xᵀz."""
    d = len(linear)
    for i in range(d):
        for j in range(i + 1):
            total = gram[i, j]
            if i == j:
                total += precisions[i]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = sqrt(total) if i == j else total / factor[j, j]
        total = linear[i]
        for k in range(i):
            total -= factor[i, k] * solved[k]
        solved[i] = total / factor[i, i]


@jit.helper
def pick(rng, order, j):
    """The j-th of the different ones that are chosen at random; ``order`` is a permutation, whichever."""
    at = j + int(rng.random() * (len(order) - j))
    chosen = order[at]
    order[at] = order[j]
    order[j] = chosen
    return chosen


@jit.loop(
    types.void(
        jit.rng_type, jit.matrix, jit.matrix, types.float64, types.boolean, types.boolean, jit.vector, jit.vector,
        jit.integers, jit.vector, jit.vector, jit.vector, jit.vector, types.int64, jit.matrix,
    )
)  # fmt: skip
def sweeps(rng, x, gram, rate, probit, collapsed, prior, z, order, linear, w, precisions, scales, size, out):
    """``len(out)`` sweeps in place, each with ``size`` latent variables; ``out`` (sweeps, d) are the w.

    x (N, d), z (N,): what is regressed on x; of a probit lasso it is latent and positive, for both are times the sign
    that is known. ``linear`` is Xᵀz, ``precisions`` are 1/τ² and ``scales`` are σ² and zᵀz. ``prior`` are the shape and
    the rate of that of 1/σ².
    ``collapsed``: the scale, σ² or that of all z together, is drawn with w integrated out.
    """
    n, d = x.shape
    factor, solved = np.zeros((d, d)), np.empty(d)
    for t in range(len(out)):
        if probit:
            if size == n:
                # Sums that begin anew: what rounding left in old ones would grow with every g.
                z[:] = 0.0
                linear[:] = 0.0
                scales[1] = 0.0
            for j in range(size):
                i = j if size == n else pick(rng, order, j)
                mean = 0.0
                for k in range(d):
                    mean += x[i, k] * w[k]
                fresh = above_zero(rng, mean)
                moved = fresh - z[i]
                scales[1] += moved * (fresh + z[i])
                for k in range(d):
                    linear[k] += moved * x[i, k]
                z[i] = fresh
        else:
            for j in range(size):
                k = j if size == d else pick(rng, order, j)
                precisions[k] = draw_precision(rng, w[k], rate, sqrt(scales[0]))
        factor_and_solve(gram, precisions, linear, factor, solved)
        rest = scales[1]
        for k in range(d):
            rest -= solved[k] * solved[k]
        if collapsed and probit:
            # The z, whose law given τ is ∝ exp(−rest/2) on a cone, times g: g² ~ Gamma(N/2, rest/2).
            g = sqrt(2 * rng.standard_gamma(n / 2) / rest)
            scales[1] *= g * g
            for i in range(n):
                z[i] *= g
            for k in range(d):
                linear[k] *= g
                solved[k] *= g
        elif collapsed:
            scales[0] = (prior[1] + rest / 2) / rng.standard_gamma(prior[0] + n / 2)
        elif not probit:
            loss = scales[1]
            for i in range(d):
                inner = -2 * linear[i] + precisions[i] * w[i]
                for j in range(d):
                    inner += gram[i, j] * w[j]
                loss += w[i] * inner
            scales[0] = (prior[1] + loss / 2) / rng.standard_gamma(prior[0] + (n + d) / 2)
        sd = sqrt(scales[0])
        for k in range(d):
            solved[k] += sd * rng.standard_normal()
        for i in range(d - 1, -1, -1):
            total = solved[i]
            for j in range(i + 1, d):
                total -= factor[j, i] * w[j]
            w[i] = total / factor[i, i]
            out[t, i] = w[i]
        if probit:
            for k in range(d):
                precisions[k] = draw_precision(rng, w[k], rate, 1.0)
