"""Clusters of points: Dirichlet process mixtures of Gaussians, and of von Mises–Fisher distributions on a sphere."""

from sgmcmc_lab.samplers.models.clusters.collapsed_gibbs import CollapsedGibbs
from sgmcmc_lab.samplers.models.clusters.minibatch_gibbs import MinibatchGibbs
from sgmcmc_lab.samplers.models.clusters.model import Clusters
from sgmcmc_lab.samplers.models.clusters.slice_gibbs import SliceGibbs
from sgmcmc_lab.samplers.models.clusters.sphere import SphereClusters
from sgmcmc_lab.samplers.models.clusters.sphere_collapsed import SphereCollapsed
from sgmcmc_lab.samplers.models.clusters.sphere_minibatch import SphereMinibatch
from sgmcmc_lab.samplers.models.clusters.sphere_slice import SphereSlice

CLUSTER_METHODS = (CollapsedGibbs, MinibatchGibbs, SliceGibbs, SphereCollapsed, SphereMinibatch, SphereSlice)

__all__ = ["CLUSTER_METHODS", "Clusters", "SphereClusters"]
