"""The frequency with which two points of a sphere are in one cluster."""

from sgmcmc_lab.app.views.models.together import Together


class SphereTogether(Together):
    """The share of the steps in which two points were in one cluster, for some points, by their known group."""

    key = "sphere_together"
    requires = "sphere_clusters"
