"""Points on a globe, coloured by their cluster, and the clusters' mean directions."""

from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Array, Data, Frame
from sgmcmc_lab.app.views.globe import BEHIND, FRONT, Globe, Layer, columns
from sgmcmc_lab.app.views.models.marks import PALETTE, ModelGlobe, agreement, largest_clusters, on_globe

MAX_POINTS = 2000
"""In the picture; of more, some at random."""
COLOURED = 10
"""The largest clusters, each in a colour of its own; the points of the others are grey."""
LETTERS = "abcdefghij"
"""The ends of the clusters' feed names: a number would mean a method."""


class SpherePoints(ModelGlobe, Globe):
    """Each point in the colour of its cluster in the last step; rings are the clusters' mean directions, and crosses
    those of the known groups. In more than three dimensions: the three main directions, scaled to length 1.
    """

    key = "sphere_points"
    title = "Clusters on the globe"
    hint = "colour: cluster; ring: its mean; cross: a known group's"
    requires = "sphere_clusters"
    above = 2
    spot_concentration = 60.0

    @property
    def axis_names(self) -> tuple[str, str, str]:  # type: ignore[override]
        """The columns of the data, or the numbers of their main directions."""
        model = self.scene.target
        return tuple(model.data.names) if model.dim == 3 else ("first", "second", "third")

    def spots(self) -> Array:
        """The points of the picture."""
        return self._shown

    def build(self) -> Any:
        model = self.scene.target
        self._some = np.random.default_rng(1).permutation(model.n_data)[:MAX_POINTS]
        self._shown = on_globe(model.x[self._some] @ model.axes.T)
        groups = model.groups
        means = [model.x[groups == k].mean(axis=0) for k in np.unique(groups)] if groups is not None else []
        self._truth = on_globe(np.reshape(means, (-1, model.dim)) @ model.axes.T)
        return super().build()

    def layers(self, p: Any, i: int) -> list[Layer]:
        """Pictures of a model show one method: the points of each cluster, the rest, and the mean directions."""
        if i:
            return []
        colours, solid = self.scene.colours, (FRONT, BEHIND)
        found = [
            (f"cluster {LETTERS[k]}", solid, self.dots(p, 5, line_color=None, fill_color=PALETTE[k]))
            for k in range(COLOURED)
        ]
        ring = {"fill_color": None, "line_color": colours.text, "line_width": 2}
        cross = {"marker": "x", "line_color": colours.exact, "line_width": 2}
        return [
            ("others", solid, self.dots(p, 5, line_color=None, fill_color=colours.faint)),
            *found,
            ("means", (1.0, 0.2), self.dots(p, 14, **ring)),
            ("truth", (1.0, 0.2), self.dots(p, 10, **cross)),
        ]

    def compute(self, lanes: Frame) -> Data:
        seen = lanes.snapshot()
        z = seen["z"][self._some]
        out: Data = {f"cluster {LETTERS[k]}": columns(self._shown[z == k]) for k in range(COLOURED)}
        means = on_globe(seen["directions"] @ self.scene.target.axes.T)
        return out | {
            "others": columns(self._shown[z >= COLOURED]),
            "means": columns(means),
            "truth": columns(self._truth),
        }

    def captions(self, lanes: Frame) -> dict[str, str]:
        """How many clusters there are, the concentration, and how well they agree with known groups."""
        seen = lanes.snapshot()
        text = f"clusters: {len(seen['sizes'])}, α = {seen['alpha'][0]:.2g}"
        return {self._label.id: text + agreement(seen["z"], self.scene.target.groups)}

    def words(self, lanes: Frame) -> str:
        """How many clusters there are, and the sizes of the largest."""
        return largest_clusters(lanes.snapshot()["sizes"])
