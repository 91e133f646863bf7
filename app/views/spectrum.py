"""How fast a recipe mixes: the eigenvalues of its generator, and the autocorrelation that follows from them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from bokeh.layouts import column
from bokeh.models import BasicTicker, NumeralTickFormatter
from scipy.interpolate import RegularGridInterpolator

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame
from sgmcmc_lab.app.views.marks import FEWEST_LAGS, MARKERS, round_up
from sgmcmc_lab.app.views.planes import (
    FAILURES,
    LOWEST,
    Process,
    box,
    process_of,
    quiet_title,
    sentence,
    shown_ranges,
    sign,
)
from sgmcmc_lab.app.views.recipes import RecipeView
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers.diagnostics import autocorrelation
from sgmcmc_lab.samplers.recipe import fokker_planck
from sgmcmc_lab.samplers.recipe.flow import Flow
from sgmcmc_lab.samplers.recipe.recipe import Recipe
from sgmcmc_lab.samplers.targets.base import ByTarget

MODES = 6
"""Eigenvalues that are shown."""
DECAYS = 6.0
"""The prediction ends after so many times 1/gap."""
TIMES = (241, 601)
"""Points of a prediction, fewest and most; a turn has at least 16."""
FORGOTTEN = 0.02
"""The axis ends where the prediction stays below this."""
SIDE = 48
"""Cells a side of a mode's picture."""


@dataclass(frozen=True)
class Mixing:
    """The slowest modes of one process, and the autocorrelation of one coordinate that follows from them."""

    values: fokker_planck.Complex
    """Eigenvalues λ, complex, slowest first."""
    times: Array
    rho: Array
    """The autocorrelation at these times."""
    modes: tuple[Array, ...] = ()
    """The two slowest eigenfunctions on the cells that are shown; of a complex pair its two parts."""
    points: Array = field(default_factory=lambda: np.zeros(0))
    """Where they are, in one dimension."""

    @property
    def gap(self) -> float:
        """The slowest rate of decay."""
        return float(-self.values[0].real)


@dataclass(frozen=True)
class Linear:
    """A recipe with quadratic H and constant D and Q: everything is known in closed form."""

    covariance: Array
    D: Array
    Q: Array

    @property
    def gap(self) -> float:
        return fokker_planck.gaussian_gap(self.covariance, self.D, self.Q)

    @property
    def best(self) -> tuple[float, float] | None:
        """The best gap of all Q, and in two dimensions the least |q| that has it, where D is a multiple of 1."""
        n = len(self.D)
        size = float(self.D[0, 0])
        if n != 2 or size <= 0 or not np.allclose(self.D, size * np.eye(n), rtol=1e-12, atol=0):
            return None
        return (
            size * fokker_planck.optimal_curl_gap(self.covariance),
            size * fokker_planck.optimal_curl(self.covariance),
        )


def linear(process: Process) -> Linear | None:
    """The closed form where there is one."""
    recipe, names = process.recipe, process.recipe.layout.names
    if process.excess != 0 or recipe.edited or recipe.dissipation_dropped:
        return None
    entries = [entry for matrix in (recipe.D, recipe.Q) for row in matrix for entry in row]
    entries += [slope.diff(label) for slope in recipe.gradient for label in names]
    constants = [float(entry.constant) for entry in entries if entry.constant is not None]
    if len(constants) < len(entries):
        return None
    D, Q, precision = np.array(constants).reshape(3, len(names), len(names))
    if np.linalg.eigvalsh(precision)[0] <= 0 or np.linalg.eigvalsh(D)[0] < -1e-12:
        return None
    return Linear(np.linalg.inv(precision), D, Q)


def stuck(recipe: Recipe) -> str:
    """Why a process has no gap at all, in a sentence; empty where it may have one."""
    n = range(len(recipe.layout.names))
    if all(entry.is_zero for row in recipe.D for entry in row):
        return "D = 0: H never changes, so there is no gap"
    if any(recipe.drift[i].is_zero and all(recipe.D[i][j].is_zero for j in n) for i in n):
        return "θ never moves: no gap"
    return ""


_MIXING: ByTarget[tuple[Recipe, float, float | None, int], "Mixing | str"] = ByTarget()


def mixing(process: Process, k: int) -> Mixing | str:
    """The modes, and the prediction for coordinate ``k``; a sentence where there are none."""
    key = process.recipe, process.step_size, process.excess, k
    return _MIXING.of(process.target, key, lambda: _mixing(process, k))


