"""The weights of the nodes in each community, on a log axis."""

from typing import Any

import numpy as np
from bokeh.models import FixedTicker

from sgmcmc_lab.app.views.base import MAX_NAMED, Data, Frame, View
from sgmcmc_lab.app.views.models.marks import group_colour
from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.app.views.theme import plot

LOWEST, HIGHEST = -12.0, 2.0
"""The ends of the axis of log₁₀; smaller weights lie at its lower end."""
MAX_POINTS = 3000


class Weights(View):
    """Each point is a node's weight in a community; communities from the strongest to the weakest."""

    key = "weights"
    title = "Weights w"
    hint = "a point: a node's weight; the lowest: all smaller ones"
    requires = "network"
    every = 4

    def build(self) -> Any:
        model = self.scene.target
        k = model.n_communities
        p = plot(
            self.scene.colours,
            "community, strongest first",
            "√r · w, log scale",
            (0.4, k + 0.6),
            (LOWEST - 0.4, HIGHEST),
        )
        Scale(True, (LOWEST, HIGHEST)).apply(p.yaxis)
        p.yaxis.ticker = FixedTicker(ticks=[-12, -9, -6, -3, 0])
        p.xaxis.ticker = FixedTicker(ticks=list(range(1, k + 1, max(1, -(-k // 10)))))
        points = self.feed("points", "x", "y", "community")
        p.scatter(
            "x", "y", source=points, size=5, fill_color=group_colour("community"), fill_alpha=0.55, line_color=None
        )
        self._nodes = np.arange(model.data.n_nodes)[:: -(-model.data.n_nodes * k // MAX_POINTS)]
        # Points of one community lie beside each other.
        self._beside = 0.7 * (np.random.default_rng(1).random(len(self._nodes)) - 0.5)
        return p

    def compute(self, lanes: Frame) -> Data:
        seen = lanes.snapshot()
        order = np.argsort(-seen["explained"], kind="stable")
        weights = seen["W"][self._nodes][:, order] * np.sqrt(seen["r"][order])
        places = np.clip(np.log10(np.maximum(weights, 1e-300)), LOWEST, HIGHEST)
        x = np.arange(1, len(order) + 1) + self._beside[:, None]
        return {"points": (x.ravel(), places.ravel(), np.broadcast_to(order, weights.shape).ravel().astype(float))}

    def words(self, lanes: Frame) -> str:
        """The communities that explain most edges."""
        edges = lanes.snapshot()["explained"]
        order = np.argsort(-edges, kind="stable")[:MAX_NAMED]
        return "edges that communities explain: " + ", ".join(f"{k + 1}: {edges[k]:.3g}" for k in order)
