"""Mixtures of von Mises–Fisher distributions on the circle, with the toy of the geodesic paper, and on S²."""

from functools import cached_property
from math import cos, sin
from typing import Any

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Count, Real, SpecError
from sgmcmc_lab.samplers.targets.at_temperature import Divided, divided
from sgmcmc_lab.samplers.targets.base import Array, Column, Moment
from sgmcmc_lab.samplers.targets.expectations import sum_products, sum_waves
from sgmcmc_lab.samplers.targets.quadrature import integrate, rule, rule_cdf
from sgmcmc_lab.samplers.targets.vmf import MisesFisher, OnCircle, OnSphere, potential, textbook_direction

_PI = 3.141592653589793
_MOST = 100.0
"""The largest κ/T of a component."""
_CIRCLE, _SPHERE = (1, 4096), (128, 256)
"""Rows and columns of the cells, equal in angle, from which draws at a temperature come."""
_PANELS, _AROUND = 32, 192
"""Panels of 16 points along an axis of the sphere; points around it, and twelve more for each unit of κ: where two
components are equal, the logarithm of their sum has a singularity at an angle of about π/2κ beside the real ones."""


class CircleMixture(OnCircle):
    """Two von Mises distributions on the circle. The defaults are the toy of Liu, Zhu & Song 2016, section 5.1.

    There U(x) = −log(e^{5μ₁·x} + 2e^{5μ₂·x}) with μ₁ at the angle +π/3 and μ₂ at −π/3 (corrects the print, which lost
    the minus sign): weight 1/3 for the first. Then E cos φ = .44669, E sin φ = −.25790, E cos 2φ = −.32132.
    """

    key = "circle_mixture"
    title = "Von Mises mixture (circle)"
    tex = r"U(\theta) = -\log\sum_{j=1}^{2} \frac{w_j}{I_0(\kappa_j)}\,e^{\kappa_j\,\mu_j\cdot\theta},\quad \lVert\theta\rVert = 1"
    source = "Liu, Zhu & Song 2016, section 5.1, Fig 3"

    weight = Real(
        1 / 3,
        bounds=(0.01, 0.99),
        tex="w_1",
        label="Weight w₁",
        doc="The share of the first component; the second has the rest.",
    )
    angle1 = Real(
        _PI / 3,
        bounds=(-_PI, _PI),
        tex=r"\varphi_1",
        label="Centre φ₁",
        unit="rad",
        doc="The angle of the first component's centre.",
    )
    angle2 = Real(
        -_PI / 3,
        bounds=(-_PI, _PI),
        tex=r"\varphi_2",
        label="Centre φ₂",
        unit="rad",
        doc="The angle of the second component's centre.",
    )
    concentration1 = Real(
        5.0,
        bounds=(0.1, 100.0),
        log=True,
        tex=r"\kappa_1",
        label="Concentration κ₁",
        doc="How narrow the first component is.",
    )
    concentration2 = Real(
        5.0,
        bounds=(0.1, 100.0),
        log=True,
        tex=r"\kappa_2",
        label="Concentration κ₂",
        doc="How narrow the second component is.",
    )

    def family_at(self, temperature: float) -> "TemperedCircleMixture":
        check_narrowest(self, temperature)
        return TemperedCircleMixture.made(self, temperature)

    @property
    def weights(self) -> Array:
        return np.array([self.weight, 1 - self.weight])

    @property
    def angles(self) -> Array:
        return np.array([self.angle1, self.angle2])

    @property
    def concentrations(self) -> Array:
        return np.array([self.concentration1, self.concentration2])

    tried_at = (
        {"weight": 0.99, "angle1": np.pi, "angle2": 0.2, "concentration1": 0.1, "concentration2": 100.0},
        {"weight": 0.01, "angle1": -2.0, "angle2": 2.0, "concentration1": 100.0, "concentration2": 1.0},
    )
    drawn_at = {"weight": 0.6, "angle1": 2.0, "concentration1": 3.0}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        first = rng.random() < self.weight
        angle, kappa = (self.angle1, self.concentration1) if first else (self.angle2, self.concentration2)
        return textbook_direction(rng, np.array([cos(angle), sin(angle)]), kappa)

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        angles = np.array([self.angle1, self.angle2])
        kappas = np.array([self.concentration1, self.concentration2])
        weights = np.array([self.weight, 1 - self.weight])
        return {"w": weights, r"\kappa": kappas, r"\mu": np.column_stack([np.cos(angles), np.sin(angles)])}


