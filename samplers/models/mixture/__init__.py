"""Clusters of documents: a Dirichlet process mixture of categorical distributions."""

from sgmcmc_lab.samplers.models.mixture.gibbs import MixtureGibbs
from sgmcmc_lab.samplers.models.mixture.model import Mixture
from sgmcmc_lab.samplers.models.mixture.scir import MixtureSCIR
from sgmcmc_lab.samplers.models.mixture.sgrld import MixtureSGRLD

MIXTURE_METHODS = (MixtureGibbs, MixtureSCIR, MixtureSGRLD)

__all__ = ["MIXTURE_METHODS", "Mixture"]
