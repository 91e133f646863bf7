"""The common part of the views of a distance from the target: its curve as the run goes on, on log axes."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from bokeh.models import FixedTicker

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame, Position, View
from sgmcmc_lab.app.views.marks import BRIEF, LONG, brief, lane_labels, no_draws
from sgmcmc_lab.app.views.theme import DASHES, plot

POINTS = 900
"""log(10¹¹)/log(1.03): enough for a billion steps at the spacing of the curve."""
TEXT_LENGTH = 12
"""Letters of a distance in words."""
DECADES = 1e3
"""The least length of the run's axis, relative to the start of the curve."""
FLOOR = 1e-6
"""A log axis cannot show a distance of 0."""


def first_name(target: Any) -> str:
    """The symbol of its first column, of which the KL divergence is where a target is no plane."""
    return str(target.columns[0].name.split()[0])


class OnCurve(Protocol):
    """A point of a curve."""

    @property
    def position(self) -> Position:
        """The position of the run."""


Point = TypeVar("Point", bound=OnCurve)


class Distance(View, Generic[Point]):
    """A distance of each lane's draws from the target, and the same of as many i.i.d. draws."""

    label: ClassVar[str]
    """The title of the axis; it begins with the two letters of the distance."""
    top: ClassVar[float] = 1.0
    """The largest distance."""

    @abstractmethod
    def add_noise(self, figure: Any, lane: int, colour: str) -> None:
        """Draw the feed ``noise <lane>``: the distance of as many i.i.d. draws as the lane has made."""

    @abstractmethod
    def curve(self, i: int, lane: LaneFrame) -> Sequence[Point]:
        """The distance of a lane so far."""

    @abstractmethod
    def distance(self, point: Point) -> float:
        """The distance at a point of the curve."""

    @abstractmethod
    def caption_of(self, point: Point) -> str:
        """The distance in words, and what else there is room for in a line."""

    @abstractmethod
    def noise(self, points: Sequence[Point]) -> tuple[Array, ...]:
        """The columns of that feed after its x, for points of the curve; the first is the lowest that is shown."""

    def build(self) -> Any:
        scene = self.scene
        colours = scene.colours
        start = 1e-4 if scene.axis == "seconds" else 1.0
        p = plot(
            colours,
            scene.axis_label,
            self.label,
            (start, start * DECADES),
            (1e-3, self.top),
            x_axis_type="log",
            y_axis_type="log",
        )
        # Bokeh labels the digits between powers of ten where an axis has few of them; they overlap.
        p.xaxis.ticker = FixedTicker(ticks=[10.0**k for k in range(-5, 11)])
        p.yaxis.ticker = FixedTicker(ticks=[10.0**k for k in range(-6, 2)])
        self.moving_range("x", p.x_range)
        self.moving_range("y", p.y_range)
        # Lanes at the same place may have made different numbers of draws: a change starts the statistics again.
        for i, _ in enumerate(scene.lanes):
            self.add_noise(p, i, colours.lanes[i] if len(scene.lanes) > 1 else "")
        for i, _ in enumerate(scene.lanes):
            source = self.feed(f"lane {i}", "x", "y", rollover=POINTS)
            p.line("x", "y", source=source, line_color=colours.lanes[i], line_width=2.5, line_dash=DASHES[i])
        self._sent = [0] * len(scene.lanes)
        # More than two lines leave little of a small figure: names and distances alone stand beside each other.
        self._short = len(scene.lanes) > 2 and all(len(name) + TEXT_LENGTH <= BRIEF + 4 for name in scene.lanes)
        self._labels = lane_labels(self, p, columns=2 if self._short else 1)
        self._left, self._right, self._bottom, self._top = np.inf, 0.0, self.top, 0.0
        return p

    def live_data(self) -> dict[str, Any]:
        return {"top": self.top, "short": self._short, "label": self.label[:2]}

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        """The distance now, and beside it the colour of the lane's curve."""
        out = {}
        for i, (label, name, lane) in enumerate(zip(self._labels, self.scene.lanes, lanes, strict=True)):
            curve = self.curve(i, lane)
            said = self._said(curve[-1]) if curve else self.why_empty(lane.run)
            said = said and f"  {said}"
            out[label.id] = brief(name, LONG - len(said)) + said
        return out

    def why_empty(self, run: Any) -> str:
        """Why a lane has no curve; empty where one follows."""
        return no_draws(run)

    def _said(self, point: Point) -> str:
        return f"{self.label[:2]} {self.distance(point):.2g}" if self._short else self.caption_of(point)

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        axis = self.scene.axis
        right, bottom, highest = self._right, self.top / 100, 0.0
        left = self._left
        for i, lane in enumerate(lanes):
            curve = self.curve(i, lane)
            # Exact draws cost no gradients, and a log axis cannot show 0.
            points = [point for point in curve[self._sent[i] :] if point.position.on(axis) > 0]
            self._sent[i] = len(curve)
            if not points:
                continue
            x = np.array([point.position.on(axis) for point in points])
            distance = np.maximum([self.distance(point) for point in points], FLOOR)
            out[f"lane {i}"] = (x, distance)
            noise = self.noise(points)
            out[f"noise {i}"] = (x, *noise)
            left, right = min(left, x[0]), max(right, x[-1])
            bottom = min(bottom, distance.min(), noise[0].min())
            highest = max(highest, distance.max(), noise[-1].max())
        # The axes end at powers of ten, so that they move rarely.
        bottom = 10.0 ** np.floor(np.log10(bottom))
        if right > self._right or left < self._left:
            left = 10.0 ** np.floor(np.log10(left) + 1e-9)
            self._left, self._right = left, max(10.0 ** np.ceil(np.log10(right)), left * DECADES)
            out["x"] = (np.array([self._left, self._right]),)
        top = min(10.0 ** np.ceil(np.log10(max(highest, 10 * bottom))), self.top)
        if highest and (bottom < self._bottom or top > self._top):
            self._bottom, self._top = min(bottom, self._bottom), max(top, self._top)
            out["y"] = (np.array([self._bottom, self._top]),)
        return out
