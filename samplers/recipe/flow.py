"""A recipe's process on a grid: what really moves the chain, its distribution, and where that is not e^{−H}."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from sgmcmc_lab.samplers.expressions import Array, Expression, evaluate
from sgmcmc_lab.samplers.recipe import fokker_planck
from sgmcmc_lab.samplers.recipe.recipe import ENERGY, Layout, Recipe
from sgmcmc_lab.samplers.targets.base import Target

SHOWN_MOMENTUM = 4.0
"""Momenta within ±4, and a thermostat within 4 of its mean, are what is shown and where D is checked."""
FLOOR = 1e-30
"""Cells have at least this share of the highest density of a distribution that is solved for."""
STEPPED = 80
"""Cells a side where the autocorrelation is found by steps in time."""
MAX_NUMBERS = 10**8
"""Numbers of data that a compiled energy looks at for one look at a grid: a tenth of a second or two."""
REACH = 0.5
"""The grid goes beyond what is shown by this share of it on each side, so that its walls are not felt."""


def effective(recipe: Recipe, step_size: float, excess: float) -> Recipe:
    """The recipe with the diffusion that a chain has when its gradient's noise is larger by ``excess`` than B̂.

    A step adds ε²(V − B̂)K to the injected 2εD, with K = (D+Q) diag(1, 0) (D+Q)ᵀ: that is D + (ε/2)(V − B̂)K. The drift
    stays what it is, so that e^{−H} is no longer its distribution.
    """
    if excess == 0:
        return recipe
    spread = recipe.correction(1.0)
    n = range(len(recipe.layout.names))
    wider = tuple(tuple(recipe.D[i][j] + (step_size / 2 * excess) * spread[i][j] for j in n) for i in n)
    return replace(recipe, diffusion=wider, edited=recipe.drift, typed=())


def values_at(
    layout: Layout, target: Target, expressions: Iterable[Expression], points: Sequence[Array]
) -> dict[str, Array]:
    """The arguments with which these expressions of z are evaluated at points, one array for each coordinate.

    That is z, and where U is compiled its values and slopes. Raises ValueError if the target has so many data points
    that the evaluation would take long.
    """
    given = dict(zip(layout.names, points, strict=True))
    needed = set[str]().union(*(entry.names for entry in expressions))
    slopes = layout.slopes if needed & set(layout.slopes) else ()
    if ENERGY in needed or slopes:
        theta = np.stack(np.broadcast_arrays(*points[: layout.dim]), axis=-1)
        flat = theta.reshape(-1, layout.dim)
        numbers = len(flat) * max(len(target.data()), 1) * layout.dim
        if numbers > MAX_NUMBERS:
            raise ValueError(
                f"The energy at {len(flat):,} points would take {numbers:,} numbers of data; allowed are {MAX_NUMBERS:,}."
            )
        if ENERGY in needed:
            given[ENERGY] = target.energies_at(flat).reshape(theta.shape[:-1])
        if slopes:
            given |= zip(slopes, np.moveaxis(target.gradient_at(flat).reshape(theta.shape), -1, 0), strict=True)
    return given


def on_points(
    recipe: Recipe, target: Target, expressions: Sequence[Expression], points: Sequence[Array]
) -> list[Array]:
    """The values of expressions of z at points, one array a coordinate. Raises ValueError as `values_at` does."""
    return evaluate(expressions, **values_at(recipe.layout, target, expressions, points))


def shown(recipe: Recipe, target: Target) -> list[tuple[float, float]]:
    """The range of each coordinate of z that is shown."""
    # Where columns say nothing of coordinates, those are of scale 1.
    ranges = (
        [column.axis for column in target.columns[: target.dim]]
        if target.of_coordinates
        else [(-SHOWN_MOMENTUM, SHOWN_MOMENTUM)] * target.dim
    )
    ranges += [(-SHOWN_MOMENTUM, SHOWN_MOMENTUM)] * len(recipe.layout.momenta)
    return ranges + [(recipe.friction - SHOWN_MOMENTUM, recipe.friction + SHOWN_MOMENTUM)] * len(
        recipe.layout.thermostats
    )


@dataclass(frozen=True)
class Flow:
    """A process with one or two coordinates on a grid of equal cells."""

    recipe: Recipe
    target: Target
    cells: int = 120

    @cached_property
    def grid(self) -> fokker_planck.Grid:
        """The cells; they reach beyond what is shown, but not below 0 where θ is positive."""
        ranges = []
        for k, (low, high) in enumerate(shown(self.recipe, self.target)):
            margin = REACH * (high - low) / 2
            floor = self.target.columns[k].low if k < self.target.dim and self.target.support != "line" else -np.inf
            ranges.append((max(low - margin, floor), high + margin))
        lows, highs = zip(*ranges, strict=True)
        return fokker_planck.Grid(tuple(map(float, lows)), tuple(map(float, highs)), (self.cells,) * len(ranges))

    def field(self, expression: Expression) -> Callable[..., Array]:
        """An expression as a function of arrays of coordinates."""
        return lambda *points: on_points(self.recipe, self.target, [expression], points)[0]

    @cached_property
    def matrix(self) -> sparse.csc_array:
        """The generator: ∂p/∂t = matrix · p for the probabilities of the cells."""
        recipe = self.recipe
        n = len(recipe.layout.names)
        extra = [own - other for own, other in zip(recipe.drift, recipe.due, strict=True)]
        drift = [self.field(e) for e in extra] if not self.right else None
        energy = self.field(recipe.hamiltonian)
        if n == 1:
            return fokker_planck.generator(self.grid, energy, self.field(recipe.D[0][0]), drift=drift)
        d11, d12, d22 = (self.field(recipe.D[i][j]) for i, j in ((0, 0), (0, 1), (1, 1)))
        return fokker_planck.generator(self.grid, energy, d11, d12, d22, self.field(recipe.Q[1][0]), drift)

    @cached_property
    def right(self) -> bool:
        """Whether the recipe's own drift is what moves the chain, so that e^{−H} is its distribution."""
        return all((own - other).is_zero for own, other in zip(self.recipe.drift, self.recipe.due, strict=True))

    @cached_property
    def wanted(self) -> Array:
        """The density e^{−H}/Z of the cells."""
        return self.grid.stationary(self.field(self.recipe.hamiltonian))

    @cached_property
    def law(self) -> Array:
        """The density that the process really tends to. Raises ValueError where the grid has none."""
        if self.right:
            return self.wanted
        law = fokker_planck.stationary(self.matrix, self.grid, self.wanted)
        # A distribution that is solved for may be cut to zero in a cell far out, which would then have modes of its
        # own.
        return np.maximum(law, FLOOR * law.max())

    @cached_property
    def resolvent(self) -> fokker_planck.Resolvent:
        """The common part of the spectrum and the autocorrelation."""
        return fokker_planck.Resolvent(self.matrix, self.grid, self.law)

    @cached_property
    def spectrum(self) -> fokker_planck.Spectrum:
        """The slowest modes. Raises ValueError where the grid has no distribution."""
        return fokker_planck.spectrum(self.matrix, self.grid, self.law, resolvent=self.resolvent)

    def autocorrelation(self, times: Array, k: int = 0) -> Array:
        """The predicted autocorrelation of coordinate ``k`` of z at evenly spaced times from 0 on."""
        if not self.right:
            return replace(self, cells=min(self.cells, STEPPED))._stepped(times, k)
        values = self.grid.mesh()[k]
        return fokker_planck.predicted_autocorrelation(
            self.matrix, self.grid, self.law, values, times, resolvent=self.resolvent
        )

    def _stepped(self, times: Array, k: int) -> Array:
        # The projection behind a right process's prediction is stable for those alone: they are dissipative under
        # their distribution.
        law, x = self.law, self.grid.mesh()[k]
        apart = x - float((x * law).sum() * self.grid.volume)
        walk = fokker_planck.Evolution(self.matrix, apart * law, float(times[1] - times[0]))
        rho = np.array(
            [float((apart * apart * law).sum()), *(float((apart * walk.advance()).sum()) for _ in times[1:])]
        )
        return rho / rho[0]