class SphereMixture(OnSphere):
    """k von Mises–Fisher distributions on S², their centres evenly around the axis at one colatitude.

    The first has weight w, each of the others (1 − w)/(k − 1).
    """

    key = "sphere_mixture"
    title = "Von Mises–Fisher mixture (sphere)"
    tex = r"U(\theta) = -\log\sum_{j=1}^{k} w_j\,e^{\kappa\,\mu_j\cdot\theta},\quad \lVert\theta\rVert = 1"
    source = "Banerjee et al. 2005"

    modes = Count(
        3, bounds=(2, 8), tex="k", label="Modes k", doc="How many components there are, evenly around the axis."
    )
    colatitude = Real(
        1.0,
        bounds=(0.0, _PI),
        tex=r"\alpha",
        label="Colatitude α",
        unit="rad",
        doc="How far the centres are from the north pole.",
    )
    weight = Real(
        0.5,
        bounds=(0.01, 0.99),
        tex="w",
        label="Weight w of the first mode",
        doc="The share of the first component; the others share the rest evenly.",
    )
    concentration = Real(
        6.0,
        bounds=(0.1, 100.0),
        log=True,
        tex=r"\kappa",
        label="Concentration κ",
        doc="How narrow every component is. Narrow ones are separated by high barriers.",
    )

    def family_at(self, temperature: float) -> "TemperedSphereMixture":
        check_narrowest(self, temperature)
        return TemperedSphereMixture.made(self, temperature)

    @property
    def weights(self) -> Array:
        return np.array([self.weight] + [(1 - self.weight) / (self.modes - 1)] * (self.modes - 1))

    @property
    def centres(self) -> Array:
        longitudes = 0.4 + 2 * np.pi * np.arange(self.modes) / self.modes
        sine, cosine = np.sin(self.colatitude), np.cos(self.colatitude)
        return np.stack([sine * np.cos(longitudes), sine * np.sin(longitudes), np.full(self.modes, cosine)], axis=-1)

    @property
    def concentrations(self) -> Array:
        return np.full(self.modes, self.concentration)

    tried_at = (
        {"modes": 2, "colatitude": np.pi / 2, "weight": 0.99, "concentration": 100.0},
        {"modes": 8, "colatitude": 0.0, "weight": 0.01, "concentration": 0.1},
    )
    drawn_at = {"modes": 4, "colatitude": 0.6, "weight": 0.1, "concentration": 3.0}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        rest = (1 - self.weight) / (self.modes - 1)
        j = int(np.searchsorted(np.cumsum([self.weight] + [rest] * (self.modes - 1)), rng.random(), side="right"))
        a, b = self.colatitude, 0.4 + 2 * np.pi * j / self.modes
        return textbook_direction(rng, np.array([sin(a) * cos(b), sin(a) * sin(b), cos(a)]), self.concentration)

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        rest = (1 - self.weight) / (self.modes - 1)
        a, b = self.colatitude, 0.4 + 2 * np.pi * np.arange(self.modes) / self.modes
        mu = np.column_stack([sin(a) * np.cos(b), sin(a) * np.sin(b), np.full(self.modes, cos(a))])
        return {"w": np.array([self.weight] + [rest] * (self.modes - 1)), r"\mu": mu}


# --- at another temperature: a power of a mixture is none, but the circle and the sphere have quadrature -------------


def check_narrowest(target: MisesFisher, temperature: float) -> None:
    """Raise :class:`SpecError` where a component of the mixture would be too narrow for the cells of the draws."""
    narrowest = float(target.concentrations.max())
    if narrowest / temperature > _MOST:
        raise SpecError(
            "temperature",
            temperature,
            f"{target.title} would have κ/T = {narrowest / temperature:.4g}; allowed are temperatures with a κ/T of at most {_MOST:g}",
        )


