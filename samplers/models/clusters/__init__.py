"""Clusters of points: a Dirichlet process mixture of Gaussians."""

from samplers.models.clusters.collapsed_gibbs import CollapsedGibbs
from samplers.models.clusters.minibatch_gibbs import MinibatchGibbs
from samplers.models.clusters.model import Clusters
from samplers.models.clusters.slice_gibbs import SliceGibbs

CLUSTER_METHODS = (CollapsedGibbs, MinibatchGibbs, SliceGibbs)

__all__ = ["CLUSTER_METHODS", "Clusters"]