def _mixing(process: Process, k: int) -> Mixing | str:
    try:
        known = linear(process)
        if len(process.recipe.layout.names) > 2 and known is not None:
            return _closed(known, k)
        why = stuck(process.effective)
        if why:
            return why
        flow = process.flow
        found = flow.spectrum
        if not (found.gap > 1e-6 and np.isfinite(found.values).all()):
            return "On this grid nothing decays: the gap is 0."
        times = _times(found.values)
        rho = flow.autocorrelation(times, k)
        second = found.right[0].imag if abs(found.values[0].imag) > 1e-9 * abs(found.values[0]) else found.right[1].real
        if flow.grid.ndim == 1:
            (low, high), (x,) = shown_ranges(flow.recipe.layout, flow.target)[0], flow.grid.centres
            inside = (x > low) & (x < high)
            return Mixing(found.values[:MODES], times, rho, (found.right[0].real[inside], second[inside]), x[inside])
        modes = tuple(_picture(flow, mode) for mode in (found.right[0].real, second))
        return Mixing(found.values[:MODES], times, rho, modes)
    except FAILURES as error:
        return str(error)


def _picture(flow: Flow, mode: Array) -> Array:
    """A mode on SIDE cells a side of what is shown."""
    axes = []
    for low, high in shown_ranges(flow.recipe.layout, flow.target):
        edges = np.linspace(low, high, SIDE + 1)
        axes.append((edges[1:] + edges[:-1]) / 2)
    return RegularGridInterpolator(flow.grid.centres, mode, bounds_error=False, fill_value=None)(
        np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    )


def _times(values: fokker_planck.Complex) -> Array:
    gap, turn = float(-values[0].real), float(np.abs(values[:4].imag).max())
    n = int(np.clip(DECAYS / gap * turn / (2 * np.pi) * 16, *TIMES))
    return np.linspace(0.0, DECAYS / gap, n)


def _closed(known: Linear, k: int) -> Mixing | str:
    rates = fokker_planck.gaussian_rates(known.covariance, known.D, known.Q)
    if not rates[0].real > 1e-9:
        return "θ never moves: no gap" if np.abs(known.Q).max() == 0 else "The gap is 0."
    times = _times(-rates)
    direction = np.eye(len(known.D))[k]
    rho = fokker_planck.gaussian_autocorrelation(known.covariance, known.D, known.Q, times, direction)
    return Mixing(-rates[:MODES], times, rho)


