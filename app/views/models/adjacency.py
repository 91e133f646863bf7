"""The observed graph beside the model's probabilities, in the order of the communities."""

from typing import Any

import numpy as np
from bokeh.models import Label, LinearColorMapper
from numpy.typing import NDArray

from sgmcmc_lab.app.views.base import Array, Data, Frame, View
from sgmcmc_lab.app.views.planes import LiveImage
from sgmcmc_lab.app.views.theme import even_plot
from sgmcmc_lab.samplers.models.agreement import Labels

GAP = 1.06
"""The start of the second square; the first is of side 1."""
HELD = -1.0
"""The value of a held-out pair in the first square: below all shades."""


def shades(low: str, high: str, n: int = 64) -> list[str]:
    """Colours from the one to the other."""
    ends = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (low, high)]
    return [
        "#" + "".join(f"{round(a + (b - a) * k / (n - 1)):02x}" for a, b in zip(*ends, strict=True)) for k in range(n)
    ]


class Adjacency(View):
    """The observed edges, and the probability of every edge; nodes of one community stand together."""

    key = "adjacency"
    title = "Edge probabilities"
    hint = "nodes by community; grey: held out"
    requires = "network"
    every = 8

    def build(self) -> Any:
        colours, model = self.scene.colours, self.scene.target
        n = len(model.shown)
        self.hint = Adjacency.hint + sampled(model)
        p = even_plot(colours, (0, 1 + GAP), (0, 1.12))
        self._observed = observed_matrix(model)
        mapper = LinearColorMapper(
            palette=shades(colours.surface, colours.lanes[0]), low=0.0, high=1.0, low_color=colours.grid
        )
        self._left = LiveImage(self, p, "observed", mapper, (n, n), (0, 1), (0, 1), level="image")
        self._right = LiveImage(self, p, "probability", mapper, (n, n), (GAP, GAP + 1), (0, 1), level="image")
        for x, text in ((0, "observed"), (GAP, "probability of an edge")):
            p.add_layout(Label(x=x, y=1.02, text=text, text_font_size="12px", text_color=colours.faint))
            p.quad(x, x + 1, 1, 0, fill_color=None, line_color=colours.grid)
        return p

    def compute(self, lanes: Frame) -> Data:
        seen = lanes.snapshot()
        order = in_order(seen["community"][self.scene.target.shown])
        # Rows of an image go upwards; a matrix is read downwards.
        return {
            **self._left.data(self._observed[np.ix_(order, order[::-1])]),
            **self._right.data(seen["P"][np.ix_(order, order[::-1])]),
        }

    def words(self, lanes: Frame) -> str:
        """How probable edges are within communities, and between them."""
        seen = lanes.snapshot()
        community = seen["community"][self.scene.target.shown]
        within = (community[:, None] == community) & ~np.eye(len(community), dtype=bool)
        inside, outside = (
            seen["P"][mask].mean() if mask.any() else 0.0 for mask in (within, community[:, None] != community)
        )
        return f"mean probability of an edge: {inside:.2g} within communities, {outside:.2g} between them"


def in_order(community: Labels) -> NDArray[np.intp]:
    """The nodes, largest community first."""
    sizes = np.bincount(community)
    return np.lexsort((np.arange(len(community)), community, -sizes[community]))


def observed_matrix(model: Any) -> Array:
    """1 for an observed edge, 0 for an observed pair without one, HELD for a held-out pair; of the shown nodes."""
    row = np.full(model.data.n_nodes, -1)
    row[model.shown] = np.arange(len(model.shown))
    matrix = np.zeros((len(model.shown), len(model.shown)))
    for pairs, value in ((model.edges, 1.0), (model.held, HELD)):
        ends = row[pairs]
        i, j = ends[(ends >= 0).all(axis=1)].T
        matrix[i, j] = matrix[j, i] = value
    return matrix


def sampled(model: Any) -> str:
    """The part of a large graph that a view leaves out, as the end of its hint."""
    shown, all_ = len(model.shown), model.data.n_nodes
    return f"; {shown:,} of {all_:,} nodes are drawn, at random" if shown < all_ else ""
