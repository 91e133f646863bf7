"""The Bayesian lasso: the posterior of a linear regression's coefficients under a Laplace prior, on real data."""

from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import pairwise
from math import exp
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.interpolate import CubicHermiteSpline

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Real, SpecError
from sgmcmc_lab.samplers.requirements import DATA, MODE
from sgmcmc_lab.samplers.targets.at_temperature import Divided
from sgmcmc_lab.samplers.targets.base import Array, Column, FirstSteps, Fit, Target
from sgmcmc_lab.samplers.targets.tables import table

NAMES = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")
"""The coefficients' names: of the diabetes data's columns, the last six of which are measured in the blood."""

# The packed parameters: the number of data points, σ², a = λ/σ; then XᵀX/σ², Xᵀy/σ², the proposals' mean, the Cholesky
# factor of their covariance, the slopes c, and of each data point its row of X and y.
_ITEMS, _NOISE, _RATE, _FIRST = 0, 1, 2, 3


@jit.potential
def potential(theta, out, params):
    n_chains, dim = theta.shape
    linear = _FIRST + dim * dim
    for c in range(n_chains):
        total = 0.0
        for i in range(dim):
            slope = -params[linear + i]
            for j in range(dim):
                slope += params[_FIRST + i * dim + j] * theta[c, j] / 2
            total += theta[c, i] * slope + params[_RATE] * abs(theta[c, i])
        out[c] = total


@jit.gradient
def gradient(theta, out, params):
    n_chains, dim = theta.shape
    linear = _FIRST + dim * dim
    for c in range(n_chains):
        for i in range(dim):
            slope = params[_RATE] * np.sign(theta[c, i]) - params[linear + i]
            for j in range(dim):
                slope += params[_FIRST + i * dim + j] * theta[c, j]
            out[c, i] = slope


@jit.batch
def batch(theta, data, each, params):
    dim = theta.shape[1]
    first = _FIRST + 2 * dim * dim + 3 * dim
    for k in range(data.size):
        row = first + data[k] * (dim + 1)
        residual = -params[row + dim]
        for i in range(dim):
            residual += params[row + i] * theta[0, i]
        scale = params[_ITEMS] / params[_NOISE] * residual
        for i in range(dim):
            each[k, i] = params[_RATE] * np.sign(theta[0, i]) + scale * params[row + i]


@jit.draw
def draw(rng, out, params):
    n_chains, dim = out.shape
    mean = _FIRST + dim * dim + dim
    factor, slopes = mean + dim, mean + dim + dim * dim
    normals = np.empty(dim)
    for c in range(n_chains):
        accepted = False
        while not accepted:
            excess = 0.0
            for i in range(dim):
                normals[i] = rng.standard_normal()
                x = params[mean + i]
                for j in range(i + 1):
                    x += params[factor + i * dim + j] * normals[j]
                out[c, i] = x
                excess += abs(x) - params[slopes + i] * x
            accepted = rng.random() < exp(-params[_RATE] * excess)


def coordinate_descent(precision: Array, linear: Array, rate: float) -> Array:
    """The least of θᵀ(precision)θ/2 − linear·θ + rate·‖θ‖₁: a lasso."""
    theta = np.linalg.solve(precision, linear)
    for _ in range(10_000):
        before = theta.copy()
        for j in range(len(theta)):
            pull = linear[j] - precision[j] @ theta + precision[j, j] * theta[j]
            theta[j] = np.sign(pull) * max(abs(pull) - rate, 0.0) / precision[j, j]
        if np.abs(theta - before).max() < 1e-12:
            break
    return np.asarray(theta, dtype=float)


