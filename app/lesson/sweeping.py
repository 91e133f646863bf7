"""The picture of a step's sweep, drawn as it is measured: on log axes, with the slope of each lane."""

from collections.abc import Sequence

import numpy as np
from bokeh.models import ColumnDataSource, DataRange1d, FactorRange, FixedTicker, Label, Node

from app.theme import DASHES, Theme, plot
from app.views.base import LINE
from app.views.marks import MARKERS, SIGNS, brief
from lessons import Step
from lessons.document import is_number
from lessons.measures.base import Estimate
from lessons.sweep import Row, axis_of, curves, quantity_of, slope

HEIGHT = 250
FEWEST = 3
"""Points that a slope is told of."""


class SweepPicture:
    """A figure made once, and what its points and captions are now."""

    def __init__(self, step: Step, names: Sequence[str], colours: Theme):
        assert step.sweep is not None
        self._axis, self._names = axis_of(step), [brief(name) for name in names]
        listed = [value for axis in step.sweep.axes if axis.name == self._axis for value in axis.quick_values]
        self._log = all(is_number(value) and value > 0 for value in listed)
        options = {"x_axis_type": "log"} if self._log else {}
        self.figure = plot(
            colours, self._axis.rpartition(".")[2].replace("_", " "), quantity_of(step.sweep), (0, 1), (0, 1), y_axis_type="log", **options,
        )  # fmt: skip
        self.figure.min_height = HEIGHT
        self.figure.x_range = DataRange1d() if self._log else FactorRange(*dict.fromkeys(map(str, listed)))
        if self._log:
            ticks = sorted(set(listed))
            # All would overlap where there are many.
            self.figure.xaxis.ticker = FixedTicker(ticks=ticks[:: max(1, len(ticks) // 4)])
            self.figure.xaxis.major_label_overrides = {tick: f"{tick:g}" for tick in ticks}
        # Above the points is room for the captions.
        self.figure.y_range = DataRange1d(range_padding=0.35)
        self._sources: list[ColumnDataSource] = []
        self._labels: list[Label] = []
        for i, name in enumerate(self._names):
            source, colour = ColumnDataSource({"x": [], "y": []}), colours.lanes[i]
            self.figure.line("x", "y", source=source, line_color=colour, line_width=2, line_dash=DASHES[i])
            self.figure.scatter("x", "y", source=source, size=8, marker=MARKERS[i], color=colour)
            label = Label(
                x=8, y=Node(target="frame", symbol="top", offset=4 + LINE * i), x_units="screen", y_units="screen", text_baseline="top", text=f"{SIGNS[i]} {name}",
                text_font_size="13px", text_color=colour, background_fill_color=colours.surface, background_fill_alpha=0.7,
            )  # fmt: skip
            self.figure.add_layout(label)
            self._sources.append(source)
            self._labels.append(label)
        self.describe()

    def show(self, rows: Sequence[Row]) -> None:
        """Draw what has been measured so far."""
        for curve in curves(self._axis, rows):
            i = curve.lane - 1
            x = list(curve.at) if self._log else list(map(str, curve.at))
            # A bias has a sign, which a log axis cannot show.
            found = {"x": x, "y": [float(abs(value)) for value in curve.middle]}
            if found != self._sources[i].data:
                self._sources[i].data = found
                self._labels[i].text = f"{SIGNS[i]} {self._names[i]}{self._slope(curve.at, curve.middle, curve.errors)}"
        self.describe()

    def describe(self) -> None:
        """Say in words what is drawn, for people who do not see it."""
        said = "; ".join(label.text[2:] for label in self._labels)
        about = f"{self.figure.yaxis[0].axis_label} against {self.figure.xaxis[0].axis_label}: {said}"
        if self.figure.html_attributes.get("aria-label") != about:
            self.figure.html_attributes = {"role": "img", "aria-label": about}

    def _slope(self, at: Sequence[float], middle: Sequence[float], errors: Sequence[float | None]) -> str:
        if not self._log or len(at) < FEWEST:
            return ""
        found = slope(at, [Estimate(value, error) for value, error in zip(middle, errors, strict=True)])
        return f", slope {found.value:.2f}" if np.isfinite(found.value) else ""
