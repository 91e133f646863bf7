"""The exact density p(z, t) from a start, beside thousands of chains that start there at the same moment."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from bokeh.models import LinearColorMapper
from bokeh.palettes import interp_palette

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame
from sgmcmc_lab.app.views.marks import round_up
from sgmcmc_lab.app.views.planes import (
    FAILURES,
    LiveImage,
    Plane,
    Process,
    box,
    density,
    process_of,
    quiet_title,
    sentence,
    shown_ranges,
    sign,
    stack,
)
from sgmcmc_lab.app.views.recipes import RecipeView
from sgmcmc_lab.app.views.theme import plot
from sgmcmc_lab.samplers import Run, RunSpec
from sgmcmc_lab.samplers.expressions import constant
from sgmcmc_lab.samplers.recipe import fokker_planck
from sgmcmc_lab.samplers.recipe.flow import Flow
from sgmcmc_lab.samplers.recipe.recipe import Layout, Recipe, canonical_curl, diagonal

CHAINS = 10_000
CELLS, CELLS_LINE = 120, 400
"""Cells a side of the grid that the exact density is computed on, in two dimensions and in one."""
BLOCK, BLOCK_LINE = 2, 8
"""Cells a side of a block: exact density and chains are compared by their masses in the same blocks."""
SHOWN = 48
"""Blocks a side of an image."""
COARSE = 4
"""Blocks a side that are taken together for the divergence of a plane, so that each has enough chains."""
NARROW = 0.05
"""The standard deviation of the start, as a share of what is shown."""
FRAMES = 48
"""Pictures from the start to the end."""
HOLD = 6
"""The last of them stays for so many pictures."""
GAPS = 3.0
"""The end is so many times of decay after the start, ..."""
LONGEST = 5000
"""... but at most so many steps."""
ENDLESS = 1000
"""Steps where nothing decays."""
WORK_SECONDS = 0.035
FINEST = 8
"""Time steps of the exact density in a picture, at most; a chain's step needs no finer one."""
TINY = 1e-9


class Snapshot(NamedTuple):
    """One picture."""

    steps: int
    time: float
    exact: Array
    """Masses of the blocks."""
    chains: Array
    """Shares of the chains in the blocks."""
    fine: Array
    """The exact density of the cells, in one dimension."""


def lane_spec(run: Run, chains: int) -> RunSpec:
    """The lane as it is now, with other chains, of which no statistics are kept."""
    return replace(run.now, n_chains=chains, burn_in=1_000_000_000)


def blocks(grid: fokker_planck.Grid, values: Array) -> Array:
    """Sums of the cells' values over blocks."""
    if grid.ndim == 1:
        return values.reshape(-1, BLOCK_LINE).sum(axis=1)
    n = grid.cells[0] // BLOCK
    return values.reshape(n, BLOCK, n, BLOCK).sum(axis=(1, 3))


def divergence(p: Array, q: Array) -> float:
    """KL(p‖q) of masses in blocks, taken together where they are of a plane."""
    if p.ndim == 2:
        n = len(p) // COARSE
        p, q = (x.reshape(n, COARSE, n, COARSE).sum(axis=(1, 3)) for x in (p, q))
    p, q = np.maximum(p, 0.0), np.maximum(q, TINY)
    p, q = p / p.sum(), q / q.sum()
    positive = p > 0
    return max(float((p[positive] * np.log(p[positive] / q[positive])).sum()), 0.0)


def chance(q: Array) -> float:
    """About what :func:`divergence` of CHAINS independent draws from q comes to: half a block that has any, each."""
    if q.ndim == 2:
        n = len(q) // COARSE
        q = q.reshape(n, COARSE, n, COARSE).sum(axis=(1, 3))
    return max(int((CHAINS * q > 1).sum()) - 1, 0) / (2 * CHAINS)


