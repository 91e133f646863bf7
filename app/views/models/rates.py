"""The r_k of every method: how the prior turns off communities that are not needed."""

from typing import Any

import numpy as np
from bokeh.models import FixedTicker

from sgmcmc_lab.app.views.base import Data, Frame, View
from sgmcmc_lab.app.views.models.marks import method_labels
from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.app.views.theme import DASHES, plot

LOWEST, HIGHEST = -12.0, 4.0
"""The ends of the axis of log₁₀; what is beyond lies there."""
USED = 0.5
"""A community that explains at least so many edges is in use."""


class Rates(View):
    """The edges that each community explains, largest first, for every method."""

    key = "rates"
    title = "Communities in use"
    hint = "edges that each explains, r Σ w w"
    requires = "network"
    every = 3

    def build(self) -> Any:
        colours, k = self.scene.colours, self.scene.target.n_communities
        p = plot(
            colours, "community, strongest first", "edges, log scale", (0.5, k + 0.5), (LOWEST - 0.4, HIGHEST + 0.4)
        )
        Scale(True, (LOWEST, HIGHEST)).apply(p.yaxis)
        p.yaxis.ticker = FixedTicker(ticks=[-12, -8, -4, 0, 4])
        p.xaxis.ticker = FixedTicker(ticks=list(range(1, k + 1, max(1, -(-k // 10)))))
        for i, _ in enumerate(self.scene.lanes):
            source = self.feed(f"method {i}", "x", "y")
            p.line("x", "y", source=source, line_color=colours.lanes[i], line_width=2, line_dash=DASHES[i])
            p.scatter("x", "y", source=source, color=colours.lanes[i], size=6)
        self._labels = method_labels(self, p)
        return p

    def compute(self, lanes: Frame) -> Data:
        out: Data = {}
        for i in range(len(lanes)):
            explained = np.sort(lanes.snapshot(i)["explained"])[::-1]
            out[f"method {i}"] = (
                np.arange(1.0, len(explained) + 1),
                np.clip(np.log10(np.maximum(explained, 1e-300)), LOWEST, HIGHEST),
            )
        return out

    def captions(self, lanes: Frame) -> dict[str, str]:
        """How many communities each method uses; the prior shrinks the others."""
        k = self.scene.target.n_communities
        out = {}
        for i, label in enumerate(self._labels):
            used = int((lanes.snapshot(i)["explained"] >= USED).sum())
            out[label.id] = f"{self.scene.lanes[i]}  {used} of {k} in use"
        return out
