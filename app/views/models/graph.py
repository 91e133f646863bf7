"""The graph: nodes by community, edges by the probability that the model gives them."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sgmcmc_lab.app.views.base import Array, Data, Feed, Frame, View
from sgmcmc_lab.app.views.models.adjacency import sampled
from sgmcmc_lab.app.views.models.marks import group_colour, shortened
from sgmcmc_lab.app.views.theme import plot
from sgmcmc_lab.samplers.models import Model
from sgmcmc_lab.samplers.models.agreement import Labels, table

NAMED = 40
"""The names of so many nodes have room in the picture; of more, they show when the pointer is on a node."""

_LAYOUTS: "WeakKeyDictionary[Model, Array]" = WeakKeyDictionary()


def layout(model: Any) -> Array:
    """Where the shown nodes lie, (nodes, 2), in the unit square. The observed edges pull, all nodes push."""
    if model not in _LAYOUTS:
        import networkx as nx

        shown = [int(i) for i in model.shown]
        graph = nx.Graph()
        graph.add_nodes_from(shown)
        graph.add_edges_from((int(i), int(j)) for i, j in observed(model))
        # Twice the usual distance between nodes without edges would still leave pairs on top of each other.
        places = nx.spring_layout(graph, seed=1, iterations=100, k=2.2 / np.sqrt(len(shown)))
        found = np.array([places[i] for i in shown])
        low, high = found.min(axis=0), found.max(axis=0)
        _LAYOUTS[model] = (found - low) / np.maximum(high - low, 1e-9)
    return _LAYOUTS[model]


def observed(model: Any) -> Array:
    """The observed edges between shown nodes, (edges, 2)."""
    return model.edges[np.isin(model.edges, model.shown).all(axis=1)]


def held_edges(model: Any) -> Array:
    """The held-out pairs between shown nodes that are edges, (edges, 2)."""
    pairs = model.held[model.truth]
    return pairs[np.isin(pairs, model.shown).all(axis=1)]


def matched(found: Labels, known: Labels, n_communities: int) -> NDArray[np.intp]:
    """The community that each known group is most like, (groups,), each at most once; others get numbers beyond."""
    shared = table(known, found, n_communities)
    out = n_communities + np.arange(len(shared))
    groups, communities = linear_sum_assignment(-shared)
    alike = shared[groups, communities] > 0
    out[groups[alike]] = communities[alike]
    return out


def agreement(found: Labels, known: Labels) -> float:
    """The normalised mutual information of two partitions: 1 where they are the same, 0 where they are independent."""
    share = table(found, known) / len(found)

    def entropy(p: Array) -> float:
        p = p[p > 0]
        return float(-(p * np.log(p)).sum())

    a, b = entropy(share.sum(axis=1)), entropy(share.sum(axis=0))
    return 2 * (a + b - entropy(share.ravel())) / (a + b) if a + b > 0 else 1.0


class GraphView(View):
    """Nodes coloured by the community through which they have most edges."""

    key = "graph"
    title = "Network"
    hint = "colour: community; strong lines: likely edges; dashed: held out"
    requires = "network"
    tall = True

    @classmethod
    def prepare(cls, model: Model) -> None:
        layout(model)

    def build(self) -> Any:
        colours, model = self.scene.colours, self.scene.target
        places = layout(model)
        n = len(places)
        room = 0.12 if n <= NAMED else 0.06
        p = plot(colours, "", "", (-room, 1 + room), (-0.06, 1.06))
        p.axis.visible = p.grid.visible = False
        p.min_border_left = p.min_border_right = p.min_border_bottom = 4
        row = np.full(model.data.n_nodes, -1)
        row[model.shown] = np.arange(n)
        self._ends = {}
        for name, pairs, dash in (("edges", observed(model), "solid"), ("held", held_edges(model), "dashed")):
            ends = row[pairs]
            self._ends[name] = ends
            start, end = places[ends[:, 0]], places[ends[:, 1]]
            source = ColumnDataSource(
                {
                    "x0": start[:, 0],
                    "y0": start[:, 1],
                    "x1": end[:, 0],
                    "y1": end[:, 1],
                    "alpha": np.full(len(ends), 0.2),
                    "width": np.ones(len(ends)),
                }
            )
            self.feeds[name] = Feed(source, ("alpha", "width"))
            p.segment(
                "x0",
                "y0",
                "x1",
                "y1",
                source=source,
                line_color=colours.exact,
                line_alpha="alpha",
                line_width="width",
                line_dash=dash,
            )
        self._groups = None if model.data.groups is None else model.data.groups[model.shown]
        names = [model.data.names[i] for i in model.shown]
        nodes = ColumnDataSource(
            {
                "x": places[:, 0],
                "y": places[:, 1],
                "community": np.zeros(n),
                "name": names,
                "short": [shortened(name, 14) for name in names],
            }
        )
        self.feeds["nodes"] = Feed(nodes, ("community",))
        size = 15 if n <= 100 else 9 if n <= 250 else 6
        if self._groups is not None:
            self.hint = "colour: community; ring: known group; dashed: held out"
            nodes.data["group"] = [f"{g + 1}" for g in self._groups]
            nodes.data["known"] = np.zeros(n)
            self.feeds["nodes"] = Feed(nodes, ("community", "known"))
            p.scatter("x", "y", source=nodes, size=1.6 * size, fill_color=group_colour("known"), line_color=None)
        made = p.scatter(
            "x",
            "y",
            source=nodes,
            size=size,
            fill_color=group_colour("community"),
            line_color=colours.surface,
            line_width=1.5,
        )
        p.add_tools(
            HoverTool(
                renderers=[made],
                tooltips="@name" + (" · known group @group" if self._groups is not None else ""),
            )
        )
        if n <= NAMED:
            p.text(
                "x",
                "y",
                text="short",
                source=nodes,
                y_offset=-9 if self._groups is None else -13,
                text_align="center",
                text_font_size="11px",
                text_color=colours.text,
                text_baseline="bottom",
            )
        self.hint += sampled(model)
        self._label = self.caption_above(p, 1 if self._groups is None else 2)
        return p

    def compute(self, lanes: Frame) -> Data:
        seen = lanes.snapshot()
        community = seen["community"][self.scene.target.shown]
        out: Data = {"nodes": (community.astype(float),)}
        if self._groups is not None:
            known = matched(community, self._groups, self.scene.target.n_communities)[self._groups]
            out["nodes"] = (community.astype(float), known.astype(float))
        for name, ends in self._ends.items():
            probability = seen["P"][ends[:, 0], ends[:, 1]]
            out[name] = (0.08 + 0.72 * probability, 0.6 + 2.2 * probability)
        return out

    def captions(self, lanes: Frame) -> dict[str, str]:
        """How many communities are in use, and how well they agree with known groups."""
        community = lanes.snapshot()["community"]
        text = f"communities with nodes: {len(np.unique(community))}"
        groups = self.scene.target.data.groups
        if groups is not None:
            text += f"\nagreement with the {groups.max() + 1} known groups: {agreement(community, groups):.2f} of 1"
        return {self._label.id: text}
