"""A linear regression whose noise has an unknown scale, on a table, which may be a person's own."""

from collections.abc import Mapping
from functools import cached_property
from math import exp
from typing import Any

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Flag, Real, Source, SpecError
from sgmcmc_lab.samplers.requirements import DATA, MODE
from sgmcmc_lab.samplers.targets.at_temperature import Divided, divided
from sgmcmc_lab.samplers.targets.base import Array, Column, FirstSteps, subscript
from sgmcmc_lab.samplers.targets.own import OfTable, Table
from sgmcmc_lab.samplers.targets.tables import table

SHAPE, RATE = 1.0, 0.5
"""Shape and rate of the prior of 1/σ²: with y of variance 1 it says that σ² is about 1/2, and as little as two data
would."""
LEAST_FREEDOM = 12.0
"""The fewest degrees of freedom of the Student t distributions at any temperature: at T = 1 the smallest table, of ten
rows, gives as many."""

# The packed parameters: 1/τ², the numbers of data points and coefficients, the shape and the rate of the distribution
# of 1/σ², of each data point x and y, the mean of the coefficients, and the Cholesky factor of their covariance over
# σ².
_PRIOR, _ITEMS, _COEFFICIENTS, _SHAPE, _RATE, _FIRST = 0, 1, 2, 3, 4, 5


@jit.helper
def _residual(theta, k, n, params):
    """x·β − y of data point k."""
    first = _FIRST + k * (n + 1)
    total = -params[first + n]
    for i in range(n):
        total += theta[i] * params[first + i]
    return total


@jit.potential
def potential(theta, out, params):
    n = int(params[_COEFFICIENTS])
    for c in range(theta.shape[0]):
        squares = 2 * RATE
        for i in range(n):
            squares += theta[c, i] ** 2 * params[_PRIOR]
        for k in range(int(params[_ITEMS])):
            squares += _residual(theta[c], k, n, params) ** 2
        out[c] = (params[_ITEMS] + n + 2 * SHAPE) * theta[c, n] + squares * exp(-2 * theta[c, n]) / 2


@jit.helper
def _slope(theta, begin, end, weight, params, out):
    """Write ∂U/∂θ of the data from ``begin`` to ``end``, each of which counts for so many."""
    n, squares = int(params[_COEFFICIENTS]), 0.0
    precision = exp(-2 * theta[n])
    out[: n + 1] = 0.0
    for k in range(begin, end):
        residual = _residual(theta, k, n, params)
        squares += weight * residual * residual
        for i in range(n):
            out[i] += weight * residual * params[_FIRST + k * (n + 1) + i]
    for i in range(n):
        squares += theta[i] ** 2 * params[_PRIOR]
        out[i] = (out[i] + theta[i] * params[_PRIOR]) * precision
    out[n] = params[_ITEMS] + n + 2 * SHAPE - (squares + 2 * RATE) * precision


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
    n = int(params[_COEFFICIENTS])
    mean = _FIRST + int(params[_ITEMS]) * (n + 1)
    factor = mean + n
    normals = np.empty(n)
    for c in range(out.shape[0]):
        variance = params[_RATE] / rng.standard_gamma(params[_SHAPE])
        for i in range(n):
            normals[i] = rng.standard_normal()
        for i in range(n):
            total = 0.0
            for j in range(i + 1):
                total += params[factor + i * n + j] * normals[j]
            out[c, i] = params[mean + i] + np.sqrt(variance) * total
        out[c, n] = np.log(variance) / 2


def diabetes() -> Table:
    """How far the diabetes of 442 patients got in a year, by ten measurements (Efron, Hastie, Johnstone & Tibshirani
    2004).
    """
    names = "age", "sex", "mass", "pressure", "s1", "s2", "s3", "s4", "s5", "s6"
    x = table("linear_table", "diabetes_data_raw.csv.gz", skip=0)
    return Table(names, x, "progress", table("linear_table", "diabetes_target.csv.gz", skip=0))


