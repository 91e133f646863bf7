"""Clusters of documents: a Dirichlet process mixture of categorical distributions."""

from samplers.models.mixture.gibbs import MixtureGibbs
from samplers.models.mixture.model import Mixture
from samplers.models.mixture.scir import MixtureSCIR
from samplers.models.mixture.sgrld import MixtureSGRLD

MIXTURE_METHODS = (MixtureGibbs, MixtureSCIR, MixtureSGRLD)

__all__ = ["MIXTURE_METHODS", "Mixture"]
