"""Quadrature on cells, which are divided until the density is smooth in each: of several modes, of any width.

The density e^{−U} is integrated over a box. In each cell U is known at the points of a Gauss–Legendre rule along every
axis; the last coefficients of the cell's marginals in Legendre polynomials tell how far these are from a polynomial.
The worst cells are halved along their worst axis until the sum of their errors is small. A mode that is narrower than
the distance of two points would not be seen: around the modes that are given cells are as narrow as these.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss, legint, legval, legvander
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline

from sgmcmc_lab.samplers.targets.base import Array

Energies = Callable[[Array], Array]
"""U at θ (n, dim), (n,); inf where the density is 0."""
POINTS = 8
"""Points of a cell along each axis."""
_PLACES, _WEIGHTS = leggauss(POINTS)
_TO_COEFFICIENTS = (np.arange(POINTS)[:, None] + 0.5) * legvander(_PLACES, POINTS - 1).T * _WEIGHTS
"""Legendre coefficients of a function of [−1, 1] from its values at the points."""
_WIDEST = 4.0
"""The widest that a cell with a mode may be, in standard deviations of the mode."""
_HEAVY = 1e-3
"""The least share of a cell beside which no other may be far wider, in units of the tolerance."""
_NARROWEST = 1e-11
"""The width of the narrowest cell, relative to its place: closer, rounding hides the shape of the density."""
_BLOCK = 1 << 18
"""Energies that are computed at once."""
_BETWEEN = 8
"""Points of a CDF's table between two edges of cells."""


class Marginal(NamedTuple):
    """The distribution of one coordinate."""

    low: float
    high: float
    cdf: Callable[[Array], Array]
    mean: float
    variance: float


class Cells(NamedTuple):
    """A density in a box, cell by cell."""

    lows: Array
    """(cells, dim)."""
    highs: Array
    shares: Array
    """Shares of each cell along each axis, at the points: the density of the coordinate's place in it, between 0 and 1,
    times the cell's share of the whole, (cells, dim, points)."""
    error: float
    """A bound of the error of all marginals, as a share of the whole, where the cells' coefficients fall off."""
    log_mass: float
    """log ∫e^{−U}."""

    @property
    def masses(self) -> Array:
        """The shares of the cells, (cells,)."""
        return np.asarray(self.shares[:, 0] @ _WEIGHTS / 2)

    def at_sides(self) -> tuple[Array, Array]:
        """The shares of the cells at the lower and at the upper side of the box along each axis, (dim,)."""
        masses = self.masses[:, None]
        low = np.where(self.lows == self.lows.min(axis=0), masses, 0.0).sum(axis=0)
        return low, np.where(self.highs == self.highs.max(axis=0), masses, 0.0).sum(axis=0)

    def marginal(
        self, axis: int, value: Callable[[Array], Array] = np.asarray, inverse: Callable[[Array], Array] = np.asarray
    ) -> Marginal:
        """The distribution of a monotone function of this coordinate, whose inverse is given too."""
        lows, highs, shares = self.lows[:, axis], self.highs[:, axis], self.shares[:, axis]
        places = value(lows[:, None] + (highs - lows)[:, None] * (_PLACES + 1) / 2)
        mean = float((shares * places @ _WEIGHTS).sum() / 2)
        variance = float((shares * (places - mean) ** 2 @ _WEIGHTS).sum() / 2)
        edges = np.unique(np.concatenate([lows, highs]))
        steps = np.arange(_BETWEEN) / _BETWEEN
        x = np.append((edges[:-1, None] + np.diff(edges)[:, None] * steps).ravel(), edges[-1])
        # Cells that end before x count in full, those around x in part.
        order = np.argsort(highs, kind="stable")
        ended = np.concatenate([[0.0], np.cumsum(shares[order] @ _WEIGHTS / 2)])
        below = ended[np.searchsorted(highs[order], x, side="right")]
        density = np.zeros(len(x))
        first, last = np.searchsorted(x, lows), np.searchsorted(x, highs)
        cell = np.repeat(np.arange(len(lows)), last - first)
        at = np.arange(len(cell)) - np.repeat(np.cumsum(last - first) - (last - first), last - first) + first[cell]
        coefficients = (shares @ _TO_COEFFICIENTS.T).T
        t = 2 * (x[at] - lows[cell]) / (highs - lows)[cell] - 1
        part = legval(t, legint(coefficients, lbnd=-1)[:, cell], tensor=False) / 2
        np.add.at(below, at, part)
        np.add.at(density, at, legval(t, coefficients[:, cell], tensor=False) / (highs - lows)[cell])
        heights = np.clip(np.maximum.accumulate(below), 0.0, 1.0)
        # A cubic never falls whose slopes are at most three times those of the chords (Fritsch & Carlson 1980).
        chords = np.diff(heights) / np.diff(x)
        steepest = 3 * np.minimum(np.append(chords, chords[-1]), np.append(chords[0], chords))
        spline = CubicHermiteSpline(x, heights, np.clip(density, 0.0, steepest))

        low, high = (float(end) for end in value(x[[0, -1]]))

        def cdf(y: Array) -> Array:
            inside = np.clip(np.asarray(y, dtype=float), min(low, high), max(low, high))
            below = np.clip(spline(np.clip(inverse(inside), x[0], x[-1])), 0.0, 1.0)
            return below if low < high else 1.0 - below

        return Marginal(min(low, high), max(low, high), cdf, mean, variance)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """θ (n, dim), the cells stratified and the coordinates independent within each; the log density of these draws,
        (n,).
        """
        masses = self.masses
        strata = np.cumsum(masses)
        chosen = np.minimum(np.searchsorted(strata, (np.arange(n) + rng.random(n)) / n * strata[-1]), len(masses) - 1)
        theta, log_density = np.empty((n, self.lows.shape[1])), np.log(masses[chosen] / strata[-1])
        for axis in range(theta.shape[1]):
            place, height = self._places(axis, chosen, rng.random(n))
            width = (self.highs - self.lows)[chosen, axis]
            theta[:, axis] = self.lows[chosen, axis] + width * place
            log_density += np.log(height / width)
        return theta, log_density

    def _places(self, axis: int, chosen: Array, u: Array) -> tuple[Array, Array]:
        """Places in [0, 1] of these cells by the inverse of their marginals' CDF, in steps, and the density there."""
        heights = np.maximum(legval(_STEPS, (self.shares[:, axis] @ _TO_COEFFICIENTS.T).T), 0.0)
        heights = heights + 1e-3 * heights.mean(axis=1, keepdims=True) + 1e-300
        heights /= heights.mean(axis=1, keepdims=True)
        sums = np.concatenate([np.zeros((len(heights), 1)), np.cumsum(heights, axis=1) / heights.shape[1]], axis=1)
        step = (u[:, None] >= sums[chosen, 1:-1]).sum(axis=1)
        height = heights[chosen, step]
        return (step + (u - sums[chosen, step]) / height * heights.shape[1]) / heights.shape[1], height


