"""Parts of several samplers: noisy gradients, the increment of a step with its noise, and the first velocity.

The steps themselves are in the samplers' files. Those along geodesics consist of the flow, the projection and the
increment below, so that they run on every manifold; on ℝᵈ the flow is a straight line, and the projection is the
identity.
"""

from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import KEPT, Sampler, in_batches
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.targets.base import FirstSteps, Target


@jit.helper
def shorten(factor, i, pivot):
    """Make row ``i`` of a Cholesky factor, whose pivot is negative, as long as its entry of the matrix says, or 0."""
    length = 0.0
    for k in range(i):
        length += factor[i, k] * factor[i, k]
    shrink = sqrt(max(length + pivot, 0.0) / length) if length > 0 else 0.0
    for k in range(i):
        factor[i, k] *= shrink


@jit.helper
def root_of_rest(each, heat, step_size, left, factor):
    """The Cholesky factor of heat·I − ε²V, V = left·Cov(rows of ``each``)/S, and whether a pivot was set to 0.

    ``left`` is 1, or without replacement the share of the data that is not in the minibatch. Where a pivot is set to 0
    its row is made shorter, so that no coordinate gets more noise than the matrix gives it: an earlier pivot may be
    close to 0, and a quotient by it unbounded.
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
                factor[i, i] = sqrt(max(value, 0.0))
                if value < 0:
                    clipped = True
                    shorten(factor, i, value)
            else:
                factor[i, j] = value / factor[j, j] if factor[j, j] > 0 else 0.0
    return clipped


@jit.helper
def workspace(source, dim):
    """The arrays of :func:`batch_increments`: a batch's gradients, a factor, normals."""
    return np.empty((source.batch_size, dim)), np.zeros((dim, dim)), np.empty(dim)


@jit.helper
def scales(source, step_size, heat):
    """The standard deviations of what is injected and of the gradient's noise, and whether the first was clipped.

    With minibatches :func:`batch_increments` decides on that at every step.
    """
    rest = heat - step_size * step_size * source.correction
    return sqrt(max(rest, 0.0)), sqrt(source.variance), source.batch_size == 0 and rest < 0


@jit.inlined
def add_noise(rng, grad, noise_scale):
    """Add N(0, noise_scale²) to a gradient (chains, dim)."""
    for c in range(grad.shape[0]):
        for i in range(grad.shape[1]):
            grad[c, i] += noise_scale * rng.standard_normal()


@jit.inlined
def increments(rng, gradient, x, target_params, grad, noise_scale, step_size, scale, increment):
    """Write −ε∇Ũ + N(0, heat − ε²V), not yet projected, to ``increment`` (chains, dim); the noise is Gaussian."""
    gradient(x, grad, target_params)
    if noise_scale > 0:
        add_noise(rng, grad, noise_scale)
    for c in range(x.shape[0]):
        for i in range(x.shape[1]):
            increment[c, i] = -step_size * grad[c, i] + scale * rng.standard_normal()


@jit.helper
def batch_gradients(rng, state, model, source, each, grad):
    """Write every chain's gradient, from a fresh minibatch, to ``grad`` (chains, dim); ``each`` is for one batch's."""
    x = state.position
    for c in range(x.shape[0]):
        source.estimate(rng, x[c : c + 1], grad[c : c + 1], each, model, state.data, source.params, state.memory[c])


@jit.helper
def batch_increments(rng, state, model, source, step_size, heat, grad, work, increment):
    """:func:`increments` with a gradient from a fresh minibatch for each chain; returns the number of clipped ones.

    V is the correction: 0, or known, or, where it is estimated, the empirical Fisher information Cov(g_k)/S of the
    projected gradients g_k of the data. A helper of its own, not inlined: so the loop without minibatches is compiled
    to twice the speed.
    """
    each, factor, normals = work
    rest = heat if source.estimated else heat - step_size * step_size * source.correction
    x = state.position
    n_chains, dim = x.shape
    clipped = 0
    for c in range(n_chains):
        source.estimate(rng, x[c : c + 1], grad[c : c + 1], each, model, state.data, source.params, state.memory[c])
        if source.estimated:
            for k in range(source.batch_size):
                model.project(x[c : c + 1], each[k : k + 1], model.shape)
            left = 1.0 if source.replacement else 1 - source.batch_size / state.data.size
            clipped += root_of_rest(each, heat, step_size, left, factor)
        else:
            clipped += rest < 0
            for i in range(dim):
                factor[i, i] = sqrt(max(rest, 0.0))
        for i in range(dim):
            normals[i] = rng.standard_normal()
        for i in range(dim):
            increment[c, i] = -step_size * grad[c, i]
            for j in range(i + 1):
                increment[c, i] += factor[i, j] * normals[j]
    return clipped


@jit.start
def start(rng, position, auxiliary, model, params):
    """v ~ N(0, I), projected; ξ stays."""
    for c in range(position.shape[0]):
        for i in range(position.shape[1]):
            auxiliary[c, i] = rng.standard_normal()
    model.project(position, auxiliary, model.shape)


class Moving(Sampler):
    """A sampler with a velocity v, tangent to the target's manifold; with ``thermostat`` a ξ stands behind it."""

    thermostat = False
    moving = True
    momentum = KEPT
    start = start

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return np.append(np.zeros(target.dim), [self.friction] if self.thermostat else [])

    def thermostats(self, target: Target) -> int:
        return int(self.thermostat)


class MovingByEuler(Moving):
    """The same by explicit Euler, which heats a steep distribution by a share of εκ/C, κ its largest U″."""

    # A stable step is of the size of one without a velocity.
    moving = False

    @classmethod
    def first_values(cls, first: FirstSteps | None, gradient: str) -> dict[str, float]:
        """ε/C is about SGLD's step; C = 2√κ, where θ moves fastest, or half of that where ξ damps the velocity, too."""
        if first is None:
            return {}
        known = dict(declared(cls))
        most, lowest = known["friction"].bounds[1], known["step_size"].bounds[0]
        wanted = float(f"{(1 if cls.thermostat else 2) * sqrt(0.1 / first.other):.1g}")
        friction = min(max(known["friction"].default, wanted), most)
        step_size = friction * min(1.2 * first.other, first.heated if in_batches(gradient) else inf)
        # Not so long that a step takes most of the velocity.
        step_size = max(min(step_size, 0.6 / friction), lowest)
        return {"step_size": float(f"{step_size:.2g}"), "friction": friction}
