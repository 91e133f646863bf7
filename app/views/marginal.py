"""One coordinate's histogram against its exact law."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.theme import DASHES, plot
from app.views.base import Data, LaneFrame, View
from app.views.scales import Scale
from samplers.accumulate import bin_edges

BARS = 64
"""Bars on the axis: wide enough to see, narrow enough for a mode of a tenth of the axis."""


class Marginal(View):
    """The share of draws in each bin, as a density, with the exact density as a line."""

    key = "marginal"
    title = "Marginal"
    hint = "line: the exact law"
    every = 2

    def build(self) -> Any:
        scene = self.scene
        column, colours = scene.column, scene.colours
        scale = Scale.of(column)
        positions = scale.forward(bin_edges(column))
        low, high = scale.range
        # Bars are whole groups of the fine bins, so that counts are exact.
        first, last = np.searchsorted(positions, [low, high])
        group = max(1, round((last - first) / BARS))
        self._starts = np.arange(max(first - 1, 0), min(last + 1, len(positions) - 1), group)
        self._ends = np.minimum(self._starts + group, len(positions) - 1)
        left, right = positions[self._starts], positions[self._ends]
        self._widths = right - left
        exact = np.diff(column.cdf(bin_edges(column))[np.stack([self._starts, self._ends])], axis=0)[0] / self._widths
        p = plot(colours, scale.label(column.name), "density", (low, high), (0, float(np.max(exact)) * 1.35))
        scale.apply(p.xaxis)
        centres = (left + right) / 2
        for i, _ in enumerate(scene.lanes):
            source = self.feed(f"lane {i}", "x", "y")
            # Bokeh's step glyph loops for ever over an empty source.
            source.data = {"x": centres, "y": np.zeros_like(centres)}
            p.varea_step(
                x="x", y1=0, y2="y", source=source, step_mode="center", fill_color=colours.lanes[i], fill_alpha=0.22
            )
            p.step(
                x="x",
                y="y",
                source=source,
                mode="center",
                line_color=colours.lanes[i],
                line_width=2,
                line_dash=DASHES[i],
            )
        p.line(centres, exact, line_color=colours.exact, line_width=2)
        self._centres = centres
        return p

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        for i, lane in enumerate(lanes):
            statistics = lane.run.statistics
            below = np.cumsum(statistics.counts(self.scene.coordinate))
            counts = below[self._ends] - below[self._starts]
            out[f"lane {i}"] = (self._centres, counts / (max(statistics.n_draws, 1) * self._widths))
        return out

    def words(self, lanes: Sequence[LaneFrame]) -> str:
        return self.means(lanes, [self.scene.coordinate])
