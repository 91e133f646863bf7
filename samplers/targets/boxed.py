"""Distributions of up to three coordinates whose exact answers come from quadrature in a box that is looked for."""

from abc import abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from samplers.parameters import SpecError
from samplers.targets.base import Array, Column, Tell
from samplers.targets.climbed import Climbed
from samplers.targets.long_run import MAX_DRAWS, Reference
from samplers.targets.quadrature import rule, rule_cdf

MAX_CLIMB_WORK = 15 * 10**7
"""Instructions of all climbs to the mode: less than .3 seconds, for which a page waits."""
_CALL = 100_000
"""What an energy costs beside its own, in as many."""
MAX_GRID_WORK = 4 * 10**10
"""Instructions of a quadrature, were each of its energies to cost as much as one and its gradient, which is more than
twice of it: some 10 to 30 seconds in the background. What costs more has a long run instead."""


class Grid(NamedTuple):
    """The density at the points of a rule in a box."""

    lows: Array
    highs: Array
    marginals: tuple[Array, ...]
    """The density of each coordinate at its points."""
    log_normaliser: float


_PANELS = {1: 64, 2: 16, 3: 5}
"""Of the rule along each coordinate, 16 points in each."""
FEW = max(_PANELS)
"""The most coordinates of a box."""
_COARSE = {1: 16, 2: 6, 3: 2}
_EDGE = 1e-9
"""The largest share of its maximum that a marginal density may have on the edge of the box."""
_RESOLVED = 1e-3
"""The largest difference of two rules for the logarithm of the normaliser."""
_STARTS = 8
"""Places from which the mode is climbed to, so that of several the highest is found, and the box holds all."""
_SIDE = {1: 40_000, 2: 400, 3: 64}
"""Cells along each coordinate from which draws of the quadrature come."""
_LINE, _MOVES = 33, 12
"""Points along each coordinate while the box is looked for, and how often it is moved at most."""
_PROPOSALS = 4 * MAX_DRAWS


def grid_points(dim: int) -> int:
    """The most energies that a quadrature looks at: for its box, its two rules and its draws."""
    return (
        sum(side**dim for side in (16 * _PANELS[dim], 16 * _COARSE[dim], _SIDE[dim])) + _MOVES * _LINE**dim + _PROPOSALS
    )


class _SpentError(Exception):
    """A climb has taken all that climbs may take."""


