"""The phase plane: a coordinate and its momentum, with the contours of H and the chains' paths."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from sgmcmc_lab.app.views.auto_range import Reach
from sgmcmc_lab.app.views.base import Array, Data, Frame, LaneFrame, Playing, View
from sgmcmc_lab.app.views.marks import MARKERS
from sgmcmc_lab.app.views.planes import heights
from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.app.views.state import notes
from sgmcmc_lab.app.views.steps import add_arrows, beginning, longer, rows
from sgmcmc_lab.app.views.theme import FINE, plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.choices import make_sampler
from sgmcmc_lab.samplers.kernels.base import KEPT
from sgmcmc_lab.samplers.recipe.flow import SHOWN_MOMENTUM
from sgmcmc_lab.samplers.targets.base import LINE

CELLS = 120
"""Cells a side that the contours are drawn from."""
PATH = 160
"""Frames that the path of a lane's first chain goes back."""
SHOWN_CHAINS = 4


class Phase(View):
    """(θ, r) of one coordinate. With several coordinates, the contours are those of this pair alone."""

    key = "phase"
    title = "Phase plane"
    hint = "contours of H hold 50, 90, 99 %"
    click = "click: start at that θ, r"

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        target = experiment.make_target()
        made = [make_sampler(lane.sampler) for lane in experiment.lanes]
        return (
            target.support == LINE
            and target.of_coordinates
            and target.whitening is None
            and any(one.momentum for one in made)
        )

    def build(self) -> Any:
        scene, colours, column = self.scene, self.scene.colours, self.scene.column
        self._scale = scale = Scale.of(column)
        ranges = scale.range, (-SHOWN_MOMENTUM, SHOWN_MOMENTUM)
        p = plot(
            colours, scale.label(column.name), column.name.replace("θ", "r") if "θ" in column.name else "r", *ranges
        )
        p.grid.grid_line_color = None
        if column.exact:
            x, r = (np.linspace(a, b, CELLS + 1) for a, b in ranges)
            marginal = np.diff(column.cdf(x)) / np.diff(x)
            middles = [(ends[1:] + ends[:-1]) / 2 for ends in (x, r)]
            density = stats.norm.pdf(middles[1])[:, None] * marginal
            p.contour(
                *middles, density, levels=heights(density), line_color=colours.exact, line_alpha=0.6, line_width=1
            )
        else:
            self.hint = "a coordinate and its momentum"
        for i, _ in enumerate(scene.lanes):
            path = self.feed(f"path {i}", "x", "y", rollover=PATH)
            p.line(
                "x", "y", source=path, line_color=colours.lanes[i], line_width=FINE, line_alpha=0.55, line_join="bevel"
            )
            heads = self.feed(f"heads {i}", "x", "y")
            p.scatter(
                "x",
                "y",
                source=heads,
                size=11,
                marker=MARKERS[i],
                fill_color=colours.lanes[i],
                line_color=colours.surface,
                line_width=1.5,
            )
        here = self.feed("here", "x", "y")
        p.scatter("x", "y", source=here, size=15, fill_color=None, line_color=colours.text, line_width=2)
        add_arrows(self, p)
        self.moving_range("x range", p.x_range)
        self.moving_range("y range", p.y_range)
        self._reaches = [Reach(*ends) for ends in ranges]
        self._latest: list[deque[tuple[float, ...]]] = [deque(maxlen=PATH) for _ in scene.lanes]
        self._larger = 1.0
        self._spans = np.array([high - low for low, high in ranges])
        self._steps = [-1] * len(scene.lanes)
        # The possible notes, one for each lane without a momentum of its own, and the length of arrows.
        self._label = self.caption_above(p, scene.noted + len(scene.lanes) - scene.throws + 1)
        if not scene.throws:
            self.click = "click: start at that θ"
        self.take_touches(p)
        return p

    def live_data(self) -> dict[str, Any]:
        scale = {"log": self._scale.log, "range": list(self._scale.range)}
        return {"scale": scale, "ranges": [reach.ends.tolist() for reach in self._reaches]}

    def live_tap(self) -> dict[str, Any] | None:
        scales = [self.live_data()["scale"], {"log": False, "range": self._reaches[1].ends.tolist()}]
        return {"figure": self.figure.id, "kind": "phase", "coordinate": self.scene.coordinate, "scales": scales} | {
            "throws": self.scene.throws > 0
        }

    def start_at(self, point: Sequence[float], before: Array) -> Array | None:
        inside = [
            low <= x <= high for x, (low, high) in zip(point, (reach.ends for reach in self._reaches), strict=False)
        ]
        if len(point) != 2 or not all(inside):
            return None
        start = before.copy()
        start[self.scene.coordinate] = self._scale.back(point[0])
        return start

    def momentum_at(self, point: Sequence[float], end: Sequence[float], start: Array) -> Array | None:
        """The r that was clicked; that of other coordinates is 0."""
        if not self.scene.throws:
            return None
        momentum = np.zeros_like(start)
        momentum[self.scene.coordinate] = point[1]
        return momentum

    def compute(self, lanes: Frame) -> Data:
        j, chains = self.scene.coordinate, SHOWN_CHAINS if len(lanes) == 1 else 1
        out = self._step(lanes.playing)
        for i, lane in enumerate(lanes):
            run = lane.run
            if not run.sampler.momentum:
                continue
            # A momentum that is drawn at every step is 0 between two of them.
            r = run.momentum[:chains, j] if run.sampler.momentum == KEPT else np.zeros(len(run.position[:chains]))
            places = np.stack([self._scale.forward(run.position[:chains, j]), r], axis=1)
            good = np.isfinite(places).all(axis=1)
            out[f"heads {i}"] = places[good, 0], places[good, 1]
            # A frame without a step has nothing new of the first chain.
            if run.sampler.momentum == KEPT and run.steps != self._steps[i] and good[0]:
                self._steps[i] = run.steps
                out[f"path {i}"] = places[:1, 0], places[:1, 1]
                self._latest[i].append(tuple(places[0]))
        latest = [np.array(places).reshape(-1, 2) for places in self._latest]
        if any(reach.hold(places[:, k] for places in latest) for k, reach in enumerate(self._reaches)):
            # An orbit keeps its shape.
            times = np.max([reach.times for reach in self._reaches], axis=0)
            for name, reach in zip(("x range", "y range"), self._reaches, strict=True):
                reach.times = times
                out[name] = (reach.ends,)
        return out

    def _step(self, playing: Playing | None) -> Data:
        """The parts of a step of θ and r that is taken apart, and where the chain is before it."""
        if playing is not None and not playing.step.velocity:
            playing = None
        self._larger = longer(playing, self._place, self._spans, of_phase=True)
        here = self._place(beginning(playing, of_phase=True)) if playing else np.zeros((0, 2))
        return {
            "parts": rows(playing, self.scene.parts, self._place, self._larger, ends=self._scale.range, of_phase=True),
            "here": (here[:, 0], here[:, 1]),
        }

    def _place(self, z: Array) -> Array:
        """Where (θ, r) (n, 2 dim) is along the figure's coordinates."""
        j = self.scene.coordinate
        return np.column_stack([self._scale.forward(z[:, j]), z[:, self.scene.target.dim + j]])

    def captions(self, lanes: Frame) -> dict[str, str]:
        lines = [notes(lanes)]
        for name, lane in zip(self.scene.lanes, lanes, strict=True):
            sampler = lane.run.sampler
            if sampler.momentum != KEPT:
                does = "draws its momentum at every step" if sampler.momentum else "has no momentum"
                lines.append(f"{name} {does}")
        if lanes.playing is not None and self._larger > 1:
            lines.append(f"arrows {self._larger:g} times as long")
        return {self._label.id: "\n".join(filter(None, lines))}

    def words(self, lanes: Sequence[LaneFrame]) -> str:
        return self.means(lanes, [self.scene.coordinate])
