"""Coupled chains: a pair that meets, the meeting times, and unbiased estimates."""

import html
import time
from typing import Any

import numpy as np

from sgmcmc_lab.app.views.auto_range import Reach
from sgmcmc_lab.app.views.base import Array, Data, Frame, Scene, View
from sgmcmc_lab.app.views.planes import box, sign, stack
from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.choices import make_sampler
from sgmcmc_lab.samplers.diagnostics.coupling import PATH, Coupling, refusal
from sgmcmc_lab.samplers.parameters import SpecError

PAIRS = 1_000
"""Estimates of each lane: then it is done."""
WORK_SECONDS = 0.1
"""Seconds of background work at a time."""
AT_ONCE = 50
"""Steps of a batch between two looks at the clock."""
BINS = 24
STAYS = 20
"""Frames for which a pair that has met is shown."""


class CouplingView(View):
    """Pairs of coupled chains of each lane's sampler, which begin at N(start, (2 sd)²).

    On the left a pair moves until it meets: the solid chain is a step ahead. On the right is the histogram of the steps
    until pairs meet. The text compares the unbiased estimate of the coordinate's mean with the exact one.
    """

    key = "coupling"
    title = "Coupled chains"
    hint = "two chains that meet; when pairs meet"
    of_first = ("first", "second", "heads")

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        target = experiment.make_target()
        return any(not refusal(target, make_sampler(lane.sampler)) for lane in experiment.lanes)

    def __init__(self, scene: Scene, before: View | None = None):
        self._made: dict[int, Coupling] = {}
        self._said: dict[int, str] = {}
        self._stopped: set[int] = set()
        self._fresh = False
        self._path: Array = np.zeros((0, 2, 2))
        self._frame = 0
        self._shown = 0
        super().__init__(scene, before)

    def build(self) -> Any:
        scene, colours, column = self.scene, self.scene.colours, self.scene.column
        self._plane = scene.target.dim > 1
        scales = [Scale.of(each) for each in scene.target.columns[:2]] if self._plane else []
        if self._plane:
            names = [scale.label(each.name) for scale, each in zip(scales, scene.target.columns, strict=False)]
            ranges = [scale.range for scale in scales]
        else:
            names, ranges = ["steps", column.name], [(0.0, float(PATH)), Scale.of(column).range]
        left = plot(colours, names[0], names[1], *ranges)
        for name, dash in (("first", DASHES[0]), ("second", DASHES[1])):
            source = self.feed(name, "x", "y")
            left.line("x", "y", source=source, line_color=colours.text, line_width=1.5, line_dash=dash)
        heads = self.feed("heads", "x", "y")
        left.scatter("x", "y", source=heads, size=10, fill_color=colours.text, line_color=colours.surface)
        self.moving_range("left x", left.x_range)
        self.moving_range("left y", left.y_range)
        self._reaches = [Reach(*each) for each in ranges]
        right = plot(colours, "steps until a pair meets", "rel. frequency", (0.0, 1.0), (0.0, 1.0))
        for i, _ in enumerate(scene.lanes):
            source = self.feed(f"lane {i}", "x", "y")
            right.line("x", "y", source=source, line_color=colours.lanes[i], line_width=2, line_dash=DASHES[i])
        self.moving_range("right x", right.x_range)
        self.moving_range("right y", right.y_range)
        self._text = box(scene, 2 * len(scene.lanes))
        return stack([left, right], self._text)

    def live_data(self) -> None:
        """A live page has no such view."""

    def background(self, lanes: Frame) -> bool:
        """The next steps of the lane that has the fewest pairs; True where a batch is over."""
        began, fresh = time.perf_counter(), False
        for i, lane in enumerate(lanes):
            self._take(i, lane.run)
        while time.perf_counter() - began < WORK_SECONDS:
            left = [i for i, made in self._made.items() if made.n < PAIRS and i not in self._stopped]
            if not left:
                break
            i = min(left, key=lambda k: len(self._made[k].meeting))
            try:
                fresh |= self._made[i].advance(AT_ONCE)
            except SpecError as error:
                self._stopped.add(i)
                self._said[i] = error.allowed
        self._fresh |= fresh
        return fresh

    def _take(self, i: int, run: Any) -> None:
        """Begin with a lane, or anew where it has another sampler, step size or target now."""
        known = self._made.get(i)
        if known is not None and (known.sampler, known.target) == (run.sampler, run.target):
            return
        self._made.pop(i, None)
        self._stopped.discard(i)
        self._said[i] = refusal(run.target, run.sampler)
        if not self._said[i]:
            self._made[i] = Coupling(run.target, run.sampler)
        self._fresh = True

    def compute(self, lanes: Frame) -> Data:
        out = self._pair()
        if not self._fresh:
            return out
        self._fresh = False
        times = {i: np.concatenate(made.meeting) for i, made in self._made.items() if made.meeting}
        end = max([10.0, *(1.2 * float(np.quantile(each, 0.99)) for each in times.values())])
        edges = np.linspace(0.0, end, BINS + 1)
        highest = 0.0
        for i in range(len(self.scene.lanes)):
            if i not in times:
                out[f"lane {i}"] = np.zeros(0), np.zeros(0)
                continue
            height = np.histogram(times[i], edges)[0] / len(times[i])
            out[f"lane {i}"] = np.repeat(edges, 2)[1:-1], np.repeat(height, 2)
            highest = max(highest, float(height.max()))
        out["right x"] = (np.array([0.0, end]),)
        out["right y"] = (np.array([0.0, max(1.1 * highest, 0.1)]),)
        return out

    def _pair(self) -> Data:
        """A pair of the first lane that has one, a step further in each frame, until it has met."""
        if self._frame > len(self._path) + STAYS or not len(self._path):
            made = next((each for each in self._made.values() if each.meeting), None)
            if made is None:
                return {}
            number = self._shown % len(made.lasted)
            self._shown, self._frame = self._shown + 1, 0
            path = made.paths[: made.lasted[number] + 1, :, number]
            # Y is one lag behind X.
            first, second = path[:, 0], path[:, 1]
            if self._plane:
                self._path = np.stack([first[:, :2], second[:, :2]], axis=1)
            else:
                steps = np.arange(len(path), dtype=float)
                self._path = np.stack([np.column_stack([steps, each[:, 0]]) for each in (first, second)], axis=1)
        self._frame += 1
        shown = self._path[: self._frame]
        out: Data = {}
        for k, reach in enumerate(self._reaches):
            if reach.hold([self._path[..., k].ravel()]):
                out[("left x", "left y")[k]] = (reach.ends,)
        out["first"] = shown[:, 0, 0], shown[:, 0, 1]
        out["second"] = shown[:, 1, 0], shown[:, 1, 1]
        out["heads"] = shown[-1, :, 0], shown[-1, :, 1]
        return out

    def captions(self, lanes: Frame) -> dict[str, str]:
        lines = [f"{sign(self.scene, i)}{html.escape(self._sentence(i))}" for i in range(len(self.scene.lanes))]
        return {self._text.id: "<br>".join(lines)}

    def _sentence(self, i: int) -> str:
        made = self._made.get(i)
        if i in self._stopped or made is None:
            return self._said.get(i) or "waits"
        if made.n == 0:
            return "the first pairs have not met yet"
        found = made.found()
        mean_of = f"E {self.scene.column.name}"
        name, mean, error, exact = next((each for each in found if each[0] == mean_of), found[0])
        return f"{made.n:,} pairs, k = {made.k}, m = {made.m}: {name} {mean:.3f} ± {error:.3f}, exactly {exact:.3f}"
