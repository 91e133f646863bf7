"""A mixture with tied means: a posterior of data with two modes (Welling & Teh 2011)."""

from functools import cached_property
from math import exp, log, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Count, Real, SpecError
from sgmcmc_lab.samplers.requirements import DATA, ENERGIES, MODE
from sgmcmc_lab.samplers.targets.at_temperature import Divided, divided
from sgmcmc_lab.samplers.targets.base import Array, Column, FirstSteps, Fit, Moment, Target
from sgmcmc_lab.samplers.targets.bfgs import bfgs
from sgmcmc_lab.samplers.targets.expectations import sum_products
from sgmcmc_lab.samplers.targets.quadrature import rule, rule_cdf

# The packed parameters: σ², 1/σ₁², 1/σ₂², the number of data points, the log of the envelope's height, T; of each of
# its two halves the centre, the factor of its scale and its share; then the data.
_VARIANCE, _RATE, _HALVES, _FIRST = 0, 1, 6, 18
_ITEMS, _HEIGHT, _HEAT = 3, 4, 5
_LENGTH = 6
"""The numbers of a half: two of the centre, three of the factor, the log of its share over the factor's determinant."""
_FREEDOM = 5.0
"""The degrees of freedom of the envelope's Student t distributions."""
TRUE_MEANS = (0.0, 1.0)
"""θ₁ and θ₂ that the data are made with."""
_BOX = (-4.5, 5.5), (-6.5, 6.5)
"""The region of the distribution: with 20 data or more there is less than 1e-14 of it outside."""
_CELLS = 121
"""A side of the grid that finds how much of the box is needed."""
_LEFT_OUT = 40.0
"""The region in which U exceeds its lowest value by this much has no mass to rounding."""
_PANELS = 14
"""Panels of 16 points, along each side of the box."""
_MOST_PANELS = 4096
"""The most panels along a side of the box."""
_CENTRE, _REACH = 0.5, 7.5
"""The middle of θ₁ in the box of a temperature above 1, and half a side of it over √T."""


@jit.helper
def _minus_log(x0, x1, y, variance):
    """−log of one data point's likelihood without its constants, and the share of the second component in it."""
    first, second = (y - x0) ** 2 / (2 * variance), (y - x0 - x1) ** 2 / (2 * variance)
    low, apart = min(first, second), abs(first - second)
    share = 1 / (1 + exp(-apart)) if second < first else exp(-apart) / (1 + exp(-apart))
    return low - log1p(exp(-apart)), share


@jit.helper
def _energy(x0, x1, params):
    """U(θ)."""
    total = (x0 * x0 * params[_RATE] + x1 * x1 * params[_RATE + 1]) / 2
    for k in range(int(params[_ITEMS])):
        total += _minus_log(x0, x1, params[_FIRST + k], params[_VARIANCE])[0]
    return total


@jit.helper
def _add_slope(x0, x1, y, weight, variance, out):
    """Add the weight times the gradient of a data point's −log likelihood to ``out`` (2,)."""
    share = _minus_log(x0, x1, y, variance)[1]
    second = weight * share * (x0 + x1 - y) / variance
    out[0] += weight * (1 - share) * (x0 - y) / variance + second
    out[1] += second


@jit.helper
def _log_half(x0, x1, half, params):
    """The log of the Student density of one half of the envelope, without its constant."""
    at = _HALVES + _LENGTH * half
    one = (x0 - params[at]) / params[at + 2]
    two = (x1 - params[at + 1] - params[at + 3] * one) / params[at + 4]
    return params[at + 5] - (_FREEDOM + 2) / 2 * log1p((one * one + two * two) / _FREEDOM)


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        out[c] = _energy(theta[c, 0], theta[c, 1], params)


@jit.gradient
def gradient(theta, out, params):
    for c in range(theta.shape[0]):
        out[c, 0], out[c, 1] = theta[c, 0] * params[_RATE], theta[c, 1] * params[_RATE + 1]
        for k in range(int(params[_ITEMS])):
            _add_slope(theta[c, 0], theta[c, 1], params[_FIRST + k], 1.0, params[_VARIANCE], out[c])