class Boxed(Climbed):
    """A distribution whose exact answers are those of quadrature in a box that holds it, where one resolves it.

    With more than three coordinates, and where none does, they are those of a long run.
    """

    @property
    @abstractmethod
    def gradient_work(self) -> int:
        """How much an energy and its gradient cost, in instructions."""

    def _starts(self) -> list[tuple[Array, Array | None]]:
        """Where climbs begin, each with an inverse curvature where one is known."""
        rng = np.random.default_rng(0)
        return [(self.start_at, None), *((start, None) for start in 2 * rng.standard_normal((_STARTS - 1, self.dim)))]

    @cached_property
    def _modes(self) -> list[Array]:
        """Ends of climbs from several places, the highest first."""
        left = most = MAX_CLIMB_WORK // (self.gradient_work + _CALL)

        def at(theta: Array) -> tuple[float, Array]:
            nonlocal left
            left -= 1
            if left < 0:
                raise _SpentError
            return self._at(theta)

        ends = []
        try:
            for start, inverse in self._starts():
                # Closer than a share of a standard deviation the rounding of U of many data hides which way is down.
                near = 1e-8 if inverse is None else 1e-4 / np.sqrt(np.diag(inverse).max())
                ends.append(minimize(at, start, jac=True, method="BFGS", options={"gtol": near, "maxiter": 100, "hess_inv0": inverse}))  # fmt: skip
        except _SpentError:
            if not ends:
                raise SpecError("target", self.key, f"no highest point of the density is found with {most:,} values of it; a simpler formula, or fewer rows, are needed") from None  # fmt: skip
        good = [end for end in ends if np.isfinite(end.fun) and np.isfinite(end.x).all() and np.abs(end.x).max() < 1e4]
        if not good:
            raise SpecError("target", self.key, "no highest point of the density is found: perhaps it has no maximum, and cannot be normalised")  # fmt: skip
        return [np.asarray(end.x) for end in sorted(good, key=lambda end: float(end.fun))]

    def _climb(self) -> Array:
        return self._modes[0]

    def _found(self, tell: Tell) -> Reference:
        self._grid = self._quadrature(tell) if self.dim <= FEW else None
        return super()._found(tell) if self._grid is None else self._from_grid(self._grid)

    def _masses(self, lows: Array, highs: Array, panels: int, lowest: float) -> tuple[list[Array], Array]:
        """Weights of the rule along each coordinate, and what each of its points stands for, (points,) * dim."""
        rules = [rule(low, high, panels) for low, high in zip(lows, highs, strict=True)]
        mass = np.exp(lowest - self._on_grid([x for x, _ in rules]))
        for axis, (_, w) in enumerate(rules):
            mass = mass * w.reshape(-1, *[1] * (self.dim - 1 - axis))
        return [w for _, w in rules], mass

    def _on_grid(self, lines: list[Array]) -> Array:
        theta = np.stack([x.ravel() for x in np.meshgrid(*lines, indexing="ij")], axis=-1)
        with np.errstate(over="ignore"):
            return self._energies(theta).reshape(*map(len, lines))

    def _energies(self, theta: Array) -> Array:
        out = np.empty(len(theta))
        self.potential(np.ascontiguousarray(theta), out, self.without_draws())
        return np.where(np.isnan(out), np.inf, out)

    def _quadrature(self, tell: Tell) -> Grid | None:
        """The density in a box that holds it; None where none is found that resolves it, or it costs too much."""
        if grid_points(self.dim) * self.gradient_work > MAX_GRID_WORK:
            return None
        tell("The exact answer by quadrature: finding its box", None)
        reach = 6 * np.sqrt(np.diag(np.linalg.inv(self.curvature)))
        lowest, modes = self._at(self.mode)[0], np.array(self._modes)
        high_enough = np.array([self._at(mode)[0] for mode in modes]) < lowest + 25
        lows, highs = modes[high_enough].min(axis=0) - reach, modes[high_enough].max(axis=0) + reach
        for _ in range(_MOVES):
            lines = [np.linspace(low, high, _LINE) for low, high in zip(lows, highs, strict=True)]
            mass = np.exp(np.minimum(lowest - self._on_grid(lines), 700.0))
            widths, moved = highs - lows, False
            for i in range(self.dim):
                line = mass.sum(axis=tuple(j for j in range(self.dim) if j != i))
                inside = np.flatnonzero(line > _EDGE * line.max())
                first, last = inside[0], inside[-1]
                # Wider where it does not end; closer where there is nothing on more than a quarter of it.
                if first == 0 or first > 8:
                    lows[i], moved = lines[i][first - 1] if first else lows[i] - widths[i] / 2, True
                if last == _LINE - 1 or last < 24:
                    highs[i], moved = lines[i][last + 1] if last < _LINE - 1 else highs[i] + widths[i] / 2, True
            if not moved:
                break
        else:
            return None
        tell("The exact answer by quadrature", None)
        _, coarse = self._masses(lows, highs, _COARSE[self.dim], lowest)
        weights, mass = self._masses(lows, highs, _PANELS[self.dim], lowest)
        if not abs(np.log(coarse.sum() / mass.sum())) < _RESOLVED:
            return None
        share = mass / mass.sum()
        marginals = tuple(share.sum(axis=tuple(j for j in range(self.dim) if j != i)) / weights[i] for i in range(self.dim))  # fmt: skip
        return Grid(lows, highs, marginals, float(np.log(mass.sum())) - lowest)

    def _from_grid(self, grid: Grid) -> Reference:
        """Independent draws: a cell, a place in it, and a choice among four times as many by their density there."""
        rng = np.random.default_rng(1)
        cells = _SIDE[self.dim]
        widths = (grid.highs - grid.lows) / cells
        lines = [low + width * (np.arange(cells) + 0.5) for low, width in zip(grid.lows, widths, strict=True)]
        energy = self._on_grid(lines).ravel()
        cumulative = np.cumsum(np.exp(energy.min() - energy))
        n = _PROPOSALS
        chosen = np.minimum(np.searchsorted(cumulative, rng.random(n) * cumulative[-1]), energy.size - 1)
        at = np.stack(np.unravel_index(chosen, (cells,) * self.dim), axis=-1)
        theta = grid.lows + widths * (at + rng.random((n, self.dim)))
        weight = np.exp(np.minimum(energy[chosen] - self._energies(theta), 50.0))
        kept = rng.choice(n, MAX_DRAWS, replace=False, p=weight / weight.sum())
        return Reference(theta[kept][None], 1.0, float(MAX_DRAWS))

    @property
    def grid(self) -> Grid | None:
        """The quadrature, where the answers are of it."""
        self.reference  # noqa: B018  made where it is not there
        return self._grid

    @property
    def uncertainty(self) -> float:
        # The coarser rule is right to _RESOLVED or better, and the finer one to far less.
        return super().uncertainty if self.grid is None else _RESOLVED / 100

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        if self.grid is None:
            return super().columns
        return tuple(map(self._column, range(self.dim)))

    def _column(self, i: int) -> Column:
        assert self.grid is not None
        low, high, density = float(self.grid.lows[i]), float(self.grid.highs[i]), self.grid.marginals[i]
        x, w = rule(low, high, _PANELS[self.dim])
        mean = float(density * w @ x)
        variance = float(density * w @ (x - mean) ** 2)
        sd = variance**0.5
        shown = max(low, mean - 3.6 * sd), min(high, mean + 3.6 * sd)
        return Column(self.column_names[i], low, high, rule_cdf(low, high, density), mean, variance, shown=shown)

    def log_density(self, theta: Array) -> Array:
        if self.grid is None:
            return super().log_density(theta)
        flat = np.ascontiguousarray(theta.reshape(-1, self.dim))
        return np.asarray(-self._energies(flat) - self.grid.log_normaliser).reshape(theta.shape[:-1])