class BayesianLasso(Target):
    """y_i ~ N(θ·x_i, σ²) with the prior θ_j ~ Laplace(λ/σ): the posterior whose mode is the lasso.

    The data are the 442 patients of Efron et al. 2004: how far diabetes has gone a year after ten measurements, all of
    them with mean 0 and standard deviation 1. σ is given, so that θ is the ten coefficients and nothing else; the
    scales τ² of Park & Casella's hierarchy, θ_j ~ N(0, σ²τ_j²), τ_j² ~ Exp(λ²/2), are integrated out. At θ_j = 0, where
    |θ_j| has a kink, the gradient takes its subgradient 0.

    Exact draws are by rejection: |θ_j| ≥ c_jθ_j for −1 ≤ c_j ≤ 1, so that a Gaussian bounds the posterior. With the
    subgradient c of the lasso its mean is the lasso itself, and from a hundredth to nearly all of its draws are taken.
    """

    key = "lasso"
    title = "Bayesian lasso"
    tex = r"U(\theta) = \frac{1}{2\sigma^2}\sum_{i=1}^{N}\bigl(y_i - \theta\cdot x_i\bigr)^2 + \frac{\lambda}{\sigma}\sum_{j=1}^{10}|\theta_j|"
    source = "Park & Casella 2008; Smolyakov et al., eq (16); diabetes data of Efron et al. 2004, from scikit-learn"
    provides = DATA | {MODE}
    potential, gradient, batch, draw = potential, gradient, batch, draw
    # The eigenvalues of XᵀX/σ² are from 8 to 3600, and ten of the 442 data make noise of V ≈ 40,000 in each direction.
    first_steps = FirstSteps(moving=0.01, batch=5e-4, friction=100.0, other=5e-5)

    shrinkage = Real(
        5.0,
        bounds=(0.1, 20.0),
        log=True,
        tex=r"\lambda",
        label="Shrinkage λ",
        doc="The strength with which the prior pulls every coefficient to 0. Coefficients about which the data are uninformative shrink to 0.",
    )
    noise_sd = Real(
        0.7,
        bounds=(0.5, 1.0),
        log=True,
        tex=r"\sigma",
        label="Noise σ",
        doc="The standard deviation of y about its mean, taken as known; that of y is 1, and of the least-squares residuals 0.7.",
    )

    names: ClassVar[tuple[str, ...]] = NAMES

    def family_at(self, temperature: float) -> "TemperedLasso":
        found = TemperedLasso.made(self, temperature)
        if found.accepted < _LEAST_ACCEPTED:
            raise SpecError(
                "temperature",
                temperature,
                f"of {self.title} one of {1 / found.accepted:,.0f} proposals would be an exact draw there; allowed are higher temperatures, at which it is one of {1 / _LEAST_ACCEPTED:,.0f}",
            )
        return found

    @cached_property
    def observations(self) -> Array:
        """(x, y), (N, 11)."""
        return diabetes()

    @property
    def dim(self) -> int:
        return len(self.names)

    def data(self) -> NDArray[np.int64]:
        return np.arange(len(self.observations))

    def fit(self) -> Fit | None:
        """Along the lasso, where it is not nothing: what θ says at the point x̂·z of its direction."""
        mode = self.mode
        if not mode.any():
            return None
        along = self.observations[:, :-1] @ mode
        data = np.column_stack([along, self.observations[:, -1]])
        line = {"kind": "line", "slope": (mode / (mode @ mode)).tolist()}
        return Fit.of(
            data,
            ("fitted by the lasso", "progression"),
            lambda theta, z: (theta @ mode) / (mode @ mode) * z,
            formula=line,
        )

    @cached_property
    def quadratic(self) -> tuple[Array, Array, float]:
        """XᵀX/σ², Xᵀy/σ² and a = λ/σ, over T: U(θ) = θᵀ(XᵀX)θ/2σ² − θᵀXᵀy/σ² + a‖θ‖₁, and a constant."""
        x, y = self.observations[:, :-1], self.observations[:, -1]
        square = self.noise_sd**2 * self.temperature
        rate = self.shrinkage / self.noise_sd / self.temperature
        return np.asarray(x.T @ x / square), np.asarray(x.T @ y / square), rate

    @cached_property
    def mode(self) -> Array:
        """The lasso itself."""
        return coordinate_descent(*self.quadratic)

    @cached_property
    def bound(self) -> tuple[Array, Array, Array]:
        """The slopes c, and the mean and the factor of the covariance of the Gaussian that bounds the posterior."""
        precision, linear, rate = self.quadratic
        slopes = np.clip((linear - precision @ self.mode) / rate, -1.0, 1.0)
        covariance = np.linalg.inv(precision)
        return slopes, covariance @ (linear - rate * slopes), np.linalg.cholesky(covariance)

    def packed(self) -> Array:
        precision, linear, rate = self.quadratic
        slopes, mean, factor = self.bound
        header = [len(self.observations), self.noise_sd**2 * self.temperature, rate]
        parts = (precision, linear, mean, factor, slopes, self.observations)
        return np.concatenate([header, *(part.ravel() for part in parts)])

    def start(self) -> Array:
        return np.zeros(self.dim)

    def _energy(self, theta: Array) -> Array:
        precision, linear, rate = self.quadratic
        return np.asarray((theta * (theta @ precision / 2 - linear)).sum(axis=-1) + rate * np.abs(theta).sum(axis=-1))

    def log_density(self, theta: Array) -> Array:
        return -self._energy(theta) - self._answers[1]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self._answers[0]

    @cached_property
    def _answers(self) -> tuple[tuple[Column, ...], float]:
        """The columns, and log ∫ e^{−U/T}; the draws that they come from are 20 MB, and do not stay."""
        known = _weighted(self)
        return tuple(self._column(name, k, known) for k, name in enumerate(self.names)), known.log_mass

    def _column(self, name: str, k: int, known: "Weighted") -> Column:
        """A coefficient by itself: its density given the others, averaged over them.

        Given the others it has the density e^{−(x−m)²/2s² − a|x|}/Z(m) with s² = 1/Λ_kk, Λ = XᵀX/σ². Only m goes by
        them, so that its histogram, in cells far narrower than s, is all that is needed.
        """
        precision, _, rate = self.quadratic
        s = precision[k, k] ** -0.5
        counts, edges = np.histogram(known.given[k], _CELLS, weights=known.weights)
        m = (edges[1:] + edges[:-1]) / 2
        # e^{−a|x|} on both sides of 0 moves the Gaussian by ∓as².
        sides = [special.log_ndtr((sign * m - rate * s * s) / s) - sign * rate * m for sign in (1, -1)]
        log_z = np.logaddexp(*sides) + (rate * s) ** 2 / 2 + np.log(s * np.sqrt(2 * np.pi))

        def density(x: Array) -> Array:
            exponents = -(((x[:, None] - m) / s) ** 2) / 2 - rate * np.abs(x)[:, None] - log_z
            return np.asarray(np.exp(exponents) @ counts)

        centre = float(counts @ m)
        wide = _REACH * float(s * s + counts @ (m - centre) ** 2) ** 0.5
        return _tabulated(name, density, centre - wide, centre + wide)

    tried_at = ({"shrinkage": 0.1, "noise_sd": 1.0}, {"shrinkage": 15.0, "noise_sd": 0.5})
    drawn_at = {"shrinkage": 3.0, "noise_sd": 0.6}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        x, y = self.observations[:, :-1], self.observations[:, -1]
        variance = self.noise_sd**2 * self.temperature
        precision, rate = x.T @ x / variance, self.shrinkage / self.noise_sd / self.temperature
        # The force of the data at the lasso, in units of the prior's force.
        slopes = x.T @ (y - x @ self.mode) / variance / rate
        while True:
            z = np.array([rng.standard_normal() for _ in self.names])
            theta = self.mode + np.linalg.cholesky(np.linalg.inv(precision)) @ z
            if rng.random() < exp(-rate * (np.abs(theta) - slopes * theta).sum()):
                return np.asarray(theta)

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        *x, y = self.observations[datum]
        prior = self.shrinkage / self.noise_sd * np.sign(theta)
        return np.asarray(prior - len(self.observations) * (y - theta @ x) * np.array(x) / self.noise_sd**2)

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        x, y = self.observations[:, :-1], self.observations[:, -1]
        return {"N": len(y), "x": x, "y": y}


