"""A logistic regression on two measurements of a real data set: a posterior of data that is not Gaussian."""

import importlib.util
from functools import cached_property, lru_cache
from math import exp, log1p
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.optimize import minimize

from samplers import jit
from samplers.parameters import Count, Option, Real, SpecError
from samplers.targets.base import MINIBATCHES, Array, Column, FirstSteps, Moment, Target
from samplers.targets.quadrature import rule, rule_cdf

FEATURES = ("radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity", "concave points", "symmetry", "fractal dimension")  # fmt: skip
"""What is measured of the nuclei of the cells, as means over a picture: the first ten columns of the file."""

# The packed parameters: 1/τ², the log of the envelope's height, the mode, the factor of the envelope's scale, how many
# data, and of each datum the row s_i x_i.
_RATE, _HEIGHT, _MODE, _FACTOR, _ITEMS, _FIRST = 0, 1, 2, 4, 7, 8
_FREEDOM = 5.0
"""Of the Student law that bounds the posterior: its tails are heavier than any logistic regression's."""
_REACH, _FARTHEST = 9.0, 72.0
"""How far the quadrature reaches, in standard deviations of the Gaussian that is alike at the mode; it goes farther,
up to the second number, where that leaves out more of the law than :data:`_LEFT_OUT`."""
_LEFT_OUT = 1e-15
_PANELS = 1.5, 3.0
"""The lengths of panels of 16 points along and across, in those standard deviations. Along, the CDF is read between the
points, too: with panels of 2 it falls by 5e-14 somewhere in a tail."""


@jit.helper
def _margin(x0, x1, k, params):
    """s_i x_i·θ."""
    return x0 * params[_FIRST + 2 * k] + x1 * params[_FIRST + 2 * k + 1]


@jit.helper
def _energy(x0, x1, params):
    """U(θ)."""
    total = (x0 * x0 + x1 * x1) * params[_RATE] / 2
    for k in range(int(params[_ITEMS])):
        m = _margin(x0, x1, k, params)
        # Neither exponential overflows.
        total += log1p(exp(-m)) if m > 0 else log1p(exp(m)) - m
    return total


@jit.helper
def _add_slope(x0, x1, k, weight, params, out):
    """Add the weight times the gradient of datum k's −log likelihood to ``out`` (2,)."""
    m = _margin(x0, x1, k, params)
    wrong = exp(-m) / (1 + exp(-m)) if m > 0 else 1 / (1 + exp(m))
    out[0] -= weight * wrong * params[_FIRST + 2 * k]
    out[1] -= weight * wrong * params[_FIRST + 2 * k + 1]


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        out[c] = _energy(theta[c, 0], theta[c, 1], params)


@jit.gradient
def gradient(theta, out, params):
    for c in range(theta.shape[0]):
        out[c, 0], out[c, 1] = theta[c, 0] * params[_RATE], theta[c, 1] * params[_RATE]
        for k in range(int(params[_ITEMS])):
            _add_slope(theta[c, 0], theta[c, 1], k, 1.0, params, out[c])


@jit.batch
def batch(theta, data, each, params):
    for k in range(data.size):
        each[k, 0], each[k, 1] = theta[0, 0] * params[_RATE], theta[0, 1] * params[_RATE]
        _add_slope(theta[0, 0], theta[0, 1], data[k], params[_ITEMS], params, each[k])


@jit.draw
def draw(rng, out, params):
    x0 = x1 = 0.0
    for c in range(out.shape[0]):
        accepted = False
        while not accepted:
            one, two = rng.standard_normal(), rng.standard_normal()
            scale = (2 * rng.standard_gamma(_FREEDOM / 2) / _FREEDOM) ** -0.5
            one, two = one * scale, two * scale
            x0 = params[_MODE] + params[_FACTOR] * one
            x1 = params[_MODE + 1] + params[_FACTOR + 1] * one + params[_FACTOR + 2] * two
            # log of e^{−U} over the Student density, less its maximum.
            ratio = (_FREEDOM + 2) / 2 * log1p((one * one + two * two) / _FREEDOM) - _energy(x0, x1, params)
            accepted = rng.random() < exp(ratio - params[_HEIGHT])
        out[c, 0], out[c, 1] = x0, x1


