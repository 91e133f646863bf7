"""Distributions of which only an energy and its gradient are known: the mode is climbed to."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import Array, FirstSteps
from sgmcmc_lab.samplers.targets.bfgs import bfgs
from sgmcmc_lab.samplers.targets.long_run import LongRun, draw_kept
from sgmcmc_lab.samplers.targets.newton import positive

_STEP = 6e-6
"""The cube root of the rounding error: where differences ∇U(θ + δ) − ∇U(θ − δ) are best, relative to the size of θ."""


@jit.draw
def draw(rng, out, params):
    # The functions read the parameters from the front; where theirs end is the last one.
    draw_kept(rng, out, params, int(params[params.size - 1]))


class Climbed(LongRun):
    """A distribution on ℝᵈ whose exact answers are those of a long run around the mode that is nearest to a start.

    The mode is found by BFGS, and the curvature there by differences of the gradient. The compiled functions read
    :attr:`params`, whose number is the last one of what they are given.
    """

    draw = draw

    params: Array
    """The numbers that the compiled functions read."""
    start_at: Array
    """Where chains start, and the climb, (dim,)."""
    n_data: int

    @property
    def dim(self) -> int:
        return len(self.start_at)

    def _at(self, theta: Array) -> tuple[float, Array]:
        """U and ∂U/∂θ at θ (dim,)."""
        jit.prepare([self.potential, self.gradient])
        height, slope, params = np.empty(1), np.empty((1, self.dim)), self.without_draws()
        self.potential(theta[None], height, params)
        self.gradient(theta[None], slope, params)
        return float(height[0]), slope[0]

    def _climb(self) -> Array:
        return np.asarray(bfgs(self._at, self.start_at, jac=True, gtol=1e-8).x)

    def _curvature_at(self, mode: Array) -> Array:
        """U″ there by differences of the gradient, (dim, dim)."""
        curvature = np.empty((self.dim, self.dim))
        for i in range(self.dim):
            step = np.zeros(self.dim)
            step[i] = _STEP * max(abs(mode[i]), 1e-3)
            curvature[i] = (self._at(mode + step)[1] - self._at(mode - step)[1]) / (2 * step[i])
        return (curvature + curvature.T) / 2

    @cached_property
    def _peak(self) -> tuple[Array, Array]:
        mode = self._climb()
        curvature = self._curvature_at(mode)
        if not positive(curvature):
            where = ", ".join(f"{x:.4g}" for x in mode)
            raise SpecError(
                "target",
                self.key,
                f"U has no minimum with a curvature where one was looked for, at {where}; give another start, or look at the gradient",
            )
        return mode, curvature

    @cached_property
    def first_steps(self) -> FirstSteps:
        """From the curvature at the mode, and the noise there of ten data points."""
        noise = float(self.slopes_at(self.mode).var(axis=0).max()) / 10 if self.n_data else 0.0
        return FirstSteps.of(float(np.linalg.eigvalsh(self.curvature)[-1]), noise)

    def data(self) -> NDArray[np.int64]:
        return np.arange(self.n_data)

    def slopes_at(self, theta: Array) -> Array:
        jit.prepare([self.batch])
        out = np.empty((self.n_data, self.dim))
        self.batch(np.array(theta, dtype=float)[None], np.arange(self.n_data), out, self.without_draws())
        return out

    def start(self) -> Array:
        return self.start_at.copy()

    def without_draws(self) -> Array:
        return np.append(self.params, len(self.params))

    def exact_draws(self) -> Array:
        """The draws that :func:`draw` chooses from, (n, dim)."""
        return self.reference.draws.reshape(-1, self.dim)

    @cached_property
    def _packed(self) -> Array:
        draws = self.exact_draws()
        return np.concatenate([self.params, [len(draws)], draws.ravel(), [len(self.params)]])