class TemperedLasso(Divided, BayesianLasso):  # type: ignore[misc]
    """e^{−U/T} of the posterior: that of the noise σ√T and the shrinkage λ/√T, beyond what is allowed of them, too."""

    @cached_property
    def accepted(self) -> float:
        """The share of the proposals that are exact draws: of the Gaussian that bounds the posterior."""
        slopes, centre, factor = self.bound
        z = np.random.Generator(np.random.SFC64(1)).standard_normal((_PILOT, self.dim))
        draws = centre + z @ factor.T
        return float(np.exp(-self.quadratic[2] * (np.abs(draws) - slopes * draws).sum(axis=1)).mean())


@lru_cache(maxsize=1)
def diabetes() -> Array:
    """The ten measurements of each patient, and the disease's progression a year later, all of them standardised."""
    raw, outcome = (table("lasso", f"diabetes_{name}.csv.gz", skip=0) for name in ("data_raw", "target"))
    rows = np.column_stack([raw, outcome])
    return np.asarray((rows - rows.mean(axis=0)) / rows.std(axis=0))


# --- the exact answers: importance sampling, and a density in closed form for the last coordinate ---------------------

_PILOT, _DRAWS = 2**15, 2**18
_LEAST_ACCEPTED = 0.003
"""The smallest share of accepted proposals of exact draws at another temperature."""
_CELLS = 512
"""Cells of the histogram of a conditional mean."""
_REACH = 8.0
"""Standard deviations that a table reaches on both sides of the mean."""
_STEPS = 256
"""Steps of a table on each side of 0."""