class TableLinear(OfTable):
    """y_i ~ N(β·x_i, σ²) with β ~ N(0, σ²τ²I) and 1/σ² ~ Gamma(1, rate ½); θ = (β, log σ).

    The data are a table: the diabetes of 442 patients, or a CSV file of your own, whose last column is y. θ₁ is the
    intercept, the next belong to the columns. The prior is conjugate: 1/σ² has a gamma distribution, β a Gaussian one
    for each σ, and so each coefficient a Student t distribution.
    """

    key = "linear_table"
    title = "Linear regression, unknown scale"
    tex = r"U(\theta) = (N + d + 2)\lambda + \frac{e^{-2\lambda}}{2}\Bigl(\sum_{i=1}^{N}(y_i - \beta\cdot x_i)^2 + \frac{\lVert\beta\rVert^2}{\tau^2} + 1\Bigr),\quad \theta = (\beta, \lambda),\ \lambda = \log\sigma"
    source = "The normal–inverse-gamma posterior; data of Efron, Hastie, Johnstone & Tibshirani 2004, from scikit-learn"
    provides = DATA | {MODE}
    two_kinds = False
    built_in = {"diabetes": diabetes}
    potential, gradient, batch, draw = potential, gradient, batch, draw

    table = Source(
        default="diabetes",
        objects=list(built_in),
        label="Data",
        doc="The diabetes of 442 patients by ten measurements. Or bring a CSV file of your own.",
    )
    standardise = Flag(
        True,
        label="Standardise",
        doc="Whether each column, and y, gets mean 0 and standard deviation 1 first, so that one prior fits all.",
    )
    prior_sd = Real(
        1.0,
        bounds=(0.1, 100.0),
        log=True,
        tex=r"\tau",
        label="Prior τ",
        doc="The standard deviation of each coefficient before there are data, in units of σ. A small one shrinks them.",
    )

    @property
    def dim(self) -> int:
        return len(self.contents.names) + 2

    @cached_property
    def y(self) -> Array:
        """(N,)."""
        return self.scaled(self.contents.y)

    @cached_property
    def _answers(self) -> tuple[Array, Array, float, float]:
        """The mean of β, its covariance over σ², and the shape and the rate of the distribution of 1/σ²."""
        x, y = self.covariates, self.y
        precision = x.T @ x + np.eye(x.shape[1]) / self.prior_sd**2
        mean = np.linalg.solve(precision, x.T @ y)
        rest = ((y - x @ mean) ** 2).sum() + (mean**2).sum() / self.prior_sd**2
        return mean, np.linalg.inv(precision), SHAPE + len(y) / 2, RATE + float(rest) / 2

    def family_at(self, temperature: float) -> "TemperedTableLinear":
        n, d = self.covariates.shape
        hottest = (n + d + 2 * SHAPE) / (d + LEAST_FREEDOM)
        if temperature > hottest:
            raise SpecError(
                "temperature",
                temperature,
                f"{self.title} would have tails that are too heavy there; allowed with {n:,} rows and {d} coefficients are temperatures up to {hottest:.3g}",
            )
        return TemperedTableLinear.made(self, temperature)

    @property
    def mode(self) -> Array:
        mean, _, _, rate = self._answers
        return np.append(mean, np.log(2 * rate / (len(self.y) + len(mean) + 2 * SHAPE)) / 2)

    @property
    def first_steps(self) -> FirstSteps:
        """By U″ at the mode, and the noise of a minibatch there."""
        mode, n = self.mode, len(self.y)
        precision = np.exp(-2 * mode[-1])
        steepest = precision * (np.linalg.norm(self.covariates, 2) ** 2 + self.prior_sd**-2)
        residuals = self.covariates @ mode[:-1] - self.y
        noise = n / 10 * np.linalg.norm(self.covariates * residuals[:, None], 2) ** 2 * precision**2
        return FirstSteps.of(max(steepest, 2.0 * n), noise)

    def packed(self) -> Array:
        mean, covariance, shape, rate = self._answers
        header = [self.prior_sd**-2, len(self.y), len(mean), shape, rate]
        rows = np.column_stack([self.covariates, self.y])
        return np.concatenate([header, rows.ravel(), mean, np.linalg.cholesky(covariance).ravel()])

    def start(self) -> Array:
        # Of y without the columns: where σ begins too small its slope is as steep as 1/σ² makes it.
        return np.append(np.zeros(self.dim - 1), np.log(self.y.std()))

    @property
    def column_names(self) -> tuple[str, ...]:
        return (*self.names, f"θ{subscript(self.dim)} log σ")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        mean, covariance, shape, rate = self._answers
        scales = np.sqrt(np.diag(covariance) * rate / shape)
        laws = zip(self.names, mean, scales, strict=True)
        made = [_student(name, middle, scale, 2 * shape) for name, middle, scale in laws]
        # σ² = rate/g with g ~ Gamma(shape, 1).
        middle, sd = (np.log(rate) - special.digamma(shape)) / 2, np.sqrt(special.polygamma(1, shape)) / 2
        scale = Column(
            self.column_names[-1],
            middle - 7.5 * sd,
            middle + 9 * sd,
            lambda x: special.gammaincc(shape, rate * np.exp(-2 * x)),
            float(middle),
            float(sd**2),
            shown=(middle - 3.6 * sd, middle + 3.6 * sd),
        )
        return (*made, scale)

    def log_density(self, theta: Array) -> Array:
        mean, covariance, shape, rate = self._answers
        apart, scale = theta[..., :-1] - mean, theta[..., -1]
        distance = np.einsum("...i,ij,...j", apart, np.linalg.inv(covariance), apart)
        n = len(mean)
        gaussian = (
            -(distance * np.exp(-2 * scale) + n * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1]) / 2 - n * scale
        )
        gamma = (
            shape * np.log(rate) - special.gammaln(shape) + np.log(2) - 2 * shape * scale - rate * np.exp(-2 * scale)
        )
        return np.asarray(gaussian + gamma)

    def facts(self) -> Mapping[str, str]:
        data = self.contents
        return {"Data": f"{len(data.y):,} rows; {data.answer} is explained by {len(data.names)} columns"}

    tried_at = ({"prior_sd": 0.1}, {"standardise": False, "prior_sd": 100.0})
    drawn_at = {"prior_sd": 0.3}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        mean, covariance, shape, rate = self._answers
        sd = np.sqrt(rate / rng.standard_gamma(shape))
        normals = [rng.standard_normal() for _ in mean]
        return np.append(mean + sd * np.linalg.cholesky(covariance) @ normals, np.log(sd))

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        *beta, scale = theta
        x, y, n = self.covariates[datum], self.y[datum], len(self.y)
        prior, residual = np.array(beta) / self.prior_sd**2, y - x @ beta
        squares = n * residual**2 + beta @ prior + 2 * RATE
        of_scale = n + len(beta) + 2 * SHAPE - squares * np.exp(-2 * scale)
        return np.append((prior - n * residual * x) * np.exp(-2 * scale), of_scale)

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        data = {"x": self.covariates, "y": self.y, "N": len(self.y), "d": len(theta) - 1}
        return {**data, r"\beta": theta[:-1], r"\lambda": theta[-1]}


