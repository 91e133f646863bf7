"""Kinetic temperature and thermostat beside their expected values: the effect of gradient noise on a velocity."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import lane_labels, number_axis, round_up, run_window, share
from sgmcmc_lab.app.views.theme import plot
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.kernels.noisy_gradient import Moving

WINDOW = 600
"""Points that stay visible."""
RECENT = 25
"""Frames that the thin lines are averaged over."""


def expected(run: Run) -> float | None:
    """The heat that goes in over the heat that friction C takes out, (max(2Cε − V̂ε², 0) + Vε²)/2Cε.

    V is the variance of the gradient's noise, and V̂ the sampler's value of it. To first order in ε it is the
    temperature where the friction is C, and where there is a thermostat the value of ξ/C. None for minibatches, whose
    V is not known.
    """
    noise, sampler = run.gradient.noise(), run.sampler
    if noise.batch_size or not isinstance(sampler, Moving):
        return None
    heat, square = 2 * sampler.friction * sampler.step_size, sampler.step_size**2
    return float((max(heat - square * noise.correction, 0.0) + square * noise.variance) / heat)


class Means:
    """The engine's mean over all steps, and what it was over the latest frames."""

    def __init__(self) -> None:
        self.mean, self.recent, self._since = 0.0, 0.0, -1
        self._totals: deque[tuple[int, float]] = deque(maxlen=RECENT)

    def set(self, mean: float, steps: int, since: int) -> None:
        """The mean of ``steps`` steps since step ``since``, where the run's statistics start."""
        if since != self._since:
            self._since, self._totals = since, deque([(0, 0.0)], maxlen=RECENT)
        self.mean = mean
        before, total = self._totals[0]
        self.recent = (mean * steps - total) / (steps - before)
        self._totals.append((steps, mean * steps))


class Temperature(View):
    """‖v‖²/m, with m the dimension of the manifold, and ξ/C: the first is 1 where all noise is accounted for."""

    key = "temperature"
    title = "Temperature"
    hint = "mean ‖v‖²/m; the target's is 1"
    aims = True

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return any(issubclass(SAMPLERS[lane.sampler.key], Moving) for lane in experiment.lanes)

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        p = plot(colours, scene.axis_label, "‖v‖²/m and ξ/C", (0, 1), (0, 2))
        number_axis(p.xaxis)
        p.hspan(y=[1.0], line_color=colours.exact, line_width=1.5)
        for i, _ in enumerate(scene.lanes):
            for name, dash, width in (("temperature", "solid", 2.5), ("thermostat", "dashed", 2.0)):
                source = self.feed(f"{name} {i}", "x", "mean", "recent", rollover=WINDOW)
                p.line("x", "recent", source=source, line_color=colours.lanes[i], line_width=1, line_alpha=0.35)
                p.line("x", "mean", source=source, line_color=colours.lanes[i], line_width=width, line_dash=dash)
        self.moving_range("x", p.x_range)
        self.moving_range("y", p.y_range)
        self.heat = [(Means(), Means()) for _ in scene.lanes]
        self._steps = [-1] * len(scene.lanes)
        self._shown: list[tuple[float, float]] = []
        self._top = 2.0
        more = min(scene.noted, 1)
        self._labels = lane_labels(self, p, more=more)
        self._note = self.caption_above(p, len(scene.lanes) + more, len(scene.lanes))
        return p

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        highest = 0.0
        for i, lane in enumerate(lanes):
            run = lane.run
            # A frame without a step shows nothing new.
            if not isinstance(run.sampler, Moving) or run.steps in (0, self._steps[i]):
                continue
            # With a step that blows up a velocity may overflow.
            if run.temperature is None or not run.temperature < 1e50:
                continue
            self._steps[i] = run.steps
            values = [run.temperature]
            if run.thermostat is not None:
                values.append(run.thermostat / run.sampler.friction)
            for name, means, value in zip(("temperature", "thermostat"), self.heat[i], values, strict=False):
                means.set(value, run.steps - run.counted_from, run.counted_from)
                out[f"{name} {i}"] = tuple(np.array([y]) for y in (lane.x, means.mean, means.recent))
                highest = max(highest, means.mean, means.recent)
        if out:
            self._shown = [*self._shown, (lanes[0].x, highest)][-WINDOW:]
            start, end = self._shown[0][0], max(lane.x for lane in lanes)
            out["x"] = (np.array(run_window(start, end, self.scene.axis)),)
            top = max(y for _, y in self._shown)
            # The axis ends at a round number, so that it moves rarely.
            if top > self._top or top < self._top / 3:
                self._top = max(2.0, round_up(1.1 * top))
                out["y"] = (np.array([0.0, self._top]),)
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        """The means so far, their expected values, and the share of steps with uncorrected noise."""
        out, clipped = {}, []
        for label, name, lane, (hot, friction) in zip(self._labels, self.scene.lanes, lanes, self.heat, strict=True):
            run = lane.run
            out[label.id] = name
            if not isinstance(run.sampler, Moving) or not hot.mean:
                continue
            ratio, thermostat = expected(run), run.sampler.thermostat
            text = f"{name}  ‖v‖²/m {hot.mean:.2f}"
            if ratio is not None and not thermostat:
                text += f" (expected {ratio:.2f})"
            if thermostat:
                text += f"  dashed ξ/C: ξ {friction.mean * run.sampler.friction:.3g}, C {run.sampler.friction:.3g}"
                if ratio is not None:
                    text += f" (expected {ratio * run.sampler.friction:.3g})"
            out[label.id] = text
            if run.share(jit.CLIPPED) > 0:
                clipped.append(share(run.share(jit.CLIPPED)))
        note = f"injected noise set to 0 in {' and '.join(clipped)} of steps: V is too large" if clipped else ""
        return {**out, self._note.id: note}
