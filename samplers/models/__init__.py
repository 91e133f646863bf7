"""The models of real data and their methods; each is registered by one line."""

from samplers.models.base import Method, Model, Snapshot
from samplers.models.clusters import CLUSTER_METHODS, Clusters
from samplers.models.factors import FACTOR_METHODS, Factors
from samplers.models.mixture import MIXTURE_METHODS, Mixture
from samplers.models.network.gamma_sgvb import GammaSGVB
from samplers.models.network.gibbs import NetworkGibbs
from samplers.models.network.hmc import NetworkHMC
from samplers.models.network.irm import NetworkIRM
from samplers.models.network.map import NetworkMAP
from samplers.models.network.model import Network
from samplers.models.network.norm_sgvb import NormSGVB
from samplers.models.sparse import SPARSE_METHODS, Sparse
from samplers.models.spherical import SPHERICAL_METHODS, Spherical
from samplers.models.topics import TOPIC_METHODS, Topics
from samplers.registry import Registry

MODELS: Registry[type[Model]] = Registry(
    "model",
    Topics,
    Network,
    Clusters,
    Mixture,
    Sparse,
    Factors,
    Spherical,
)
METHODS: Registry[type[Method]] = Registry(
    "method",
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
)

__all__ = ["METHODS", "MODELS", "Method", "Model", "Snapshot"]
