"""The thermostat of one chain as it moves."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import lane_labels, number_axis, run_window
from sgmcmc_lab.app.views.theme import FINE, plot
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.choices import make_sampler

WINDOW = 600
"""Frames that stay visible."""


def xi(run: Run, coordinate: int) -> float | None:
    """ξ of the first chain, or that of the coordinate where each has its own; None without one."""
    n = run.sampler.thermostats(run.target)
    return float(run.momentum[0, run.momentum.shape[1] - n + min(coordinate, n - 1)]) if n else None


class Thermostat(View):
    """ξ of the first chain of each lane, a point a frame."""

    key = "thermostat"
    title = "Thermostat"
    hint = "ξ of one chain; dotted: where it started"
    aims = True

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        target = experiment.make_target()
        made = [make_sampler(lane.sampler) for lane in experiment.lanes]
        return any(one.thermostats(target) for one in made)

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        p = plot(colours, scene.axis_label, "ξ", (0, 1), (-1, 1))
        number_axis(p.xaxis)
        for i, _ in enumerate(scene.lanes):
            source = self.feed(f"lane {i}", "x", "y", rollover=WINDOW)
            p.line("x", "y", source=source, line_color=colours.lanes[i], line_width=FINE, line_join="bevel")
            first = self.feed(f"first {i}", "y")
            p.hspan(y="y", source=first, line_color=colours.lanes[i], line_dash="dotted", line_width=1.5)
        self.moving_range("x", p.x_range)
        self.moving_range("y", p.y_range)
        self._shown: list[tuple[float, float]] = []
        self._steps = [-1] * len(scene.lanes)
        self._labels = lane_labels(self, p)
        return p

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        for i, lane in enumerate(lanes):
            run, value = lane.run, xi(lane.run, self.scene.coordinate)
            # A frame without a step shows nothing new, and a chain that blows up no number.
            if value is None or run.steps == self._steps[i] or not np.isfinite(value):
                continue
            self._steps[i] = run.steps
            out[f"lane {i}"] = np.array([lane.x]), np.array([value])
            out[f"first {i}"] = (np.array([run.sampler.auxiliary(run.target)[-1]]),)
            self._shown += [(lane.x, value), (lane.x, float(out[f"first {i}"][0][0]))]
        if out:
            self._shown = self._shown[-2 * WINDOW * len(lanes) :]
            x, y = np.array(self._shown).T
            room = 0.1 * max(float(np.ptp(y)), 0.1)
            out["x"] = (np.array(run_window(x.min(), x.max(), self.scene.axis)),)
            out["y"] = (np.array([y.min() - room, y.max() + room]),)
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        out = {}
        for label, name, lane in zip(self._labels, self.scene.lanes, lanes, strict=True):
            value = xi(lane.run, self.scene.coordinate)
            out[label.id] = f"{name}  no ξ" if value is None else f"{name}  ξ = {value:.3g}"
        return out
