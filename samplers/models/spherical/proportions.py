"""The topics θ of documents given β, drawn by geodesic Monte Carlo on the simplex.

All documents are chains of one run of the lab's GMC on the manifold of square roots, θ = y², where
p(θ|v, β) ∝ Dir(θ|α) e^{κ v·βθ/‖βθ‖} has the energy U(y) = −κ g·y²/√(y²·Gy²) − (2α − 1) Σ log y_k, with g = βᵀv and
G = βᵀβ: what a step costs does not depend on the number of words.
"""

from math import log, sqrt

import numpy as np
from numba import types
from numpy.random import Generator

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.base import exact
from sgmcmc_lab.samplers.kernels import gmc
from sgmcmc_lab.samplers.manifolds import simplex
from sgmcmc_lab.samplers.targets.base import Array, no_data
from sgmcmc_lab.samplers.targets.climbed import draw as no_draw

_KAPPA, _ALPHA, _GRAM = 0, 1, 2


@jit.potential
def potential(y, out, params):
    n = y.shape[1]
    kappa, alpha = params[_KAPPA], params[_ALPHA]
    for c in range(y.shape[0]):
        g = _GRAM + n * n + c * n
        along = square = walls = 0.0
        for k in range(n):
            theta, row = y[c, k] * y[c, k], 0.0
            for j in range(n):
                row += params[_GRAM + k * n + j] * y[c, j] * y[c, j]
            along += params[g + k] * theta
            square += theta * row
            walls += log(max(y[c, k], 1e-300))
        out[c] = -kappa * along / sqrt(square) - (2 * alpha - 1) * walls


@jit.gradient
def gradient(y, out, params):
    n = y.shape[1]
    kappa, alpha = params[_KAPPA], params[_ALPHA]
    for c in range(y.shape[0]):
        g = _GRAM + n * n + c * n
        along = square = 0.0
        for k in range(n):
            row = 0.0
            for j in range(n):
                row += params[_GRAM + k * n + j] * y[c, j] * y[c, j]
            out[c, k] = row
            along += params[g + k] * y[c, k] * y[c, k]
            square += y[c, k] * y[c, k] * row
        length = sqrt(square)
        for k in range(n):
            slope = (params[g + k] - along / square * out[c, k]) / length
            out[c, k] = -2 * kappa * y[c, k] * slope - (2 * alpha - 1) / max(y[c, k], 1e-300)


@jit.loop(
    types.void(
        jit.rng_type,
        jit.matrix,
        jit.vector,
        jit.vector,
        jit.integers,
        jit.cube,
        types.FunctionType(jit.KERNEL),
        types.FunctionType(jit.POTENTIAL),
        types.FunctionType(jit.GRADIENT),
        types.FunctionType(jit.BATCH),
        types.FunctionType(jit.DRAW),
        types.FunctionType(jit.PROJECT),
        types.FunctionType(jit.FLOW),
        types.FunctionType(jit.ESTIMATE),
    )
)
def _run(rng, y, target, params, shape, out, kernel, energy, slope, batch, draw, project, flow, estimate):
    """``len(out)`` proposals of every document, in place, each written to ``out``."""
    none = np.empty((len(y), 0))
    state = jit.State(y, np.empty_like(y), np.empty(0, dtype=np.int64), none)
    model = jit.CompiledTarget(energy, slope, batch, draw, target, project, flow, shape)
    source = jit.Source(0.0, 0.0, 0, 0, False, False, estimate, np.empty(0))
    kernel(rng, state, model, source, params, out, len(out), jit.Info(np.empty_like(y), np.zeros(jit.N_COUNTS)))


POINTERS = (gmc.advance, potential, gradient, no_data, no_draw, simplex.project, simplex.flow, exact)
COMPILED = (_run, *POINTERS)


def packed(beta: Array, documents: Array, kappa: float, alpha: float) -> Array:
    """The numbers that the compiled energy reads: κ, α, G, and g of each document."""
    return np.concatenate([[kappa, alpha], (beta @ beta.T).ravel(), (documents @ beta.T).ravel()])


def draw_theta(rng: Generator, y: Array, target: Array, step_size: float, n_leapfrog: int, n_draws: int) -> Array:
    """θ after each of ``n_draws`` proposals of every document, (draws, documents, topics); √θ in ``y`` moves on."""
    out = np.empty((n_draws, *y.shape))
    shape = np.array([y.shape[1] - 1, y.shape[1]], dtype=np.int64)
    _run(rng, y, target, np.array([step_size, n_leapfrog, 1.0]), shape, out, *POINTERS)
    return out**2