class TemperedTableLinear(Divided, TableLinear):  # type: ignore[misc]
    """e^{−U/T} of the posterior: again a Student t distribution of each coefficient, and a gamma distribution of 1/σ².

    Given σ, U is quadratic in β, whose covariance T multiplies. The integral over β has a factor σ^d that T does not
    divide, so that 1/σ² ~ Gamma(((N + d + 2)/T − d)/2, rate/T).
    """

    potential, gradient, batch = divided(TableLinear)

    @property
    def _answers(self) -> tuple[Array, Array, float, float]:
        mean, covariance, _, rate = self.base._answers
        heat, n, d = self.temperature, len(self.y), len(mean)
        return mean, heat * covariance, ((n + d + 2 * SHAPE) / heat - d) / 2, rate / heat

    @property
    def mode(self) -> Array:
        return self.base.mode

    def packed(self) -> Array:
        return np.append(super().packed(), self.temperature)


def _student(name: str, mean: float, scale: float, freedom: float) -> Column:
    """The column of mean + scale·t, t with ``freedom`` degrees of freedom."""
    sd = scale * np.sqrt(freedom / (freedom - 2))
    # There are 12 degrees of freedom or more: one in 10⁵ of them is further away than this.
    reach = max(7.5 * sd, float(scale * special.stdtrit(freedom, 1 - 5e-9)))
    return Column(
        name,
        mean - reach,
        mean + reach,
        lambda x: special.stdtr(freedom, (x - mean) / scale),
        float(mean),
        float(sd**2),
        shown=(mean - 3.6 * sd, mean + 3.6 * sd),
    )
