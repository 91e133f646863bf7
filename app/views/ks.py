"""The Kolmogorov–Smirnov distance from the target as the run goes on."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Array, CurvePoint, LaneFrame
from sgmcmc_lab.app.views.distance import POINTS, Distance, first_name
from sgmcmc_lab.samplers import kolmogorov


class KS(Distance[CurvePoint]):
    """The Kolmogorov–Smirnov distance of each lane, and that of as many i.i.d. draws.

    It is the mean over coordinates, whichever of them the other views show.
    """

    key = "ks"
    title = "KS distance"
    aims = True
    hint = "grey: 90 % band for i.i.d. draws, same n"
    help = (
        "The Kolmogorov–Smirnov (KS) distance is the largest gap between the distribution function of the draws so far and that of the target: 0 where they agree, at most 1. "
        "n independent, identically distributed (i.i.d.) draws from the target itself have a distance, too: the black line is its mean, and the grey band holds it in 90 % of cases. "
        "A curve far above the band means correlated draws or a biased sampler; one that levels off means bias. "
        "KL, beside it, is the Kullback–Leibler divergence of the draws from the target, 0 where they agree."
    )
    label = "KS distance"

    def build(self) -> Any:
        self.describe()
        target = self.scene.target
        self._band = kolmogorov.band(1, columns=len(target.ks_columns))
        self._kl = "KL" if target.planar or target.n_columns == 1 else f"KL of {first_name(target)}"
        figure = super().build()
        self._error = None
        if not target.exact_law:
            colour = self.scene.colours.exact
            self._error = figure.hspan(y=[0.0], line_color=colour, line_width=1.5, line_dash="dotted").data_source
        self.aim()
        return figure

    def aim(self) -> None:
        if self._error is not None:
            self.put(self._error, data={"y": [self.scene.target.uncertainty]})

    def describe(self) -> None:
        """Set the title and the hint: what the distance is the mean of, and what is drawn beside it."""
        target, one = self.scene.target, len(self.scene.lanes) == 1
        n = len(target.ks_columns)
        if target.n_columns > 1:
            of = "odds" if n < target.n_columns else "coordinates"
            self.title = f"KS distance, mean over {n} {of}" if n > 1 else f"KS distance of the {of}"
        if not target.exact_law:
            self.hint = f"{'grey' if one else 'bands'}: i.i.d. draws; dotted: error of the target"
        elif not one:
            self.hint = "bands: 90 % for i.i.d. draws, n of each lane"

    def add_noise(self, figure: Any, lane: int, colour: str) -> None:
        colours = self.scene.colours
        noise = self.feed(f"noise {lane}", "x", "low", "high", "mean", rollover=POINTS)
        figure.varea(
            x="x",
            y1="low",
            y2="high",
            source=noise,
            fill_color=colour or colours.faint,
            fill_alpha=0.15 if colour else 0.25,
        )
        figure.line("x", "mean", source=noise, line_color=colour or colours.exact, line_width=1.0 if colour else 1.5)

    def live_data(self) -> dict[str, Any]:
        return super().live_data() | {"band": list(self._band), "mean": kolmogorov.KOLMOGOROV_MEAN, "kl": self._kl}

    def curve(self, i: int, lane: LaneFrame) -> Sequence[CurvePoint]:
        return lane.curve

    def distance(self, point: CurvePoint) -> float:
        return point.ks

    def noise(self, points: Sequence[CurvePoint]) -> tuple[Array, ...]:
        root = np.sqrt([point.n_draws for point in points])
        low, high = self._band
        return low / root, high / root, kolmogorov.KOLMOGOROV_MEAN / root

    def caption_of(self, point: CurvePoint) -> str:
        """The distance, and on the line and in the plane the KL divergence, without what noise alone adds to it."""
        text, above = f"KS {point.ks:.3g}", point.kl - point.exact_kl
        if not np.isfinite(above):
            return text
        # As much as independent draws have says nothing of a bias, and not that there is none.
        return f"{text}  {self._kl} {f'{above:.2g}' if above > 0 else 'within noise'}"
