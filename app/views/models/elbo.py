"""The evidence lower bound of the methods that have one."""

from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import BOUND, Data, Frame, View
from sgmcmc_lab.app.views.models.marks import method_labels
from sgmcmc_lab.app.views.theme import DASHES, plot


class Elbo(View):
    """The objective that variational methods climb; an exact sampler has none."""

    key = "elbo"
    title = "ELBO"
    hint = "the evidence lower bound; a sampler has none"
    requires = BOUND
    every = 3

    def build(self) -> Any:
        colours = self.scene.colours
        p = plot(colours, "steps", "ELBO", (0, 100), (-1, 0))
        self.moving_range("x", p.x_range)
        self.moving_range("y", p.y_range)
        for i, _ in enumerate(self.scene.lanes):
            source = self.feed(f"method {i}", "x", "y")
            p.line("x", "y", source=source, line_color=colours.lanes[i], line_width=2, line_dash=DASHES[i])
        self._labels = method_labels(self, p)
        return p

    def compute(self, lanes: Frame) -> Data:
        out: Data = {}
        right, shown = 100.0, []
        for i in range(len(lanes)):
            seen = lanes.snapshot(i)
            if "elbo" in seen and len(seen["elbo"]):
                x, y = seen["elbo_steps"].astype(float), seen["elbo"].astype(float)
                out[f"method {i}"] = (x, y)
                right = max(right, x[-1])
                # The first values are of a random start, far below all that follows.
                late = y[x >= 0.05 * x[-1]]
                shown += [float(late.min()), float(late.max())]
        if shown:
            low, high = min(shown), max(shown)
            room = 0.05 * max(high - low, 1e-6 * abs(high), 1e-9)
            out["x"], out["y"] = (np.array([0.0, right]),), (np.array([low - room, high + room]),)
        return out

    def captions(self, lanes: Frame) -> dict[str, str]:
        """The bound of each method that has one."""
        seen = [lanes.snapshot(i) for i in range(len(lanes))]
        return {
            label.id: f"{name}  {snapshot['elbo'][-1]:,.0f}"
            for label, name, snapshot in zip(self._labels, self.scene.lanes, seen, strict=True)
            if len(snapshot.get("elbo", ()))
        }
