"""The cost of a batch size, for minibatch Gibbs: f(m), and its minimum."""

from typing import Any

import numpy as np
from bokeh.models import FixedTicker

from sgmcmc_lab.app.views.base import BATCH_SIZES, Data, Frame, LaneFrame, View
from sgmcmc_lab.app.views.theme import plot

FIRST_ENDS = (1e2, 1e4)
HARDLY = 1.25
"""Two τ, each known to a tenth or worse, may differ so much by chance."""


class Batch(View):
    """The cost of an independent draw with m data points in a step; the sizes are tried one after another."""

    key = "batch"
    title = "Cost of a batch size"
    hint = "f(m) = (m w_z + w_θ) τ, the price of a draw"
    help = (
        "With a batch size of 0 the sampler tries several sizes, each for the same time, and keeps the cheapest. "
        "A point is the cost of an independent draw with m data points in a step: the time of a step times the autocorrelation time τ. The circle is the size that is kept, or where the choice goes on, the one that is chosen now."
    )
    requires = BATCH_SIZES
    every = 3

    def build(self) -> Any:
        colours = self.scene.colours
        most = 1.5 * self.scene.target.n_data
        p = plot(
            colours,
            f"{self.scene.target.data_name} in a step, m",
            "f(m) / w_z",
            (0.7, most),
            FIRST_ENDS,
            x_axis_type="log",
            y_axis_type="log",
        )
        p.xaxis.ticker = p.yaxis.ticker = FixedTicker(ticks=[10.0**k for k in range(9)])
        self.moving_range("y", p.y_range)
        points = self.feed("tried", "x", "y")
        p.line("x", "y", source=points, line_color=colours.faint, line_width=1.5)
        p.scatter("x", "y", source=points, size=8, color=colours.exact)
        slow = self.feed("slow", "x", "y")
        p.scatter("x", "y", source=slow, size=11, marker="triangle", fill_color=None, line_color=colours.exact)
        best = self.feed("best", "x", "y")
        p.scatter(
            "x", "y", source=best, size=15, marker="circle", fill_color=None, line_color=colours.lanes[1], line_width=3
        )
        self._label = self.caption_above(p, 2)
        self._ends = FIRST_ENDS
        return p

    def compute(self, lanes: Frame) -> Data:
        seen = adaptive(lanes)
        if seen is None:
            return {}
        sizes, cost = seen["batch_sizes"].astype(float), seen["objective"]
        known = np.isfinite(cost)
        slow, sizes, cost = sizes[~known], sizes[known], cost[known]
        out: Data = {"tried": (sizes, cost), "best": (sizes[:0], cost[:0])}
        if len(cost):
            chosen = sizes == seen["chosen"][0] if seen["changes"][0] else cost == cost.min()
            out["best"] = (sizes[chosen][:1], cost[chosen][:1])
            ends = 10.0 ** np.floor(np.log10(cost.min())), 10.0 ** np.ceil(np.log10(cost.max() * 1.001))
            if ends != self._ends:
                self._ends = ends
                out["y"] = (np.array(ends),)
        # A size of which no τ could be told has no place on the axis but its upper end.
        out["slow"] = (slow, np.full(len(slow), 0.93 * self._ends[1]))
        return out

    def captions(self, lanes: Frame) -> dict[str, str]:
        """The trials, and the choice."""
        seen = adaptive(lanes)
        if seen is None:
            return {self._label.id: f"set {self.scene.target.data_name.capitalize()} in a step to 0 to try the sizes"}
        tried, unknown = len(seen["objective"]), int((~np.isfinite(seen["objective"])).sum())
        slow = f"; {unknown} mixed too slowly to tell (△)" if unknown else ""
        chosen = int(seen["chosen"][0])
        if chosen:
            # A choice that goes on is often another one in the next frame, before the next caption.
            changes = int(seen["changes"][0])
            said = f"m changed {changes:,} ×" if changes else f"chosen: m = {chosen}{gain(seen)}"
            return {self._label.id: f"{said}\n{tried} tried{slow}"}
        size, n_sizes, left = map(int, seen["trial"])
        return {
            self._label.id: f"trying m = {size:,}; {tried} of {n_sizes} sizes tried{slow}\n{left:,} steps until one is chosen"
        }


def gain(seen: Any) -> str:
    """The cost of a draw with all data, relative to one with the chosen size, in words; nothing where it is not
    known.
    """
    sizes, cost = seen["batch_sizes"], seen["objective"]
    whole = sizes.argmax()
    if not np.isfinite(cost[whole]):
        return ""
    if whole == cost.argmin():
        return "; none smaller is cheaper"
    ratio = float(cost[whole] / cost.min())
    return f"; using all costs {ratio:.2g} ×" if ratio >= HARDLY else "; using all costs hardly more"


def chooses(lane: LaneFrame) -> bool:
    """Whether its method chooses its batch size itself."""
    method = lane.run.chains[0].method
    return bool(method.chooses_batch_size and method.batch_size == 0)


def adaptive(lanes: Frame) -> Any:
    """The snapshot of the first method that chooses its size itself; None where there is none."""
    return next((lanes.snapshot(i) for i, lane in enumerate(lanes) if chooses(lane)), None)
