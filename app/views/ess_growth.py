"""The growth of the effective sample size with the number of draws."""

from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Array, Data
from sgmcmc_lab.app.views.history import OfHistory
from sgmcmc_lab.app.views.marks import MARKERS, lane_labels, number_axis, round_up
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers.diagnostics import effective
from sgmcmc_lab.samplers.diagnostics.effective import Growth


class ESSGrowth(OfHistory):
    """Bulk and tail ESS of the first tenth of the kept draws, of two tenths, and so on (Vehtari et al. 2021)."""

    key = "ess_growth"
    title = "Growth of the ESS"
    hint = "of the first kept draws; bold: bulk, thin: tail"
    help = (
        "The effective sample size (ESS) of the first tenth of the kept draws, of the first two tenths, and so on. "
        "It grows in proportion to the draws where the chains mix: a straight line. "
        "A curve that becomes flat, or falls, says that later draws found a place that earlier ones had not: do not trust the ESS yet."
    )
    of_ess = True

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        p = plot(colours, "kept draws of all chains", "ESS", (0.0, 100.0), (0.0, 100.0))
        number_axis(p.xaxis)
        self.moving_range("x", p.x_range)
        self.moving_range("y", p.y_range)
        for i, _ in enumerate(scene.lanes):
            for name, width in (("bulk", 2.5), ("tail", 1.0)):
                source = self.feed(f"{name} {i}", "x", "y")
                p.line("x", "y", source=source, line_color=colours.lanes[i], line_width=width, line_dash=DASHES[i])
                p.scatter("x", "y", source=source, size=2 + width, marker=MARKERS[i], color=colours.lanes[i])
        self.labels = lane_labels(self, p)
        return p

    def read(self, history: Array) -> Growth:
        return effective.of_growth(history, self.scene.coordinate)

    def drawn(self) -> Data:
        out: Data = {}
        right = highest = 1.0
        for i, found in self.found.items():
            for name in ("bulk", "tail"):
                out[f"{name} {i}"] = np.zeros(0), np.zeros(0)
                if isinstance(found, Growth):
                    sizes = getattr(found, name)
                    # In the first draws the chains may stand still.
                    good = np.isfinite(sizes)
                    out[f"{name} {i}"] = found.draws[good].astype(float), sizes[good]
                    highest = max(highest, *sizes[good])
                    right = max(right, float(found.draws[-1]))
        out["x"], out["y"] = (np.array([0.0, 1.03 * right]),), (np.array([0.0, round_up(1.05 * highest)]),)
        return out

    def said(self, found: Growth) -> str:
        bulk, tail = (f"{x:,.0f}" if np.isfinite(x) else "unknown" for x in (found.bulk[-1], found.tail[-1]))
        return f"ESS bulk / tail {bulk} / {tail}, of {found.draws[-1]:,} kept draws"
