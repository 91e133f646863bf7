"""Stochastic gradient variational Bayes with gamma approximating distributions, for networks (Knowles 2015)."""

from dataclasses import dataclass
from math import expm1

import numpy as np
from numba import types
from numpy.random import Generator

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.base import Snapshot
from sgmcmc_lab.samplers.models.network.joint import log_joint, pair_rate
from sgmcmc_lab.samplers.models.network.method import N_PREDICT, NetworkMethod
from sgmcmc_lab.samplers.models.network.model import Array, Network
from sgmcmc_lab.samplers.models.variational.gamma import GammaAscent, GammaState, around, draw
from sgmcmc_lab.samplers.models.variational.positive import softplus, trace


@jit.loop(types.void(jit.rng_type, jit.matrix, jit.matrix, jit.vector, jit.vector, jit.integer_matrix, jit.vector))
def predict(rng, w_shape, w_rate, r_shape, r_rate, pairs, out):
    """Add to ``out`` the probabilities of an edge of each pair under one draw of q."""
    w, r = np.empty_like(w_shape), np.empty_like(r_shape)
    for i in range(w.shape[0]):
        for k in range(w.shape[1]):
            w[i, k] = rng.standard_gamma(w_shape[i, k]) / w_rate[i, k]
    for k in range(r.size):
        r[k] = rng.standard_gamma(r_shape[k]) / r_rate[k]
    for e in range(pairs.shape[0]):
        i, j = pairs[e]
        out[e] -= expm1(-pair_rate(w, r, i, j))


@dataclass
class NetworkGammas(GammaState):
    """q, and what the score needs."""

    predict: Generator
    """Draws for the score only, so that scoring changes nothing."""


class GammaSGVB(GammaAscent, NetworkMethod):
    """A product of gammas, one for each unknown of a network, fitted by stochastic gradients of the ELBO.

    The score predicts by the mean over 100 draws of the present q.
    """

    key = "network_sgvb"
    compiled = (draw, predict, log_joint)

    def start(self, model: Network, rng: Generator) -> NetworkGammas:
        """Gammas of shape 1 about random weights that give the graph's density."""
        return NetworkGammas(**vars(around(model.first_guess(rng))), predict=rng.spawn(1)[0])

    def score(self, model: Network, state: NetworkGammas) -> float:
        """AUC of the mean over draws of q."""
        shape, rate = softplus(state.theta)
        (w_shape, r_shape), (w_rate, r_rate) = model.weights(shape), model.weights(rate)
        total = np.zeros(len(model.held))
        for _ in range(N_PREDICT):
            predict(state.predict, w_shape, w_rate, r_shape, r_rate, model.held, total)
        return model.score(total)

    def weights(self, model: Network, state: NetworkGammas) -> tuple[Array, Array]:
        """The means of q."""
        shape, rate = softplus(state.theta)
        return model.weights(shape / rate)

    def snapshot(self, model: Network, state: NetworkGammas) -> Snapshot:
        """The means of q, and the ELBO."""
        return {**super().snapshot(model, state), **trace(state.elbo)}
