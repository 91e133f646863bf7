"""A distribution whose energy a person types."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np
from scipy.interpolate import CubicSpline

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.expressions import Expression, parse
from sgmcmc_lab.samplers.expressions.machine import LANES, execute, program, workspace
from sgmcmc_lab.samplers.expressions.native import Loop, call
from sgmcmc_lab.samplers.parameters import Formula, Real, SpecError, Value
from sgmcmc_lab.samplers.targets.base import Array, Column, Target
from sgmcmc_lab.samplers.targets.quadrature import density_cdf, rule

# Indices in the packed parameters.
_ENERGY, _SLOPES, _WORK, _TABLE, _CELLS, _LOW, _HIGH, _NATIVE_ENERGY, _NATIVE_SLOPES = range(9)
_HEADER = 9
_TABLE_CELLS = {1: 4096, 2: 400}
"""Cells of the table that exact draws come from, along each coordinate."""
_EDGE = 1e-4
"""The largest share of its maximum that the density may have on the edge of the box."""
_SPARE = 1e-12
"""Where the density is below this share of its maximum on all of the outer half, a box is wider than it need be."""
_BOXES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0)
"""The half widths that are tried, and the usual one."""
_USUAL = 4.0
_TRIED = {1: 200, 2: 40}
"""Points on either side of 0 along each coordinate at which an energy is looked at to find its box."""
_UNRESOLVED = 0.02
"""The largest difference of two rules for the logarithm of the normaliser."""
_PANELS = {1: 256, 2: 32}
"""Panels of the quadrature along each coordinate, 16 points in each."""


@jit.inlined
def _apply(program, theta, params, out):
    """Write a program's outputs at θ (chains, dim) to ``out`` (chains, outputs)."""
    n_chains, dim = theta.shape
    work = params[int(params[_WORK]) :]
    for first in range(0, n_chains, LANES):
        n = min(LANES, n_chains - first)
        for c in range(n):
            for i in range(dim):
                work[i * LANES + c] = theta[first + c, i]
        execute(program, work)
        for c in range(n):
            for k in range(out.shape[1]):
                out[first + c, k] = work[(dim + k) * LANES + c]


@jit.potential
def potential(theta, out, params):
    native = params.view(np.int64)[_NATIVE_ENERGY]
    if native != 0:
        call(native, (theta, out), 0, theta.shape[0])
    else:
        _apply(params[int(params[_ENERGY]) :], theta, params, out.reshape((-1, 1)))


@jit.gradient
def gradient(theta, out, params):
    native = params.view(np.int64)[_NATIVE_SLOPES]
    if native != 0:
        call(native, (theta, out), 0, theta.shape[0])
    else:
        _apply(params[int(params[_SLOPES]) :], theta, params, out)


@jit.inlined
def _place(cdf, u):
    """Where a piecewise linear CDF, given at the edges of equal cells, has the value u, in cells."""
    low, high = 0, cdf.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if cdf[middle] <= u:
            low = middle
        else:
            high = middle
    return low + (u - cdf[low]) / max(cdf[low + 1] - cdf[low], 1e-300)


@jit.draw
def draw(rng, out, params):
    # The first coordinate from its CDF, the second from its CDF given the cell of the first.
    cells = int(params[_CELLS])
    low, width = params[_LOW], (params[_HIGH] - params[_LOW]) / cells
    at = int(params[_TABLE])
    for c in range(out.shape[0]):
        place = _place(params[at : at + cells + 1], rng.random())
        out[c, 0] = low + width * place
        if out.shape[1] > 1:
            row = at + (1 + min(int(place), cells - 1)) * (cells + 1)
            out[c, 1] = low + width * _place(params[row : row + cells + 1], rng.random())