class SpectrumView(RecipeView):
    """Eigenvalues in the complex plane; predicted and measured autocorrelation, with and without Q."""

    key = "spectrum"
    constant_steps = True
    title = "Spectrum and mixing"
    hint = "faint: Q = 0; marks: measured"
    every = 4
    tall = True

    def build(self) -> Any:
        scene = self.scene
        colours = scene.colours
        self._lanes = self.recipes
        self._processes: list[Process | None] = [None] * len(scene.lanes)
        self._found: dict[tuple[int, bool], Mixing | str] = {}
        self._sent: Any = None
        self._end, self._bottom = FEWEST_LAGS, -0.25
        plane = plot(colours, "decay rate −Re λ", "rotation Im λ", (0, 1), (-1, 1), title="eigenvalues")
        rho = plot(
            colours,
            "lag in steps",
            "",
            (0, self._end),
            (self._bottom, 1.05),
            title=f"autocorrelation of {scene.column.name}",
        )
        for p in (plane, rho):
            quiet_title(p, scene)
            p.min_width, p.min_height = 140, LOWEST
            p.hspan(y=[0.0], line_color=colours.faint, line_width=1)
        plane.yaxis.ticker = plane.xaxis.ticker = BasicTicker(desired_num_ticks=4, num_minor_ticks=0)
        rho.xaxis.formatter, rho.xaxis.ticker = (
            NumeralTickFormatter(format="0,0"),
            BasicTicker(desired_num_ticks=3, num_minor_ticks=0),
        )
        for i in self._lanes:
            colour = colours.lanes[i]
            for with_curl in (False, True):
                name = "with" if with_curl else "without"
                values = self.feed(f"values {name} {i}", "x", "y")
                line = self.feed(f"predicted {name} {i}", "x", "y")
                plane.scatter(
                    "x",
                    "y",
                    source=values,
                    marker=MARKERS[i],
                    size=9 if with_curl else 8,
                    line_color=colour,
                    line_width=1.5,
                    line_alpha=1.0 if with_curl else 0.55,
                    fill_color=colour,
                    fill_alpha=0.9 if with_curl else 0.0,
                )
                rho.line(
                    "x",
                    "y",
                    source=line,
                    line_color=colour,
                    line_width=6 if with_curl else 2,
                    line_alpha=0.4 if with_curl else 0.6,
                    line_dash=DASHES[i] if with_curl else "dotted",
                )
            gap = self.feed(f"gap {i}", "x", "low", "high")
            plane.segment("x", "low", "x", "high", source=gap, line_color=colour, line_width=1.5, line_dash=DASHES[i])
            measured = self.feed(f"measured {i}", "x", "y")
            rho.scatter("x", "y", source=measured, marker=MARKERS[i], size=6, color=colour, line_color=colours.surface)
        self.moving_range("rates", plane.x_range)
        self.moving_range("turns", plane.y_range)
        self.moving_range("lags", rho.x_range)
        self.moving_range("rho", rho.y_range)
        self._text = box(scene, 2 * len(self._lanes))
        return column(plane, rho, self._text, sizing_mode="stretch_both")

    def background(self, lanes: Sequence[LaneFrame]) -> bool:
        for i in self._lanes:
            process = process_of(lanes[i])
            if process is not None and process != self._processes[i]:
                self._processes[i] = process
                self._found = {key: value for key, value in self._found.items() if key[0] != i}
        # One at a time: the thread is shared.
        for with_curl in (True, False):
            for i in self._lanes:
                process = self._processes[i]
                if process is None or (i, with_curl) in self._found:
                    continue
                found = self._solve(process, lanes[i], with_curl)
                self._found = {**self._found, (i, with_curl): found}
                return True
        return False

    def _solve(self, process: Process, lane: LaneFrame, with_curl: bool) -> Mixing | str:
        try:
            refused = lane.run.sampler.refusal(lane.run.sampled)
            if refused:
                return refused
            if not with_curl:
                if process.recipe.edited:
                    return "typed drift"
                if all(entry.is_zero for row in process.recipe.Q for entry in row):
                    return "Q = 0"
                process = process.without_curl
            return mixing(process, self.scene.coordinate)
        except FAILURES as error:
            return str(error)

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        found, k = self._found, self.scene.coordinate
        steps = {i: lanes[i].run.sampler.time_per_step or 1.0 for i in self._lanes}
        needed = [
            _memory(value) / steps[i]
            for with_curl in (True, False)
            for (i, curl), value in found.items()
            if curl == with_curl and isinstance(value, Mixing)
        ]
        curves = {i: autocorrelation.autocorrelation(lanes[i].run.statistics, k) for i in self._lanes}
        if not needed:
            needed = [float(lags[-1]) for lags, _ in curves.values() if len(lags)] or [FEWEST_LAGS]
        end = round_up(max(FEWEST_LAGS, *needed) if len(needed) > 1 else max(FEWEST_LAGS, needed[0]))
        if end != self._end:
            self._end = end
            out["lags"] = (np.array([0.0, end]),)
        for i, (lags, rho) in curves.items():
            good = np.isfinite(rho) & (lags <= end)
            out[f"measured {i}"] = (lags[good], rho[good])
        if found is not self._sent:
            self._sent = found
            out |= self._pictures(found, steps)
        return out

    def _pictures(self, found: dict[tuple[int, bool], Mixing | str], steps: dict[int, float]) -> Data:
        out: Data = {}
        made = [value for value in found.values() if isinstance(value, Mixing)]
        widest = max((float((-value.values.real).max()) for value in made), default=1.0)
        highest = max((float(np.abs(value.values.imag).max()) for value in made), default=0.0)
        right = round_up(1.05 * widest)
        top = round_up(1.1 * highest) if highest > 1e-9 * widest else 0.5 * right
        out["rates"], out["turns"] = (np.array([0.0, right]),), (np.array([-top, top]),)
        for i in self._lanes:
            for with_curl in (True, False):
                name, value = "with" if with_curl else "without", found.get((i, with_curl))
                values = predicted = np.zeros(0), np.zeros(0)
                gap = np.zeros(0)
                if isinstance(value, Mixing):
                    values, predicted = (-value.values.real, value.values.imag), (value.times / steps[i], value.rho)
                    gap = np.array([value.gap])
                out[f"values {name} {i}"], out[f"predicted {name} {i}"] = values, predicted
                if with_curl:
                    out[f"gap {i}"] = (gap, np.full(len(gap), -top), np.full(len(gap), top))
        least = min((float(value.rho.min()) for value in made), default=0.0)
        self._bottom = -1.05 if least < -0.25 else -0.25
        out["rho"] = (np.array([self._bottom, 1.05]),)
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        lines = [sign(self.scene, i) + self._caption(i) for i in self._lanes]
        return {self._text.id: "<br>".join(lines) or "No sampler here is a recipe."}

    def _caption(self, i: int) -> str:
        found, process = self._found.get((i, True)), self._processes[i]
        if found is None or process is None:
            return "computing…"
        if isinstance(found, str):
            return sentence(ValueError(found))
        parts = [f"<b>gap {found.gap:.3g}</b>"]
        without = self._found.get((i, False))
        if isinstance(without, Mixing):
            parts[0] += f" (Q = 0: {without.gap:.3g})"
        elif without is not None and without not in ("Q = 0", "typed drift"):
            parts[0] += f"; with Q = 0: {sentence(ValueError(without))}"
        known = linear(process)
        if known is not None:
            parts.append(f"closed form {known.gap:.3g}")
            best = known.best
            if best is not None:
                parts.append(f"best |q| = {best[1]:.3g} has {best[0]:.3g}")
        return " · ".join(parts)


def _memory(found: Mixing) -> float:
    """The time after which the prediction stays small."""
    large = np.flatnonzero(np.abs(found.rho) > FORGOTTEN)
    return float(found.times[large[-1]]) if len(large) else float(found.times[-1])
