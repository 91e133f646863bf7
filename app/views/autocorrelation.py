"""How far a chain remembers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import NumeralTickFormatter

from sgmcmc_lab.app.views.base import COLUMNS, Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import FEWEST_LAGS, MARKERS, lane_labels, round_up
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers.diagnostics import autocorrelation

SEEN = 4.0
"""The largest lag shown, in multiples of τ, which is twice the time of an exponential decay."""
ROOM = 1.25


class Autocorrelation(View):
    """ρ(lag) of one coordinate, with its sum τ."""

    key = "autocorrelation"
    title = "Autocorrelation"
    requires = COLUMNS
    hint = "one effective sample per τ steps"
    aims = True
    every = 4

    def build(self) -> Any:
        scene = self.scene
        colours = scene.colours
        self._end, self._bottom = FEWEST_LAGS, -0.25
        p = plot(colours, "lag in steps", scene.column.name, (0, self._end), (self._bottom, 1.05))
        p.xaxis.formatter = NumeralTickFormatter(format="0,0")
        p.hspan(y=[0.0], line_color=colours.faint, line_width=1)
        for i, _ in enumerate(scene.lanes):
            source = self.feed(f"lane {i}", "x", "y")
            p.line("x", "y", source=source, line_color=colours.lanes[i], line_width=2.5, line_dash=DASHES[i])
            p.scatter("x", "y", source=source, marker=MARKERS[i], size=6, color=colours.lanes[i])
        self.moving_range("x", p.x_range)
        self.moving_range("y", p.y_range)
        self._labels = lane_labels(self, p)
        return p

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        k = self.scene.coordinate
        curves, needed, known = [], FEWEST_LAGS, True
        for lane in lanes:
            if lane.run.interacting:
                curves.append((np.zeros(0), np.zeros(0)))
                continue
            lags, rho = autocorrelation.autocorrelation(lane.run.statistics, k)
            good = np.isfinite(rho)
            curves.append((lags[good], rho[good]))
            tau = autocorrelation.tau_int(lane.run.statistics, k)
            if np.isfinite(tau):
                needed = max(needed, SEEN * tau)
            else:
                # Too early to tell: all that is known is shown.
                known = False
                needed = max(needed, lags[-1] if len(lags) else 0.0)
        # With some room, so that an estimate that trembles does not move the axis back and forth.
        enough = round_up(ROOM * needed)
        if needed > self._end or (known and enough < self._end):
            self._end = enough
            out["x"] = (np.array([0.0, self._end]),)
        least = min((float(rho.min()) for _, rho in curves if len(rho)), default=0.0)
        bottom = -1.05 if least < -0.25 else -0.25 if least > -0.15 else self._bottom
        if bottom != self._bottom:
            self._bottom = bottom
            out["y"] = (np.array([bottom, 1.05]),)
        for i, (lags, rho) in enumerate(curves):
            shown = int(np.searchsorted(lags, self._end)) + 1
            out[f"lane {i}"] = (lags[:shown], rho[:shown])
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        return {
            label.id: f"{name}  {self._time(lane)}"
            for label, name, lane in zip(self._labels, self.scene.lanes, lanes, strict=True)
        }

    def _time(self, lane: LaneFrame) -> str:
        if lane.run.interacting:
            return "interacting particles: no τ"
        if why := lane.run.statistics.why_weighted:
            return f"{why}: no τ"
        found = autocorrelation.integrated_time(lane.run.statistics, self.scene.coordinate)
        if not np.isfinite(found.tau):
            return "τ needs more steps"
        # Two digits of the error, and as many of τ.
        error = max(found.standard_error, 1e-9)
        digits = max(0, 1 - int(np.floor(np.log10(error)))) if error < 10 else 0
        return f"τ = {found.tau:,.{min(digits, 3)}f} ± {error:,.{min(digits, 3)}f}"
