"""What the samplers that follow geodesics share: the kick with a noisy gradient, and the first velocity.

The steps themselves are in the samplers' files. Each is made of the geodesic flow, the projection, and the kick below,
so that it runs on every manifold; on ℝᵈ the flow is a straight line and the projection nothing.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from samplers import jit
from samplers.kernels.base import Sampler
from samplers.targets.base import Target

# Places in the packed parameters of a target with data: where the data are, the numbers of a datum, how many data
# there are, and what each counts for.
DATA, WIDTH, ITEMS, WEIGHT = range(4)

ESTIMATORS = frozenset({"full", "gaussian", "gaussian_corrected", "minibatch", "minibatch_known", "minibatch_fisher"})
"""The gradients whose noise :func:`kicks` and :func:`batch_kicks` make room for in the noise that they inject."""


@jit.inlined
def choose(rng, data, k, replacement):
    """The number of the ``k``-th datum of a minibatch; as in ``minibatch.py``, but one by one."""
    if replacement:
        i = int(rng.random() * data.size)
    else:
        i = k + int(rng.random() * (data.size - k))
        data[k], data[i] = data[i], data[k]
        i = k
    return data[i]


@jit.helper
def place_datum(params, i, single):
    """Make ``single`` the parameters of the same target with datum ``i`` alone, which counts for all."""
    first, width = int(params[DATA]), int(params[WIDTH])
    for j in range(width):
        single[first + j] = params[first + i * width + j]
    single[ITEMS], single[WEIGHT] = 1.0, params[ITEMS] * params[WEIGHT]


@jit.helper
def root_of_rest(each, heat, step_size, left, factor):
    """The Cholesky factor of heat·I − ε²V, V = left·Cov(rows of ``each``)/S, and whether a pivot was set to 0.

    ``left`` is 1, or without replacement the share of the data that is not in the minibatch.
    """
    size, dim = each.shape
    clipped = False
    for i in range(dim):
        mean = 0.0
        for k in range(size):
            mean += each[k, i] / size
        for k in range(size):
            each[k, i] -= mean
    share = left * step_size * step_size / (size * max(size - 1, 1))
    for i in range(dim):
        for j in range(i + 1):
            value = heat if i == j else 0.0
            for k in range(size):
                value -= share * each[k, i] * each[k, j]
            for k in range(j):
                value -= factor[i, k] * factor[j, k]
            if i == j:
                clipped |= value < 0
                factor[i, i] = sqrt(max(value, 0.0))
            else:
                factor[i, j] = value / factor[j, j] if factor[j, j] > 0 else 0.0
    return clipped


@jit.helper
def workspace(model, noise, dim):
    """What :func:`batch_kicks` needs: parameters with a single datum, a batch's gradients, a factor, normals."""
    size = int(model.params[DATA] + model.params[WIDTH]) if noise.batch_size > 0 else 0
    return model.params[:size].copy(), np.empty((noise.batch_size, dim)), np.zeros((dim, dim)), np.empty(dim)


@jit.helper
def scales(noise, step_size, heat):
    """The standard deviations of what is injected and of the gradient's noise, and whether the first was clipped.

    For minibatches :func:`batch_kicks` decides on that at every step.
    """
    rest = heat - step_size * step_size * noise.correction
    return sqrt(max(rest, 0.0)), sqrt(noise.variance), noise.batch_size == 0 and rest < 0


@jit.inlined
def kicks(rng, gradient, x, target_params, grad, noise_scale, step_size, scale, kick):
    """Write −ε∇Ũ + N(0, heat − ε²V), not yet projected, to ``kick`` (chains, dim); the gradient's noise is Gaussian."""
    gradient(x, grad, target_params)
    if noise_scale > 0:
        for c in range(x.shape[0]):
            for i in range(x.shape[1]):
                grad[c, i] += noise_scale * rng.standard_normal()
    for c in range(x.shape[0]):
        for i in range(x.shape[1]):
            kick[c, i] = -step_size * grad[c, i] + scale * rng.standard_normal()


@jit.helper
def batch_kicks(rng, state, model, noise, step_size, heat, grad, work, kick):
    """:func:`kicks` with a gradient from a minibatch, a fresh one for each chain; returns how many were clipped.

    The gradient is the mean of the gradients g_k of S data, each as if it stood for all N. V is the correction: 0, or
    known, or, where that is infinite, the empirical Fisher information Cov(g_k)/S of the projected g_k. A helper of its
    own, not inlined: so the loop without minibatches is compiled to twice the speed.
    """
    single, each, factor, normals = work
    estimated = noise.correction == np.inf
    rest = heat if estimated else heat - step_size * step_size * noise.correction
    x = state.position
    n_chains, dim = x.shape
    clipped = 0
    for c in range(n_chains):
        for i in range(dim):
            grad[c, i] = 0.0
        for k in range(noise.batch_size):
            place_datum(model.params, choose(rng, state.data, k, noise.replacement), single)
            model.gradient(x[c : c + 1], each[k : k + 1], single)
            for i in range(dim):
                grad[c, i] += each[k, i] / noise.batch_size
        if estimated:
            for k in range(noise.batch_size):
                model.project(x[c : c + 1], each[k : k + 1], model.shape)
            left = 1.0 if noise.replacement else 1 - noise.batch_size / state.data.size
            clipped += root_of_rest(each, heat, step_size, left, factor)
        else:
            clipped += rest < 0
            for i in range(dim):
                factor[i, i] = sqrt(max(rest, 0.0))
        for i in range(dim):
            normals[i] = rng.standard_normal()
        for i in range(dim):
            kick[c, i] = -step_size * grad[c, i]
            for j in range(i + 1):
                kick[c, i] += factor[i, j] * normals[j]
    return clipped


class Moving(Sampler):
    """A sampler with a velocity v, tangent to the target's manifold; with ``thermostat`` a ξ stands behind it."""

    thermostat = False
    moving = True

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return np.append(np.zeros(target.dim), [self.friction] if self.thermostat else [])

    def first_auxiliary(
        self, target: Target, position: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """v ~ N(0, I), projected, and ξ = C."""
        out = np.tile(self.auxiliary(target), (len(position), 1))
        out[:, : target.dim] = target.manifold.projected(position, rng.standard_normal(position.shape))
        return out
