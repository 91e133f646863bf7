"""How the prior turns off factors that are not needed: what each explains, and its r_k."""

from typing import Any

import numpy as np
from bokeh.models import FixedTicker

from sgmcmc_lab.app.views.base import Data, Frame, View
from sgmcmc_lab.app.views.models.marks import method_labels
from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.app.views.theme import DASHES, plot

LOWEST, HIGHEST = -5.0, 1.0
"""The ends of the axis of log₁₀; what is beyond lies there."""
USED = 0.01
"""A factor that explains at least this share of the variance is in use."""


class FactorRates(View):
    """The share of the variance that each factor explains, largest first, for every method; rings are the r_k."""

    key = "factor_rates"
    title = "Factors in use"
    hint = "dots: share explained; rings: rate r"
    requires = "factors"
    every = 3

    def build(self) -> Any:
        colours, k = self.scene.colours, max(self.scene.target.n_factors, 10)
        p = plot(colours, "factor, largest first", "share, log", (0.5, k + 0.5), (LOWEST - 0.3, HIGHEST))
        Scale(True, (LOWEST, HIGHEST)).apply(p.yaxis)
        p.yaxis.ticker = FixedTicker(ticks=[-4, -2, 0])
        p.xaxis.ticker = FixedTicker(ticks=list(range(1, k + 1, max(1, -(-k // 10)))))
        self._n = k
        for i, _ in enumerate(self.scene.lanes):
            source, rates = self.feed(f"method {i}", "x", "y"), self.feed(f"rates {i}", "x", "y")
            p.line("x", "y", source=source, line_color=colours.lanes[i], line_width=2, line_dash=DASHES[i])
            p.scatter("x", "y", source=source, color=colours.lanes[i], size=6)
            p.scatter("x", "y", source=rates, fill_color=None, line_color=colours.lanes[i], line_width=1.5, size=9)
        self._labels = method_labels(self, p)
        return p

    def compute(self, lanes: Frame) -> Data:
        out: Data = {}
        for i in range(len(lanes)):
            seen = lanes.snapshot(i)
            order = np.argsort(-seen["explained"], kind="stable")[: self._n]
            for name, values in (("method", seen["explained"]), ("rates", seen["r"])):
                shown = values[order] if len(values) else values
                heights = np.clip(np.log10(np.maximum(shown, 1e-300)), LOWEST, HIGHEST)
                out[f"{name} {i}"] = (np.arange(1.0, len(heights) + 1), heights)
        return out

    def captions(self, lanes: Frame) -> dict[str, str]:
        """How many factors each method uses."""
        out = {}
        for i, label in enumerate(self._labels):
            explained = lanes.snapshot(i)["explained"]
            out[label.id] = f"{self.scene.lanes[i]}  {int((explained >= USED).sum())} of {len(explained)} explain 1 %"
        return out
