"""The distance from the exact law as the run goes on."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import FixedTicker

from app.theme import DASHES, plot
from app.views.base import AXIS_LABELS, Data, LaneFrame, View
from samplers.diagnostics import divergence, ks
from samplers.targets.base import SIMPLEX

POINTS = 900
"""log(10¹¹)/log(1.03): enough for a billion steps at the spacing of the curve."""
FLOOR = 1e-6
"""A distance of 0 has no place on a log axis."""


class KS(View):
    """The Kolmogorov–Smirnov distance of each lane, and that of as many exact draws."""

    key = "ks"
    title = "KS distance"
    hint = "grey band: as many exact draws"

    def build(self) -> Any:
        scene = self.scene
        colours = scene.colours
        start = 1e-4 if scene.axis == "seconds" else 1.0
        p = plot(
            colours,
            AXIS_LABELS[scene.axis],
            "KS distance",
            (start, start * 1e3),
            (1e-3, 1.0),
            x_axis_type="log",
            y_axis_type="log",
        )
        # Bokeh labels the digits between powers of ten where an axis has few of them; they overlap.
        p.xaxis.ticker = FixedTicker(ticks=[10.0**k for k in range(-5, 11)])
        p.yaxis.ticker = FixedTicker(ticks=[10.0**k for k in range(-6, 1)])
        self._x_start = start
        self.moving_range("x", p.x_range)
        self.moving_range("y", p.y_range)
        band = self.feed("band", "x", "low", "high", "mean", rollover=POINTS)
        p.varea(x="x", y1="low", y2="high", source=band, fill_color=colours.faint, fill_alpha=0.25)
        p.line("x", "mean", source=band, line_color=colours.exact, line_width=1.5)
        for i, _ in enumerate(scene.lanes):
            source = self.feed(f"lane {i}", "x", "y", rollover=POINTS)
            p.line("x", "y", source=source, line_color=colours.lanes[i], line_width=2.5, line_dash=DASHES[i])
        self._sent = [0] * len(scene.lanes)
        self._label = self.caption(p)
        self._right, self._bottom = 0.0, 1.0
        self._band = ks.band(1, columns=len(scene.target.ks_columns))
        return p

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        right, bottom = self._x_start * 1e3, 1e-2
        for i, lane in enumerate(lanes):
            points = np.array(lane.curve[self._sent[i] :]).reshape(-1, 5)
            self._sent[i] = len(lane.curve)
            # Exact draws cost no gradients, and a log axis has no place for 0.
            points = points[points[:, lane.axis] > 0]
            if not len(points):
                continue
            x, n, distance = points[:, lane.axis], points[:, 3], np.maximum(points[:, 4], FLOOR)
            out[f"lane {i}"] = (x, distance)
            low, high = (edge / np.sqrt(n) for edge in self._band)
            if "band" not in out:
                out["band"] = (x, low, high, ks.KOLMOGOROV_MEAN / np.sqrt(n))
            right = max(right, x[-1])
            bottom = min(bottom, distance.min(), low.min())
        # The axes end at powers of ten, so that they move rarely.
        right, bottom = 10.0 ** np.ceil(np.log10(right)), 10.0 ** np.floor(np.log10(bottom))
        if right > self._right:
            self._right = right
            out["x"] = (np.array([self._x_start, right]),)
        if bottom < self._bottom:
            self._bottom = bottom
            out["y"] = (np.array([bottom, 1.0]),)
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        """The distance now, and on the line and in the plane the KL divergence from the exact law."""
        target = self.scene.target
        lines = []
        for name, lane in zip(self.scene.lanes, lanes, strict=True):
            if not lane.curve:
                continue
            text = f"{name}  KS {lane.curve[-1][4]:.3g}"
            if target.support != SIMPLEX and lane.run.statistics.n_draws:
                statistics = lane.run.statistics
                estimate = divergence.kl_2d(statistics, target) if target.dim == 2 else divergence.kl_1d(statistics, 0)
                # The value without what noise alone adds to it.
                text += f"  KL {max(estimate.value - estimate.bias, 0.0):.2g}"
            lines.append(text)
        return {self._label.id: "\n".join(lines)}