class Simulation:
    """The exact density and the chains of one process, on one clock. Raises ValueError where there is no grid."""

    def __init__(self, process: Process, spec: RunSpec):
        flow = process.flow  # with a sentence where z has too many coordinates
        self.flow = Flow(flow.recipe, flow.target, CELLS_LINE if len(flow.recipe.layout.names) == 1 else CELLS)
        self.grid = grid = self.flow.grid
        layout, target = flow.recipe.layout, flow.target
        self.dim = layout.dim
        mean = [
            *(spec.first_position() if spec.make_target().whitening is None else target.start()),
            *np.zeros(len(layout.names) - layout.dim),
        ]
        shown = shown_ranges(layout, target)
        sd = [NARROW * (high - low) for low, high in shown]
        self.mean, self.sd = np.array(mean), np.array(sd)
        self.start = grid.blob(mean, sd)
        self.wanted = blocks(grid, self.flow.wanted * grid.volume)
        step = process.step_size
        steps = self._length(process)
        self.every = max(1, round(steps / FRAMES))
        """Steps of the chains from one picture to the next."""
        self.step_size = step
        self.fine = min(self.every, FINEST)
        self.exact = fokker_planck.Evolution(self.flow.matrix, self.start, self.every * step / self.fine)
        self.run = Run(spec)
        self.rng = np.random.default_rng(spec.seed)
        self.cost = 1e-3
        self.restart()

    def _length(self, process: Process) -> float:
        """Steps until not much moves any more."""
        if all(entry.is_zero for row in self.flow.recipe.D for entry in row):
            return ENDLESS
        try:
            # A coarse grid is right to a per cent, which is enough for this.
            gap = Flow(self.flow.recipe, self.flow.target, 40).spectrum.gap
        except FAILURES:
            return ENDLESS
        return min(GAPS / gap / process.step_size, LONGEST) if gap > 0 else ENDLESS

    def restart(self) -> None:
        """Back to the start, with other chains."""
        self.exact.restart(self.start)
        z = self._draw()
        self.run.coordinates[:] = z[:, : self.dim]
        self.run.momentum[:] = z[:, self.dim :]
        self.first, self.frame, self.shown = self.run.steps, 0, False

    def _draw(self) -> Array:
        """Chains with the distribution of the start: normals inside of the box."""
        low, high = np.array(self.grid.low), np.array(self.grid.high)
        z = self.rng.normal(self.mean, self.sd, (CHAINS, len(self.mean)))
        while (outside := ((z < low) | (z > high)).any(axis=1)).any():
            z[outside] = self.rng.normal(self.mean, self.sd, (int(outside.sum()), len(self.mean)))
        return z

    def work(self) -> Snapshot | None:
        """Go on for WORK_SECONDS at most; a picture where the next one is reached."""
        began = perf_counter()
        if self.shown:
            if self.frame >= FRAMES + HOLD:
                self.restart()
            elif self.frame >= FRAMES:
                self.frame += 1
                return None
        goal = self.first + (self.frame + 1) * self.every if self.shown else self.first
        while self.run.steps < goal and self.run.divergence is None:
            n = min(goal - self.run.steps, max(1, int(WORK_SECONDS / 4 / self.cost)))
            before = perf_counter()
            self.run.advance(n)
            self.cost = max((perf_counter() - before) / n, 1e-7)
            if perf_counter() - began > WORK_SECONDS:
                break
        if self.run.divergence is not None:
            raise ValueError(self.run.divergence.message)
        if self.run.steps < goal:
            return None
        if self.shown:
            self.exact.advance(self.fine)
            self.frame += 1
        self.shown = True
        return self._snapshot()

    def _snapshot(self) -> Snapshot:
        exact = self.exact.density
        z = np.concatenate([self.run.coordinates, self.run.momentum], axis=1)
        size = BLOCK if self.grid.ndim == 2 else BLOCK_LINE
        edges = [edge[::size] for edge in self.grid.edges]
        # A chain beyond the wall is counted at it, as the exact density stays inside.
        inside = np.clip(z, [e[0] for e in edges], [e[-1] for e in edges])
        counts = np.histogramdd(inside, edges)[0]
        return Snapshot(
            self.run.steps - self.first,
            (self.run.steps - self.first) * self.step_size,
            blocks(self.grid, exact * self.grid.volume),
            counts / CHAINS,
            exact if self.grid.ndim == 1 else np.zeros(0),
        )


