"""How small the probabilities of words get: φ on a log axis, for every method."""

from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Data, Frame, View
from sgmcmc_lab.app.views.models.marks import method_labels
from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.app.views.theme import DASHES, plot

LOWEST, HIGHEST = -16.0, 0.0
"""The ends of log₁₀ φ; what is smaller is counted in the first bin."""
TINY = -10.0
"""The label of a method says how much of its φ is below this."""


class Sparsity(View):
    """A histogram of log₁₀ φ of each method's draw: SGRLD's steps cannot reach tiny values, SCIR's can."""

    key = "sparsity"
    title = "Sparsity of φ"
    hint = "how small word probabilities get"
    requires = "topics"
    every = 3

    def build(self) -> Any:
        colours = self.scene.colours
        p = plot(colours, "φ, log scale; the first bin: all below", "share of all φ", (LOWEST, HIGHEST), (0, 0.5))
        Scale(True, (LOWEST, HIGHEST)).apply(p.xaxis)
        self.moving_range("y", p.y_range)
        self._top = 0.0
        for i, _ in enumerate(self.scene.lanes):
            line = self.feed(f"method {i}", "x", "y")
            p.step(
                "x",
                "y",
                source=line,
                mode="center",
                line_color=colours.lanes[i],
                line_width=2,
                line_dash=DASHES[i],
            )
        self._labels = method_labels(self, p)
        return p

    def compute(self, lanes: Frame) -> Data:
        out: Data = {}
        top = 0.05
        for i in range(len(lanes)):
            seen = lanes.snapshot(i)
            edges, counts = seen["sparsity_edges"], seen["sparsity"]
            share = counts / max(counts.sum(), 1)
            out[f"method {i}"] = ((edges[1:] + edges[:-1]) / 2, share)
            top = max(top, float(share.max()))
        top = float(np.ceil(top * 10) / 10)
        if top != self._top:
            self._top = top
            out["y"] = (np.array([0.0, top]),)
        return out

    def captions(self, lanes: Frame) -> dict[str, str]:
        """How much of each method's φ is tiny."""
        out = {}
        for i, label in enumerate(self._labels):
            seen = lanes.snapshot(i)
            tiny = seen["sparsity"][seen["sparsity_edges"][1:] <= TINY].sum() / max(seen["sparsity"].sum(), 1)
            out[label.id] = f"{self.scene.lanes[i]}  {tiny:.1%} below 10⁻¹⁰"
        return out
