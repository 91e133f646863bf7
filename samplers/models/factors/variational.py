"""Stochastic gradient variational Bayes for factors, with gammas and with normals (Knowles 2015)."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.random import Generator

from sgmcmc_lab.samplers.models.base import Snapshot
from sgmcmc_lab.samplers.models.factors.method import FactorsMethod, Found
from sgmcmc_lab.samplers.models.factors.model import Factors
from sgmcmc_lab.samplers.models.variational.gamma import GammaAscent, GammaState, around, draw
from sgmcmc_lab.samplers.models.variational.norm import NormAscent, NormState, log_positive
from sgmcmc_lab.samplers.models.variational.positive import softplus, trace
from sgmcmc_lab.samplers.targets.base import Array

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
"""The weights of the means over a normal distribution."""


class FactorsSGVB(FactorsMethod):
    """The common part of both: the unknowns are independent under q, so that the covariance of a row has the mean
    E[W] E[W]ᵀ + diag(Σ_k Var w_dk) + σ²I, which eq (20) takes from draws. σ² is 1/E[1/σ²].
    """

    @abstractmethod
    def moments(self, model: Factors, state: Any) -> tuple[Array, Array]:
        """Means and variances of all unknowns under q, (n_unknowns,)."""

    def found(self, model: Factors, state: Any) -> Found:
        """The means under q."""
        mean, variance = self.moments(model, state)
        w, r, _, precision = model.parts(mean)
        sizes = (w**2 + model.parts(variance).w).sum(axis=0)
        return Found(w, sizes, model.noise_of(precision), r)

    def covariance(self, model: Factors, state: Any) -> Array:
        """The mean under q."""
        mean, variance = self.moments(model, state)
        w, _, _, precision = model.parts(mean)
        return w @ w.T + np.diag(model.parts(variance).w.sum(axis=1) + model.noise_of(precision))

    def snapshot(self, model: Factors, state: Any) -> Snapshot:
        """And the ELBO."""
        return {**super().snapshot(model, state), **trace(state.elbo)}


class FactorsGamma(FactorsSGVB, GammaAscent):
    """A product of gammas, one for each unknown of gamma process factor analysis, fitted by stochastic gradients."""

    key = "factors_sgvb"
    compiled = (draw,)

    def start(self, model: Factors, rng: Generator) -> GammaState:
        """Gammas of shape 1 about random loadings that explain half of the variance."""
        return around(model.first_guess(rng))

    def moments(self, model: Factors, state: GammaState) -> tuple[Array, Array]:
        """The moments of the gammas."""
        shape, rate = softplus(state.theta)
        return shape / rate, shape / rate**2


class FactorsNorm(FactorsSGVB, NormAscent):
    """A product of normals on transformed unknowns of gamma process factor analysis, fitted in the same way."""

    key = "factors_norm_sgvb"

    def start(self, model: Factors, rng: Generator) -> NormState:
        """Normals about the random loadings that the gammas start from too."""
        return self.around(model.first_guess(rng))

    def moments(self, model: Factors, state: NormState) -> tuple[Array, Array]:
        """By twelve points of Gauss and Hermite."""
        theta = state.centre + softplus(state.raw_spread) * NODES[:, None]
        x = np.exp(log_positive(theta, state.transform))
        mean = WEIGHTS @ x
        return mean, WEIGHTS @ (x - mean) ** 2
