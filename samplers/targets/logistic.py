"""Logistic regression with any number of coefficients: the common part of its targets."""

from abc import abstractmethod
from math import exp, log1p
from typing import Any

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.requirements import DATA, ENERGIES, LIPSCHITZ, MODE
from sgmcmc_lab.samplers.targets.base import Array, Target

# The packed parameters: 1/τ², the number of data points, and the row s_i x_i of each.
_RATE, _ITEMS, FIRST = 0, 1, 2


_GAIN = 1e-7
"""A step of Newton's that gains less than half of it is the last. Its error is the square of the step before: 1e-7 of a
standard deviation; and U, which is up to 1e6, is not yet lost in rounding."""


@jit.helper
def _dot(theta, row):
    """θ·x in four sums side by side, which the processor adds at once."""
    dim = theta.size
    whole = dim - dim % 4
    s0 = s1 = s2 = s3 = 0.0
    for i in range(0, whole, 4):
        s0 += row[i] * theta[i]
        s1 += row[i + 1] * theta[i + 1]
        s2 += row[i + 2] * theta[i + 2]
        s3 += row[i + 3] * theta[i + 3]
    for i in range(whole, dim):
        s0 += row[i] * theta[i]
    return (s0 + s1) + (s2 + s3)


@jit.helper
def _margin(theta, c, k, params):
    """s_i x_i·θ of one chain."""
    dim = theta.shape[1]
    return _dot(theta[c], params[FIRST + k * dim : FIRST + (k + 1) * dim])


@jit.helper
def _wrong(m):
    """1/(1 + eᵐ), the probability of the other class at this margin. The exponential does not overflow."""
    small = exp(-abs(m))
    return (small if m > 0 else 1.0) / (1 + small)


@jit.helper
def loss(m):
    """log(1 + e⁻ᵐ). Neither exponential overflows."""
    return log1p(exp(-m)) if m > 0 else log1p(exp(m)) - m


@jit.potential
def potential(theta, out, params):
    n_chains, dim = theta.shape
    for c in range(n_chains):
        squares = 0.0
        for i in range(dim):
            squares += theta[c, i] * theta[c, i]
        out[c] = squares * params[_RATE] / 2
    # All chains read a data point while it is in the processor's cache.
    for k in range(int(params[_ITEMS])):
        for c in range(n_chains):
            out[c] += loss(_margin(theta, c, k, params))


@jit.gradient
def gradient(theta, out, params):
    n_chains, dim = theta.shape
    for c in range(n_chains):
        for i in range(dim):
            out[c, i] = theta[c, i] * params[_RATE]
    for k in range(int(params[_ITEMS])):
        for c in range(n_chains):
            wrong = _wrong(_margin(theta, c, k, params))
            for i in range(dim):
                out[c, i] -= wrong * params[FIRST + k * dim + i]


@jit.batch
def batch(theta, data, each, params):
    dim = theta.shape[1]
    # All rows are fetched before any is used, so that the processor waits for many at once. This wait is most of the
    # time when the data exceed the caches.
    for k in range(data.size):
        first = FIRST + data[k] * dim
        for i in range(dim):
            each[k, i] = params[first + i]
    for k in range(data.size):
        m = _dot(theta[0], each[k])
        scale = params[_ITEMS] * _wrong(m)
        if each.shape[1] > dim:
            each[k, dim] = _dot(theta[0], theta[0]) * params[_RATE] / 2 + params[_ITEMS] * loss(m)
        for i in range(dim):
            each[k, i] = theta[0, i] * params[_RATE] - scale * each[k, i]


def packed(rows: Array, prior_sd: float) -> Array:
    """The parameters as the compiled functions read them, of rows s_i x_i (N, d)."""
    return np.concatenate([[prior_sd**-2, len(rows)], rows.ravel()])


def energies(rows: Array, prior_sd: float, theta: Array) -> Array:
    """U at θ (..., d), (...)."""
    squares = (theta**2).sum(axis=-1) / (2 * prior_sd**2)
    return np.asarray(np.logaddexp(0, -theta @ rows.T).sum(axis=-1) + squares)


def lipschitz(rows: Array, prior_sd: float) -> Array:
    """As 0 ≤ U″(θ) ≤ M = XᵀX/4 + I/τ² for all θ, ‖U″e_i‖² = e_iᵀU″U″e_i is at most λ_max(M) M_ii."""
    most = rows.T @ rows / 4 + np.eye(rows.shape[1]) / prior_sd**2
    return np.asarray(np.sqrt(np.linalg.eigvalsh(most)[-1] * np.diag(most)))


def lipschitz_of_each(rows: Array, prior_sd: float) -> Array:
    """The same with the N rows one by one, M = N x xᵀ/4 + I/τ²."""
    weight, rate = len(rows) / 4, prior_sd**-2
    squares = weight * rows**2 + rate
    return np.asarray(np.sqrt((weight * (rows**2).sum(axis=1) + rate) * squares.T).max(axis=1))


def newton(rows: Array, prior_sd: float) -> tuple[Array, Array]:
    """The mode (d,), by Newton's method with steps that are halved until U falls, and U″ there (d, d)."""
    theta = np.zeros(rows.shape[1])
    height = energies(rows, prior_sd, theta)
    while True:
        right = special.expit(rows @ theta)
        curvature = rows.T @ (rows * (right * (1 - right))[:, None]) + np.eye(len(theta)) / prior_sd**2
        slope = theta / prior_sd**2 - rows.T @ (1 - right)
        step = -np.linalg.solve(curvature, slope)
        # Twice what a whole step would gain, and the square of its length in standard deviations.
        if -(slope @ step) < _GAIN:
            return theta + step, curvature
        while (there := energies(rows, prior_sd, theta + step)) > height:
            step /= 2
        theta, height = theta + step, there


class Logistic(Target):
    """P(s_i = 1) = 1/(1 + e^{−θ·x_i}) with the prior θ ~ N(0, τ²I), of any number of coefficients.

    A subclass has the rows s_i x_i and the known answers of the distribution.
    """

    provides = DATA | {MODE, LIPSCHITZ, ENERGIES}
    potential, gradient, batch = potential, gradient, batch
    prior_sd: float

    @property
    @abstractmethod
    def rows(self) -> Array:
        """s_i x_i, (N, dim)."""

    @property
    def lipschitz(self) -> Array:
        return lipschitz(self.rows, self.prior_sd)

    @property
    def lipschitz_of_each(self) -> Array:
        return lipschitz_of_each(self.rows, self.prior_sd)

    def start(self) -> Array:
        return np.zeros(self.dim)

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        return {"N": len(self.rows), "s": np.ones(len(self.rows)), "x": self.rows}

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        row, n_data = self.rows[datum], len(self.rows)
        return np.asarray(theta / self.prior_sd**2 - n_data * row * special.expit(-row @ theta))

    def textbook_energy(self, theta: Array, datum: int) -> float:
        row, n_data = self.rows[datum], len(self.rows)
        return float(theta @ theta / (2 * self.prior_sd**2) + n_data * np.logaddexp(0, -row @ theta))
