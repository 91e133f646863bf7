"""The posterior of two coefficients of a linear regression: a Gaussian distribution, with data."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Count, Real
from sgmcmc_lab.samplers.requirements import DATA, ENERGIES, LIPSCHITZ, MODE
from sgmcmc_lab.samplers.targets.base import Array, Column, FirstSteps, Fit, Moment, Target
from sgmcmc_lab.samplers.targets.expectations import sum_products

# The packed parameters: σ², τ², the mean and the Cholesky factor of the posterior's covariance, how many data there
# are, and of each x₁, x₂, y.
_NOISE, _PRIOR, _MEAN, _FACTOR, _ITEMS, _FIRST = 0, 1, 2, 4, 7, 8

TRUE_COEFFICIENTS = (1.0, -0.5)
"""The parameters that generated the data."""
CORRELATION = 0.5
"""The correlation of the two covariates, so that the posterior's coordinates are correlated, too."""
_HELD_OUT, _HELD_OUT_SEED = 2000, 100_000
"""The number of held-out data points, and the distance of their seed from that of the others."""


@jit.helper
def _slope(theta, begin, end, weight, params, out):
    """Write ∂U/∂θ (2,) of the data from ``begin`` to ``end``, each of which counts for so many."""
    g0 = g1 = 0.0
    for i in range(begin, end):
        x0, x1, y = params[_FIRST + 3 * i], params[_FIRST + 3 * i + 1], params[_FIRST + 3 * i + 2]
        residual = theta[0] * x0 + theta[1] * x1 - y
        g0 += residual * x0
        g1 += residual * x1
    scale = weight / params[_NOISE]
    out[0] = theta[0] / params[_PRIOR] + scale * g0
    out[1] = theta[1] / params[_PRIOR] + scale * g1


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        total = 0.0
        for i in range(int(params[_ITEMS])):
            x0, x1, y = params[_FIRST + 3 * i], params[_FIRST + 3 * i + 1], params[_FIRST + 3 * i + 2]
            total += (theta[c, 0] * x0 + theta[c, 1] * x1 - y) ** 2
        prior = (theta[c, 0] ** 2 + theta[c, 1] ** 2) / params[_PRIOR]
        out[c] = (total / params[_NOISE] + prior) / 2


@jit.gradient
def gradient(theta, out, params):
    for c in range(theta.shape[0]):
        _slope(theta[c], 0, int(params[_ITEMS]), 1.0, params, out[c])


@jit.batch
def batch(theta, data, each, params):
    for k in range(data.size):
        _slope(theta[0], data[k], data[k] + 1, params[_ITEMS], params, each[k])
        if each.shape[1] > 2:
            first = _FIRST + 3 * data[k]
            square = (theta[0, 0] * params[first] + theta[0, 1] * params[first + 1] - params[first + 2]) ** 2
            prior = (theta[0, 0] ** 2 + theta[0, 1] ** 2) / params[_PRIOR]
            each[k, 2] = (params[_ITEMS] * square / params[_NOISE] + prior) / 2


@jit.draw
def draw(rng, out, params):
    for c in range(out.shape[0]):
        one, two = rng.standard_normal(), rng.standard_normal()
        out[c, 0] = params[_MEAN] + params[_FACTOR] * one
        out[c, 1] = params[_MEAN + 1] + params[_FACTOR + 1] * one + params[_FACTOR + 2] * two