class Weighted(NamedTuple):
    """Weighted draws of the posterior."""

    given: Array
    """The mean m of each coefficient's Gaussian given the others, (dim, draws)."""
    weights: Array
    """Their sum is 1."""
    log_mass: float
    """log ∫ e^{−U/T}."""


def _weighted(target: BayesianLasso) -> Weighted:
    """Draws of a Gaussian with the posterior's mean and covariance, and, for its tails, of the one that bounds it.

    The first is found from draws of the second. At the defaults they are worth nine tenths of as many of the posterior.
    """
    rng = np.random.Generator(np.random.SFC64(1))
    _, centre, factor = target.bound
    dim = len(centre)

    def log_gaussian(theta: Array, mean: Array, root: Array) -> Array:
        z = (theta - mean) @ np.linalg.inv(root).T
        return np.asarray(-(z**2).sum(axis=1) / 2 - np.log(np.diag(root)).sum() - dim / 2 * np.log(2 * np.pi))

    def pairs(n: int) -> Array:
        z = rng.standard_normal((n // 2, dim))
        return np.concatenate([z, -z])

    pilot = centre + pairs(_PILOT) @ factor.T
    weights = special.softmax(-target._energy(pilot) - log_gaussian(pilot, centre, factor))
    mean = weights @ pilot
    root = np.linalg.cholesky((pilot - mean).T @ ((pilot - mean) * weights[:, None]))
    tails = _DRAWS // 8
    draws = np.concatenate([mean + pairs(_DRAWS - tails) @ root.T, centre + pairs(tails) @ factor.T])
    proposed = np.logaddexp(
        np.log(7 / 8) + log_gaussian(draws, mean, root), np.log(1 / 8) + log_gaussian(draws, centre, factor)
    )
    log_weights = -target._energy(draws) - proposed
    log_mass = float(special.logsumexp(log_weights) - np.log(_DRAWS))
    precision, linear, _ = target.quadratic
    given = (draws + (linear - draws @ precision) / np.diag(precision)).T
    return Weighted(np.ascontiguousarray(given), special.softmax(log_weights), log_mass)


def _tabulated(name: str, density: Callable[[Array], Array], low: float, high: float) -> Column:
    """A column from a density with a kink at 0: Simpson's rule on steps that end there, and a cubic with its slopes."""
    ends = (low, 0.0, high) if low < 0 < high else (low, high)
    edges = np.concatenate([[low], *(np.linspace(a, b, _STEPS + 1)[1:] for a, b in pairwise(ends))])
    middle, steps = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    at_edges, at_middle = density(edges), density(middle)

    def integral(power: int, about: float = 0.0) -> Array:
        f, g = at_edges * (edges - about) ** power, at_middle * (middle - about) ** power
        return np.asarray(steps / 6 * (f[:-1] + 4 * g + f[1:]))

    mass = integral(0).sum()
    at_edges, at_middle = at_edges / mass, at_middle / mass
    heights = np.concatenate([[0.0], np.cumsum(integral(0))])
    spline = CubicHermiteSpline(edges, np.minimum(heights, 1.0), at_edges)
    mean = float(integral(1).sum())
    variance = float(integral(2, mean).sum())
    sd = variance**0.5
    return Column(
        name,
        low,
        high,
        lambda x: np.clip(spline(np.clip(x, low, high)), 0.0, 1.0),
        mean,
        variance,
        shown=(mean - 3.6 * sd, mean + 3.6 * sd),
    )