class Evolution(RecipeView):
    """p(z, t) by the Fokker–Planck equation and by many chains of the first recipe, again and again from one start."""

    key = "evolution"
    constant_steps = True
    title = "Evolution"
    hint = "exact p(z, t), and 10,000 chains"
    most = 1
    of_first = ("exact", "chains", "bars", "curve", "KL exact", "KL chains")

    def build(self) -> Any:
        scene = self.scene
        self._lane = next(iter(self.recipes), None)
        self._process: Process | None = None
        self._simulation: Simulation | None = None
        self._snapshot: Snapshot | None = None
        self._sent: Snapshot | None = None
        self._said = ""
        self._steps = -1
        self._history: list[tuple[float, float, float]] = []
        self._text = box(scene, 2)
        kind = scene.layouts[self._lane] if self._lane is not None else ""
        n = len(Layout(kind, scene.target.dim).names) if kind and scene.target.dim <= 2 else 0
        if n == 0 or n > 2:
            figure = plot(scene.colours, "", "", (0, 1), (0, 1))
            figure.axis.visible = figure.grid.visible = False
            figures = [figure]
        else:
            grid = _grid(Layout(kind, scene.target.dim), scene.target.sampled)
            figures = self._build_planes(kind, grid) if n == 2 else self._build_line(kind, grid)
        return stack(figures, self._text)

    def _build_planes(self, kind: str, grid: fokker_planck.Grid) -> list[Any]:
        colours = self.scene.colours
        lane = colours.lanes[self._lane or 0]
        mapper = LinearColorMapper(palette=interp_palette([colours.surface, lane], 64), low=0.0, high=1.0)
        # An image begins with the first block that is seen, and may reach beyond the last one.
        self._first, ranges = [], []
        first_plane = Plane(self, kind, title="exact")
        for k, (low, _) in enumerate(first_plane.ranges):
            width = BLOCK * grid.steps[k]
            at = min(max(int((low - grid.low[k]) / width + 1e-9), 0), grid.cells[k] // BLOCK - SHOWN)
            self._first.append(at)
            ranges.append((grid.low[k] + at * width, grid.low[k] + (at + SHOWN) * width))
        self._images, figures = [], []
        for name, plane in (("exact", first_plane), ("chains", Plane(self, kind, title=f"{CHAINS:,} chains"))):
            self._images.append(LiveImage(self, plane.figure, name, mapper, (SHOWN, SHOWN), *ranges, level="image"))
            plane.contours(self.scene)
            figures.append(plane.figure)
        return figures

    def _build_line(self, kind: str, grid: fokker_planck.Grid) -> list[Any]:
        scene = self.scene
        colours, lane = scene.colours, scene.colours.lanes[self._lane or 0]
        plane = Plane(self, kind, "density", "line: exact · bars: chains")
        p = plane.figure
        self._edges = grid.edges[0][::BLOCK_LINE]
        x = grid.centres[0]
        law = density(plane.layout, scene.target.sampled, [x])
        seen = (x > plane.x[0]) & (x < plane.x[1])
        # Where the distribution has no upper bound, a tenth of the highest cells is cut off.
        self._law_top = float(np.quantile(law[seen], 0.95))
        bars = self.feed("bars", "left", "right", "top")
        curve = self.feed("curve", "x", "y")
        p.quad("left", "right", "top", 0, source=bars, fill_color=lane, fill_alpha=0.35, line_color=None)
        p.line(x[seen], law[seen], line_color=colours.faint, line_width=1.5, line_dash="dashed")
        p.line("x", "y", source=curve, line_color=lane, line_width=2.5)
        p.y_range.start, p.y_range.end = 0.0, 2.5 * self._law_top
        rate = plot(colours, "t", "log₁₀ KL from e⁻ᴴ", (0, 1), (-4, 1), title="")
        quiet_title(rate, scene)
        rate.min_width = 140
        rate.title.text = "line: exact · dots: chains"
        exact, chains = self.feed("KL exact", "x", "y"), self.feed("KL chains", "x", "y")
        rate.line("x", "y", source=exact, line_color=lane, line_width=2.5)
        rate.scatter("x", "y", source=chains, size=4, color=lane, alpha=0.8)
        self.moving_range("t", rate.x_range)
        return [p, rate]

    def background(self, lanes: Sequence[LaneFrame]) -> bool:
        if self._lane is None:
            return False
        lane = lanes[self._lane]
        process = process_of(lane)
        if process is None:
            return False
        changed = process != self._process
        # A page that is paused computes nothing.
        resting = lane.run.steps == self._steps and self._snapshot is not None and lane.run.divergence is None
        self._steps = lane.run.steps
        if (resting or self._said) and not changed:
            return False
        try:
            if changed:
                self._process, self._simulation, self._said = process, None, ""
                refused = lane.run.sampler.refusal(lane.run.sampled)
                if refused:
                    raise ValueError(refused)
                self._simulation = Simulation(process, lane_spec(lane.run, CHAINS))
            found = self._simulation.work() if self._simulation is not None else None
        except FAILURES as error:
            self._said, self._simulation, self._snapshot = sentence(error), None, None
            return True
        if found is None:
            return False
        self._snapshot = found
        return True

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        found, simulation = self._snapshot, self._simulation
        if found is None or found is self._sent or simulation is None:
            return {}
        self._sent = found
        if found.exact.ndim == 2:
            a, b = self._first
            top = max(float(found.exact.max()), 1e-300)
            out: Data = {}
            for image, masses in zip(self._images, (found.exact, found.chains), strict=True):
                # The root lets the tails be seen.
                part = np.sqrt(np.clip(masses[a : a + SHOWN, b : b + SHOWN] / top, 0.0, 1.0))
                out |= image.data(part)
            return out
        width = float(np.diff(self._edges)[0])
        if found.steps == 0:
            self._history = []
        kl = [divergence(masses, simulation.wanted) for masses in (found.exact, found.chains)]
        of_exact, of_chains = (float(np.log10(max(x, 1e-5))) for x in kl)
        self._history.append((found.time, of_exact, of_chains))
        t, exact, chains = np.array(self._history).T
        end = round_up(max(FRAMES * simulation.every * simulation.step_size, 1e-9))
        return {
            "bars": (self._edges[:-1], self._edges[1:], found.chains / width),
            "curve": (simulation.grid.centres[0], found.fine),
            "KL exact": (t, exact),
            "KL chains": (t, chains),
            "t": (np.array([0.0, end]),),
        }

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        return {self._text.id: self._caption()}

    def _caption(self) -> str:
        if self._lane is None:
            return "No sampler here is a recipe."
        who = sign(self.scene, self._lane)
        found, simulation = self._snapshot, self._simulation
        if self._said:
            return who + self._said
        if found is None or simulation is None:
            return who + "computing…"
        apart, noise = divergence(found.chains, found.exact), chance(found.exact)
        left = divergence(found.exact, simulation.wanted)
        return (
            f"{who}t = {found.time:.2f}, {found.steps:,} steps · KL chains ‖ exact {apart:.2g}, by chance {noise:.2g} · "
            f"KL exact ‖ e⁻ᴴ {left:.2g}"
        )


def _grid(layout: Layout, target: Any) -> fokker_planck.Grid:
    """The grid that every recipe of this layout has."""
    n = len(layout.names)
    curl = canonical_curl(1, constant(0.0)) if n == 2 else diagonal([0.0])
    return Flow(Recipe(layout, constant(0.0), diagonal([0.0] * n), curl), target, CELLS_LINE if n == 1 else CELLS).grid
