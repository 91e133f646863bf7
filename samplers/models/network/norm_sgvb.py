"""Stochastic gradient variational Bayes with normals on transformed unknowns, for networks (Knowles 2015)."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from sgmcmc_lab.samplers.models.base import Snapshot
from sgmcmc_lab.samplers.models.network.joint import add_probabilities, log_joint
from sgmcmc_lab.samplers.models.network.method import N_PREDICT, NetworkMethod
from sgmcmc_lab.samplers.models.network.model import Array, Network
from sgmcmc_lab.samplers.models.variational.norm import NormAscent, NormState, log_positive
from sgmcmc_lab.samplers.models.variational.positive import softplus, trace


@dataclass
class NetworkNormals(NormState):
    """q, and what the score needs."""

    predict: Generator
    """Draws for the score only, so that scoring changes nothing."""


class NormSGVB(NormAscent, NetworkMethod):
    """A product of normals on the transformed unknowns of a network, fitted by stochastic gradients of the ELBO."""

    key = "network_norm_sgvb"
    compiled = (log_joint, add_probabilities)

    def start(self, model: Network, rng: Generator) -> NetworkNormals:
        """Normals about the random weights that Gibbs and the gammas start from too."""
        return NetworkNormals(**vars(self.around(model.first_guess(rng))), predict=rng.spawn(1)[0])

    def score(self, model: Network, state: NetworkNormals) -> float:
        """AUC of the mean over draws of q."""
        n_weights = (model.data.n_nodes + 1) * model.n_communities
        centre, spread = state.centre[:n_weights], softplus(state.raw_spread[:n_weights])
        total = np.zeros(len(model.held))
        for _ in range(N_PREDICT):
            log_x = log_positive(centre + spread * state.predict.standard_normal(n_weights), state.transform)
            model.add_held_out(*model.weights(np.exp(log_x)), total)
        return model.score(total)

    def weights(self, model: Network, state: NetworkNormals) -> tuple[Array, Array]:
        """The medians of q."""
        return model.weights(np.exp(log_positive(state.centre, state.transform)))

    def snapshot(self, model: Network, state: NetworkNormals) -> Snapshot:
        """The medians of q, and the ELBO."""
        return {**super().snapshot(model, state), **trace(state.elbo)}
