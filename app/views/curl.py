"""The gain from Q: the spectral gap against the strength of Q, in two dimensions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame
from sgmcmc_lab.app.views.marks import MARKERS, round_up
from sgmcmc_lab.app.views.planes import FAILURES, Process, box, process_of, sentence, sign, stack
from sgmcmc_lab.app.views.recipes import RecipeView
from sgmcmc_lab.app.views.spectrum import Linear, linear
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.expressions import ZERO, constant
from sgmcmc_lab.samplers.kernels.recipe import RecipeSampler
from sgmcmc_lab.samplers.recipe import fokker_planck
from sgmcmc_lab.samplers.recipe.flow import Flow
from sgmcmc_lab.samplers.recipe.recipe import THETA

STRENGTHS = 13
"""Strengths for which a gap is found on the grid."""
CELLS = 48
"""Cells a side of that grid: coarse, for it is made for every strength."""
CURVE = 201
"""Points of a closed form."""
SPAN = 4.0
"""The axis reaches so many times the largest of 1, the present strength and the best one."""


class Curl(RecipeView):
    """The gap of θ in the plane with Q = q [[0, 1], [−1, 0]] added in place of the recipe's own Q."""

    key = "curl"
    title = "Gap against q"
    hint = "how fast it mixes with a constant Q; mark: now"
    every = 4

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        kinds = {lane.sampler.values()["layout"] for lane in experiment.lanes if lane.sampler.key == RecipeSampler.key}
        return THETA in kinds and experiment.make_target().dim == 2

    def build(self) -> Any:
        scene = self.scene
        self._lanes = self.recipes
        self._processes: dict[int, Process | None] = dict.fromkeys(self._lanes)
        self._pending: dict[int, list[float]] = {}
        self._gaps: dict[int, dict[float, float]] = {i: {} for i in self._lanes}
        self._known: dict[int, Linear | None] = {}
        self._said: dict[int, str] = {}
        self._new = False
        p = plot(scene.colours, "strength q of Q", "spectral gap", (-SPAN, SPAN), (0, 1))
        for i in self._lanes:
            colour = scene.colours.lanes[i]
            best, curve = self.feed(f"best {i}", "x", "y"), self.feed(f"curve {i}", "x", "y")
            found, now = self.feed(f"found {i}", "x", "y"), self.feed(f"now {i}", "x", "y")
            p.line("x", "y", source=best, line_color=scene.colours.faint, line_width=1.5, line_dash="dashed")
            p.line("x", "y", source=curve, line_color=colour, line_width=2, line_dash=DASHES[i])
            p.scatter(
                "x", "y", source=found, marker=MARKERS[i], size=7, line_color=colour, fill_alpha=0.0, line_width=1.5
            )
            p.scatter("x", "y", source=now, marker=MARKERS[i], size=13, color=colour, line_color=scene.colours.surface)
        self.moving_range("x", p.x_range)
        self.moving_range("y", p.y_range)
        self._text = box(scene, 2)
        return stack([p], self._text)

    def background(self, lanes: Sequence[LaneFrame]) -> bool:
        for i in self._lanes:
            process = process_of(lanes[i])
            if process is not None and process != self._processes[i]:
                self._processes[i] = process
                self._start(i, process)
                return True
        for i, left in self._pending.items():
            process = self._processes[i]
            if left and process is not None:
                # One strength at a time: the thread is shared.
                q = left.pop(0)
                try:
                    self._gaps[i][q] = Flow(_with_curl(process, q).effective, process.target, CELLS).spectrum.gap
                except FAILURES as error:
                    self._said[i] = sentence(error)
                    left.clear()
                self._new = True
                return True
        return False

    def _start(self, i: int, process: Process) -> None:
        self._gaps[i], self._said[i], self._new = {}, "", True
        self._pending[i], self._known[i] = [], None
        if len(process.recipe.layout.names) != 2 or process.recipe.edited:
            self._said[i] = "it needs z = (θ₁, θ₂), and a drift that follows from D and Q"
            return
        known = self._known[i] = linear(process)
        own = process.recipe.Q[0][1].constant
        best = known.best[1] if known is not None and known.best is not None else 0.0
        reach = SPAN * max(1.0, abs(own or 0.0) / 2, best / 2)
        spaced = np.linspace(-reach, reach, STRENGTHS).tolist()
        self._pending[i] = [*([own] if own is not None else []), *sorted(spaced, key=abs)]

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        if not self._new:
            return {}
        self._new = False
        out: Data = {}
        right, top = SPAN, 0.0
        none = (np.zeros(0), np.zeros(0))
        for i in self._lanes:
            process, known = self._processes[i], self._known.get(i)
            gaps = dict(sorted(self._gaps[i].items()))
            out[f"found {i}"] = (np.array(list(gaps)), np.array(list(gaps.values()))) if gaps else none
            own = None if process is None else process.recipe.Q[0][1].constant
            out[f"now {i}"] = (np.array([own]), np.array([gaps[own]])) if own in gaps else none
            right = max(right, *map(abs, gaps), *map(abs, self._pending.get(i, [])), 0.0)
            top = max(top, *gaps.values(), 0.0)
            out[f"curve {i}"] = out[f"best {i}"] = none
            if known is not None:
                q = np.linspace(-right, right, CURVE)
                curve = closed_form(known, q)
                out[f"curve {i}"] = (q, curve)
                top = max(top, float(curve.max()))
                if known.best is not None:
                    out[f"best {i}"] = (np.array([-right, right]), np.full(2, known.best[0]))
                    top = max(top, known.best[0])
        out["x"] = (np.array([-right, right]),)
        out["y"] = (np.array([0.0, round_up(1.05 * top) if top > 0 else 1.0]),)
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        return {self._text.id: "<br>".join(sign(self.scene, i) + self._caption(i) for i in self._lanes)}

    def _caption(self, i: int) -> str:
        known, gaps = self._known.get(i), self._gaps[i]
        if self._said.get(i):
            return self._said[i]
        if known is not None and known.best is not None:
            gap, strength = known.best
            return f"closed form: {known.gap:.3g} now; the maximum over Q is {gap:.3g}, for |q| ≥ {strength:.3g}"
        if not gaps:
            return "computing…"
        at = max(gaps, key=gaps.__getitem__)
        return f"on a grid: gap {gaps.get(0.0, float('nan')):.3g} with Q = 0, {gaps[at]:.3g} at q = {at:.3g}"


def _with_curl(process: Process, q: float) -> Process:
    curl = ((ZERO, constant(q)), (constant(-q), ZERO))
    return process._replace(recipe=replace(process.recipe, curl=curl, typed=()))


def closed_form(known: Linear, strengths: Array) -> Array:
    """The gap of a Gaussian for each strength of a constant Q."""
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    return np.array([fokker_planck.gaussian_gap(known.covariance, known.D, q * turn) for q in strengths])