class LogisticRegression(Target):
    """P(s_i = 1) = 1/(1 + e^{−θ·x_i}) with the prior θ ~ N(0, τ²I): U(θ) = Σ log(1 + e^{−s_i θ·x_i}) + ‖θ‖²/2τ².

    The data are the first N of the 569 tumours of Street, Wolberg & Mangasarian 1993, malignant (s = 1) or benign
    (s = −1), by two measurements of their cells with mean 0 and standard deviation 1; there is no intercept, so that θ
    is the two coefficients. The law is log-concave and skewed, the more so the fewer data there are.

    Exact draws are by rejection from a Student law of 5 degrees of freedom about the mode; moments and marginals by
    quadrature as far as the law goes.
    """

    key = "logistic_regression"
    title = "Logistic regression"
    tex = r"U(\theta) = \sum_{i=1}^{N}\log\bigl(1 + e^{-s_i\,\theta\cdot x_i}\bigr) + \frac{\lVert\theta\rVert^2}{2\tau^2}"
    source = "Welling & Teh 2011, section 5.2; data of Street, Wolberg & Mangasarian 1993, from scikit-learn"
    estimators = Target.estimators | MINIBATCHES
    potential, gradient, batch, draw = potential, gradient, batch, draw
    dim = 2
    # U″ at the mode is 6 with 100 data, of which ten make noise of V ≈ 50; with all of them 47, and V ≈ 3000.
    first_steps = FirstSteps(moving=0.05, batch=0.01, friction=5.0, other=2e-3)

    first = Option(default="radius", objects=list(FEATURES), label="First measurement", doc="Of the nuclei of the cells: what θ₁ multiplies.")  # fmt: skip
    second = Option(default="texture", objects=list(FEATURES), label="Second measurement", doc="What θ₂ multiplies. Radius, perimeter and area are nearly the same: with two of them the law is a ridge.")  # fmt: skip
    items = Count(100, bounds=(20, 569), log=True, tex="N", label="Data N", doc="How many of the 569 tumours: the first of the file.")  # fmt: skip
    prior_sd = Real(3.0, bounds=(0.1, 10.0), log=True, tex=r"\tau", label="Prior τ", doc="The standard deviation of each coefficient before there are data. A small one shrinks them.")  # fmt: skip

    @cached_property
    def rows(self) -> Array:
        """s_i x_i, (N, 2)."""
        measured, kind = tumours()
        picked = measured[:, [FEATURES.index(self.first), FEATURES.index(self.second)]]
        return np.asarray((picked * kind[:, None])[: self.items])

    def data(self) -> NDArray[np.int64]:
        return np.arange(len(self.rows))

    def _energies(self, theta: Array) -> Array:
        squares = (theta**2).sum(axis=-1) / (2 * self.prior_sd**2)
        return np.asarray(np.logaddexp(0, -theta @ self.rows.T).sum(axis=-1) + squares)

    @cached_property
    def mode(self) -> Array:
        """By Newton's method."""
        theta = np.zeros(2)
        for _ in range(50):
            wrong = special.expit(-self.rows @ theta)
            step = np.linalg.solve(self._curvature(theta), self.rows.T @ wrong - theta / self.prior_sd**2)
            theta = theta + step
            if np.abs(step).max() < 1e-13:
                break
        return theta

    def _curvature(self, theta: Array) -> Array:
        """U″(θ), (2, 2)."""
        right = special.expit(self.rows @ theta)
        return np.asarray((self.rows.T * (right * (1 - right))) @ self.rows + np.eye(2) / self.prior_sd**2)

    @cached_property
    def envelope(self) -> tuple[Array, float]:
        """The factor of the Student law's scale, and the log of the largest ratio of e^{−U} to its kernel."""
        factor = np.linalg.cholesky(np.linalg.inv(self._curvature(self.mode)))

        def below(t: Array) -> Array:
            kernel = (_FREEDOM + 2) / 2 * np.log1p((t**2).sum(axis=-1) / _FREEDOM)
            return np.asarray(self._energies(self.mode + t @ factor.T) - kernel)

        line = np.linspace(-12.0, 12.0, 49)
        grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
        values = below(grid)
        found = [minimize(below, grid[i], method="BFGS", options={"gtol": 1e-9}).fun for i in np.argsort(values)[:5]]
        # What the search has not reached is far less than this.
        return factor, 1e-6 - min(*found, float(values.min()))

    def packed(self) -> Array:
        factor, height = self.envelope
        header = [self.prior_sd**-2, height, *self.mode, factor[0, 0], factor[1, 0], factor[1, 1], len(self.rows)]
        return np.concatenate([header, self.rows.ravel()])

    def start(self) -> Array:
        return np.zeros(2)

    def log_density(self, theta: Array) -> Array:
        return -self._energies(theta) - self._answers[1]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._answers[0]

    @cached_property
    def _answers(self) -> tuple[tuple[Column, ...], float, float]:
        """The columns, log ∫ e^{−U}, and the covariance of the two coefficients."""
        names = (f"θ₁ {self.first}", f"θ₂ {self.second}")
        slices = [self._slices(k) for k in range(2)]
        made = [_column(name, *along[:3], along[4]) for name, along in zip(names, slices, strict=True)]
        points, weights, density, others, _, log_mass = slices[1]
        mean = float(weights @ (density * others))
        cross = float(weights @ (density * (others - mean) * (points - made[1].mean)))
        return tuple(made), log_mass, cross

    def _slices(self, k: int) -> tuple[Array, Array, Array, Array, tuple[float, float], float]:
        """Points and weights along θ_k, the density there and the other coefficient's mean given θ_k, the line's ends,
        and log ∫ e^{−U}.

        Across, the points follow the ridge of the Gaussian that is alike at the mode: with two measurements that are
        nearly one the law is far narrower than either coefficient's.
        """
        covariance = np.linalg.inv(self._curvature(self.mode))
        sd = covariance[k, k] ** 0.5
        given = (covariance[1 - k, 1 - k] - covariance[0, 1] ** 2 / covariance[k, k]) ** 0.5
        lowest = float(self._energies(self.mode))

        def points(x: Array, y: Array) -> Array:
            """θ at distances x along and y across, in the standard deviations."""
            theta = np.empty((len(x), len(y), 2))
            theta[..., k] = self.mode[k] + sd * x[:, None]
            theta[..., 1 - k] = self.mode[1 - k] + (covariance[0, 1] / covariance[k, k] * sd * x)[:, None] + given * y
            return theta

        def heights(theta: Array) -> Array:
            return np.exp(lowest - np.stack([self._energies(row) for row in theta]))

        def reach(side: float, along: bool) -> float:
            """How far the law goes to a side: its height there is nothing wherever one looks across."""
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

    @property
    def moments(self) -> tuple[Moment, ...]:
        (one, two), cross = (column.mean for column in self.columns), self._answers[2]
        return (*super().moments, Moment("Cov(θ₁, θ₂)", lambda v: (v[..., 0] - one) * (v[..., 1] - two), cross))

    tried_at = (
        {"first": "concave points", "second": "smoothness", "items": 20, "prior_sd": 0.1},
        {"first": "radius", "second": "concavity", "items": 50, "prior_sd": 10.0},
    )
    drawn_at = {"first": "concavity", "second": "symmetry", "items": 40, "prior_sd": 1.0}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        factor, height = self.envelope
        while True:
            t = np.array([rng.standard_normal(), rng.standard_normal()])
            t /= np.sqrt(2 * rng.standard_gamma(2.5) / 5)
            theta = self.mode + factor @ t
            energy = np.log1p(np.exp(-self.rows @ theta)).sum() + (theta @ theta) / (2 * self.prior_sd**2)
            if rng.random() < np.exp(3.5 * np.log1p((t @ t) / 5) - energy - height):
                return np.asarray(theta)

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        row = self.rows[datum]
        return np.asarray(theta / self.prior_sd**2 - len(self.rows) * row / (1 + np.exp(row @ theta)))


def _column(name: str, points: Array, weights: Array, density: Array, ends: tuple[float, float]) -> Column:
    """A column from its density at the points of a rule."""
    mean = float(weights @ (density * points))
    variance = float(weights @ (density * (points - mean) ** 2))
    sd = variance**0.5
    return Column(name, *ends, rule_cdf(*ends, density), mean, variance, shown=(mean - 3.6 * sd, mean + 3.6 * sd))


@lru_cache(maxsize=1)
def tumours() -> tuple[Array, Array]:
    """The ten measurements of each tumour, standardised, and whether it is malignant (1) or benign (−1)."""
    # Only the file is of interest: to import the package takes longer than all else of a start.
    spec = importlib.util.find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise SpecError(
            "target", "logistic_regression", "the package scikit-learn, which has its data, is not installed"
        )
    table = np.loadtxt(Path(spec.submodule_search_locations[0]) / "datasets" / "data" / "breast_cancer.csv", delimiter=",", skiprows=1)  # fmt: skip
    measured = table[:, : len(FEATURES)]
    # The file has 0 for malignant.
    return np.asarray((measured - measured.mean(axis=0)) / measured.std(axis=0)), 1.0 - 2.0 * table[:, -1]
