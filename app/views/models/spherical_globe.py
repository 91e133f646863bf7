"""Topics and documents on a globe of three directions."""

from functools import partial
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource

from sgmcmc_lab.app.views.base import MAX_NAMED, Array, Data, Frame
from sgmcmc_lab.app.views.globe import BEHIND, FRONT, Globe, Layer, columns
from sgmcmc_lab.app.views.models.marks import ModelGlobe, group_colour, on_globe


class SphericalGlobe(ModelGlobe, Globe):
    """The components of each document and topic in the globe's three directions, scaled to length 1: a dot and an
    arrow.
    """

    key = "spherical_globe"
    title = "Topics among the documents"
    hint = "arrows: topics; dots: documents"
    requires = "spherical"
    above = 1
    spot_concentration = 40.0

    @property
    def axis_names(self) -> tuple[str, str, str]:  # type: ignore[override]
        """The directions in which documents differ most, or their mean and two of these."""
        return (
            ("first", "second", "third") if self.scene.target.directions == "contrasts" else ("mean", "first", "second")
        )

    def spots(self) -> Array:
        """The documents."""
        return on_globe(self.scene.target.shown)

    def layers(self, p: Any, i: int) -> list[Layer]:
        """Pictures of a model show one method: the documents once, and its topics."""
        if i:
            return []
        dots = self.dots(p, 5, line_color=None, fill_color=self.scene.colours.faint)
        return [("documents", (FRONT, BEHIND), dots), ("topics", (1.0, 0.35), partial(self._arrows, p))]

    def _arrows(self, p: Any, x: str, y: str, source: ColumnDataSource) -> None:
        """A line from the middle, a dot at its end, and the topic's number."""
        n = self.scene.target.n_topics
        source.data = {name: np.zeros(n) for name in (x, y, "alpha")} | {
            "topic": np.arange(n),
            "name": np.arange(1, n + 1).astype(str),
        }
        colour = group_colour("topic")
        p.segment(0, 0, x, y, source=source, line_color=colour, line_width=3, line_alpha="alpha")
        p.scatter(x, y, source=source, size=20, fill_color=colour, line_color=self.scene.colours.surface, alpha="alpha")
        p.text(
            x,
            y,
            text="name",
            source=source,
            text_color=self.scene.colours.surface,
            text_alpha="alpha",
            text_font_size="12px",
            text_font_style="bold",
            text_align="center",
            text_baseline="middle",
        )

    def compute(self, lanes: Frame) -> Data:
        return {
            "documents": columns(self.spots()),
            "topics": columns(on_globe(lanes.snapshot()["arrows"])),
        }

    def captions(self, lanes: Frame) -> dict[str, str]:
        """How much of the topics lies in the three directions, and the temperature of what moves them."""
        seen = lanes.snapshot()
        inside, heat = (seen["arrows"] ** 2).sum(axis=1).mean(), float(seen["heat"][0])
        warm = f"; ‖v‖²/m = {heat:.2f}" if heat else ""
        return {self._label.id: f"in these directions: {inside:.0%} of the topics' length²{warm}"}

    def words(self, lanes: Frame) -> str:
        """The directions of the first topics."""
        names, arrows = self.axis_names, lanes.snapshot()["arrows"][:MAX_NAMED]
        each = (", ".join(f"{name} {x:.2f}" for name, x in zip(names, row, strict=True)) for row in arrows)
        return "; ".join(f"topic {k + 1}: {text}" for k, text in enumerate(each))
