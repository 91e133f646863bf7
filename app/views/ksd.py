"""The kernel Stein discrepancy from the target as the run goes on."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from bokeh.models import FixedTicker

from sgmcmc_lab.app.views.base import Array, Data, Frame, LaneFrame, Position, Scene, View
from sgmcmc_lab.app.views.distance import POINTS, Distance
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.diagnostics import ksd

SPACING = 1.1
"""The curve gets a point when the run is this much longer: evenly spaced on a log axis."""


class SteinPoint(NamedTuple):
    """The discrepancy of a lane's draws, at one position."""

    position: Position
    n_draws: int
    """Draws in the double sum."""
    found: ksd.Discrepancy


class KSD(Distance[SteinPoint]):
    """The kernel Stein discrepancy of each lane's draws, thinned to a thousand, and that of as many i.i.d. draws.

    The double sum is computed beside the frames, from a copy of the draws that a frame has taken.
    """

    key = "ksd"
    title = "Kernel Stein discrepancy"
    hint = "grey: as many i.i.d. draws"
    help = (
        "The kernel Stein discrepancy (KSD) compares the draws with the gradient of the target's log density, so that it needs no exact answer: 0 where they agree. "
        "It is computed from at most 1,000 draws, evenly spaced over the run so far. "
        "The grey line is about the root mean square for as many independent, identically distributed (i.i.d.) draws. "
        "A curve that levels off above it means bias or draws that are still correlated. It is blind to a mode that no chain has visited."
    )
    label = "KSD"
    top = 1e3

    def __init__(self, scene: Scene, before: View | None = None):
        self._former: list[tuple[Any, list[SteinPoint]]] = []
        if isinstance(before, KSD) and before.scene.target is scene.target:
            self._former = list(before.known.values())
        self.known: dict[int, tuple[Any, list[SteinPoint]]] = {}
        """The run of each lane with its curve."""
        self._taken: dict[int, tuple[Any, Position, Array]] = {}
        super().__init__(scene, before)

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return ksd.is_defined(experiment.make_target())

    def build(self) -> Any:
        if len(self.scene.lanes) > 1:
            self.hint = "thin: as many i.i.d. draws"
        figure = super().build()
        figure.yaxis.ticker = FixedTicker(ticks=[10.0**k for k in range(-6, 4)])
        return figure

    def add_noise(self, figure: Any, lane: int, colour: str) -> None:
        noise = self.feed(f"noise {lane}", "x", "mean", rollover=POINTS)
        figure.line(
            "x", "mean", source=noise, line_color=colour or self.scene.colours.faint, line_width=1 if colour else 2
        )

    def curve(self, i: int, lane: LaneFrame) -> Sequence[SteinPoint]:
        # The curve as it is now: the background continues it.
        return tuple(self._curve(i, lane.run))

    def distance(self, point: SteinPoint) -> float:
        return point.found.value

    def noise(self, points: Sequence[SteinPoint]) -> tuple[Array, ...]:
        return (np.array([point.found.expected for point in points]),)

    def caption_of(self, point: SteinPoint) -> str:
        return f"KSD {point.found.value:.2g}, i.i.d. {point.found.expected:.2g}"

    def _said(self, point: SteinPoint) -> str:
        return f"KSD {point.found.value:.2g}" if self._short else self.caption_of(point)

    def _curve(self, i: int, run: Any) -> list[SteinPoint]:
        """The curve of a lane's run, which goes on where another scene had it."""
        if i not in self.known or self.known[i][0] is not run:
            before = next((curve for known, curve in self._former if known is run), [])
            self.known[i] = run, list(before)
        return self.known[i][1]

    def _take(self, i: int, run: Any) -> None:
        """Take draws for the next point of a lane's curve, where the run has become enough longer."""
        curve = self._curve(i, run)
        if i in self._taken or not run.statistics.n_steps or run.statistics.own_weights:
            return
        if curve and run.steps < SPACING * curve[-1].position.steps:
            return
        chains = run.spec.n_chains
        here = Position(run.steps, run.gradients / chains, run.data_seen / chains, run.seconds)
        self._taken[i] = run, here, ksd.thinned(run.statistics, run.target)

    def background(self, lanes: Frame) -> bool:
        worked = False
        for i, (run, position, draws) in list(self._taken.items()):
            found = ksd.of_draws(run.target, draws)
            # The gradients of a diverging chain may not be finite.
            if np.isfinite(found).all():
                self._curve(i, run).append(SteinPoint(position, len(draws), found))
                worked = True
            del self._taken[i]
        return worked

    def why_empty(self, run: Any) -> str:
        own = run.statistics.own_weights
        return f"{run.statistics.why_weighted}: no KSD" if own else super().why_empty(run)

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        for i, lane in enumerate(lanes):
            self._take(i, lane.run)
        return super().compute(lanes)
