"""Piecewise deterministic Markov processes: straight lines, and events by thinning.

The energy's gradient changes along a line by no more than Lipschitz constants say, which the target provides. The rate
of events is therefore at most (a + bt)⁺ a time t ahead. An event proposed at this rate takes place with the ratio of
the true rate to it (thinning), so that the process is exact, with the gradients of minibatches, too: where each of
these has the rate of its own, their mean is the rate that the distribution needs.
"""

from math import inf, nan, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.minibatch_cv import anchor_of, slope_of
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.requirements import BATCH, FULL, LIPSCHITZ, MODE
from sgmcmc_lab.samplers.targets.base import Array, ByTarget, FirstSteps, Target

MOST_GRADIENTS = 1000
"""The most events with the gradient of all data that are proposed in a step."""
MOST_DATA = 250_000
"""The most data that the minibatches of a step look at, where this allows more events."""
ROUNDING = 1e-6
"""A rate may be above its bound by so much of the bound's terms: where the gradient is linear they are equal."""
_AT_ONCE = 65_536
"""Data whose gradients are computed at a time."""


@jit.helper
def most_events(batch_size):
    """The most events that are proposed in a step."""
    return max(MOST_GRADIENTS, MOST_DATA // batch_size) if batch_size > 0 else MOST_GRADIENTS


@jit.helper
def constants(source, params, dim):
    """The mode θ̂, the largest |∂_iŨ(θ̂)|, and the Lipschitz constants C_i of ∂_iŨ, (dim,) each.

    ``params`` are those of :meth:`Piecewise.bounds`. With control variates every ∂_iŨ(θ̂) is ∂_iU(θ̂).
    """
    mode, highest = params[:dim], params[dim : 2 * dim].copy()
    if source.batch_size == 0:
        return mode, highest, params[2 * dim : 3 * dim]
    if anchor_of(source.params, dim).size > 0:
        slope = slope_of(source.params, dim)
        for i in range(dim):
            highest[i] = abs(slope[i])
    return mode, highest, params[3 * dim : 4 * dim]


@jit.helper
def distance(x, y):
    """‖x − y‖."""
    square = 0.0
    for i in range(x.size):
        square += (x[i] - y[i]) ** 2
    return sqrt(square)


@jit.helper
def waiting_time(level, growth, exponential):
    """The time at which the integral of (level + growth·t)⁺ is ``exponential``: the first event at this rate."""
    root = sqrt(max(level, 0.0) ** 2 + 2 * growth * exponential)
    return 2 * exponential / (level + root) if level > 0 else (root - level) / growth


@jit.helper
def above(rate, level, grown, x, counts):
    """Whether a rate is above its bound, level + grown, which ends the run: thinning would be of another process."""
    if not rate > level + grown + ROUNDING * (abs(level) + grown):
        return False
    counts[jit.ABOVE] += 1
    stop(x)
    return True


@jit.helper
def stop(x):
    """Make θ of a chain no number, which ends the run."""
    for i in range(x.size):
        x[i] = nan


_HIGHEST = ByTarget[str, Array]()


def highest_slopes(target: Target) -> Array:
    """The largest |∂U/∂θ_i| at the mode that a data point has where it stands for all, (dim,)."""

    def find() -> Array:
        jit.prepare([target.batch])
        theta, n_data, params = np.array(target.mode, dtype=float)[None], len(target.data()), target.packed()
        out = np.zeros(target.dim)
        for first in range(0, n_data, _AT_ONCE):
            chosen = np.arange(first, min(first + _AT_ONCE, n_data))
            each = np.empty((len(chosen), target.dim))
            target.batch(theta, chosen, each, params)
            out = np.maximum(out, np.abs(each).max(axis=0))
        return out

    return _HIGHEST.of(target, "highest", find)


class Piecewise(Sampler):
    """A process of straight lines and events, looked at after equal times."""

    accepts: ClassVar[frozenset[str]] = frozenset({FULL, BATCH, MODE})
    requires = frozenset({LIPSCHITZ})
    moving = True
    gradient_age = None
    diffusion = r"\text{none}"
    curl = r"\text{none}"
    why_it_stops = "more events were proposed in one step than are allowed, as happens far from the mode"

    @property
    def time_per_step(self) -> float:
        """None: it follows no SDE."""
        return 0.0

    @property
    def gradients_per_step(self) -> int:
        """None besides those that the kernel counts."""
        return 0

    def most_gradients(self, batch_size: int = 0) -> int:
        # With all data a step begins with one.
        return max(MOST_GRADIENTS, MOST_DATA // batch_size) if batch_size else MOST_GRADIENTS + 1

    @classmethod
    def first_values(cls, first: FirstSteps | None, gradient: str) -> dict[str, float]:
        """The time that a leapfrog step would take: no estimate of the gradient heats."""
        if first is None:
            return {}
        lowest = cls.param.step_size.bounds[0]
        return {"step_size": max(min(cls.param.step_size.default, first.moving), lowest)}

    def bounds(self, target: Target) -> NDArray[np.float64]:
        """θ̂ and the largest |∂_iŨ(θ̂)| of one data point, C_i of all data and of one; 0 for a target without data."""
        none = np.zeros(target.dim)
        if BATCH not in target.provides:
            return np.concatenate([none, none, target.lipschitz, none])
        return np.concatenate([target.mode, highest_slopes(target), target.lipschitz, target.lipschitz_of_each])


def textbook_rates(run):
    """θ̂, |∂_iŨ(θ̂)| and C_i in plain Python; θ̂ is None where the gradient is that of all data."""
    target = run.target
    if not run.gradient.noise().batch_size:
        return None, np.zeros(target.dim), target.lipschitz
    slopes = target.slopes_at(target.mode)
    each = abs(slopes.mean(axis=0)) if MODE in run.gradient.requires else abs(slopes).max(axis=0)
    return target.mode, each, target.lipschitz_of_each


def textbook_wait(level, growth, e):
    """When the integral of (level + growth·t)⁺ has reached e."""
    root = sqrt(max(level, 0.0) ** 2 + 2 * growth * e)
    if level > 0:
        return 2 * e / (level + root)
    return (root - level) / growth if growth > 0 else inf


def textbook_gradient(rng, run, c, x, data):
    """∇Ũ of one chain."""
    run.spend()
    if run.gradient.noise().batch_size:
        return run.gradient.textbook_gradients(rng, run.target, x, data, run.memory[c]).mean(axis=0)
    return run.target.gradient_at(x[None])[0]
