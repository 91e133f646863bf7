"""Distributions of up to three coordinates whose exact answers come from quadrature in a box that is looked for."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets import newton
from sgmcmc_lab.samplers.targets.base import Array, Column, Tell
from sgmcmc_lab.samplers.targets.bfgs import bfgs
from sgmcmc_lab.samplers.targets.climbed import Climbed
from sgmcmc_lab.samplers.targets.long_run import MAX_DRAWS, Reference
from sgmcmc_lab.samplers.targets.quadrature import rule, rule_cdf

MAX_CLIMB_WORK = 15 * 10**7
"""Instructions of all climbs to the mode: less than .3 seconds, for which a page waits."""
_CALL = 100_000
"""The further cost of an energy besides its own, in the same unit."""
MAX_GRID_WORK = 4 * 10**10
"""Instructions of a quadrature, were each of its energies to cost as much as one and its gradient, which is more than
twice of it: some 10 to 30 seconds in the background. A target that costs more has a long run instead."""


class Basis(NamedTuple):
    """Coordinates u of a box, with θ = centre + matrix u."""

    centre: Array
    """(dim,)."""
    matrix: Array
    """(dim, dim)."""
    spread: Array
    """The standard deviation of each u, by the curvature at the mode."""
    axes: Mapping[int, int]
    """The u that is θ_i itself, up to its unit, by i."""
    panels: int
    """Panels of the finer rule along each u."""

    def theta(self, u: Array) -> Array:
        """θ at u (n, dim)."""
        return np.ascontiguousarray(self.centre + u @ self.matrix.T)

    def u(self, theta: Array) -> Array:
        """u at θ (n, dim)."""
        return np.asarray(np.linalg.solve(self.matrix, (theta - self.centre).T).T, dtype=np.float64)


class Marginal(NamedTuple):
    """The density of one θ_i at the points of a rule."""

    low: float
    high: float
    density: Array

    @property
    def cdf(self) -> Callable[[Array], Array]:
        """The distribution function."""
        return rule_cdf(self.low, self.high, self.density)


class Grid(NamedTuple):
    """The density in a box, and the marginals of all θ_i, by i."""

    basis: Basis
    lows: Array
    highs: Array
    marginals: Mapping[int, Marginal]
    log_normaliser: float
    """log ∫e^{−U} over θ."""


_PANELS = {1: 64, 2: 16, 3: 5}
"""Panels of the rule along each coordinate, by dimension; 16 points in each."""
WHITENED_PANELS = {1: 64, 2: 8, 3: 3}
"""The same in coordinates in which the distribution is like N(0, I): no direction is narrower than an axis."""
FEW = max(_PANELS)
"""The most coordinates of a box."""
_COARSE = {1: 16, 2: 6, 3: 2}
_EDGE = 1e-9
"""The largest share of its maximum that a marginal density may have on the edge of the box."""
_RESOLVED = 1e-3
"""The largest difference of two rules for the logarithm of the normaliser."""
_STARTS = 8
"""Places from which the mode is climbed to, so that of several the highest is found, and the box holds all."""
_SIDE = {1: 40_000, 2: 200, 3: 64}
"""Cells along each coordinate from which draws of the quadrature come."""
_LINE, _MOVES = 33, 12
"""Points along each coordinate while the box is looked for, and how often it is moved at most."""
_PROPOSALS = 4 * MAX_DRAWS


def grid_points(bases: Sequence["Basis"]) -> int:
    """The most energies that a quadrature looks at: for its boxes, two rules in each, and its draws."""
    dim = len(bases[0].centre)
    rules = sum((16 * panels) ** dim for basis in bases for panels in (basis.panels, _COARSE[dim]))
    return rules + len(bases) * _MOVES * _LINE**dim + _SIDE[dim] ** dim + _PROPOSALS


class _SpentError(Exception):
    """A climb has taken all that climbs may take."""


class NoPeakError(SpecError):
    """No climb arrived at a highest point; there may be a distribution all the same."""


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

    def _counted(self) -> newton.At:
        """U and its gradient; raises :class:`_SpentError` when they have cost what all climbs may."""
        left = MAX_CLIMB_WORK // (self.gradient_work + _CALL)

        def at(theta: Array) -> tuple[float, Array]:
            nonlocal left
            left -= 1
            if left < 0:
                raise _SpentError
            return self._at(theta)

        return at

    @cached_property
    def _modes(self) -> list[Array]:
        """Ends of climbs from several places, the highest first."""
        at, ends = self._counted(), []
        with suppress(_SpentError), np.errstate(all="ignore"):
            for start, inverse in self._starts():
                # Closer than a share of a standard deviation the rounding of U of many data hides which way is down.
                near = 1e-8 if inverse is None else 1e-4 / np.sqrt(np.diag(inverse).max())
                ends.append(bfgs(at, start, jac=True, gtol=near, maxiter=100, hess_inv0=inverse))
        good = [end for end in ends if np.isfinite(end.fun) and np.isfinite(end.x).all() and np.abs(end.x).max() < 1e4]
        return [np.asarray(end.x) for end in sorted(good, key=lambda end: float(end.fun))]

    @cached_property
    def _peak(self) -> tuple[Array, Array]:
        end, curvature = None, None
        if self._modes:
            curvature = self._curvature_at(self._modes[0])
            if newton.positive(curvature):
                end = newton.climb(self._at, self._modes[0], newton.inverse_factor(curvature))
        if end is None or not end.arrived or end.steps:
            # BFGS knows one unit for all coordinates, and stops short where theirs are too different.
            ends = self._newton_ends()
            end, curvature = ends[0], None
            self._modes = [each.place for each in ends]
        towards = newton.open_direction(self._energies, end, self._modes)
        if towards is not None:
            raise SpecError(
                "target",
                self.key,
                f"it has no highest point, and cannot be normalised: the density does not fall off in the direction {self._named(towards)}, in units of its curvature; a prior that does is needed",
            )
        if not end.arrived:
            raise NoPeakError(
                "target",
                self.key,
                "no highest point of the density is found: it may be highest where it has no bound; other coordinates or another prior are needed",
            )
        if curvature is None:
            inverse = np.linalg.inv(newton.triangular(end.factor))
            curvature = inverse.T @ inverse
        return end.place, curvature

    def _newton_ends(self) -> list[newton.End]:
        """Ends of Newton climbs, those that arrived, the highest first; where none did the last one."""
        at, rng, ends = self._counted(), np.random.default_rng(0), list[newton.End]()
        try:
            for start, inverse in self._starts():
                ends.append(
                    newton.climb(
                        at,
                        start,
                        None if inverse is None else np.asarray(np.linalg.cholesky(inverse), dtype=np.float64),
                    )
                )
                if ends[-1].arrived:
                    break
            # From there on distances are known in units of the spread.
            found = [each for each in ends if each.arrived]
            for start in 3 * rng.standard_normal((_STARTS - len(ends), self.dim)) if found else ():
                ends.append(newton.climb(at, found[0].place + found[0].factor @ start))
        except _SpentError:
            if not ends:
                raise NoPeakError(
                    "target",
                    self.key,
                    f"no highest point of the density is found with {MAX_CLIMB_WORK // (self.gradient_work + _CALL):,} values of it; a simpler formula, or fewer rows, are needed",
                ) from None
        return sorted((each for each in ends if each.arrived), key=lambda end: end.height) or ends[-1:]

    def _named(self, direction: Array) -> str:
        """A direction in words: its parts as shares of the largest, without those that are far smaller."""
        shares = direction / np.abs(direction).max()
        return " ".join(
            f"{share:+.2g} {name}"
            for share, name in zip(shares, self.coordinate_names, strict=True)
            if abs(share) > 0.01
        )

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """The names of the coordinates in sentences."""
        return self.column_names

    def _found(self, tell: Tell, rough: bool = False) -> Reference:
        self._grid = self._quadrature(tell) if self.dim <= FEW and not rough else None
        return super()._found(tell, rough) if self._grid is None else self._from_grid(self._grid)

    def _bases(self) -> list[Basis]:
        """Coordinates of boxes, in which each θ_i is once an axis."""
        ones = np.sqrt(np.diag(np.linalg.inv(self.curvature)))
        return [Basis(np.zeros(self.dim), np.eye(self.dim), ones, {i: i for i in range(self.dim)}, _PANELS[self.dim])]

    def _masses(self, basis: Basis, lows: Array, highs: Array, panels: int, lowest: float) -> tuple[list[Array], Array]:
        """Weights of the rule along each coordinate, and what each of its points stands for, (points,) * dim."""
        rules = [rule(low, high, panels) for low, high in zip(lows, highs, strict=True)]
        mass = np.exp(lowest - self._on_grid(basis, [x for x, _ in rules]))
        for axis, (_, w) in enumerate(rules):
            mass = mass * w.reshape(-1, *[1] * (self.dim - 1 - axis))
        return [w for _, w in rules], mass

    def _on_grid(self, basis: Basis, lines: list[Array]) -> Array:
        u = np.stack([x.ravel() for x in np.meshgrid(*lines, indexing="ij")], axis=-1)
        with np.errstate(over="ignore"):
            return self._energies(basis.theta(u)).reshape(*map(len, lines))

    def _energies(self, theta: Array) -> Array:
        jit.prepare([self.potential])
        out = np.empty(len(theta))
        self.potential(np.ascontiguousarray(theta), out, self.without_draws())
        return np.where(np.isnan(out), np.inf, out)

    def _quadrature(self, tell: Tell) -> Grid | None:
        """The density in boxes that hold it; None where one is not found or does not resolve it, or costs too much."""
        bases = self._bases()
        if grid_points(bases) * self.gradient_work > MAX_GRID_WORK:
            return None
        made = []
        for basis in bases:
            if (grid := self._in_box(basis, tell)) is None:
                return None
            made.append(grid)
        return made[0]._replace(marginals={i: marginal for grid in made for i, marginal in grid.marginals.items()})

    def _in_box(self, basis: Basis, tell: Tell) -> Grid | None:
        tell("The exact answer by quadrature: finding its box", None)
        lowest, modes = self._at(self.mode)[0], np.array(self._modes)
        high_enough = np.array([self._at(mode)[0] for mode in modes]) < lowest + 25
        places, reach = basis.u(modes[high_enough]), 6 * basis.spread
        lows, highs = places.min(axis=0) - reach, places.max(axis=0) + reach
        for _ in range(_MOVES):
            lines = [np.linspace(low, high, _LINE) for low, high in zip(lows, highs, strict=True)]
            mass = np.exp(np.minimum(lowest - self._on_grid(basis, lines), 700.0))
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
        _, coarse = self._masses(basis, lows, highs, _COARSE[self.dim], lowest)
        weights, mass = self._masses(basis, lows, highs, basis.panels, lowest)
        if not abs(np.log(coarse.sum() / mass.sum())) < _RESOLVED:
            return None
        share = mass / mass.sum()
        marginals = {}
        for i, axis in basis.axes.items():
            density = share.sum(axis=tuple(j for j in range(self.dim) if j != axis)) / weights[axis]
            centre, unit = basis.centre[i], basis.matrix[i, axis]
            marginals[i] = Marginal(
                float(centre + unit * lows[axis]), float(centre + unit * highs[axis]), density / unit
            )
        stretch = float(np.linalg.slogdet(basis.matrix)[1])
        return Grid(basis, lows, highs, marginals, float(np.log(mass.sum())) + stretch - lowest)

    def _from_grid(self, grid: Grid) -> Reference:
        """Draws: a cell, a place in it, and rejection by the density there over that of the cell's middle.

        The cells are stratified, so that the draws as a whole are closer to the distribution than independent ones.
        Where few would be left, they are a weighted choice among all proposals.
        """
        rng = np.random.default_rng(1)
        cells = _SIDE[self.dim]
        widths = (grid.highs - grid.lows) / cells
        lines = [low + width * (np.arange(cells) + 0.5) for low, width in zip(grid.lows, widths, strict=True)]
        energy = self._on_grid(grid.basis, lines).ravel()
        cumulative = np.cumsum(np.exp(energy.min() - energy))
        theta, weight, height = np.empty((0, self.dim)), np.empty(0), np.empty(0)
        # MAX_DRAWS are kept of these where the cells are so small that three of four proposals are.
        n = _PROPOSALS // 3
        while n > 0:
            strata = (np.arange(n) + rng.random(n)) / n
            chosen = np.minimum(np.searchsorted(cumulative, strata * cumulative[-1]), energy.size - 1)
            at = np.stack(np.unravel_index(chosen, (cells,) * self.dim), axis=-1)
            made = grid.basis.theta(grid.lows + widths * (at + rng.random((n, self.dim))))
            theta, height = np.concatenate([theta, made]), np.concatenate([height, rng.random(n)])
            weight = np.append(weight, np.exp(np.minimum(energy[chosen] - self._energies(made), 50.0)))
            kept = np.flatnonzero(height * weight.max() < weight)
            if len(kept) >= MAX_DRAWS:
                return Reference(theta[rng.permutation(kept)[:MAX_DRAWS]][None], 1.0, float(MAX_DRAWS))
            n = min(
                _PROPOSALS - len(weight), int(1.05 * MAX_DRAWS * len(weight) / max(len(kept), 1)) - len(weight) + 1000
            )
        kept = rng.choice(len(weight), MAX_DRAWS, replace=False, p=weight / weight.sum())
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
        low, high, density = marginal = self.grid.marginals[i]
        x, w = rule(low, high, len(density) // 16)
        mean = float(density * w @ x)
        variance = float(density * w @ (x - mean) ** 2)
        sd = variance**0.5
        shown = max(low, mean - 3.6 * sd), min(high, mean + 3.6 * sd)
        return Column(self.column_names[i], low, high, marginal.cdf, mean, variance, shown=shown)

    def log_density(self, theta: Array) -> Array:
        if self.grid is None:
            return super().log_density(theta)
        flat = np.ascontiguousarray(theta.reshape(-1, self.dim))
        return np.asarray(-self._energies(flat) - self.grid.log_normaliser).reshape(theta.shape[:-1])
