"""Log-concave distributions of two coordinates, by quadrature and rejection: posteriors of two coefficients."""

from abc import abstractmethod
from functools import cached_property
from math import log1p

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.targets.base import Array, Column, Moment, Target
from sgmcmc_lab.samplers.targets.bfgs import bfgs
from sgmcmc_lab.samplers.targets.expectations import sum_products
from sgmcmc_lab.samplers.targets.quadrature import rule, rule_cdf

# The first packed parameters: the log of the envelope's height, the mode, the factor of the envelope's scale.
_HEIGHT, _MODE, _FACTOR = 0, 1, 3
PROPOSAL = 6
"""How many of the packed parameters :func:`propose` reads."""
_FREEDOM = 5.0
"""The degrees of freedom of the Student t distribution that bounds the density: its tails are heavier than those of a
Gaussian prior."""
_REACH, _FARTHEST = 9.0, 72.0
"""How far the quadrature reaches, in standard deviations of the Gaussian that is alike at the mode; it goes farther,
up to the second number, where that leaves out more of the distribution than :data:`_LEFT_OUT`."""
_LEFT_OUT = 1e-15
_PANELS = 1.5, 3.0
"""The lengths of panels of 16 points along and across, in those standard deviations. Along, the CDF is read between the
points, too: with panels of 2 it falls by 5e-14 somewhere in a tail."""


@jit.inlined
def propose(rng, params):
    """A draw (θ₁, θ₂) of the Student t distribution about the mode, and what U is to be compared with: it is accepted
    with probability exp(that − U).
    """
    one, two = rng.standard_normal(), rng.standard_normal()
    scale = (2 * rng.standard_gamma(_FREEDOM / 2) / _FREEDOM) ** -0.5
    one, two = one * scale, two * scale
    x0 = params[_MODE] + params[_FACTOR] * one
    x1 = params[_MODE + 1] + params[_FACTOR + 1] * one + params[_FACTOR + 2] * two
    # Minus the log of the Student density, and of the largest ratio of e^{−U} to it.
    return x0, x1, (_FREEDOM + 2) / 2 * log1p((one * one + two * two) / _FREEDOM) - params[_HEIGHT]