def _relative(lowest: float, energy: Array) -> Array:
    """The density as a share of its maximum. Energies may be farther apart than any number, or both infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.exp(lowest - energy)


class Typed(Target):
    """Any distribution e^{−U} whose energy U is typed: of theta, or of theta1 and theta2.

    The exact answers come from quadrature on the box [−L, L] or [−L, L]², which must hold the distribution: the density
    on its edge is at most 1e-4 of its maximum. Without a given box, it is found from the energy.
    Exact draws invert a CDF that is linear in each of 4096 cells, or of
    400 × 400.
    """

    key = "typed"
    title = "Typed energy"
    source = "Typed by you"
    potential, gradient, draw = potential, gradient, draw
    watched = True

    energy = Formula(
        "theta^4 - 2*theta^2 + theta/3",
        tex="U",
        label="Energy U",
        doc="Minus the log density, up to a constant: a formula of theta, or of theta1 and theta2, with + - * / ^, brackets, exp, log, sqrt, sin, cos, tanh, abs and others.",
    )
    extent = Real(
        0.0,
        bounds=(0.0, 100.0),
        tex="L",
        label="Half width L of the box",
        doc="The box from −L to L, along each coordinate, that is shown and holds the distribution; 0: found from the energy.",
    )

    @cached_property
    def expression(self) -> Expression:
        """U(θ). Raises :class:`SpecError` for a text that is no energy."""
        names = parse(self.energy, ("theta", "theta1", "theta2"), "target.energy").names
        if "theta" in names and len(names) > 1:
            raise SpecError("target.energy", self.energy, "allowed is theta alone, or theta1 and theta2")
        if not names:
            raise SpecError("target.energy", self.energy, "it does not depend on theta, nor on theta1 and theta2")
        return parse(self.energy, ("theta",) if "theta" in names else ("theta1", "theta2"), "target.energy")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the coordinates in the energy."""
        return ("theta",) if "theta" in self.expression.names else ("theta1", "theta2")

    @property
    def tex(self) -> str:  # type: ignore[override]
        """U(θ) in LaTeX."""
        return rf"U(\theta) = {self.expression.tex()}"

    @property
    def dim(self) -> int:
        return len(self.names)

    @cached_property
    def half_width(self) -> float:
        """L: the one that is given, or the usual one where it fits, or the least that holds it, or one to refuse."""
        if self.extent > 0:
            return float(self.extent)
        # Closer together near 0, so that one look sees what is narrow and what is far away.
        line = np.concatenate([np.geomspace(1e-3, _BOXES[-1], _TRIED[self.dim]), _BOXES])
        line = np.unique(np.concatenate([-line, [0.0], line]))
        points = np.stack([x.ravel() for x in np.meshgrid(*[line] * self.dim, indexing="ij")], axis=-1)
        energy, far = self._energy_at(points), np.abs(points).max(axis=-1)
        wrong = np.isnan(energy) | np.isneginf(energy)
        good = [L for L in _BOXES if not wrong[far <= L].any()]
        if not good:
            return _USUAL
        lowest = energy[~wrong].min()

        def beyond(distance: float) -> float:
            return float(_relative(lowest, energy[~wrong & (far >= distance)]).max(initial=0.0))

        holding = [L for L in good if beyond(L) <= _EDGE]
        if _USUAL in holding and beyond(_USUAL / 2) > _SPARE:
            return _USUAL
        return holding[0] if holding else good[-1]

    def check(self) -> None:
        if 0 < self.extent < 0.1:
            raise SpecError(
                "target.extent",
                self.extent,
                "allowed is a number from 0.1 to 100, or 0 for a box that is found from the energy",
            )
        energy = self._energy_at(self._points)
        lowest = energy[np.isfinite(energy)].min() if np.isfinite(energy).any() else np.nan
        if np.isnan(energy).any() or np.isneginf(energy).any() or np.isnan(lowest):
            bad = self._points[np.argmax(np.isnan(energy) | np.isneginf(energy) | np.isnan(lowest))]
            where = ", ".join(f"{name} = {x:.3g}" for name, x in zip(self.names, bad, strict=True))
            raise SpecError(
                "target.energy",
                self.energy,
                f"it has no finite value at {where}, inside the box of ±{self.half_width:g}",
            )
        on_edge = np.abs(self._points).max(axis=-1) >= self.half_width * (1 - 1e-9)
        share = _relative(lowest, energy[on_edge])
        if share.max() > _EDGE:
            worst = self._points[on_edge][np.argmax(share)]
            where = ", ".join(f"{name} = {x:.3g}" for name, x in zip(self.names, worst, strict=True))
            raise SpecError(
                "target.energy",
                self.energy,
                f"its density does not end inside the box of ±{self.half_width:g}: at {where} the density is still {share.max():.2g} of its maximum. "
                "A larger box, or an energy that grows faster, is needed",
            )
        # On a distribution that both resolve, the sum over the grid and the quadrature agree; at a pole they do not.
        cell = (2 * self.half_width / (round(len(energy) ** (1 / self.dim)) - 1)) ** self.dim
        by_grid = np.log(_relative(lowest, energy).sum() * cell) - lowest
        if not abs(by_grid - self._log_normaliser) < _UNRESOLVED:
            worst = self._points[np.argmin(energy)]
            where = ", ".join(f"{name} = {x:.3g}" for name, x in zip(self.names, worst, strict=True))
            raise SpecError(
                "target.energy",
                self.energy,
                f"near {where} its density has a spike that is too narrow to be resolved in the box of ±{self.half_width:g}. "
                "An energy without poles, or a smaller box, is needed",
            )

    def at_temperature(self, temperature: float) -> dict[str, Value]:
        return {"energy": f"({self.energy})/{temperature!r}"}

    def formula(self) -> str:
        return self.energy

    @cached_property
    def _programs(self) -> tuple[Array, Array]:
        """The energy and its slopes as programs."""
        slopes = [self.expression.diff(name) for name in self.names]
        return program([self.expression], self.names), program(slopes, self.names)

    def native(self) -> dict[int, Loop]:
        loops: dict[int, Loop] = {}
        for at, title, made in zip((_NATIVE_ENERGY, _NATIVE_SLOPES), ("energy", "slopes"), self._programs, strict=True):
            loops[at] = loop = Loop(title, {"theta": self.dim, "out": int(made[2])})
            for k, value in enumerate(loop.run(made, partial(loop.load, "theta"))):
                loop.store("out", k, value)
        return loops

    def packed(self) -> Array:
        energy, gradients = self._programs
        table = self._table
        work = np.zeros(workspace(energy, gradients))
        starts = _HEADER + np.cumsum([0, len(energy), len(gradients), len(work)])
        header = np.zeros(_HEADER)
        header[[_ENERGY, _SLOPES, _WORK, _TABLE]] = starts
        header[[_CELLS, _LOW, _HIGH]] = _TABLE_CELLS[self.dim], -self.half_width, self.half_width
        return np.concatenate([header, energy, gradients, work, table])

    def start(self) -> Array:
        points = self._points
        return points[np.argmin(self._energy_at(points))]

    def check_start(self, theta: Sequence[float]) -> None:
        super().check_start(theta)
        if not np.isfinite(self._energy_at(np.array([theta]))).all():
            raise SpecError("start", list(theta), "allowed is a place where the energy is finite")

    def unbounded_at(self, theta: Array) -> str:
        where = ", ".join(f"{name} = {x:.6g}" for name, x in zip(self.names, theta, strict=True))
        return f"its log density is +∞ at {where}; an energy that is finite everywhere is needed"

    def log_density(self, theta: Array) -> Array:
        inside = (np.abs(theta) <= self.half_width).all(axis=-1)
        return np.where(inside, -self._energy_at(theta) - self._log_normaliser, -np.inf)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        if self.dim == 1:
            cdf = density_cdf(lambda x: np.exp(self.log_density(x[..., None])), -self.half_width, self.half_width)
            return (self._column("θ", cdf, 0),)
        return tuple(self._column(f"θ{'₁₂'[k]}", self._marginal(k), k) for k in range(2))

    def _marginal(self, k: int) -> Callable[[Array], Array]:
        # A cubic spline through the density at 512 points, integrated: its error is of the order h⁴.
        points, _ = self._rule
        density = self._mass.sum(axis=1 - k) / self._rule[1]
        integral = CubicSpline(points, density).antiderivative()
        low, high = integral(points[[0, -1]])
        return lambda x: np.clip((integral(np.clip(x, points[0], points[-1])) - low) / (high - low), 0.0, 1.0)

    def _column(self, name: str, cdf: Callable[[Array], Array], k: int) -> Column:
        points, _ = self._rule
        mass = self._mass.sum(axis=1 - k) if self.dim > 1 else self._mass
        mean = float((points * mass).sum())
        variance = float(((points - mean) ** 2 * mass).sum())
        fine = np.linspace(-self.half_width, self.half_width, 2001)
        inside = fine[(cdf(fine) > 1e-4) & (cdf(fine) < 1 - 1e-4)]
        margin = 0.05 * (inside[-1] - inside[0])
        wide = 1.5 * self.half_width
        return Column(
            name, -wide, wide, cdf, mean, variance, shown=(float(inside[0] - margin), float(inside[-1] + margin))
        )

    def _energy_at(self, theta: Array) -> Array:
        return self.expression.evaluate(**{name: theta[..., i] for i, name in enumerate(self.names)})

    @cached_property
    def _points(self) -> Array:
        """A grid of the box, its edge included, (points, dim)."""
        line = np.linspace(-self.half_width, self.half_width, 4001 if self.dim == 1 else 201)
        return np.stack([x.ravel() for x in np.meshgrid(*[line] * self.dim, indexing="ij")], axis=-1)

    @cached_property
    def _rule(self) -> tuple[Array, Array]:
        """The points and weights of the quadrature along a coordinate."""
        return rule(-self.half_width, self.half_width, _PANELS[self.dim])

    @cached_property
    def _log_normaliser(self) -> float:
        energy = self._energy_at(np.stack(np.meshgrid(*[self._rule[0]] * self.dim, indexing="ij"), axis=-1))
        lowest = float(energy.min())
        mass = _relative(lowest, energy)
        for _ in range(self.dim):
            mass = mass @ self._rule[1]
        return float(np.log(mass)) - lowest

    @cached_property
    def _mass(self) -> Array:
        """The probability that each point of the quadrature stands for, (points,) or (points, points)."""
        points, weights = self._rule
        density = np.exp(self.log_density(np.stack(np.meshgrid(*[points] * self.dim, indexing="ij"), axis=-1)))
        return np.asarray(density * (weights if self.dim == 1 else np.outer(weights, weights)))

    @cached_property
    def _table(self) -> Array:
        """CDFs at the edges of equal cells: of the first coordinate, then of the second in each cell of the first."""
        cells = _TABLE_CELLS[self.dim]
        edges = np.linspace(-self.half_width, self.half_width, cells + 1)
        centres = (edges[1:] + edges[:-1]) / 2
        if self.dim == 1:
            return self._column_cdf(edges)
        grid = np.stack(np.meshgrid(centres, centres, indexing="ij"), axis=-1)
        mass = np.exp(self.log_density(grid))
        rows = np.cumsum(mass, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            given = np.nan_to_num(rows / rows[:, -1:], nan=1.0)
        given = np.concatenate([np.zeros((cells, 1)), given], axis=1)
        return np.concatenate([self._column_cdf(edges), given.ravel()])

    def _column_cdf(self, edges: Array) -> Array:
        cdf = self.columns[0].cdf(edges)
        return np.asarray(np.maximum.accumulate((cdf - cdf[0]) / (cdf[-1] - cdf[0])))

    tried_at = (
        {"energy": "cosh(3*theta) - sin(theta)", "extent": 2.0},
        {"energy": "(theta1^2 + theta2^2)^2/8 - exp(-(theta1 - 1)^2)*theta2", "extent": 4.0},
    )
    drawn_at = {"energy": "theta^4/4 - theta/2", "extent": 3.5}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        # On a line; draws of a plane have a test of their own.
        edges = np.linspace(-self.extent, self.extent, 4097)
        cdf = self.columns[0].cdf(edges)
        return [float(np.interp(rng.random(), (cdf - cdf[0]) / (cdf[-1] - cdf[0]), edges))]
