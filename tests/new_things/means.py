"""The running mean of each lane."""

import numpy as np

from sgmcmc_lab.app.views.base import View
from sgmcmc_lab.app.views.theme import plot


class Means(View):
    """The mean of a coordinate over all draws so far, a mark a lane."""

    key = "means"
    title = "Means"
    hint = "of all draws so far; dashed: the exact mean"

    def build(self):
        scene, column = self.scene, self.scene.column
        p = plot(scene.colours, "lane", f"mean of {column.name}", (-0.5, len(scene.lanes) - 0.5), column.axis)
        p.hspan(y=[column.mean], line_color=scene.colours.exact, line_dash="dashed")
        for i, _ in enumerate(scene.lanes):
            p.scatter(
                "lane", "mean", source=self.feed(f"mean {i}", "lane", "mean"), size=8, color=scene.colours.lanes[i]
            )
        self.label = self.caption(p)
        return p

    def compute(self, lanes):
        begun = [(i, lane.run.statistics) for i, lane in enumerate(lanes) if lane.run.statistics.n_draws]
        return {f"mean {i}": (np.array([i]), np.array([now.mean(self.scene.coordinate)])) for i, now in begun}

    def captions(self, lanes):
        return {self.label.id: self.means(lanes, [self.scene.coordinate]).replace("; ", "\n")}