# The packed parameters are those of the mixture, then the cells' rows and columns, the lowest U/T, the masses of the
# cells in an envelope of the density, summed up from 0 on, and T.
_ROWS, _COLUMNS, _LOWEST, _SUMS = range(4)


@jit.draw
def tempered_draw(rng, out, params):
    dim, heat = out.shape[1], params[params.size - 1]
    first = 1 + int(params[0]) * (3 + dim)
    rows, columns = int(params[first + _ROWS]), int(params[first + _COLUMNS])
    sums, energy = params[first + _SUMS : params.size - 1], np.empty(1)
    for c in range(out.shape[0]):
        accepted = False
        while not accepted:
            u = rng.random() * sums[rows * columns]
            k = min(np.searchsorted(sums[1:], u, side="right"), rows * columns - 1)
            angle = 2 * np.pi * (k % columns + rng.random()) / columns - np.pi
            area, across = 2 * np.pi / columns, 1.0
            if dim == 3:
                low, high = np.cos(np.pi * (k // columns) / rows), np.cos(np.pi * (k // columns + 1) / rows)
                height = low + (high - low) * rng.random()
                area, across, out[c, 2] = area * (low - high), np.sqrt(1 - height * height), height
            out[c, 0], out[c, 1] = across * np.cos(angle), across * np.sin(angle)
            potential(out[c : c + 1], energy, params)
            envelope = (sums[k + 1] - sums[k]) / area
            accepted = rng.random() * envelope < np.exp(params[first + _LOWEST] - energy[0] / heat)


class TemperedMixture(Divided, MisesFisher):
    """The common part of e^{−U/T} of mixtures: the density by quadrature, draws by rejection from cells."""

    draw = tempered_draw
    cells: tuple[int, int]

    @cached_property
    def _log_normaliser(self) -> float:
        raise NotImplementedError

    def log_density(self, theta: Array) -> Array:
        return np.asarray(super().log_density(theta) / self.temperature - self._log_normaliser)

    @cached_property
    def envelope(self) -> tuple[float, Array]:
        """The lowest U/T, and the masses of cells, summed up from 0 on.

        U/T changes by no more than κ/T of the narrowest component for each radian from the middle of a cell.
        """
        rows, columns = self.cells
        angle = 2 * np.pi * (np.arange(columns) + 0.5) / columns - np.pi
        across, reach, areas = np.ones(rows), np.pi / columns, np.full(rows, 2 * np.pi / columns)
        points = np.stack([np.cos(angle), np.sin(angle)], axis=-1)[None]
        if self.dim == 3:
            colatitude = np.pi * (np.arange(rows) + 0.5) / rows
            across, reach = np.sin(colatitude), float(np.hypot(reach, np.pi / rows / 2))
            areas = areas * -np.diff(np.cos(np.pi * np.arange(rows + 1) / rows))
            heights = np.broadcast_to(np.cos(colatitude)[:, None, None], (rows, columns, 1))
            points = np.concatenate([across[:, None, None] * points, heights], axis=-1)
        energy = -super().log_density(points) / self.temperature
        steepest = float(self.concentrations.max()) / self.temperature
        mass = np.exp(energy.min() - energy + steepest * reach) * areas[:, None]
        return float(energy.min()), np.concatenate([[0.0], np.cumsum(mass.ravel())])

    def packed(self) -> Array:
        lowest, sums = self.envelope
        return np.concatenate([super().packed(), [*self.cells, lowest], sums, [self.temperature]])

    def without_draws(self) -> Array:
        return np.append(super().packed(), self.temperature)

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        (rows, columns), (lowest, sums) = self.cells, self.envelope
        while True:
            row, column = divmod(int((rng.random() * sums[-1] >= sums[1:]).sum()), columns)
            angle, area = 2 * np.pi * (column + rng.random()) / columns - np.pi, 2 * np.pi / columns
            x = np.array([cos(angle), sin(angle)])
            if self.dim == 3:
                low, high = cos(np.pi * row / rows), cos(np.pi * (row + 1) / rows)
                height = low + (high - low) * rng.random()
                area, x = area * (low - high), np.append(np.sqrt(1 - height**2) * x, height)
            k = row * columns + column
            energy = -float(super().log_density(x)) / self.temperature
            if rng.random() * (sums[k + 1] - sums[k]) / area < np.exp(lowest - energy):
                return x


class TemperedCircleMixture(TemperedMixture, CircleMixture):
    """e^{−U/T} of two von Mises distributions."""

    potential, gradient, _ = divided(CircleMixture)
    cells = _CIRCLE

    @cached_property
    def _log_normaliser(self) -> float:
        def power(x: Array) -> Array:
            on_circle = np.stack([np.cos(x), np.sin(x)], axis=-1)
            return np.asarray(np.exp(MisesFisher.log_density(self, on_circle) / self.temperature + self.envelope[0]))

        return float(np.log(integrate(power, -np.pi, np.pi)) - self.envelope[0])

    @property
    def moments(self) -> tuple[Moment, ...]:
        def expected(k: int, wave: float) -> float:
            def function(x: Array) -> Array:
                return np.asarray(np.cos(k * x - wave) * np.exp(self.log_column_density(x[..., None])))

            return integrate(function, -np.pi, np.pi)

        return (
            *super(OnCircle, self).moments,
            Moment.compiled("E cos φ", sum_waves, (1.0, 0.0), expected(1, 0.0)),
            Moment.compiled("E sin φ", sum_waves, (1.0, np.pi / 2), expected(1, np.pi / 2)),
            Moment.compiled("E cos 2φ", sum_waves, (2.0, 0.0), expected(2, 0.0)),
        )


class TemperedSphereMixture(TemperedMixture, SphereMixture):
    """e^{−U/T} of von Mises–Fisher distributions on S²."""

    potential, gradient, _ = divided(SphereMixture)
    cells = _SPHERE

    def _around(self, axis: int) -> tuple[Array, Array, Array]:
        """Points of S² in circles about an axis, (heights, points, 3), e^{−U/T} there without a factor, and weights."""
        heights, weights = rule(-1.0, 1.0, _PANELS)
        n = _AROUND + round(12 * self.concentration)
        angle = 2 * np.pi * np.arange(n) / n
        across = np.sqrt(np.maximum(1 - heights**2, 0))[:, None]
        points = np.empty((len(heights), n, 3))
        points[..., axis] = heights[:, None]
        points[..., (axis + 1) % 3], points[..., (axis + 2) % 3] = across * np.cos(angle), across * np.sin(angle)
        power = np.exp(MisesFisher.log_density(self, points) / self.temperature + self.envelope[0])
        return points, power, weights * 2 * np.pi / n

    @cached_property
    def _answers(self) -> tuple[tuple[Column, ...], float, float]:
        """The columns, E xy, and log ∫ e^{−U/T}."""
        columns, product, log_mass = [], 0.0, 0.0
        for axis, name in enumerate("xyz"):
            points, power, weights = self._around(axis)
            mass = power * weights[:, None]
            total, height = float(mass.sum()), points[:, 0, axis]
            share = mass.sum(axis=1) / total
            mean = float(share @ height)
            cdf = rule_cdf(-1.0, 1.0, power.sum(axis=1))
            columns.append(Column(name, -1.0, 1.0, cdf, mean, float(share @ (height - mean) ** 2)))
            product = float((mass * points[..., 0] * points[..., 1]).sum() / total)
            log_mass = float(np.log(total) - self.envelope[0])
        return tuple(columns), product, log_mass

    @property
    def _log_normaliser(self) -> float:
        return self._answers[2]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._answers[0]

    @property
    def moments(self) -> tuple[Moment, ...]:
        columns, product, _ = self._answers
        means = columns[0].mean, columns[1].mean
        cross = Moment.compiled("Cov(x, y)", sum_products, means, product - means[0] * means[1])
        return (*super(OnSphere, self).moments, cross)
