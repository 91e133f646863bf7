"""Mixtures of Student's t that are fitted to a density with several modes, by population Monte Carlo."""

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from scipy.special import gammaln, logsumexp

from sgmcmc_lab.samplers.targets import newton
from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.targets.modes import Mode

_FREEDOM = 5.0
"""Degrees of freedom: tails that are heavier than a density's whose mass is around its modes."""
_LEAST = 0.02
"""The least share of all components but the largest together, so that each mode is proposed now and then."""
_ROUNDS = 6
_ENOUGH = 5
"""Effective draws of a component for each coordinate from which its scale is found anew."""


class Mixture(NamedTuple):
    """Σ w_k t(θ; centre_k, L_k L_kᵀ)."""

    weights: Array
    """(components,)."""
    centres: Array
    """(components, dim)."""
    factors: Array
    """L, (components, dim, dim)."""

    @classmethod
    def around(cls, modes: list[Mode]) -> Self:
        """The Gaussians that are like the density at its modes (Laplace's method), with the tails of t."""
        factors = np.array([newton.inverse_factor(mode.curvature) for mode in modes])
        log_weights = np.array([-mode.energy for mode in modes]) + np.linalg.slogdet(factors)[1]
        return cls(_weights(log_weights), np.array([mode.place for mode in modes]), factors)

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Independent draws (n, dim)."""
        which = rng.choice(len(self.weights), n, p=self.weights)
        z = rng.standard_normal((n, self.centres.shape[1]))
        z /= np.sqrt(rng.chisquare(_FREEDOM, n) / _FREEDOM)[:, None]
        return np.asarray(self.centres[which] + np.einsum("nij,nj->ni", self.factors[which], z))

    def log_densities(self, theta: Array) -> Array:
        """log w_k t_k at θ (n, dim), (n, components)."""
        dim = theta.shape[1]
        z = np.einsum("kij,nkj->nki", np.linalg.inv(self.factors), theta[:, None] - self.centres)
        constant = gammaln((_FREEDOM + dim) / 2) - gammaln(_FREEDOM / 2) - dim / 2 * np.log(_FREEDOM * np.pi)
        tails = -(_FREEDOM + dim) / 2 * np.log1p((z**2).sum(axis=2) / _FREEDOM)
        return np.asarray(np.log(self.weights) - np.linalg.slogdet(self.factors)[1] + constant + tails)

    def log_density(self, theta: Array) -> Array:
        """At θ (n, dim), (n,)."""
        return np.asarray(logsumexp(self.log_densities(theta), axis=1))

    def fitted(self, energies: Callable[[Array], Array], n: int, rng: np.random.Generator) -> Self:
        """Nearer to e^{−U}: its own draws, weighted by e^{−U} over its density, are shared out among the components,
        each of which takes the weight, the mean and the covariance of its share (Cappé et al. 2008).
        """
        found = self
        for _ in range(_ROUNDS):
            theta = found.draw(rng, n)
            each = found.log_densities(theta)
            proposed = logsumexp(each, axis=1)
            log_weight = -energies(theta) - proposed
            weight = np.exp(log_weight - log_weight.max())
            shares = weight[:, None] * np.exp(each - proposed[:, None])
            totals = shares.sum(axis=0)
            centres, factors = found.centres.copy(), found.factors.copy()
            for k in np.flatnonzero(totals > 0):
                share = shares[:, k] / totals[k]
                if 1 / (share**2).sum() < _ENOUGH * theta.shape[1]:
                    continue
                centres[k] = share @ theta
                away = theta - centres[k]
                covariance = (away * share[:, None]).T @ away
                # Of t the covariance is ν/(ν − 2) times the scale.
                if newton.positive(covariance):
                    unit = np.sqrt(np.diag(covariance))
                    factors[k] = unit[:, None] * np.linalg.cholesky(covariance / np.outer(unit, unit))
                    factors[k] *= np.sqrt((_FREEDOM - 2) / _FREEDOM)
            with np.errstate(divide="ignore"):
                found = type(self)(_weights(np.log(totals)), centres, factors)
        return found


def _weights(logs: Array) -> Array:
    weights = np.exp(logs - logs.max())
    weights = np.maximum(weights / weights.sum(), _LEAST / len(weights))
    return np.asarray(weights / weights.sum())