class LinearRegression(Target):
    """y_i ~ N(θ·x_i, σ²) with the prior θ ~ N(0, τ²I); θ | x, y is Gaussian, with precision XᵀX/σ² + I/τ².

    The data are made here, from θ = (1, −½) and standard normal covariates of correlation ½. The gradient may come
    from a minibatch.
    """

    key = "linear_regression"
    title = "Linear regression"
    tex = r"U(\theta) = \frac{1}{2\sigma^2}\sum_{i=1}^{N}\bigl(y_i - \theta\cdot x_i\bigr)^2 + \frac{\lVert\theta\rVert^2}{2\tau^2}"
    source = "The conjugate posterior; Welling & Teh 2011 for its minibatches"
    provides = DATA | {MODE, LIPSCHITZ, ENERGIES}
    potential, gradient, batch, draw = potential, gradient, batch, draw
    tempers = True
    dim = 2
    # U″ is N(1 + ½)/σ² = 150 across the ridge, and ten of the 100 data make noise of V ≈ 1000 in each direction.
    first_steps = FirstSteps(moving=0.03, batch=0.003, friction=20.0, other=1e-4)

    items = Count(100, bounds=(10, 1000), log=True, tex="N", label="Data N", doc="How many data there are.")
    noise_sd = Real(
        1.0,
        bounds=(0.2, 5.0),
        log=True,
        tex=r"\sigma",
        label="Noise σ",
        doc="The standard deviation of y about its mean.",
    )
    prior_sd = Real(
        1.0,
        bounds=(0.1, 100.0),
        log=True,
        tex=r"\tau",
        label="Prior τ",
        doc="The standard deviation of each coefficient before there are data. A small one shrinks them.",
    )
    data_seed = Count(
        1, bounds=(0, 10_000), tex="s", label="Seed of the data", doc="Another seed makes other data of the same kind."
    )

    @cached_property
    def observations(self) -> Array:
        """(x₁, x₂, y), (N, 3)."""
        return self._made(self.data_seed, self.items)

    def _made(self, seed: int, items: int) -> Array:
        rng = np.random.Generator(np.random.SFC64(seed))
        x = rng.standard_normal((items, 2))
        x[:, 1] = CORRELATION * x[:, 0] + np.sqrt(1 - CORRELATION**2) * x[:, 1]
        y = x @ np.array(TRUE_COEFFICIENTS) + self.noise_sd * rng.standard_normal(items)
        return np.column_stack([x, y])

    def held_out(self, theta: Array) -> Array:
        """The log density of 2,000 further data points from the same distribution."""
        x, y = np.split(self._made(_HELD_OUT_SEED + self.data_seed, _HELD_OUT), [2], axis=1)
        residual = (y[:, 0] - theta @ x.T) / self.noise_sd
        return np.asarray(-(residual**2) / 2 - np.log(2 * np.pi * self.noise_sd**2) / 2)

    def data(self) -> NDArray[np.int64]:
        return np.arange(self.items)

    def fit(self) -> Fit:
        """Along the mean: what θ says of y at a point x is θ·x, and at that point of the mean's direction x̂·z."""
        along = self.observations[:, :2] @ self.mean
        line = {"kind": "line", "slope": (self.mean / (self.mean @ self.mean)).tolist()}
        data = np.column_stack([along, self.observations[:, 2]])
        return Fit.of(data, ("fitted by the mean", "y"), self._line, formula=line)

    def _line(self, theta: Array, z: Array) -> Array:
        return np.asarray((theta @ self.mean) / (self.mean @ self.mean) * z)

    @cached_property
    def precision(self) -> Array:
        """XᵀX/σ² + I/τ², (2, 2)."""
        x = self.observations[:, :2]
        return np.asarray(x.T @ x / self.noise_sd**2 + np.eye(2) / self.prior_sd**2)

    @cached_property
    def covariance(self) -> Array:
        """The covariance of the posterior, (2, 2)."""
        return np.asarray(np.linalg.inv(self.precision), dtype=float)

    @cached_property
    def mean(self) -> Array:
        """The mean of the posterior, (2,)."""
        x, y = self.observations[:, :2], self.observations[:, 2]
        return np.asarray(self.covariance @ (x.T @ y) / self.noise_sd**2)

    @property
    def mode(self) -> Array:
        """The mean."""
        return self.mean

    @property
    def lipschitz(self) -> Array:
        """The lengths of the rows of the precision."""
        return np.linalg.norm(self.precision, axis=1)

    @property
    def lipschitz_of_each(self) -> Array:
        x = self.observations[:, :2]
        each = self.items * x[:, :, None] * x[:, None, :] / self.noise_sd**2 + np.eye(2) / self.prior_sd**2
        return np.asarray(np.linalg.norm(each, axis=2).max(axis=0))

    def packed(self) -> Array:
        factor = np.linalg.cholesky(self.covariance)
        header = [self.noise_sd**2, self.prior_sd**2, *self.mean, factor[0, 0], factor[1, 0], factor[1, 1], self.items]
        return np.concatenate([header, self.observations.ravel()])

    def formula(self) -> str:
        (a, b), (_, c) = self.precision.tolist()
        one, two = (f"(theta{k + 1} - ({x!r}))" for k, x in enumerate(self.mean.tolist()))
        return f"({a!r}*{one}^2 + 2*({b!r})*{one}*{two} + {c!r}*{two}^2)/2"

    def start(self) -> Array:
        return np.zeros(2)

    def log_density(self, theta: Array) -> Array:
        apart = theta - self.mean
        quadratic = np.einsum("...i,ij,...j", apart, self.precision, apart)
        return np.asarray(-quadratic / 2 - np.log(2 * np.pi) + np.log(np.linalg.det(self.precision)) / 2)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self._column("θ₁", 0), self._column("θ₂", 1)

    def _column(self, name: str, k: int) -> Column:
        return Column.gaussian(name, float(self.mean[k]), float(self.covariance[k, k]))

    @property
    def moments(self) -> tuple[Moment, ...]:
        one, two = self.mean
        cross = Moment.compiled("Cov(θ₁, θ₂)", sum_products, (one, two), float(self.covariance[0, 1]))
        return (*super().moments, cross)

    tried_at = (
        {"items": 10, "noise_sd": 5.0, "prior_sd": 0.1, "data_seed": 3},
        {"items": 1000, "noise_sd": 0.2, "prior_sd": 100.0},
    )
    drawn_at = {"items": 12, "noise_sd": 0.7, "prior_sd": 2.0, "data_seed": 4}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        x, y = self.observations[:, :2], self.observations[:, 2]
        covariance = np.linalg.inv(x.T @ x / self.noise_sd**2 + np.eye(2) / self.prior_sd**2)
        normals = [rng.standard_normal(), rng.standard_normal()]
        return np.asarray(covariance @ x.T @ y / self.noise_sd**2 + np.linalg.cholesky(covariance) @ normals)

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        *x, y = self.observations[datum]
        return np.asarray(theta / self.prior_sd**2 - self.items * (y - theta @ x) * np.array(x) / self.noise_sd**2)

    def textbook_energy(self, theta: Array, datum: int) -> float:
        *x, y = self.observations[datum]
        return float(self.items * (y - theta @ x) ** 2 / self.noise_sd**2 + theta @ theta / self.prior_sd**2) / 2

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        return {"x": self.observations[:, :2], "y": self.observations[:, 2]}
