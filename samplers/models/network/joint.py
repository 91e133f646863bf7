"""The joint density of the edge partition model and its gradient, compiled: for every method but Gibbs.

All unknowns are positive and stand in one vector x = (W row by row, r, a, c, γ₀, c₀), of N·K + K + 2N + 2 numbers,
which is given by its logarithm. The cost is linear in the observed edges and the held-out pairs (Knowles 2015, eqs
12–13, with the r_k that the print lacks): with p_ij = Σ_k r_k w_ik w_jk,
log p(Y|W,r) = Σ_{observed edges} [log(1 − e^{−p_ij}) + p_ij] + Σ_{held out} p_ij − Σ_{i<j} p_ij.
"""

from math import expm1, lgamma, log

import numpy as np
from numba import types

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.variational.gamma_gradient import digamma


@jit.helper
def pair_rate(w, r, i, j):
    """p_ij."""
    rate = 0.0
    for k in range(r.size):
        rate += r[k] * w[i, k] * w[j, k]
    return rate


@jit.helper
def _add_slope(w, r, i, j, slope, grad_w, grad_r):
    """Add slope · ∂p_ij to the gradients."""
    for k in range(r.size):
        grad_w[i, k] += slope * r[k] * w[j, k]
        grad_w[j, k] += slope * r[k] * w[i, k]
        grad_r[k] += slope * w[i, k] * w[j, k]


@jit.helper
def log_likelihood(w, r, edges, held, grad_w, grad_r):
    """Return log p(Y|W, r) of the observed pairs, and add its gradient."""
    n, n_communities = w.shape
    total = 0.0
    for e in range(edges.shape[0]):
        i, j = edges[e]
        rate = max(pair_rate(w, r, i, j), 1e-300)
        no_edge = -expm1(-rate)
        total += log(no_edge) + rate
        _add_slope(w, r, i, j, 1 / no_edge, grad_w, grad_r)
    for e in range(held.shape[0]):
        i, j = held[e]
        total += pair_rate(w, r, i, j)
        _add_slope(w, r, i, j, 1.0, grad_w, grad_r)
    for k in range(n_communities):
        whole = squares = 0.0
        for i in range(n):
            whole += w[i, k]
            squares += w[i, k] ** 2
        both = (whole * whole - squares) / 2
        total -= r[k] * both
        grad_r[k] -= both
        for i in range(n):
            grad_w[i, k] -= r[k] * (whole - w[i, k])
    return total


@jit.helper
def _log_gamma(log_x, x, a, log_b, b):
    """log Gamma(x; shape a, rate b)."""
    return a * log_b - lgamma(a) + (a - 1) * log_x - b * x


@jit.loop(
    types.float64(jit.vector, jit.integer_matrix, jit.integer_matrix, types.int64, types.int64, jit.vector, jit.vector)
)
def log_joint(log_x, edges, held, n, n_communities, prior, grad):
    """Return log p(Y, x), a density in x, and write its gradient in log x, i.e. x ∂/∂x.

    ``prior`` is (e, g): a_i ~ Gamma(e, e), c_i ~ Gamma(1, 1), γ₀ ~ Gamma(g, g), c₀ ~ Gamma(1, 1).
    """
    nk = n * n_communities
    x = np.exp(log_x)
    w, log_w = x[:nk].reshape((n, n_communities)), log_x[:nk].reshape((n, n_communities))
    r, log_r = x[nk : nk + n_communities], log_x[nk : nk + n_communities]
    first = nk + n_communities
    mass, rate, log_mass, log_rate = (
        x[first + 2 * n],
        x[first + 2 * n + 1],
        log_x[first + 2 * n],
        log_x[first + 2 * n + 1],
    )
    e, g = prior
    grad[:] = 0.0
    grad_w, grad_r = grad[:nk].reshape((n, n_communities)), grad[nk:first]
    total = log_likelihood(w, r, edges, held, grad_w, grad_r)
    for d in range(first):
        grad[d] *= x[d]
    # W | a, c, and the priors of a and c.
    for i in range(n):
        a, c, log_a, log_c = x[first + i], x[first + n + i], log_x[first + i], log_x[first + n + i]
        sum_log = sum_w = 0.0
        for k in range(n_communities):
            sum_log += log_w[i, k]
            sum_w += w[i, k]
            grad_w[i, k] += a - 1 - c * w[i, k]
        total += n_communities * (a * log_c - lgamma(a)) + (a - 1) * sum_log - c * sum_w
        total += _log_gamma(log_a, a, e, log(e), e) + _log_gamma(log_c, c, 1.0, 0.0, 1.0)
        grad[first + i] = a * (n_communities * (log_c - digamma(a)) + sum_log) + e - 1 - e * a
        grad[first + n + i] = n_communities * a - c * sum_w - c
    # r | γ₀, c₀, and their priors.
    shape = mass / n_communities
    sum_log = sum_r = 0.0
    for k in range(n_communities):
        sum_log += log_r[k]
        sum_r += r[k]
        grad_r[k] += shape - 1 - rate * r[k]
    total += n_communities * (shape * log_rate - lgamma(shape)) + (shape - 1) * sum_log - rate * sum_r
    total += _log_gamma(log_mass, mass, g, log(g), g) + _log_gamma(log_rate, rate, 1.0, 0.0, 1.0)
    grad[first + 2 * n] = shape * (n_communities * (log_rate - digamma(shape)) + sum_log) + g - 1 - g * mass
    grad[first + 2 * n + 1] = mass - rate * sum_r - rate
    return total


@jit.loop(types.void(jit.matrix, jit.vector, jit.integer_matrix, jit.vector))
def add_probabilities(w, r, pairs, out):
    """Add P(y_ij = 1) = 1 − e^{−p_ij} of each pair to ``out``."""
    for e in range(pairs.shape[0]):
        i, j = pairs[e]
        out[e] -= expm1(-pair_rate(w, r, i, j))