@jit.batch
def batch(theta, data, each, params):
    x0, x1 = theta[0, 0], theta[0, 1]
    for k in range(data.size):
        y = params[_FIRST + data[k]]
        each[k, 0], each[k, 1] = x0 * params[_RATE], x1 * params[_RATE + 1]
        _add_slope(x0, x1, y, params[_ITEMS], params[_VARIANCE], each[k])
        if each.shape[1] > 2:
            prior = (x0 * x0 * params[_RATE] + x1 * x1 * params[_RATE + 1]) / 2
            each[k, 2] = prior + params[_ITEMS] * _minus_log(x0, x1, y, params[_VARIANCE])[0]


@jit.draw
def draw(rng, out, params):
    # The share of the first half: both logs are of shares over determinants.
    one, two = _HALVES, _HALVES + _LENGTH
    first = exp(params[one + 5]) * params[one + 2] * params[one + 4]
    second = exp(params[two + 5]) * params[two + 2] * params[two + 4]
    for c in range(out.shape[0]):
        accepted = False
        while not accepted:
            at = one if rng.random() * (first + second) < first else two
            u, v = rng.standard_normal(), rng.standard_normal()
            scale = (2 * rng.standard_gamma(_FREEDOM / 2) / _FREEDOM) ** -0.5
            x0 = params[at] + params[at + 2] * u * scale
            x1 = params[at + 1] + (params[at + 3] * u + params[at + 4] * v) * scale
            a, b = _log_half(x0, x1, 0, params), _log_half(x0, x1, 1, params)
            envelope = max(a, b) + log1p(exp(-abs(a - b)))
            out[c, 0], out[c, 1] = x0, x1
            accepted = rng.random() < exp(-_energy(x0, x1, params) / params[_HEAT] - envelope - params[_HEIGHT])


