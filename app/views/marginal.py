"""One coordinate's histogram against the target's."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, Label

from sgmcmc_lab.app.views.base import COLUMNS, Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import is_brief, lane_labels, no_draws
from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers.diagnostics import autocorrelation, histogram
from sgmcmc_lab.samplers.running_statistics import bin_edges

BARS = 64
"""Bars on the axis: wide enough to see, narrow enough for a mode of a tenth of the axis."""
HIGHEST = 4.0
"""Bars are shown up to so many times the height of the exact density."""
FEW = 20 * BARS
"""With fewer draws a bar may be several times as high as the density."""


class Marginal(View):
    """The share of draws in each bin, as a density, with the exact density as a line."""

    key = "marginal"
    title = "Marginal histogram"
    requires = COLUMNS
    help = (
        "The histogram counts all draws so far of one coordinate. The line is the target's density: the closer the histogram is to it, the better the sampler works. "
        "A histogram that stays wider or narrower than the line shows a bias."
    )
    hint = "line: the target"
    aims = True
    every = 2

    def build(self) -> Any:
        scene = self.scene
        column, colours = scene.column, scene.colours
        scale = Scale.of(column)
        p = plot(colours, scale.label(column.name), "density", scale.range, (0, 1))
        scale.apply(p.xaxis)
        self._ranges = p.x_range, p.y_range
        self._bars = [self.feed(f"lane {i}", "x", "y") for i, _ in enumerate(scene.lanes)]
        for i, source in enumerate(self._bars):
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
        self._cut = [False] * len(scene.lanes)
        if column.exact:
            self._line = ColumnDataSource({"x": [], "y": []})
            p.line("x", "y", source=self._line, line_color=colours.exact, line_width=2)
        else:
            self.hint = "the target is not known; means of the later steps"
            self.moving_range("x", p.x_range)
        self.moving_range("y", p.y_range)
        self._labels = self._label(p)
        self.aim()
        return p

    def aim(self) -> None:
        column = self.scene.column
        scale = Scale.of(column)
        low, high = scale.range
        self._positions = scale.forward(bin_edges(column))
        self._divide(*np.searchsorted(self._positions, [low, high]))
        across, upwards = self._ranges
        self.put(across, start=low, end=high)
        for source in self._bars:
            # Bokeh's step glyph loops for ever over an empty source.
            self.put(source, data={"x": self._centres, "y": np.zeros_like(self._centres)})
        self._exact = 0.0
        if column.exact:
            shares = np.diff(column.cdf(bin_edges(column))[np.stack([self._starts, self._ends])], axis=0)[0]
            self._exact = float(np.max(shares / self._widths))
            self.put(upwards, end=self._above(self._exact))
            self.put(self._line, data={"x": self._centres, "y": shares / self._widths})

    def _label(self, figure: Any) -> list[Label]:
        """A label for each lane."""
        names, exact = self.scene.lanes, self.scene.column.exact
        # Long names need the whole width.
        columns = 2 if exact and all(map(is_brief, names)) else 1
        several = len(names) > 1 or not exact
        return lane_labels(self, figure, columns=columns) if several else [self.caption(figure)]

    def live_data(self) -> dict[str, Any]:
        return {
            "starts": self._starts.tolist(),
            "ends": self._ends.tolist(),
            "widths": self._widths.tolist(),
            "centres": self._centres.tolist(),
            "exact": self._exact,
        }

    def _above(self, highest: float) -> float:
        """The end of an axis with bars so high."""
        return 1.1 * highest

    def _divide(self, first: int, last: int) -> None:
        """Take bars for these fine bins: whole groups of them, so that counts are exact."""
        self._starts, self._ends = histogram.groups(first, last, BARS)
        left, right = self._positions[self._starts], self._positions[self._ends]
        self._widths, self._centres = right - left, (left + right) / 2

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        counted = [lane.run.statistics for lane in lanes]
        found = histogram.occupied(counted, self.scene.coordinate) if "x" in self.feeds else None
        if found is not None:
            self._divide(*found)
            out["x"] = (self._positions[list(found)],)
        highest = 0.0
        for i, lane in enumerate(lanes):
            statistics = lane.run.statistics
            density = histogram.densities(statistics, self.scene.coordinate, self._starts, self._ends, self._widths)
            out[f"lane {i}"] = (self._centres, density)
            self._cut[i] = bool(self._exact) and density.max() > self._above(HIGHEST * self._exact)
            # Beside an exact density a few draws would be a spike in which nothing else is seen.
            if not self._exact or statistics.n_draws >= FEW:
                highest = max(highest, float(density.max()))
        if highest > 0:
            # A spike would leave of the exact density nothing to see.
            highest = min(highest, HIGHEST * self._exact) if self._exact else highest
            out["y"] = (np.array([0.0, self._above(max(self._exact, highest))]),)
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        """Why there are no bars; where the target is not known, the means, with their standard errors."""
        if self.scene.column.exact:
            if len(lanes) == 1:
                # Before the first step the words would lie on the curve, and the readout says that nothing was drawn.
                return {self._labels[0].id: no_draws(lanes[0].run) if lanes[0].run.steps else ""}
            # Beside a name there is room for a word.
            waits = [lane.run.steps and not lane.run.statistics.n_draws for lane in lanes]
            notes = [
                "(burn-in)" if wait else "(cut off)" if cut else "" for wait, cut in zip(waits, self._cut, strict=True)
            ]
            named = zip(self._labels, self.scene.lanes, notes, strict=True)
            return {label.id: f"{name} {note}".rstrip() for label, name, note in named}
        each = zip(self._labels, self.scene.lanes, lanes, strict=True)
        return {label.id: f"{name}  {self._mean(lane)}" for label, name, lane in each}

    def _mean(self, lane: LaneFrame) -> str:
        statistics, k = lane.run.statistics, self.scene.coordinate
        if not statistics.n_draws:
            return "no draws yet"
        error = autocorrelation.standard_error(statistics, k)
        if not np.isfinite(error):
            why = f"{statistics.why_weighted}: no τ" if statistics.weighted else "τ needs more steps"
            return f"mean {statistics.mean(k):.4g}, {why}"
        # Both end at the error's first digit; numbers above 1 are whole at the least.
        digits = max(0, -int(np.floor(np.log10(error)))) if error > 0 else 3
        return f"mean {statistics.mean(k):,.{digits}f} ± {error:,.{digits}f}"

    def words(self, lanes: Sequence[LaneFrame]) -> str:
        return self.means(lanes, [self.scene.coordinate])
