"""The common part of all methods for factors: what the views see, and what is followed."""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from sgmcmc_lab.samplers.models.base import Method, Snapshot
from sgmcmc_lab.samplers.models.factors.model import Factors
from sgmcmc_lab.samplers.targets.base import Array


class Found(NamedTuple):
    """The model as a method sees it."""

    loadings: Array
    """Their means, or the last draw, (D, ·)."""
    sizes: Array
    """E‖w_k‖², (·,)."""
    noise: float
    """σ²."""
    rates: Array
    """The r_k, (·,); empty where there are none."""


class FactorsMethod(Method):
    """A method for :class:`Factors`."""

    model = "factors"

    @abstractmethod
    def found(self, model: Factors, state: Any) -> Found:
        """The model's parameters in the state."""

    @abstractmethod
    def covariance(self, model: Factors, state: Any) -> Array:
        """The expected covariance of a row, (D, D)."""

    def score(self, model: Factors, state: Any) -> float:
        """The score of the expected covariance."""
        return model.score(self.covariance(model, state))

    def follow(self, model: Factors, state: Any) -> Array:
        found = self.found(model, state)
        return model.followed_of(found.sizes, found.noise)

    def snapshot(self, model: Factors, state: Any) -> Snapshot:
        """``W`` (D, ·), ``explained`` (·,): the share of the rows' variance that each factor explains, ``r`` (·,) or
        empty, ``noise`` (1,), ``covariance`` (D, D).
        """
        found = self.found(model, state)
        return {
            "W": found.loadings.copy(),
            "explained": found.sizes / model.total_variance,
            "r": found.rates.copy(),
            "noise": np.array([found.noise]),
            "covariance": self.covariance(model, state),
        }
