"""The sizes of the clusters of documents of every method, and their sticks."""

from sgmcmc_lab.app.views.base import Frame
from sgmcmc_lab.app.views.models.cluster_sizes import ClusterSizes
from sgmcmc_lab.samplers.models.agreement import adjusted_rand


class MixtureSizes(ClusterSizes):
    """The share of the documents in each cluster; crosses are sticks, also of clusters without documents."""

    key = "mixture_sizes"
    hint = "share of the documents in each; +: the sticks w"
    requires = "mixture"

    def captions(self, lanes: Frame) -> dict[str, str]:
        """How many clusters each method has, its concentration, and how well they agree with known ones."""
        out, known = super().captions(lanes), self.scene.target.groups
        if known is not None:
            for i, label in enumerate(self._labels):
                out[label.id] += f", adjusted Rand {round(adjusted_rand(lanes.snapshot(i)['z'], known), 2) + 0.0:.2f}"
        return out