class LogConcave(Target):
    """A distribution e^{−U} of (θ₁, θ₂) with a convex U.

    Exact draws are by rejection from a Student t distribution of 5 degrees of freedom about the mode; moments and
    marginals by quadrature as far as the distribution goes.
    """

    dim = 2

    @abstractmethod
    def energies(self, theta: Array) -> Array:
        """U of θ (..., 2), (...)."""

    @abstractmethod
    def slope(self, theta: Array) -> Array:
        """∇U(θ), (2,)."""

    @abstractmethod
    def curvature(self, theta: Array) -> Array:
        """U″(θ), (2, 2)."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, str]:
        """The names of the two columns."""

    @cached_property
    def mode(self) -> Array:
        """By Newton's method, with steps that are halved until U falls."""
        theta = self.start()
        for _ in range(100):
            step = np.linalg.solve(self.curvature(theta), -self.slope(theta))
            while self.energies(theta + step) > self.energies(theta) and np.abs(step).max() > 1e-13:
                step /= 2
            theta = theta + step
            if np.abs(step).max() < 1e-13:
                break
        return theta

    @cached_property
    def envelope(self) -> tuple[Array, float]:
        """The factor of the Student t distribution's scale, and the log of the largest ratio of e^{−U} to its
        kernel.
        """
        factor = np.linalg.cholesky(np.linalg.inv(self.curvature(self.mode)))

        def below(t: Array) -> Array:
            kernel = (_FREEDOM + 2) / 2 * np.log1p((t**2).sum(axis=-1) / _FREEDOM)
            return np.asarray(self.energies(self.mode + t @ factor.T) - kernel)

        line = np.linspace(-12.0, 12.0, 49)
        grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
        values = below(grid)
        found = [bfgs(below, grid[i], gtol=1e-9).fun for i in np.argsort(values)[:5]]
        # The mass that the search has not reached is far less than this.
        return factor, 1e-6 - min(*found, float(values.min()))

    @property
    def proposal(self) -> Array:
        """The numbers that :func:`propose` reads, (:data:`PROPOSAL`,)."""
        factor, height = self.envelope
        return np.array([height, *self.mode, factor[0, 0], factor[1, 0], factor[1, 1]])

    def log_density(self, theta: Array) -> Array:
        return -self.energies(theta) - self._answers[1]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._answers[0]

    @property
    def moments(self) -> tuple[Moment, ...]:
        (one, two), cross = (column.mean for column in self.columns), self._answers[2]
        return (*super().moments, Moment.compiled("Cov(θ₁, θ₂)", sum_products, (one, two), cross))

    @cached_property
    def _answers(self) -> tuple[tuple[Column, ...], float, float]:
        """The columns, log ∫ e^{−U}, and the covariance of the two coordinates."""
        slices = [self._slices(k) for k in range(2)]
        made = [_column(name, *along[:3], along[4]) for name, along in zip(self.names, slices, strict=True)]
        points, weights, density, others, _, log_mass = slices[1]
        mean = float(weights @ (density * others))
        cross = float(weights @ (density * (others - mean) * (points - made[1].mean)))
        return tuple(made), log_mass, cross

    def _slices(self, k: int) -> tuple[Array, Array, Array, Array, tuple[float, float], float]:
        """Points and weights along θ_k, the density there and the other coordinate's mean given θ_k, the line's ends,
        and log ∫ e^{−U}.

        Across, the points follow the ridge of the Gaussian that is alike at the mode: where the coordinates are
        correlated the distribution is far narrower than either's.
        """
        covariance = np.linalg.inv(self.curvature(self.mode))
        sd = covariance[k, k] ** 0.5
        given = (covariance[1 - k, 1 - k] - covariance[0, 1] ** 2 / covariance[k, k]) ** 0.5
        lowest = float(self.energies(self.mode))

        def points(x: Array, y: Array) -> Array:
            """θ at distances x along and y across, in the standard deviations."""
            theta = np.empty((len(x), len(y), 2))
            theta[..., k] = self.mode[k] + sd * x[:, None]
            theta[..., 1 - k] = self.mode[1 - k] + (covariance[0, 1] / covariance[k, k] * sd * x)[:, None] + given * y
            return theta

        def heights(theta: Array) -> Array:
            return np.exp(lowest - np.stack([self.energies(row) for row in theta]))

        def reach(side: float, along: bool) -> float:
            """How far the distribution goes to a side: its height there is nothing wherever one looks across."""
            far, line = _REACH, np.linspace(-_FARTHEST, _FARTHEST, 193)
            while far < _FARTHEST:
                end = np.array([side * far])
                if heights(points(end, line) if along else points(line, end)).max() < _LEFT_OUT:
                    break
                far *= 2**0.5
            return side * far

        ends = [(reach(-1.0, along), reach(1.0, along)) for along in (True, False)]
        (x, weights), (y, widths) = (
            rule(low, high, round((high - low) / panel)) for (low, high), panel in zip(ends, _PANELS, strict=True)
        )
        theta = points(x, y)
        density = heights(theta)
        slices = density @ widths
        mass = float(weights @ slices)
        others = (density * theta[..., 1 - k]) @ widths / np.maximum(slices, 1e-300)
        log_mass = float(np.log(mass * sd * given)) - lowest
        low, high = (float(self.mode[k] + sd * end) for end in ends[0])
        return self.mode[k] + sd * x, weights * sd, slices / (mass * sd), others, (low, high), log_mass

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        factor, height = self.envelope
        while True:
            t = np.array([rng.standard_normal(), rng.standard_normal()])
            t /= np.sqrt(2 * rng.standard_gamma(2.5) / 5)
            theta = self.mode + factor @ t
            if rng.random() < np.exp(3.5 * np.log1p((t @ t) / 5) - self.energies(theta) - height):
                return np.asarray(theta)


def _column(name: str, points: Array, weights: Array, density: Array, ends: tuple[float, float]) -> Column:
    """A column from its density at the points of a rule."""
    mean = float(weights @ (density * points))
    variance = float(weights @ (density * (points - mean) ** 2))
    sd = variance**0.5
    return Column(name, *ends, rule_cdf(*ends, density), mean, variance, shown=(mean - 3.6 * sd, mean + 3.6 * sd))