class TiedMeans(Target):
    """y_i ~ ½N(θ₁, σ²) + ½N(θ₁ + θ₂, σ²) with the priors θ₁ ~ N(0, 10) and θ₂ ~ N(0, 1) (Welling & Teh 2011).

    The data are made here, with θ = (0, 1). As either component may be the one whose mean is θ₁, there is a second mode
    near (1, −1), which the prior of θ₂ makes as likely and that of θ₁ nearly so: the coordinates are correlated, and
    between the modes the density is low.

    Exact draws are by rejection from two Student t distributions, one about each mode; moments and marginals by
    quadrature.
    """

    key = "tied_means"
    title = "Mixture with tied means"
    tex = r"U(\theta) = -\sum_{i=1}^{N}\log\Bigl(e^{-(y_i - \theta_1)^2/2\sigma^2} + e^{-(y_i - \theta_1 - \theta_2)^2/2\sigma^2}\Bigr) + \frac{\theta_1^2}{20} + \frac{\theta_2^2}{2}"
    source = "Welling & Teh 2011, section 5.1"
    provides = DATA | {MODE, ENERGIES}
    potential, gradient, batch, draw = potential, gradient, batch, draw
    dim = 2
    # U″ is up to N/σ² = 50, and ten of the 100 data make noise of V ≈ 300.
    first_steps = FirstSteps(moving=0.05, batch=0.01, friction=20.0, other=1e-3)

    items = Count(
        100,
        bounds=(20, 200),
        log=True,
        tex="N",
        label="Data N",
        doc="How many data there are. With many the two modes are far apart.",
    )
    variance = Real(
        2.0,
        bounds=(0.25, 4.0),
        log=True,
        tex=r"\sigma^2",
        label="Variance σ²",
        doc="Of each component. With a small one it is plain which data point is whose, and the modes are far apart.",
    )
    data_seed = Count(
        1, bounds=(0, 10_000), tex="s", label="Seed of the data", doc="Another seed makes other data of the same kind."
    )

    @cached_property
    def observations(self) -> Array:
        """y, (N,)."""
        rng = np.random.Generator(np.random.SFC64(self.data_seed))
        means = np.where(rng.random(self.items) < 0.5, TRUE_MEANS[0], sum(TRUE_MEANS))
        return np.asarray(means + np.sqrt(self.variance) * rng.standard_normal(self.items))

    def family_at(self, temperature: float) -> "TemperedTiedMeans":
        found = TemperedTiedMeans.made(self, temperature)
        if found._panels[0] * found._panels[1] > _MOST_PANELS:
            raise SpecError(
                "temperature",
                temperature,
                f"no quadrature resolves {self.title} there, so that it would have no exact answers; allowed are temperatures nearer to 1",
            )
        return found

    def data(self) -> NDArray[np.int64]:
        return np.arange(self.items)

    def fit(self) -> Fit:
        """The sample, and the density of the mixture."""
        data = np.column_stack([self.observations, np.zeros(self.items)])
        highest = 1 / np.sqrt(2 * np.pi * self.variance)
        formula = {"kind": "pair", "highest": float(highest), "variance": float(self.variance)}
        return Fit.of(
            data, ("y", "density"), self._density, shown=(-0.06 * highest, 1.1 * highest), points=81, formula=formula
        )

    def _density(self, theta: Array, y: Array) -> Array:
        one, two = theta[..., 0], theta[..., 0] + theta[..., 1]
        both = np.exp(-((y - one) ** 2) / (2 * self.variance)) + np.exp(-((y - two) ** 2) / (2 * self.variance))
        return np.asarray(both / np.sqrt(8 * np.pi * self.variance))

    def _header(self, height: float = 0.0) -> list[float]:
        return [self.variance, 0.1, 1.0, self.items, height, self.temperature]

    def _energies(self, theta: Array) -> Array:
        """U/T."""
        # The compiled potential reads nothing of the envelope, which is not known yet.
        jit.prepare([potential])
        out = np.empty(theta.size // 2)
        params = np.concatenate([self._header(), np.zeros(2 * _LENGTH), self.observations])
        potential(np.ascontiguousarray(theta.reshape(-1, 2)), out, params)
        return out.reshape(theta.shape[:-1]) / self.temperature

    def _slope(self, theta: Array) -> Array:
        return np.mean([self.textbook_slope(theta, k) for k in range(self.items)], axis=0)

    @cached_property
    def modes(self) -> tuple[Array, Array]:
        """The two, (2,) each, the higher one first; where there is only one it is found twice."""
        starts = np.array(TRUE_MEANS), np.array([sum(TRUE_MEANS), -TRUE_MEANS[1]])
        found = [bfgs(self._energies, start, jac=self._slope, gtol=1e-10).x for start in starts]
        one, two = sorted(found, key=self._energies)
        return one, two

    @property
    def mode(self) -> Array:
        """The higher one."""
        return self.modes[0]

    def _factor(self, mode: Array) -> Array:
        """The factor of the scale of a Student t distribution about a mode."""
        values, vectors = np.linalg.eigh(self._curvature(mode))
        # Along a ridge between modes that have nearly become one there is hardly any curvature.
        spread = vectors @ np.diag(1 / np.maximum(values, 1.0 / self.temperature)) @ vectors.T
        return np.linalg.cholesky(1.3 * spread)

    def _curvature(self, mode: Array) -> Array:
        """U″/T by differences of the gradient, (2, 2)."""
        h = 1e-5
        rows = [(self._slope(mode + h * e) - self._slope(mode - h * e)) / (2 * h) for e in np.eye(2)]
        return (np.array(rows) + np.array(rows).T) / 2

    @cached_property
    def envelope(self) -> tuple[Array, float]:
        """The centre, the factor and the log of its share over the factor's determinant of each half, (2, 6), and the
        log of the largest ratio of e^{−U/T} to their sum.
        """
        halves = []
        for mode in self.modes:
            factor = self._factor(mode)
            share = float(self._energies(self.mode) - self._energies(mode))
            halves.append([*mode, factor[0, 0], factor[1, 0], factor[1, 1], share])
        made = np.array(halves)

        def below(theta: Array) -> Array:
            return np.asarray(self._energies(theta) + self._log_envelope(made, theta))

        points, energies = self._grid
        grid = points.reshape(-1, 2)
        values = energies.ravel() + self._log_envelope(made, grid)
        starts = [*grid[np.argsort(values)[:8]], *self._more_starts]
        found = [bfgs(below, start, gtol=1e-9).fun for start in starts]
        # The mass that the search has not reached is far less than this.
        return made, 1e-6 - min(*found, float(values.min()))

    @property
    def _more_starts(self) -> tuple[Array, ...]:
        """Where the search for the envelope's height begins, too."""
        return ()

    @staticmethod
    def _log_envelope(halves: Array, theta: Array) -> Array:
        logs = []
        for centre0, centre1, a, b, c, share in halves:
            one = (theta[..., 0] - centre0) / a
            two = (theta[..., 1] - centre1 - b * one) / c
            logs.append(share - (_FREEDOM + 2) / 2 * np.log1p((one**2 + two**2) / _FREEDOM))
        return np.logaddexp(*logs)

    def packed(self) -> Array:
        halves, height = self.envelope
        return np.concatenate([self._header(height), halves.ravel(), self.observations])

    def start(self) -> Array:
        return np.zeros(2)

    def log_density(self, theta: Array) -> Array:
        return -self._energies(theta) - self._answers[2]

    @property
    def _box(self) -> tuple[tuple[float, float], ...]:
        """The region of the distribution."""
        return _BOX

    @property
    def _panels(self) -> list[int]:
        """The panels of the quadrature along each side."""
        return [_PANELS, _PANELS]

    @cached_property
    def _grid(self) -> tuple[Array, Array]:
        """Points all over the box, and U/T there."""
        points = np.stack(np.meshgrid(*(np.linspace(*side, _CELLS) for side in self._box), indexing="ij"), axis=-1)
        return points, self._energies(points)

    @cached_property
    def _sides(self) -> list[tuple[float, float]]:
        """The required extent of the box, (low, high) of either coordinate."""
        return self._needed()

    def _needed(self) -> list[tuple[float, float]]:
        """The cells of the grid that have mass, with one more on each side."""
        inside = self._grid[1] < float(self._energies(self.mode)) + _LEFT_OUT
        sides = []
        for k, (low, high) in enumerate(self._box):
            needed = np.flatnonzero(inside.any(axis=1 - k))
            cell = (high - low) / (_CELLS - 1)
            sides.append((max(low, low + (needed[0] - 1) * cell), min(high, low + (needed[-1] + 1) * cell)))
        return sides

    @cached_property
    def _answers(self) -> tuple[tuple[Column, ...], float, float, float]:
        """The columns, the covariance, log ∫ e^{−U/T}, and the mass where θ₂ > 0."""
        sides = [rule(*side, panels) for side, panels in zip(self._sides, self._panels, strict=True)]
        (x, weights), (y, widths) = sides
        lowest = float(self._energies(self.mode))
        density = np.exp(lowest - self._energies(np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)))
        mass = float(weights @ density @ widths)
        marginals = density @ widths / mass, weights @ density / mass
        columns = []
        for name, (points, length), marginal, side in zip(("θ₁", "θ₂"), sides, marginals, self._sides, strict=True):
            mean = float((length * marginal) @ points)
            variance = float((length * marginal) @ (points - mean) ** 2)
            sd = variance**0.5
            shown = max(side[0], mean - 3.6 * sd), min(side[1], mean + 3.6 * sd)
            columns.append(Column(name, *side, rule_cdf(*side, marginal), mean, variance, shown=shown))
        cross = float((weights * (x - columns[0].mean)) @ density @ (widths * (y - columns[1].mean))) / mass
        above = float(weights @ density @ (widths * (y > 0))) / mass
        return tuple(columns), cross, log(mass) - lowest, above

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._answers[0]

    @property
    def weight(self) -> float:
        """The mass of the mode that the data are made with, where θ₂ > 0."""
        return self._answers[3]

    @property
    def moments(self) -> tuple[Moment, ...]:
        (columns, cross, *_), weight = self._answers, self.weight
        one, two = (column.mean for column in columns)
        return (
            *super().moments,
            Moment.compiled("Cov(θ₁, θ₂)", sum_products, (one, two), cross),
            Moment("P(θ₂ > 0)", lambda v: (v[..., 1] > 0).astype(float), weight),
        )

    tried_at = ({"items": 20, "variance": 4.0, "data_seed": 2}, {"items": 200, "variance": 1.0, "data_seed": 3})
    drawn_at = {"items": 50, "variance": 1.0, "data_seed": 4}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        halves, height = self.envelope
        shares = [exp(share) * a * c for _, _, a, _, c, share in halves]
        while True:
            centre0, centre1, a, b, c, _ = halves[0 if rng.random() * sum(shares) < shares[0] else 1]
            u, v = rng.standard_normal(), rng.standard_normal()
            scale = 1 / np.sqrt(2 * rng.standard_gamma(2.5) / 5)
            theta = np.array([centre0 + a * u * scale, centre1 + (b * u + c * v) * scale])
            if rng.random() < np.exp(-self._energies(theta) - self._log_envelope(halves, theta) - height):
                return theta

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        y, (one, two) = self.observations[datum], theta
        share = special.expit(((y - one) ** 2 - (y - one - two) ** 2) / (2 * self.variance))
        pulls = np.array([(1 - share) * (one - y) + share * (one + two - y), share * (one + two - y)])
        return np.asarray(np.array([one / 10, two]) + self.items * pulls / self.variance)

    def textbook_energy(self, theta: Array, datum: int) -> float:
        y, (one, two) = self.observations[datum], theta
        loss = -np.logaddexp(-((y - one) ** 2) / (2 * self.variance), -((y - one - two) ** 2) / (2 * self.variance))
        return float(one**2 / 20 + two**2 / 2 + self.items * loss)

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        return {"y": self.observations}


