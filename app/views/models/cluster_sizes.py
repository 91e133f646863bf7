"""The sizes of the clusters of every method, largest first, and the sticks of the slice sampler."""

from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Data, Frame, View
from sgmcmc_lab.app.views.models.marks import method_labels
from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.app.views.theme import DASHES, plot

LOWEST, HIGHEST = -4.0, 0.0
"""The ends of the axis of log₁₀; shorter sticks lie at its lower end."""
SHOWN = 20
"""Clusters on the axis."""


class ClusterSizes(View):
    """The share of the points in each cluster; crosses are sticks, also of clusters without points."""

    key = "cluster_sizes"
    title = "Sizes and sticks"
    hint = "share of the points in each; +: the sticks w"
    requires = "clusters"
    every = 3

    def build(self) -> Any:
        colours = self.scene.colours
        p = plot(colours, "cluster, largest first", "share", (0.5, SHOWN + 0.5), (LOWEST - 0.2, HIGHEST + 0.3))
        Scale(True, (LOWEST, HIGHEST)).apply(p.yaxis)
        for i, _ in enumerate(self.scene.lanes):
            sizes, sticks = self.feed(f"method {i}", "x", "y"), self.feed(f"sticks of method {i}", "x", "y")
            p.line("x", "y", source=sizes, line_color=colours.lanes[i], line_width=2, line_dash=DASHES[i])
            p.scatter("x", "y", source=sizes, color=colours.lanes[i], size=6)
            p.scatter("x", "y", source=sticks, color=colours.lanes[i], size=8, marker="cross")
        self._labels = method_labels(self, p)
        return p

    def compute(self, lanes: Frame) -> Data:
        out: Data = {}
        for i in range(len(lanes)):
            seen = lanes.snapshot(i)
            sizes = seen["sizes"][:SHOWN] / self.scene.target.n_data
            sticks = np.sort(seen.get("sticks", np.zeros(0)))[::-1][:SHOWN]
            for name, values in ((f"method {i}", sizes), (f"sticks of method {i}", sticks)):
                logs = np.log10(np.maximum(values, 1e-300))
                out[name] = (np.arange(1.0, len(values) + 1), np.clip(logs, LOWEST, HIGHEST))
        return out

    def captions(self, lanes: Frame) -> dict[str, str]:
        """How many clusters each method has, and its concentration."""
        out = {}
        for i, label in enumerate(self._labels):
            seen = lanes.snapshot(i)
            out[label.id] = f"{self.scene.lanes[i]}  K = {len(seen['sizes'])}, α = {seen['alpha'][0]:.2g}"
        return out
