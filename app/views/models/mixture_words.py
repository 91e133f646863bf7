"""The clusters of documents as their top words."""

import numpy as np

from sgmcmc_lab.app.views.base import MAX_NAMED, Data, Frame
from sgmcmc_lab.app.views.models.words import TopWords


class MixtureWords(TopWords):
    """The largest clusters; each word's bar is its probability in the cluster."""

    key = "mixture_words"
    title = "Clusters and their words"
    hint = "with their shares; a bar: the word's probability"
    requires = "mixture"
    group, shares = "cluster", "shares"

    def n_groups(self) -> int:
        return self.scene.target.n_slots

    def compute(self, lanes: Frame) -> Data:
        data, shares = super().compute(lanes), lanes.snapshot()["shares"]
        # A slot without documents has no words.
        return {
            name: tuple(column[shares[columns[at].astype(int)] > 0] for column in columns)
            for (name, columns), at in zip(data.items(), (4, 2), strict=True)
        }

    def words(self, lanes: Frame) -> str:
        """The clusters on the screen: their shares, and their first words."""
        seen, names = lanes.snapshot(), self.scene.target.vocabulary
        order = np.argsort(-seen["shares"], kind="stable")[: min(MAX_NAMED, len(seen["sizes"]))]
        return "; ".join(
            f"cluster {k + 1}, {seen['shares'][k]:.1%}: {', '.join(names[int(w)] for w in seen['top_words'][k][:5])}"
            for k in order
        )