class TemperedTiedMeans(Divided, TiedMeans):  # type: ignore[misc]
    """e^{−U/T} of the posterior, by quadrature; no panel is wider than four standard deviations of a mode."""

    potential, gradient, batch = divided(TiedMeans)

    @property
    def modes(self) -> tuple[Array, Array]:
        return self.base.modes

    @property
    def _more_starts(self) -> tuple[Array, ...]:
        return self.modes

    @property
    def _box(self) -> tuple[tuple[float, float], ...]:
        if self.temperature < 1:
            return tuple(self.base._sides)
        reach = _REACH * self.temperature**0.5
        return (_CENTRE - reach, _CENTRE + reach), (-reach, reach)

    @cached_property
    def _sides(self) -> list[tuple[float, float]]:
        # Of modes that are narrower than a cell of the grid no point of it may be inside.
        lowest = float(self._energies(self.mode))
        seen = bool((self._grid[1] < lowest + _LEFT_OUT).any())
        sides = self._needed() if seen else [(m, m) for m in self.mode]
        for mode in self.modes:
            if float(self._energies(mode)) < lowest + _LEFT_OUT:
                reach = 10 * np.sqrt(np.diag(np.linalg.inv(self._curvature(mode))))
                sides = [
                    (min(low, m - r), max(high, m + r)) for (low, high), m, r in zip(sides, mode, reach, strict=True)
                ]
        return [(float(low), float(high)) for low, high in sides]

    @cached_property
    def _panels(self) -> list[int]:
        narrowest = max(float(np.linalg.eigvalsh(self._curvature(mode))[-1]) for mode in self.modes) ** -0.5
        return [max(_PANELS, int(np.ceil((high - low) / (4 * narrowest)))) for low, high in self._sides]

    def packed(self) -> Array:
        return np.append(super().packed(), self.temperature)
