"""Simulation-based calibration as it goes on: ranks of prior draws among the draws of their posteriors."""

import time
from dataclasses import replace
from textwrap import wrap
from typing import Any

import numpy as np
from scipy import stats

from sgmcmc_lab.app.views.base import Data, Frame, Scene, View
from sgmcmc_lab.app.views.marks import lane_labels
from sgmcmc_lab.app.views.predictive import LETTERS
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers import Experiment, RunSpec
from sgmcmc_lab.samplers.diagnostics.calibration import BINS, DRAWS, MAX_THIN, Replicas, refusal, thinning, unmade
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior

RUNS = 1_000
"""The number of runs after which a lane is done."""
WORK_SECONDS = 0.1
"""Seconds of background work at a time."""
SLICE_SECONDS = 0.02
"""Between two looks at the clock."""
LEVEL = 0.99
EDGES = np.repeat(np.arange(BINS + 1) * (DRAWS + 1) / BINS, 2)[1:-1]


class CalibrationView(View):
    """A histogram of ranks for each lane's sampler, with its step size and its gradient, on data that the prior makes.

    A right sampler's ranks are uniform: heights stay in the band that holds each with probability .99. A ∪ says that
    the draws are too narrow, a hump that they are too wide, a slope that they lie to one side.
    """

    key = "calibration"
    constant_steps = True
    title = "Simulation-based calibration"
    hint = "ranks among posterior draws; grey: 99 % if correct"

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return issubclass(TARGETS[experiment.target.key], TypedPosterior)

    def __init__(self, scene: Scene, before: View | None = None):
        self._replicas: dict[int, Replicas] = {}
        self._state: dict[int, str] = {}
        if isinstance(before, CalibrationView) and before.scene.target is scene.target:
            self._replicas = dict(before._replicas)
        self._chunk: dict[int, int] = {}
        self._fresh = bool(self._replicas)
        super().__init__(scene, before)

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        name = scene.target.column_names[scene.coordinate]
        p = plot(colours, f"rank of {name} among {DRAWS} draws", "rel. frequency", (0.0, DRAWS + 1.0), (0.0, 2.0))
        self.moving_range("y", p.y_range)
        band = self.feed("band", "x", "low", "high")
        ends = np.array([0.0, DRAWS + 1.0])
        band.data = {"x": ends, "low": np.ones(2), "high": np.ones(2)}
        p.varea(x="x", y1="low", y2="high", source=band, fill_color=colours.faint, fill_alpha=0.3)
        p.line(ends, [1.0, 1.0], line_color=colours.faint, line_dash="dotted")
        for i, _ in enumerate(scene.lanes):
            source = self.feed(f"lane {i}", "x", "y")
            p.line("x", "y", source=source, line_color=colours.lanes[i], line_width=2, line_dash=DASHES[i])
        self._why = "\n".join(wrap(unmade(scene.target), LETTERS))
        self._labels = [self.caption_above(p, self._why.count("\n") + 1)] if self._why else lane_labels(self, p)
        return p

    def background(self, lanes: Frame) -> bool:
        """The next steps of the lane that has made the fewest runs; True where a run is over."""
        began, fresh = time.perf_counter(), False
        for i, lane in enumerate(lanes):
            self._take(i, lane.run)
        while time.perf_counter() - began < WORK_SECONDS:
            left = [i for i, each in self._replicas.items() if each.done < RUNS]
            if not left:
                break
            i = min(left, key=lambda k: self._replicas[k].done)
            before, chunk = time.perf_counter(), self._chunk.get(i, 1)
            fresh |= self._replicas[i].advance(chunk)
            passed = time.perf_counter() - before
            self._chunk[i] = max(1, min(2 * chunk, int(chunk * SLICE_SECONDS / max(passed, 1e-6))))
        self._fresh |= fresh
        return fresh

    def _take(self, i: int, run: Any) -> None:
        """Begin with a lane, or anew where it has another sampler or another step size now."""
        spec: RunSpec = replace(run.now, seed=0, start=(), momentum=(), n_chains=1, n_steps=1, burn_in=0, thin=1)
        known = self._replicas.get(i)
        if known is not None and known.spec == spec:
            return
        self._replicas.pop(i, None)
        why = refusal(run.target, spec)
        thin = None if why else thinning(run)
        if why or thin is None:
            self._state[i] = why or "waits for the chains' autocorrelation time"
        elif thin > MAX_THIN:
            self._state[i] = f"autocorrelation over {thin:,} steps, above {MAX_THIN:,}: take a larger step size"
        else:
            self._replicas[i] = Replicas(run.target, spec, thin)
            self._fresh = True

    def compute(self, lanes: Frame) -> Data:
        if not self._fresh:
            return {}
        self._fresh = False
        out: Data = {}
        highest, fewest = 2.0, 0
        for i in range(len(self.scene.lanes)):
            made = self._replicas.get(i)
            if made is None or not made.ranks:
                out[f"lane {i}"] = np.zeros(0), np.zeros(0)
                continue
            counts = made.found().counts(self.scene.coordinate)
            height = counts / counts.sum() * BINS
            out[f"lane {i}"] = EDGES, np.repeat(height, 2)
            highest = max(highest, 1.1 * float(height.max()))
            fewest = min(fewest or len(made.ranks), len(made.ranks))
        if fewest:
            low, high = stats.binom.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], fewest, 1 / BINS) / fewest * BINS
            out["band"] = np.array([0.0, DRAWS + 1.0]), np.full(2, low), np.full(2, high)
            out["y"] = (np.array([0.0, max(highest, 1.1 * float(high)) if fewest >= BINS else highest]),)
        return out

    def captions(self, lanes: Frame) -> dict[str, str]:
        """How many runs there are, and p of their χ²; or why no lane has any."""
        if self._why:
            return {self._labels[0].id: self._why}
        return {
            label.id: f"{name}  {self._said(i)}"
            for i, (label, name) in enumerate(zip(self._labels, self.scene.lanes, strict=True))
        }

    def _said(self, i: int) -> str:
        made = self._replicas.get(i)
        if made is None:
            return self._state.get(i, "waits")
        p = made.found().p_value(self.scene.coordinate) if made.ranks else float("nan")
        said = f"{len(made.ranks)} runs" + (f", p {p:.2g}" if np.isfinite(p) else "")
        return said + (f"; {made.failed} diverged" if made.failed else "")
