"""The common part of the two predictive views: data that are made again, beside those that are there."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import numpy as np
from bokeh.models import Range1d

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import lane_labels
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.diagnostics.calibration import generative
from sgmcmc_lab.samplers.diagnostics.predictive import STATISTICS, p_value
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior

MAX_ROWS = 2_000
"""The most rows that are simulated, evenly spread over the table."""
NUMBERS, FEWEST, MOST = 120_000, 20, 400
"""Numbers that are made at once, some 5 ms; and of how many data sets at least and at most."""
GROUPS = 12
"""Into which rows are gathered along the covariate, where it has more values."""
POINTS = 500
"""Rows that are drawn."""
SHARE = (0.05, 0.95)
BEYOND = 3.0
"""The largest extent of the axis beyond the data, in ranges of the data: data from a prior may be anywhere."""
LETTERS = 56
"""The most letters of a caption line that says why nothing is simulated."""


class Predictive(View):
    """Data sets that a model makes, where 90 % of them are, beside the data.

    Against the covariate of the curve they are shown by groups: nine tenths of the y of each, or, where y has two
    values only, of their means. Without a covariate there are the distribution functions of y. The caption has
    P(T(made) ≥ T(data)) for the mean, the standard deviation, the least and the largest y.
    """

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return issubclass(TARGETS[experiment.target.key], TypedPosterior)

    def build(self) -> Any:
        target: TypedPosterior = self.scene.target
        colours = self.scene.colours
        self.model = generative(target)
        self.problem = ""
        outcome = target.contents.answer
        self._fresh = False
        self._found: dict[str, tuple[Array, ...]] = {}
        titles = list(target.titles)
        try:
            outcome = self.model.outcomes[0]
        except SpecError as error:
            self.problem = error.allowed
            outcome = titles[-1]
        n = target.n_data
        self.rows = np.linspace(0, n - 1, min(n, MAX_ROWS)).round().astype(int)
        self.y = y = target.titles[outcome][self.rows]
        self.outcome = outcome
        covariate = self._covariate(titles)
        self.x = None if covariate is None else target.titles[covariate][self.rows]
        self.two = len(np.unique(y)) <= 2
        self.n_made = int(np.clip(NUMBERS // len(y), FEWEST, MOST))
        behind = self.behind()
        low, high = self._reach(behind)
        if self.x is None:
            self._grid = np.linspace(low, high, 61)
            p = plot(colours, outcome, f"share of {outcome} below", (low, high), (-0.03, 1.03))
        else:
            x0, x1 = float(self.x.min()), float(self.x.max())
            room = 0.06 * (x1 - x0)
            order = np.argsort(self.x, kind="stable")
            values = np.unique(self.x)
            self._groups = (
                [np.flatnonzero(self.x == v) for v in values]
                if len(values) <= GROUPS
                else np.array_split(order, GROUPS)
            )
            self._grid = np.array([self.x[some].mean() for some in self._groups])
            p = plot(
                colours,
                str(covariate),
                f"mean of {outcome}" if self.two else outcome,
                (x0 - room, x1 + room),
                (low, high),
            )
        assert isinstance(p.y_range, Range1d)
        if behind is not None:
            band = self._band(behind)
            p.varea(x=self._grid, y1=band[0], y2=band[1], fill_color=colours.faint, fill_alpha=0.3)
        for i, _ in enumerate(self.scene.lanes[: self.lanes_drawn]):
            source, colour = self.feed(f"band {i}", "x", "low", "high"), colours.lanes[i]
            # Bokeh cannot fill between two empty lines; until there is a band these are below the picture.
            below = np.full_like(self._grid, 2 * p.y_range.start - p.y_range.end)
            source.data = {"x": self._grid, "low": below, "high": below}
            p.varea(x="x", y1="low", y2="high", source=source, fill_color=colour, fill_alpha=0.22)
            for side in ("low", "high"):
                p.line("x", side, source=source, line_color=colour, line_dash=DASHES[i])
            now = self.feed(f"now {i}", "x", "y")
            if self.x is None or self.two:
                p.line("x", "y", source=now, line_color=colour, line_width=1.5)
            else:
                p.scatter("x", "y", source=now, marker="x", size=5, color=colour, alpha=0.7)
        if self.x is None:
            p.line(self._grid, self._summary(y[None])[0], line_color=colours.exact, line_width=2)
        elif self.two:
            p.scatter(self._grid, self._summary(y[None])[0], size=7, line_color=colours.exact, fill_alpha=0.0)
        else:
            some = self._drawn()
            p.scatter(self.x[some], y[some], size=5, line_color=colours.exact, fill_alpha=0.0)
        self._why = "\n".join(wrap(self.problem, LETTERS))
        self._labels = (
            lane_labels(self, p)
            if self.lanes_drawn > 1 and not self.problem
            else [self.caption_above(p, max(1, self._why.count("\n") + 1))]
        )
        return p

    @property
    def lanes_drawn(self) -> int:
        """How many lanes have a band of their own."""
        return len(self.scene.lanes)

    def behind(self) -> Array | None:
        """The data sets (n, rows) of the grey band, where there is one."""
        return None

    def simulated(self, rng: np.random.Generator, parameters: Mapping[str, Array]) -> Array:
        """New data (n, rows) of parameters (n,) each; those that are not finite are left out."""
        y = self.model.data(rng, parameters, self.rows)[self.outcome]
        return y[np.isfinite(y).all(axis=1)]

    def take(self, i: int, made: Array) -> None:
        """Let a lane's picture be of these data sets."""
        if len(made) == 0:
            return
        self._found[f"band {i}"] = (self._grid, *self._band(made))
        if self.x is None or self.two:
            self._found[f"now {i}"] = self._grid, self._summary(made[-1:])[0]
        else:
            some = self._drawn()
            self._found[f"now {i}"] = self.x[some], made[-1, some]
        self._fresh = True

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        if not self._fresh:
            return {}
        self._fresh = False
        return dict(self._found)

    def said(self, made: Array) -> str:
        """P(T(made) ≥ T(data)) of each statistic."""
        if len(made) == 0:
            return "no finite data"
        names = ["mean"] if self.two else list(STATISTICS)
        return "p  " + ", ".join(f"{each} {p_value(made, self.y, each):.2f}" for each in names)

    def _covariate(self, titles: Sequence[str]) -> str | None:
        target = self.scene.target
        drawn = target.fit()
        if drawn is not None:
            return str(drawn.axes[0])
        others = [title for title in target.used if title != self.outcome]
        one = len(others) == 1 and len(np.unique(target.titles[others[0]])) > 2
        return others[0] if one else None

    def _reach(self, behind: Array | None) -> tuple[float, float]:
        """The range of y that is drawn."""
        if self.x is not None and self.two:
            return -0.05, 1.05
        low, high = float(self.y.min()), float(self.y.max())
        span = max(high - low, 1e-9)
        if behind is not None and len(behind):
            ends = np.quantile(behind, SHARE)
            low, high = max(min(low, ends[0]), low - BEYOND * span), min(max(high, ends[1]), high + BEYOND * span)
        room = 0.06 * (high - low)
        return low - room, high + room

    def _drawn(self) -> Array:
        return np.linspace(0, len(self.y) - 1, min(len(self.y), POINTS)).round().astype(int)

    def _summary(self, made: Array) -> Array:
        """The curve of each data set (n, grid): its distribution function, or the means of its groups."""
        if self.x is None:
            ordered = np.sort(made, axis=1)
            return np.array([np.searchsorted(each, self._grid, side="right") for each in ordered]) / made.shape[1]
        return np.column_stack([made[:, some].mean(axis=1) for some in self._groups])

    def _band(self, made: Array) -> Array:
        if self.x is None or self.two:
            return np.asarray(np.quantile(self._summary(made), SHARE, axis=0))
        return np.column_stack([np.quantile(made[:, some], SHARE) for some in self._groups])