_STEPS = 2 * (np.arange(32) + 0.5) / 32 - 1
"""The middles of the steps by which a cell's marginal is drawn from."""


class _Tree:
    """Cells while they are divided: a box that is halved again and again. Its leaves are the cells."""

    def __init__(self, energies: Energies, low: Array, high: Array):
        self._energies, self.dim = energies, len(low)
        self.lows, self.highs = low[None], high[None]
        self.leaf = np.ones(1, dtype=bool)
        self.axis, self.first = np.zeros(1, dtype=int), np.zeros(1, dtype=int)
        """For each box that was halved the axis, and its lower half; the upper one follows that."""
        self.shares, self.errors = np.empty((0, self.dim, POINTS)), np.empty((0, self.dim))
        """Relative to e^{−lowest}; the errors are the last coefficients of each box along each axis."""
        self.lowest, self.spent = np.inf, 0
        self._evaluate(self.lows, self.highs)

    def halve(self, cells: NDArray[np.int64], axes: NDArray[np.int64]) -> None:
        """Halve these along their axes."""
        middles = (self.lows[cells, axes] + self.highs[cells, axes]) / 2
        lows, highs = self.lows[cells].repeat(2, axis=0), self.highs[cells].repeat(2, axis=0)
        pairs = 2 * np.arange(len(cells))
        highs[pairs, axes], lows[pairs + 1, axes] = middles, middles
        n = len(self.lows)
        self.leaf[cells], self.axis[cells], self.first[cells] = False, axes, n + pairs
        self.lows, self.highs = np.concatenate([self.lows, lows]), np.concatenate([self.highs, highs])
        self.leaf = np.append(self.leaf, np.ones(len(lows), dtype=bool))
        self.axis, self.first = (np.append(one, np.zeros(len(lows), dtype=int)) for one in (self.axis, self.first))
        self._evaluate(lows, highs)

    def _evaluate(self, lows: Array, highs: Array) -> None:
        dim, places = self.dim, (_PLACES + 1) / 2
        grid = np.stack([x.ravel() for x in np.meshgrid(*[places] * dim, indexing="ij")], axis=-1)
        block = max(_BLOCK // len(grid), 1)
        for first in range(0, len(lows), block):
            low, width = lows[first : first + block], (highs - lows)[first : first + block]
            theta = low[:, None] + width[:, None] * grid
            found = self._energies(theta.reshape(-1, dim)).reshape(len(low), *[POINTS] * dim)
            self.spent += found.size
            lowest = min(self.lowest, float(found.min()))
            if lowest < self.lowest < np.inf:
                factor = np.exp(lowest - self.lowest)
                self.shares, self.errors = self.shares * factor, self.errors * factor
            self.lowest = lowest
            # There is no lowest energy yet where all of the density is 0.
            density = np.exp((lowest if lowest < np.inf else 0.0) - found)
            density *= np.prod(width, axis=1).reshape(-1, *[1] * dim)
            shares = np.empty((len(low), dim, POINTS))
            for axis in range(dim):
                line = np.moveaxis(density, axis + 1, 1)
                for _ in range(dim - 1):
                    line = line @ (_WEIGHTS / 2)
                shares[:, axis] = line
            # Of an even or odd function every other coefficient is 0.
            errors = np.abs(shares @ _TO_COEFFICIENTS.T)[:, :, -2:].max(axis=2)
            self.shares, self.errors = np.concatenate([self.shares, shares]), np.concatenate([self.errors, errors])

    def cells_of(self, theta: Array) -> Array:
        """The cell of each θ (n, dim) in the box, (n,)."""
        at = np.zeros(len(theta), dtype=int)
        while not (ended := self.leaf[at]).all():
            axis = self.axis[at]
            middle = self.highs[self.first[at], axis]
            upper = theta[np.arange(len(theta)), axis] >= middle
            at = np.where(ended, at, self.first[at] + upper)
        return at


def integrate(
    energies: Energies,
    low: Array,
    high: Array,
    modes: Array,
    spreads: Array,
    tolerance: float,
    most: int,
) -> Cells | None:
    """The density in the box from ``low`` to ``high`` (dim,), its error ``tolerance`` or as small as ``most`` energies
    and the rounding of θ make it; None where it is 0 at all points, or ``most`` is too few for a first look.

    ``modes`` (modes, dim) are known modes, and ``spreads`` (modes, dim) the standard deviations of their coordinates.
    No cell is far wider than a neighbour with mass: a curved ridge would pass between its points.
    """
    if most < POINTS ** len(low):
        return None
    tree = _Tree(energies, low, high)
    while True:
        cells = np.flatnonzero(tree.leaf)
        masses, errors = tree.shares[cells, 0] @ _WEIGHTS / 2, tree.errors[cells].max(axis=1)
        total, axes = float(masses.sum()), tree.errors[cells].argmax(axis=1)
        lows, highs = tree.lows[cells], tree.highs[cells]
        widths, place = highs - lows, np.empty(len(tree.leaf), dtype=int)
        place[cells] = np.arange(len(cells))
        order = np.argsort(errors)
        divided = np.zeros(len(cells), dtype=bool)
        divided[order[np.cumsum(errors[order]) > tolerance * total / 2]] = True
        # Beside a far narrower cell.
        heavy = np.flatnonzero(masses > tolerance * _HEAVY * total)
        for axis in range(tree.dim):
            for end in (lows, highs):
                beside = (lows[heavy] + highs[heavy]) / 2
                beside[:, axis] = end[heavy, axis] + (0.01 if end is highs else -0.01) * widths[heavy, axis]
                inside = (beside[:, axis] >= low[axis]) & (beside[:, axis] <= high[axis])
                other, own = place[tree.cells_of(beside[inside])], heavy[inside]
                ratio = widths[other] / widths[own]
                far = ratio.max(axis=1) > 2.5
                divided[other[far]], axes[other[far]] = True, ratio[far].argmax(axis=1)
        # A cell with a mode that is far narrower, in units of that mode.
        own = place[tree.cells_of(modes)]
        around = widths[own] / spreads
        wide = around.max(axis=1) > _WIDEST
        divided[own[wide]], axes[own[wide]] = True, around[wide].argmax(axis=1)
        at = np.arange(len(cells))
        divided &= widths[at, axes] > _NARROWEST * np.maximum(np.abs(lows), np.abs(highs))[at, axes]
        if not divided.any() or tree.spent + 2 * int(divided.sum()) * POINTS**tree.dim > most:
            break
        tree.halve(cells[divided], axes[divided])
    if not total > 0:
        return None
    return Cells(
        lows, highs, tree.shares[cells] / total, float(errors.sum() / total), float(np.log(total) - tree.lowest)
    )
