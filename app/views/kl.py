"""The Kullback–Leibler divergence from the target as the run goes on."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Array, CurvePoint, LaneFrame
from sgmcmc_lab.app.views.distance import POINTS, Distance, first_name
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.base import SIMPLEX


class KL(Distance[CurvePoint]):
    """The divergence of each lane's draws from e^{−U}, and what noise alone adds to it."""

    key = "kl"
    title = "KL divergence"
    hint = "from the target; grey: i.i.d. draws, same n"
    aims = True
    help = (
        "The Kullback–Leibler (KL) divergence compares a histogram of the draws so far with the target: 0 where they agree, without an upper bound. "
        "The grey line is the divergence of n independent, identically distributed (i.i.d.) draws, which comes from their number alone. "
        "A curve that levels off above it means a biased sampler."
    )
    label = "KL divergence"
    top = 10.0

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return TARGETS[experiment.target.key].support != SIMPLEX

    def build(self) -> Any:
        target = self.scene.target
        if target.n_columns > 1:
            self.title = "KL divergence, joint" if target.planar else f"KL divergence of {first_name(target)}"
        if len(self.scene.lanes) > 1:
            self.hint = "from the target; thin: i.i.d. draws, n of each lane"
        return super().build()

    def add_noise(self, figure: Any, lane: int, colour: str) -> None:
        noise = self.feed(f"noise {lane}", "x", "mean", rollover=POINTS)
        figure.line(
            "x", "mean", source=noise, line_color=colour or self.scene.colours.faint, line_width=1 if colour else 2
        )

    def curve(self, i: int, lane: LaneFrame) -> Sequence[CurvePoint]:
        return lane.curve

    def distance(self, point: CurvePoint) -> float:
        return point.kl

    def noise(self, points: Sequence[CurvePoint]) -> tuple[Array, ...]:
        return (np.array([point.exact_kl for point in points]),)

    def caption_of(self, point: CurvePoint) -> str:
        """The divergence, and the part of it that exact draws would have too."""
        return f"KL {point.kl:.2g}, i.i.d. {point.exact_kl:.2g}"
