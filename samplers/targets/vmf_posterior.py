"""The posterior of the two directions of a mixture of von Mises distributions: a distribution on the torus, with
data.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.manifolds import Manifold, Spheres
from sgmcmc_lab.samplers.parameters import Count, Real, SpecError
from sgmcmc_lab.samplers.requirements import DATA
from sgmcmc_lab.samplers.targets.at_temperature import Divided, divided
from sgmcmc_lab.samplers.targets.base import MANIFOLD, Array, Column, FirstSteps, Moment, Target
from sgmcmc_lab.samplers.targets.expectations import sum_ordered, sum_products

# The packed parameters: κ, half the box's width, its cells on a side, the lowest U/T, how many data there are, T, the
# data, and the masses of the cells in an envelope of the density, summed up from 0 on.
_KAPPA, _EXTENT, _CELLS, _LOWEST, _ITEMS, _HEAT, _FIRST = range(7)
_LEFT_OUT = 42.0
"""Up to how far above the lowest U/T there is all of the distribution but 1e-16."""
_CELLS_AT_ONE, _MOST_CELLS = 512, 1025
"""Cells on a side of the box at T = 1, and the most at other temperatures."""
_WIDEST = 0.75
"""The side of a cell at other temperatures, in standard deviations of the narrowest mode that there may be."""
_MOST_JUMP = 5e-3
"""The largest jump of the density at v₂ = −v₁, summed along it, at which samplers that do not see it are right."""

TRUE_ANGLES = (-np.pi / 24, np.pi / 8)
"""The directions that the data are made with (Liu, Zhu & Song 2016, section 5.2; the first is inferred)."""


@jit.helper
def _energy(v0, v1, w0, w1, params):
    kappa = params[_KAPPA]
    length = np.hypot(v0 + w0, v1 + w1)
    m0, m1 = (v0 + w0) / length, (v1 + w1) / length
    total = 0.0
    for i in range(int(params[_ITEMS])):
        x0, x1 = params[_FIRST + 2 * i], params[_FIRST + 2 * i + 1]
        a, b = kappa * (v0 * x0 + v1 * x1), kappa * (m0 * x0 + m1 * x1)
        total += max(a, b) + np.log1p(np.exp(-abs(a - b)))
    return -kappa * (v0 + w0) - total


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        out[c] = _energy(theta[c, 0], theta[c, 1], theta[c, 2], theta[c, 3], params)


@jit.helper
def _slope(theta, begin, end, weight, params, out):
    """Write ∂U/∂θ (4,) of the data from ``begin`` to ``end``, each of which counts for so many."""
    kappa = params[_KAPPA]
    v0, v1 = theta[0], theta[1]
    s0, s1 = v0 + theta[2], v1 + theta[3]
    length = np.hypot(s0, s1)
    m0, m1 = s0 / length, s1 / length
    # Sums of the data that belong to v₁, and of those that belong to μ.
    g0 = g1 = h0 = h1 = 0.0
    for i in range(begin, end):
        x0, x1 = params[_FIRST + 2 * i], params[_FIRST + 2 * i + 1]
        share = 1 / (1 + np.exp(kappa * ((m0 - v0) * x0 + (m1 - v1) * x1)))
        g0 += share * x0
        g1 += share * x1
        h0 += (1 - share) * x0
        h1 += (1 - share) * x1
    # ∂μ/∂v = (I − μμᵀ)/‖v₁ + v₂‖, the same for both.
    along, scale = m0 * h0 + m1 * h1, weight * kappa
    h0, h1 = (h0 - along * m0) / length, (h1 - along * m1) / length
    out[0] = -kappa - scale * (g0 + h0)
    out[1] = -scale * (g1 + h1)
    out[2] = -kappa - scale * h0
    out[3] = -scale * h1


@jit.gradient
def gradient(theta, out, params):
    for c in range(theta.shape[0]):
        _slope(theta[c], 0, int(params[_ITEMS]), 1.0, params, out[c])


@jit.batch
def batch(theta, data, each, params):
    for k in range(data.size):
        _slope(theta[0], data[k], data[k] + 1, params[_ITEMS], params, each[k])


@jit.draw
def draw(rng, out, params):
    # Rejection from a distribution that is constant in each cell of a grid, and nowhere below e^{−U}.
    cells, extent = int(params[_CELLS]), params[_EXTENT]
    cumulated = params[_FIRST + 2 * int(params[_ITEMS]) :]
    side = 2 * extent / cells
    for c in range(out.shape[0]):
        while True:
            u = rng.random() * cumulated[cells * cells]
            low, high = 0, cells * cells
            while high - low > 1:
                middle = (low + high) // 2
                if cumulated[middle] <= u:
                    low = middle
                else:
                    high = middle
            one = (low // cells + rng.random()) * side - extent
            two = (low % cells + rng.random()) * side - extent
            out[c, 0], out[c, 1], out[c, 2], out[c, 3] = np.cos(one), np.sin(one), np.cos(two), np.sin(two)
            energy = _energy(out[c, 0], out[c, 1], out[c, 2], out[c, 3], params)
            if rng.random() * (cumulated[low + 1] - cumulated[low]) < np.exp(params[_LOWEST] - energy / params[_HEAT]):
                break


@jit.observe
def observe_angles(draws, n, out):
    """The angles of v₁ and v₂."""
    for c in range(draws.shape[1]):
        for t in range(n):
            out[0, c, t] = np.arctan2(draws[t, c, 1], draws[t, c, 0])
            out[1, c, t] = np.arctan2(draws[t, c, 3], draws[t, c, 2])


class MisesPosterior(Target):
    """v₁, v₂ ~ vMF(e₁, κ), x_i ~ ½vMF(v₁, κ) + ½vMF(μ, κ) on the circle, μ = (v₁ + v₂)/‖v₁ + v₂‖; θ = (v₁, v₂) | x.

    The data are made here, from v₁ at the angle −π/24 and v₂ at π/8. Exchanging the two centres v₁ and μ gives a second
    mode near (π/24, −π/8). The gradient may come from a minibatch.
    """

    key = "mises_posterior"
    title = "Posterior of two directions (torus)"
    tex = (
        r"U(\theta) = -\kappa\,e_1\cdot(v_1 + v_2) - \sum_{i=1}^{N}\log\bigl(e^{\kappa\,v_1\cdot x_i} + e^{\kappa\,\mu\cdot x_i}\bigr),\quad "
        r"\theta = (v_1, v_2),\ \mu = \frac{v_1 + v_2}{\lVert v_1 + v_2\rVert}"
    )
    source = "Liu, Zhu & Song 2016, section 5.2, Fig 4"
    support, geometry = MANIFOLD, Spheres
    provides = DATA
    potential, gradient, batch, draw, observe = potential, gradient, batch, draw, observe_angles
    dim = 4
    # A minibatch of ten has a noise of V = 5700: from ε = 2/V = 3.5e-4 on it takes the place of all injected noise.
    first_steps = FirstSteps(moving=0.03, batch=0.002, friction=20.0, other=5e-4, heated=2e-4)

    items = Count(100, bounds=(10, 1000), log=True, tex="N", label="Data N", doc="How many data there are.")
    concentration = Real(
        20.0,
        bounds=(10.0, 50.0),
        log=True,
        tex=r"\kappa",
        label="Concentration κ",
        doc="Of both priors and of the data about their directions.",
    )
    data_seed = Count(
        3, bounds=(0, 10_000), tex="s", label="Seed of the data", doc="Another seed makes other data of the same kind."
    )

    @cached_property
    def manifold(self) -> Manifold:
        return Spheres(2, 2)

    @cached_property
    def observations(self) -> Array:
        """x, (N, 2)."""
        rng = np.random.Generator(np.random.SFC64(self.data_seed))
        one, two = TRUE_ANGLES
        centres = np.where(rng.random(self.items) < 0.5, one, (one + two) / 2)
        angles = centres + rng.vonmises(0.0, self.concentration, self.items)
        return np.stack([np.cos(angles), np.sin(angles)], axis=-1)

    def family_at(self, temperature: float) -> "TemperedMisesPosterior":
        found = TemperedMisesPosterior.made(self, temperature)
        found.check_grid()
        return found

    def data(self) -> NDArray[np.int64]:
        return np.arange(self.items)

    def start(self) -> Array:
        return _points(np.array(TRUE_ANGLES))

    # The distribution is found on a grid of angles. e^{−U} is smooth and vanishes at the edge of the box: the
    # trapezoidal rule converges faster than any power of the spacing.

    @cached_property
    def _extent(self) -> float:
        """Half the width of a box that holds all of the distribution but 1e-16."""
        grid = np.linspace(-2.2, 2.2, 221)
        energy = self._on_grid(grid)
        inside = np.abs(grid)[
            (energy.min(axis=0) < energy.min() + _LEFT_OUT) | (energy.min(axis=1) < energy.min() + _LEFT_OUT)
        ]
        return float(min(inside.max() + 0.04, 2.2))

    def _on_grid(self, grid: Array, index: NDArray[np.int64] | None = None) -> Array:
        """U at (φ₁, φ₂) on a square of evenly spaced angles; the angles of μ are then evenly spaced, too.

        ``index`` says which of these belongs to each point; (φ₁ + φ₂)/2 unless it is given.
        """
        kappa, n = self.concentration, len(grid)
        angles = np.arctan2(self.observations[:, 1], self.observations[:, 0])
        middles = np.linspace(grid[0], grid[-1], 2 * n - 1)
        own = np.exp(kappa * (np.cos(grid[:, None] - angles) - 1))
        shared = np.exp(kappa * (np.cos(middles[:, None] - angles) - 1))
        if index is None:
            # Where the angles are more than π apart, μ is on the other side; there the distribution has no mass to
            # speak of.
            index = np.arange(n)[:, None] + np.arange(n)
        out = -kappa * (np.cos(grid)[:, None] + np.cos(grid))
        for i in range(self.items):
            out -= np.log(own[:, i][:, None] + shared[:, i][index]) + kappa
        return out

    @cached_property
    def _grid(self) -> tuple[Array, Array]:
        """The angles and U/T on a grid of 513 × 513."""
        grid = np.linspace(-self._extent, self._extent, _CELLS_AT_ONE + 1)
        return grid, self._on_grid(grid)

    @cached_property
    def _mass(self) -> Array:
        """The probability that each point of the grid stands for."""
        mass = np.exp(self._grid[1].min() - self._grid[1])
        return np.asarray(mass / mass.sum())

    @cached_property
    def _log_normaliser(self) -> float:
        grid, energy = self._grid
        lowest = energy.min()
        return float(np.log(np.exp(lowest - energy).sum() * (grid[1] - grid[0]) ** 2) - lowest)

    @property
    def _least(self) -> Array:
        """U/T at the points of the grid, as the envelope of the draws takes it."""
        return self._grid[1]

    @cached_property
    def _packed(self) -> Array:
        (grid, _), energy = self._grid, self._least
        cells, side = len(grid) - 1, grid[1] - grid[0]
        # In a cell −U is at most its largest corner plus side²/8 times the sum of the largest ∂²U, for which
        # κ(1 + N) is a bound along each angle: the logarithm of a sum of exponentials only adds convexity to −U.
        corners = [energy[i : i + cells, j : j + cells] for i in (0, 1) for j in (0, 1)]
        margin = side**2 / 8 * 2 * self.concentration * (1 + self.items) / self.temperature
        lowest = energy.min()
        heights = np.exp(lowest - np.minimum.reduce(corners) + margin)
        header = [self.concentration, self._extent, cells, lowest, self.items, self.temperature]
        return np.concatenate([header, self.observations.ravel(), [0.0], np.cumsum(heights.ravel())])

    def packed(self) -> Array:
        return self._packed.copy()

    def without_draws(self) -> Array:
        return self._packed[: _FIRST + 2 * self.items]

    def log_density(self, theta: Array) -> Array:
        """With respect to the two lengths of arc."""
        return np.asarray(self._heights(theta) - self._log_normaliser)

    def _heights(self, theta: Array, side: float = 1.0) -> Array:
        """−U/T; with −1 for ``side`` that of −μ in place of μ."""
        one, two = theta[..., :2], theta[..., 2:]
        kappa = self.concentration
        # Of two opposite directions there is no middle; that has no mass.
        middle = side * (one + two) / np.maximum(np.linalg.norm(one + two, axis=-1, keepdims=True), 1e-300)
        total = kappa * (one[..., 0] + two[..., 0])
        for x in self.observations:
            total = total + np.logaddexp(kappa * (one @ x), kappa * (middle @ x))
        return np.asarray(total / self.temperature)

    def log_column_density(self, values: Array) -> Array:
        return self.log_density(_points(values))

    n_columns = 2

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self._column("v₁", 0), self._column("v₂", 1)

    def _column(self, name: str, k: int) -> Column:
        grid, _ = self._grid
        mass = self._mass.sum(axis=1 - k)
        mean = float(mass @ grid)
        variance = float(mass @ (grid - mean) ** 2)
        # Between the points a trigonometric interpolant is as good as the rule; a spline through many of its values
        # can be integrated.
        n, finer = len(grid) - 1, 16
        spectrum = np.fft.rfft(self._once(mass) / (grid[1] - grid[0]))
        fine = np.maximum(np.fft.irfft(spectrum, n * finer) * finer, 0.0)
        points = np.linspace(grid[0], grid[-1], n * finer + 1)
        integral = CubicSpline(points, np.append(fine, fine[0])).antiderivative()
        low, high = integral(points[[0, -1]])

        def cdf(x: Array) -> Array:
            return np.asarray(np.clip((integral(np.clip(x, points[0], points[-1])) - low) / (high - low), 0.0, 1.0))

        bulk = points[(cdf(points) > 2e-4) & (cdf(points) < 1 - 2e-4)]
        margin = 0.15 * (bulk[-1] - bulk[0])
        shown = max(float(bulk[0] - margin), -np.pi), min(float(bulk[-1] + margin), np.pi)
        return Column(name, -np.pi, np.pi, cdf, mean, variance, shown=shown)

    def _once(self, mass: Array) -> Array:
        """The mass of each point of a side, the two ends of which are one point."""
        return mass[:-1]

    @property
    def moments(self) -> tuple[Moment, ...]:
        grid, _ = self._grid
        means = [column.mean for column in self.columns]
        cross = float((grid - means[0]) @ self._mass @ (grid - means[1]))
        return (
            *super().moments,
            Moment.compiled("Cov(v₁, v₂)", sum_products, (means[0], means[1]), cross),
            Moment.compiled("P(v₁ < v₂)", sum_ordered, (), self.mode_weight),
        )

    @cached_property
    def mode_weight(self) -> float:
        """The mass of the mode that the data were made from, where v₁ < v₂."""
        mass = self._mass
        # Across the diagonal the trapezoidal rule ends in the middle of a smooth slope: its end correction is that of
        # Euler and Maclaurin, h²f′/12 at the end of each line, with a central difference along φ₂ for f′.
        diagonal = np.arange(1, len(mass) - 1)
        slope = (mass[diagonal, diagonal + 1] - mass[diagonal, diagonal - 1]) / 2
        return float(np.triu(mass, 1).sum() + np.trace(mass) / 2 + slope.sum() / 12)

    tried_at = (
        {"items": 1000, "concentration": 50.0, "data_seed": 5},
        {"items": 10, "concentration": 10.0, "data_seed": 2},
    )
    drawn_at = {"items": 20, "concentration": 12.0, "data_seed": 5}

    @cached_property
    def _textbook_box(self) -> tuple[Array, Array, float]:
        """A grid of angles, the largest density in each of its cells over the largest of all, and the log of that."""
        grid = np.linspace(-self._extent, self._extent, 513)
        logs = self.log_density(_points(np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)))
        density = np.exp(logs - logs.max())
        # The largest corner, raised by what U may bend within a cell.
        bend = (2 * self._extent / 512) ** 2 / 8 * 2 * self.concentration * (1 + self.items)
        top = np.maximum.reduce([density[i : i + 512, j : j + 512] for i in (0, 1) for j in (0, 1)]) * np.exp(bend)
        return grid, top.ravel(), float(logs.max())

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        grid, top, largest = self._textbook_box
        sums = np.cumsum(top)
        while True:
            at = int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
            one, two = (grid[k] + rng.random() * (grid[1] - grid[0]) for k in divmod(at, len(grid) - 1))
            x = _points(np.array([one, two]))
            if rng.random() * top[at] < np.exp(float(self.log_density(x)) - largest):
                return x

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        kappa, x, v1, v2 = self.concentration, self.observations[datum], theta[:2], theta[2:]
        length = np.linalg.norm(v1 + v2)
        mu = (v1 + v2) / length
        share = 1 / (1 + np.exp(kappa * (mu - v1) @ x))
        through_mu = kappa * (1 - share) * (x - (mu @ x) * mu) / length
        prior = kappa * np.array([1.0, 0.0])
        first = prior + self.items * (kappa * share * x + through_mu)
        return -np.concatenate([first, prior + self.items * through_mu])

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        return {"v_1": theta[:2], "v_2": theta[2:], "e_1": np.array([1.0, 0.0]), "x": self.observations}


def _points(angles: Array) -> Array:
    """(cos φ₁, sin φ₁, cos φ₂, sin φ₂)."""
    one, two = angles[..., 0], angles[..., 1]
    return np.stack([np.cos(one), np.sin(one), np.cos(two), np.sin(two)], axis=-1)


# --- at another temperature ------------------------------------------------------------------------------------------


class TemperedMisesPosterior(Divided, MisesPosterior):  # type: ignore[misc]
    """e^{−U/T} of the posterior, on a grid of the box that holds it, or of the whole torus.

    Where v₂ passes −v₁, μ jumps to the other side, and U with it. The cells of the whole torus are odd in number, so
    that this is halfway between points, where the rule of midpoints needs nothing else.
    """

    potential, gradient, batch = divided(MisesPosterior)

    def check_grid(self) -> None:
        """Raise :class:`SpecError` where there are no exact answers, or samplers would miss them."""
        if self._cells > _MOST_CELLS:
            raise SpecError(
                "temperature",
                self.temperature,
                f"no quadrature resolves {self.title} there, so that it would have no exact answers; allowed are temperatures nearer to 1",
            )
        if self.jump > _MOST_JUMP:
            raise SpecError(
                "temperature",
                self.temperature,
                f"{self.title} would have a density of {self.jump:.1g} where v₂ = −v₁ and U jumps, and gradients do not show a jump; allowed are lower temperatures, with at most {_MOST_JUMP:g}",
            )

    @cached_property
    def _extent(self) -> float:
        """Half the width of a box that holds all but 1e-16, where the angles are less than π apart; else π."""
        extent = np.pi if self.temperature > 1 else self.base._extent
        # A narrow distribution shows its width on a grid that is hardly wider.
        for _ in range(4):
            grid = np.linspace(-extent, extent, 221)
            energy = self._on_grid(grid) / self.temperature
            inside = energy < energy.min() + _LEFT_OUT
            reach = np.abs(grid)[inside.any(axis=0) | inside.any(axis=1)].max()
            extent = min(float(reach + 2 * (grid[1] - grid[0])), extent)
        return extent if extent < np.pi / 2 else np.pi

    @cached_property
    def _cells(self) -> int:
        """An odd number of cells on a side."""
        narrowest = np.sqrt(self.temperature / (self.concentration * (1 + self.items)))
        return max(_CELLS_AT_ONE, int(np.ceil(2 * self._extent / (_WIDEST * narrowest)))) | 1

    @cached_property
    def _grid(self) -> tuple[Array, Array]:
        n = self._cells
        grid = np.linspace(-self._extent, self._extent, n + 1)
        i = np.arange(n + 1)
        index = i[:, None] + i
        if self._extent == np.pi:
            # Half a turn is n of the steps between the angles of μ.
            index = (index + n * (2 * np.abs(i[:, None] - i) > n)) % (2 * n)
        return grid, self._on_grid(grid, index) / self.temperature

    @cached_property
    def _least(self) -> Array:
        # In a cell through which the jump goes either side may have the lower U.
        (grid, energy), n = self._grid, self._cells
        if self._extent < np.pi:
            return energy
        i = np.arange(n + 1)
        one, two = np.nonzero(np.abs(2 * np.abs(i[:, None] - i) - n) <= 3)
        out = energy.copy()
        beyond = -self._heights(_points(np.stack([grid[one], grid[two]], axis=-1)), -1.0)
        out[one, two] = np.minimum(out[one, two], beyond)
        return out

    @cached_property
    def _weights(self) -> Array:
        """Those of the trapezoidal rule along a side."""
        weights = np.full(self._cells + 1, 2 * self._extent / self._cells)
        weights[[0, -1]] /= 2
        return weights

    @cached_property
    def _shares(self) -> tuple[Array, float]:
        """The probability that each point stands for, and the log of the integral of e^{−U/T}."""
        energy = self._grid[1]
        mass = np.exp(energy.min() - energy) * np.outer(self._weights, self._weights)
        total = float(mass.sum())
        return mass / total, float(np.log(total) - energy.min())

    @property
    def _mass(self) -> Array:
        return self._shares[0]

    @property
    def _log_normaliser(self) -> float:
        return self._shares[1]

    def _once(self, mass: Array) -> Array:
        return np.append(mass[0] + mass[-1], mass[1:-1])

    @cached_property
    def jump(self) -> float:
        """∫|p₊ − p₋| along v₂ = −v₁, for the density p on either side, by the points next to it."""
        if self._extent < np.pi:
            return 0.0
        (_, energy), n = self._grid, self._cells
        i = np.arange(n)
        near, far = (np.exp(-energy[i, (i + k) % n] - self._log_normaliser) for k in ((n - 1) // 2, (n + 1) // 2))
        return float(np.abs(near - far).sum() * 2 * np.pi / n)

    def packed(self) -> Array:
        return np.append(super().packed(), self.temperature)

    def without_draws(self) -> Array:
        return np.append(super().without_draws(), self.temperature)

    @cached_property
    def _textbook_box(self) -> tuple[Array, Array, float]:
        sums = self._packed[_FIRST + 2 * self.items :]
        return self._grid[0], np.diff(sums), float(-self._packed[_LOWEST] - self._log_normaliser)
