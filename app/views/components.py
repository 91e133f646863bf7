"""All coordinates at once: of a simplex, Figure 1 of Baker et al. 2018; of a posterior, every coefficient."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import FixedTicker

from sgmcmc_lab.app.views.base import Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import MARKERS, round_up
from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.app.views.theme import plot
from sgmcmc_lab.app.views.trace import exact_quantiles
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.diagnostics import histogram
from sgmcmc_lab.samplers.diagnostics.ks import edges_and_cdf
from sgmcmc_lab.samplers.live.description import smooth
from sgmcmc_lab.samplers.manifolds import Simplex
from sgmcmc_lab.samplers.targets.base import MANIFOLD, SIMPLEX

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
NARROW = 2.0
"""A log axis whose exact quantiles are within so many powers of ten reaches as far again at both ends."""
LOWEST = 1e-3
"""The axis reaches every component's exact quantile at this level. Where draws on a log axis went lower, a triangle
points there; on a linear one it reaches as far at the upper end."""
WHOLE = 0.03
"""So much of the axis is below such a triangle, which is seen whole on a phone, too."""
ROOM = 55
"""Letters below the smallest picture; longer names stand aslant."""


class Components(View):
    """A box plot of every ω_j, or of every θ_j where there are more than two, beside the exact one."""

    key = "components"
    title = "All components"
    hint = "wide grey boxes: exact; marks: smallest so far, ▼ lower"
    every = 5

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        target = experiment.make_target()
        of_shares = target.support == SIMPLEX or target.geometry is Simplex
        return of_shares or (target.support != MANIFOLD and target.dim > 2)

    def build(self) -> Any:
        scene = self.scene
        columns, colours = scene.target.columns[: scene.target.n_values], scene.colours
        d, n = len(columns), len(scene.lanes)
        self._scales = [Scale.of(column) for column in columns]
        self._positions = np.array([s.forward(edges_and_cdf(c)[0]) for s, c in zip(self._scales, columns, strict=True)])
        exact = np.array(
            [
                exact_quantiles(s, *edges_and_cdf(c), (LOWEST, *LEVELS, 1 - LOWEST))
                for s, c in zip(self._scales, columns, strict=True)
            ]
        )
        lowest, highest, log = float(exact[:, 0].min()), float(exact[:, -1].max()), self._scales[0].log
        if log:
            x_label, label, spread = "component j", "ω", highest - lowest
            step = round_up(-lowest / 10)
            # Where no share is near 0, all boxes would lie in a strip, and those that are too wide would leave it.
            narrow = spread < NARROW
            self._bottom = lowest - spread if narrow else float(np.floor(lowest / step) * step)
            top = highest + spread if narrow else -0.02 * self._bottom
        else:
            x_label, label = "", "coefficient" if scene.target.of_coordinates else "value"
            room = 0.06 * (highest - lowest)
            self._bottom, top = lowest - room, highest + room
            self.hint = "wide grey boxes: exact; lines from 5 to 95 %"
        self._beyond = self._bottom + WHOLE * (top - self._bottom)
        p = plot(colours, x_label, self._scales[0].label(label), (0.4, d + 0.6), (self._bottom, top))
        self._scales[0].apply(p.yaxis)
        every = 1 if d <= 20 else 5 if d <= 50 else 10
        p.xaxis.ticker = FixedTicker(ticks=[j for j in range(1, d + 1) if every == 1 or j == 1 or j % every == 0])
        if not log:
            # With many components there is room for their symbols alone.
            names = [column.name if d <= 20 else column.name.split()[0] for column in columns]
            p.xaxis.major_label_overrides = dict(enumerate(names, start=1))
            if d <= 20 and d * max(map(len, names)) > ROOM:
                p.xaxis.major_label_orientation = 0.6
            p.hspan(y=[0.0], line_color=colours.faint, line_width=1)
        p.xgrid.grid_line_color = None
        x = np.arange(1.0, d + 1)
        thin = d * n > 60
        p.vbar(
            x=x,
            bottom=exact[:, 2],
            top=exact[:, 4],
            width=0.84,
            fill_color=colours.faint,
            fill_alpha=0.25,
            line_color=None,
        )
        p.segment(x, exact[:, 1], x, exact[:, 5], line_color=colours.faint, line_width=1 if thin else 2)
        p.segment(x - 0.42, exact[:, 3], x + 0.42, exact[:, 3], line_color=colours.exact, line_width=2)
        width = 0.7 / n
        self._x = [x + (i - (n - 1) / 2) * width for i in range(n)]
        for i, _ in enumerate(scene.lanes):
            source = self.feed(f"lane {i}", "x", "low", "q25", "median", "q75", "high", "least")
            colour = colours.lanes[i]
            p.segment("x", "low", "x", "high", source=source, line_color=colour, line_width=1 if thin else 2)
            p.vbar(
                "x",
                bottom="q25",
                top="q75",
                width=0.8 * width,
                source=source,
                line_color=colour,
                fill_color=colour,
                fill_alpha=0.45,
                line_width=0.5 if thin else 1,
            )
            p.vbar(
                "x",
                bottom="median",
                top="median",
                width=0.8 * width,
                source=source,
                line_color=colour,
                line_width=2 if thin else 4,
            )
            if log:
                p.scatter("x", "least", source=source, marker=MARKERS[i], size=3 if thin else 6, color=colour)
                beyond = self.feed(f"beyond {i}", "x", "y")
                p.scatter("x", "y", source=beyond, marker="inverted_triangle", size=4 if thin else 8, color=colour)
        return p

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        for i, lane in enumerate(lanes):
            quantiles, least = histogram.quantiles(lane.run.statistics, self._positions, LEVELS)
            x = self._x[i][: len(least)]
            out[f"lane {i}"] = (x, *quantiles.T, least)
            if f"beyond {i}" in self.feeds:
                below = x[least < self._bottom]
                out[f"beyond {i}"] = (below, np.full(len(below), self._beyond))
        return out

    def live_data(self) -> dict[str, Any]:
        log = self._scales[0].log
        ends = [
            {"log": log, "first": float(p[0]), "last": float(p[-1]), **({"all": smooth(p)} if log else {})}
            for p in self._positions
        ]
        return {"positions": ends, "x": [x.tolist() for x in self._x], "bottom": self._bottom, "beyond": self._beyond}

    def words(self, lanes: Sequence[LaneFrame]) -> str:
        return self.means(lanes, range(self.scene.target.n_values))
