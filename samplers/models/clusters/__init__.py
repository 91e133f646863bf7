"""Clusters of points: a Dirichlet process mixture of Gaussians."""

from sgmcmc_lab.samplers.models.clusters.collapsed_gibbs import CollapsedGibbs
from sgmcmc_lab.samplers.models.clusters.minibatch_gibbs import MinibatchGibbs
from sgmcmc_lab.samplers.models.clusters.model import Clusters
from sgmcmc_lab.samplers.models.clusters.slice_gibbs import SliceGibbs

CLUSTER_METHODS = (CollapsedGibbs, MinibatchGibbs, SliceGibbs)

__all__ = ["CLUSTER_METHODS", "Clusters"]
