"""The sizes of the clusters on a sphere of every method, and their sticks."""

from sgmcmc_lab.app.views.models.cluster_sizes import ClusterSizes


class SphereSizes(ClusterSizes):
    """The share of the points in each cluster; crosses are sticks, also of clusters without points."""

    key = "sphere_sizes"
    requires = "sphere_clusters"
