"""The common part of all methods for networks: what the views see, and what is followed."""

from abc import abstractmethod
from typing import Any

from sgmcmc_lab.samplers.models.base import Method, Snapshot
from sgmcmc_lab.samplers.models.network.model import Array, Network

N_PREDICT = 100
"""Draws of q that a prediction is the mean of, as in Knowles 2015."""


class NetworkMethod(Method):
    """A method for :class:`Network`."""

    model = "network"

    @abstractmethod
    def weights(self, model: Network, state: Any) -> tuple[Array, Array]:
        """W (nodes, communities) and r (communities,) of the state."""

    def snapshot(self, model: Network, state: Any) -> Snapshot:
        return model.picture(*self.weights(model, state))

    def follow(self, model: Network, state: Any) -> Array:
        return model.followed_of(*self.weights(model, state))
