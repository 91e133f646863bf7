"""The frequency with which two points are in one cluster: what no exchange of clusters changes."""

from typing import Any

import numpy as np
from bokeh.models import LinearColorMapper

from sgmcmc_lab.app.views.base import Data, Frame, View
from sgmcmc_lab.app.views.models.adjacency import shades
from sgmcmc_lab.app.views.planes import LiveImage
from sgmcmc_lab.app.views.theme import even_plot


class Together(View):
    """The share of the steps in which two points were in one cluster, for some points, by their known group."""

    key = "together"
    title = "Co-clustering"
    hint = "share of steps two points are in one cluster"
    requires = "clusters"
    every = 8

    def build(self) -> Any:
        colours, model = self.scene.colours, self.scene.target
        n = len(model.shown)
        p = even_plot(colours, (0, 1), (-0.16, 1))
        mapper = LinearColorMapper(palette=shades(colours.surface, colours.lanes[0]), low=0.0, high=1.0)
        self._image = LiveImage(self, p, "together", mapper, (n, n), (0, 1), (0, 1), level="image")
        if model.groups is not None:
            # Lines between the known groups.
            for at in np.flatnonzero(np.diff(model.groups[model.shown])) + 1:
                p.segment(
                    [at / n, 0], [0, 1 - at / n], [at / n, 1], [1, 1 - at / n], line_color=colours.exact, line_width=0.7
                )
        self._label = self.caption(p)
        return p

    def compute(self, lanes: Frame) -> Data:
        # Rows of an image go upwards; a matrix is read downwards.
        return self._image.data(lanes.snapshot()["together"][:, ::-1])

    def captions(self, lanes: Frame) -> dict[str, str]:
        """How sure the chain is: pairs that are neither always nor never together."""
        share = lanes.snapshot()["together"]
        pairs = share[np.triu_indices(len(share), 1)]
        unsure = float(((pairs > 0.05) & (pairs < 0.95)).mean()) if len(pairs) else 0.0
        return {
            self._label.id: f"{len(share)} {self.scene.target.data_name}; pairs together in 5 to 95 % of the steps: {unsure:.0%}"
        }
