"""The frequency with which two documents are in one cluster."""

from sgmcmc_lab.app.views.models.together import Together


class MixtureTogether(Together):
    """The share of the steps in which two documents were in one cluster, for some documents, by their known cluster."""

    key = "mixture_together"
    hint = "share of steps two documents are in one cluster"
    requires = "mixture"
