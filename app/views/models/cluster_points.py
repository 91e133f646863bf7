"""The points, coloured by their cluster, with an ellipse for each cluster."""

from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Array, Data, Frame, View
from sgmcmc_lab.app.views.models.marks import agreement, group_colour, largest_clusters
from sgmcmc_lab.app.views.theme import plot

MAX_POINTS = 2000
"""In the picture; of more, some at random."""
MAX_ELLIPSES = 100
CORNERS = 40
"""The corners of an ellipse. Bokeh's own is turned on the screen, where the axes may have different scales."""
RADIUS = np.sqrt(-2 * np.log(1 - 0.9))
"""In standard deviations: the ellipse of a Gaussian that holds 90 % of its mass."""


class ClusterPoints(View):
    """Each point in the colour of its cluster in the last step; an ellipse holds 90 % of what its cluster expects."""

    key = "cluster_points"
    title = "Points and clusters"
    hint = "colour: cluster; ellipse: 90 % of its mass"
    requires = "clusters"
    tall = True

    def build(self) -> Any:
        colours, model = self.scene.colours, self.scene.target
        self._some = np.random.default_rng(1).permutation(model.n_data)[:MAX_POINTS]
        shown = model.x[self._some]
        low, high = model.x.min(axis=0), model.x.max(axis=0)
        room = 0.12 * (high - low)
        ends = [(float(a), float(b)) for a, b in zip(low - room, high + room, strict=True)]
        p = plot(colours, model.names[0], model.names[1], *ends)
        p.xaxis.axis_label, p.yaxis.axis_label = (f"{name}, standardised" for name in model.names)
        points = self.feed("points", "x", "y", "cluster")
        points.data = {"x": shown[:, 0], "y": shown[:, 1], "cluster": np.zeros(len(shown))}
        self._x, self._y = shown.T
        size = 7 if len(shown) <= 300 else 4
        p.scatter(
            "x", "y", source=points, size=size, fill_color=group_colour("cluster"), fill_alpha=0.75, line_color=None
        )
        outlines = self.feed("ellipses", "x0", "y0", "x1", "y1")
        p.segment("x0", "y0", "x1", "y1", source=outlines, line_color=colours.exact, line_width=1.5, line_cap="round")
        # A caption is written once a second, and the number changes with each frame: it is drawn with the ellipses.
        number = self.feed("number", "x", "y", "clusters")
        (_, right), (_, top) = ends
        near, look = (
            right - 0.6 * room[0],
            {"text_font_size": "13px", "text_color": colours.text, "text_baseline": "top"},
        )
        p.text([near], [top], text=["clusters: "], text_align="right", **look)
        p.text("x", "y", "clusters", source=number, **look)
        self._near = np.array([near]), np.array([top])
        self._label = self.caption_above(p, 2 if model.groups is not None else 1)
        return p

    def compute(self, lanes: Frame) -> Data:
        seen = lanes.snapshot()
        return {
            "points": (self._x, self._y, seen["z"][self._some].astype(float)),
            "number": (*self._near, np.array([float(len(seen["sizes"]))])),
            "ellipses": ellipses(seen["means"][:MAX_ELLIPSES], seen["covariances"][:MAX_ELLIPSES]),
        }

    def captions(self, lanes: Frame) -> dict[str, str]:
        """The concentration, and how well the clusters agree with known groups."""
        seen = lanes.snapshot()
        return {self._label.id: f"α = {seen['alpha'][0]:.2g}" + agreement(seen["z"], self.scene.target.groups)}

    def words(self, lanes: Frame) -> str:
        """How many clusters there are, and the sizes of the largest."""
        return largest_clusters(lanes.snapshot()["sizes"])


def ellipses(means: Array, covariances: Array) -> tuple[Array, ...]:
    """x₀, y₀, x₁, y₁ of the lines that all ellipses are drawn by."""
    angles = np.linspace(0, 2 * np.pi, CORNERS + 1)
    circle = RADIUS * np.array([np.cos(angles), np.sin(angles)])
    x, y = (means[:, :, None] + np.linalg.cholesky(covariances) @ circle).transpose(1, 0, 2)
    return x[:, :-1].ravel(), y[:, :-1].ravel(), x[:, 1:].ravel(), y[:, 1:].ravel()
