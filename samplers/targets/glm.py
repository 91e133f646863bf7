"""Generalised linear models of two coefficients with the prior θ ~ N(0, τ²I): logistic and Poisson regression.

A data point enters through its linear predictor η = θ·x alone. The packed family decides what it adds to U.
"""

from abc import abstractmethod
from math import exp

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.requirements import DATA, ENERGIES, MODE
from sgmcmc_lab.samplers.targets import logistic
from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.targets.plane import PROPOSAL, LogConcave, propose

# The packed parameters: those of the proposal, 1/τ², the number of data points, the family, and for each data point the
# row s_i x_i of a logistic regression, or x_i and y_i of a Poisson regression.
_RATE, _ITEMS, _FAMILY, _FIRST = PROPOSAL, PROPOSAL + 1, PROPOSAL + 2, PROPOSAL + 3
LOGISTIC, POISSON = 0, 1
LARGEST = 700.0
"""The largest exponent: e^709 is the largest double."""


@jit.inlined
def _point(k, family, params):
    """x₁, x₂ and y of data point k; the rows of a logistic regression have y as a factor."""
    one, two = params[_FIRST + 2 * k], params[_FIRST + 2 * k + 1]
    return (1.0, one, two) if family == POISSON else (one, two, 0.0)


@jit.helper
def _loss(theta0, theta1, k, family, params):
    """Data point k's −log likelihood."""
    x0, x1, y = _point(k, family, params)
    eta = theta0 * x0 + theta1 * x1
    if family == POISSON:
        return exp(min(eta, LARGEST)) - y * eta
    return logistic.loss(eta)


@jit.helper
def _energy(theta0, theta1, params):
    """U(θ)."""
    total, family = (theta0 * theta0 + theta1 * theta1) * params[_RATE] / 2, int(params[_FAMILY])
    for k in range(int(params[_ITEMS])):
        total += _loss(theta0, theta1, k, family, params)
    return total


@jit.helper
def _add_slope(theta0, theta1, k, weight, family, params, out):
    """Add the weight times the gradient of data point k's −log likelihood to ``out`` (2,)."""
    x0, x1, y = _point(k, family, params)
    eta = theta0 * x0 + theta1 * x1
    if family == POISSON:
        weight *= exp(min(eta, LARGEST)) - y
    else:
        weight *= -(exp(-eta) / (1 + exp(-eta)) if eta > 0 else 1 / (1 + exp(eta)))
    out[0] += weight * x0
    out[1] += weight * x1


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        out[c] = _energy(theta[c, 0], theta[c, 1], params)


@jit.gradient
def gradient(theta, out, params):
    family = int(params[_FAMILY])
    for c in range(theta.shape[0]):
        out[c, 0], out[c, 1] = theta[c, 0] * params[_RATE], theta[c, 1] * params[_RATE]
        for k in range(int(params[_ITEMS])):
            _add_slope(theta[c, 0], theta[c, 1], k, 1.0, family, params, out[c])


@jit.batch
def batch(theta, data, each, params):
    family = int(params[_FAMILY])
    for k in range(data.size):
        each[k, 0], each[k, 1] = theta[0, 0] * params[_RATE], theta[0, 1] * params[_RATE]
        _add_slope(theta[0, 0], theta[0, 1], data[k], params[_ITEMS], family, params, each[k])
        if each.shape[1] > 2:
            prior = (theta[0, 0] * theta[0, 0] + theta[0, 1] * theta[0, 1]) * params[_RATE] / 2
            each[k, 2] = prior + params[_ITEMS] * _loss(theta[0, 0], theta[0, 1], data[k], family, params)


@jit.draw
def draw(rng, out, params):
    for c in range(out.shape[0]):
        accepted = False
        while not accepted:
            out[c, 0], out[c, 1], bound = propose(rng, params)
            accepted = rng.random() < exp(bound - _energy(out[c, 0], out[c, 1], params))


class GeneralisedLinear(LogConcave):
    """A generalised linear model of this family."""

    provides = DATA | {MODE, ENERGIES}
    potential, gradient, batch, draw = potential, gradient, batch, draw
    tempers = True
    family: int
    prior_sd: float

    @property
    @abstractmethod
    def rows(self) -> Array:
        """The packed numbers of each data point, (N, 2)."""

    def data(self) -> NDArray[np.int64]:
        return np.arange(len(self.rows))

    def packed(self) -> Array:
        header = [*self.proposal, self.prior_sd**-2, len(self.rows), self.family]
        return np.concatenate([header, self.rows.ravel()])
