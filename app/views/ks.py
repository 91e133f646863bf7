"""The Kolmogorov–Smirnov distance from the target as the run goes on."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.views.base import Array, CurvePoint
from app.views.distance import POINTS, Distance
from samplers.diagnostics import ks


class KS(Distance):
    """The Kolmogorov–Smirnov distance of each lane, and that of as many i.i.d. draws."""

    key = "ks"
    title = "KS distance"
    hint = "grey: 90 % band for i.i.d. draws, same n"
    label = "KS distance"

    def add_noise(self, figure: Any) -> None:
        self._band = ks.band(1, columns=len(self.scene.target.ks_columns))
        colours = self.scene.colours
        noise = self.feed("noise", "x", "low", "high", "mean", rollover=POINTS)
        figure.varea(x="x", y1="low", y2="high", source=noise, fill_color=colours.faint, fill_alpha=0.25)
        figure.line("x", "mean", source=noise, line_color=colours.exact, line_width=1.5)
        if not self.scene.target.exact_law:
            figure.hspan(
                y=[self.scene.target.uncertainty], line_color=colours.exact, line_width=1.5, line_dash="dotted"
            )
            self.hint = "grey: i.i.d. draws; dotted: error of the target"

    def live_data(self) -> dict[str, Any]:
        return super().live_data() | {"band": list(self._band), "mean": ks.KOLMOGOROV_MEAN}

    def distance(self, point: CurvePoint) -> float:
        return point.ks

    def noise(self, points: Sequence[CurvePoint]) -> tuple[Array, ...]:
        root = np.sqrt([point.n_draws for point in points])
        low, high = self._band
        return low / root, high / root, ks.KOLMOGOROV_MEAN / root

    def caption_of(self, point: CurvePoint) -> str:
        """The distance, and on the line and in the plane the KL divergence, without what noise alone adds to it."""
        text = f"KS {point.ks:.3g}"
        return f"{text}  KL {max(point.kl - point.exact_kl, 0.0):.2g}" if np.isfinite(point.kl) else text
