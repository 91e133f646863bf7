"""The effective sample size of quantiles."""

from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Array, Data
from sgmcmc_lab.app.views.history import OfHistory
from sgmcmc_lab.app.views.marks import MARKERS, lane_labels, round_up
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers.diagnostics import effective


class QuantileESS(OfHistory):
    """The ESS of each quantile from 5 % to 95 % of the kept draws (Vehtari et al. 2021, Section 4.3)."""

    key = "quantile_ess"
    title = "ESS of quantiles"
    hint = "how well each quantile is known"
    help = (
        "The effective sample size (ESS) of a quantile is the number of independent draws that would estimate it as well. "
        "It is that of the indicator of draws below the quantile, over the kept draws of up to eight chains. "
        "A curve that falls at one end says that the chains reach that tail seldom, or stay there for long."
    )
    of_ess = True

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        name = scene.target.column_names[scene.coordinate]
        p = plot(colours, f"quantile of {name}", "ESS", (0.0, 1.0), (0.0, 100.0))
        self.moving_range("y", p.y_range)
        for i, _ in enumerate(scene.lanes):
            source = self.feed(f"lane {i}", "x", "y")
            p.line("x", "y", source=source, line_color=colours.lanes[i], line_width=2, line_dash=DASHES[i])
            p.scatter("x", "y", source=source, size=5, marker=MARKERS[i], color=colours.lanes[i])
        self.labels = lane_labels(self, p)
        return p

    def read(self, history: Array) -> Array:
        return effective.of_quantiles(history, self.scene.coordinate)

    def drawn(self) -> Data:
        out: Data = {}
        highest = 1.0
        for i, found in self.found.items():
            there = not isinstance(found, str)
            out[f"lane {i}"] = (effective.LEVELS, found) if there else (np.zeros(0), np.zeros(0))
            highest = max(highest, float(found.max())) if there else highest
        out["y"] = (np.array([0.0, round_up(1.05 * highest)]),)
        return out

    def said(self, found: Array) -> str:
        k = int(np.argmin(found))
        return f"ESS {found[len(found) // 2]:,.0f} of the median, least {found[k]:,.0f} at {effective.LEVELS[k]:.0%}"
