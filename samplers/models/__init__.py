"""The models of real data and their methods; each is registered by one line."""

from sgmcmc_lab.samplers.models.base import Method, Model, Snapshot
from sgmcmc_lab.samplers.models.clusters import CLUSTER_METHODS, Clusters, SphereClusters
from sgmcmc_lab.samplers.models.factors import FACTOR_METHODS, Factors
from sgmcmc_lab.samplers.models.mixture import MIXTURE_METHODS, Mixture
from sgmcmc_lab.samplers.models.network.gamma_sgvb import GammaSGVB
from sgmcmc_lab.samplers.models.network.gibbs import NetworkGibbs
from sgmcmc_lab.samplers.models.network.hmc import NetworkHMC
from sgmcmc_lab.samplers.models.network.irm import NetworkIRM
from sgmcmc_lab.samplers.models.network.map import NetworkMAP
from sgmcmc_lab.samplers.models.network.model import Network
from sgmcmc_lab.samplers.models.network.norm_sgvb import NormSGVB
from sgmcmc_lab.samplers.models.sparse import SPARSE_METHODS, Sparse
from sgmcmc_lab.samplers.models.spherical import SPHERICAL_METHODS, Spherical
from sgmcmc_lab.samplers.models.topics import TOPIC_METHODS, Topics
from sgmcmc_lab.samplers.registry import METHODS, MODELS

for _model in (Topics, Network, Clusters, SphereClusters, Mixture, Sparse, Factors, Spherical):
    MODELS.add(_model)
for _method in (
    *TOPIC_METHODS,
    NetworkGibbs,
    GammaSGVB,
    NormSGVB,
    NetworkMAP,
    NetworkHMC,
    NetworkIRM,
    *CLUSTER_METHODS,
    *MIXTURE_METHODS,
    *SPARSE_METHODS,
    *FACTOR_METHODS,
    *SPHERICAL_METHODS,
):
    METHODS.add(_method)

__all__ = ["METHODS", "MODELS", "Method", "Model", "Snapshot"]
