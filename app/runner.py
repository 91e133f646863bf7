"""The live loop of one session: engine in a worker thread, frames to the page, as fast as the page draws them."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from app.live import POOL, SLOW, Live, LiveScreen, recent_rate, short
from app.state import AppState
from app.views import VIEWS
from app.views.base import FRESH, CurvePoint, LaneFrame, Scene, View
from app.views.recipes import layouts_of
from samplers import Change, Experiment, Lane, Run, jit
from samplers.accumulate import TAIL
from samplers.diagnostics import divergence, ks
from samplers.engine import functions
from samplers.targets.base import SIMPLEX

WORK_SECONDS = 0.04
"""The longest that one frame may compute. A speed that needs more gets its steps over several frames."""
CHUNK_SECONDS = 0.004
"""The engine comes back this often, so that sessions take turns."""
INLINE_SECONDS = 0.001
"""Work shorter than this is done at once: to hand it to a thread and to wait for that takes as long."""
CURVE_SPACING = 1.03
"""The curve of a lane's distance from the exact law gets a point when the run is this much longer: evenly spaced on a
log axis."""


class LaneRecord:
    """What the page remembers of a lane beside the engine's statistics."""

    def __init__(self, run: Run):
        self.run = run
        self.curve: list[CurvePoint] = []
        """Evenly spaced on a log axis."""
        self.marks: list[tuple[float, float, float]] = []
        """Where parameters were changed: (steps, gradients of a chain, seconds)."""
        self.seen = 0

    @property
    def place(self) -> tuple[float, float, float]:
        """Where the lane is on the three axes."""
        return float(self.run.steps), self.run.gradients / self.run.spec.n_chains, self.run.seconds

    def record(self) -> None:
        """Add a point to the curve if the run has become enough longer."""
        run = self.run
        if run.statistics.n_draws and (not self.curve or run.steps >= self.curve[-1][0] * CURVE_SPACING):
            distance = ks.mean_distance(run.statistics, run.target)
            self.curve.append((*self.place, run.statistics.n_draws, distance, *_divergence(run)))

    def frame(self, axis: int) -> LaneFrame:
        """The lane for a frame; draws that an earlier frame had are not in it."""
        run = self.run
        fresh = run.statistics.tail(min(run.steps - self.seen, TAIL))
        step = max(1, -(-len(fresh) // FRESH))
        picked = np.arange(len(fresh) - 1, -1, -step)[::-1]
        steps = run.steps - len(fresh) + 1 + picked
        self.seen = run.steps
        here = self.place[axis]
        return LaneFrame(
            run=run, x=here, fresh=fresh[picked], fresh_x=here * steps / max(run.steps, 1),
            curve=self.curve, marks=[mark[axis] for mark in self.marks], axis=axis,
        )  # fmt: skip


class Runner(Live):
    """Runs the experiment of an :class:`AppState` and feeds its views."""

    def __init__(self, state: AppState, screen: LiveScreen):
        super().__init__(screen)
        self.state, self.screen = state, screen
        self.lanes: list[LaneRecord] = []
        self.views: list[View] = []
        self._built: tuple[Scene, list[str]] | None = None
        """What the figures are built for, and which."""
        self._known = state.experiment
        self._drew = False
        self._changes: list[tuple[int, Change]]
        self._step_times: deque[tuple[float, int]] = deque(maxlen=60)
        self._cost: float = 1e-6
        self._said_diverged: set[int] = set()
        self._engine = asyncio.Lock()
        state.param.watch(self._on_experiment, "experiment")
        state.param.watch(lambda *_: self._ask(restart=True), "resets")
        state.param.watch(lambda *_: self._ask(rebuild=True), ["views", "axis", "coordinate", "dark", "present"])
        state.param.watch(lambda *_: self._ask(), ["playing", "speed"])

    def experiment(self) -> Experiment:
        """The experiment with the changes made so far: run for as many steps it gives the same draws."""
        experiment = self.state.experiment
        steps = self._most_steps()
        lanes = tuple(
            Lane(record.run.spec.sampler, record.run.spec.gradient, tuple(record.run.changes)) for record in self.lanes
        )
        # A target that was changed on the way is among the changes.
        target = self.lanes[0].run.spec.target if self.lanes else experiment.target
        return Experiment(
            target, lanes or experiment.lanes, experiment.seed, experiment.n_chains, n_steps=max(steps, 1)
        )

    def _active(self) -> bool:
        if not self._watched:
            return False
        moving = any(record.run.divergence is None for record in self.lanes)
        return self._redraw or bool(self._single) or (self.state.playing and moving)

    def _on_experiment(self, event: Any) -> None:
        # Of several changes made at once the event knows only the last one's old value.
        old, new = self._known, event.new
        self._known = new
        retitled = False
        if self._built is not None:
            scene, keys = self._built
            shown = self.state.lane_titles(), self.state.shown_views(), layouts_of(new)
            retitled = shown != (scene.lanes, keys, scene.layouts)
        retargeted = old.target != new.target
        if _structure(old) != _structure(new) or not new.make_target().succeeds(old.make_target()):
            self._ask(restart=True, rebuild=retargeted or retitled)
            return
        to = new.target if retargeted else None
        for i, (before, after) in enumerate(zip(old.lanes, new.lanes, strict=True)):
            if before != after or retargeted:
                self._changes.append((i, Change(0, after.sampler, after.gradient, to)))
        self._ask(rebuild=retargeted or retitled)

    async def _begin(self) -> None:
        self._restart = False
        self._changes.clear()
        runs = self.state.experiment.runs()
        needed = [f for spec in runs for f in functions(spec)]
        loop = asyncio.get_running_loop()
        if not jit.is_ready(needed):

            def progress(done: int, total: int, what: str) -> None:
                loop.call_soon_threadsafe(self.screen.show_status, what, done / max(total, 1))

            await loop.run_in_executor(SLOW, jit.prepare, needed, progress)
            self.screen.show_status("", 1.0)
        async with self._engine:
            self.lanes = [LaneRecord(Run(spec)) for spec in runs]
        self._said_diverged.clear()
        self.screen.clear_divergence()
        self._step_times.clear()
        # The views hold curves of the lanes that were there before.
        self._rebuild |= self._drew
        self._redraw = True

    def view_builders(self) -> list[Callable[[], None]]:
        """What makes new figures: they show the exact law at once, and the lanes from the next frame on."""
        self._rebuild, self._stale, self._drew = False, True, False
        state = self.state
        scene = Scene(
            target=state.experiment.make_target(),
            lanes=state.lane_titles(),
            coordinate=state.coordinate,
            axis=state.axis,
            dark=state.dark,
            layouts=layouts_of(state.experiment),
            large=state.present,
        )
        before = {view.key: view for view in self.views}
        self._built = scene, state.shown_views()
        self.views = []
        return [partial(self._build, scene, key, before.get(key)) for key in self._built[1]]

    def _build(self, scene: Scene, key: str, before: View | None) -> None:
        self.views.append(VIEWS[key](scene, before))

    async def _send_layout(self) -> None:
        for record in self.lanes:
            record.seen = max(0, record.run.steps - TAIL)
        await super()._send_layout()

    async def _frame(self) -> None:
        n = self.state.speed if self.state.playing else self._single
        self._drew = True
        first = self.frames_sent == 0 or self._redraw
        self._redraw, self._single = False, 0
        if self._changes:
            async with self._engine:
                self._apply_changes()
        if n:
            async with self._engine:
                if n * self._cost < INLINE_SECONDS:
                    self._work(n)
                else:
                    await asyncio.get_running_loop().run_in_executor(POOL, self._work, n)
        if self._restart or self._rebuild:
            return
        axis = ("steps", "gradients", "seconds").index(self.state.axis)
        for record in self.lanes:
            record.record()
        lanes = [record.frame(axis) for record in self.lanes]
        data: dict[int, tuple[Any, ...]] = {}
        for view, places in self._feeds:
            if first or self.frames_sent % view.every == 0:
                data.update({places[name]: columns for name, columns in view.compute(lanes).items()})
        self.frames_sent += 1
        await self.bus.send_frame(self.frames_sent, data)
        for i, record in enumerate(self.lanes):
            if record.run.divergence is not None and i not in self._said_diverged:
                self._said_diverged.add(i)
                self.screen.show_divergence(i, record.run.divergence.message)

    def _apply_changes(self) -> None:
        for i, change in self._changes:
            record = self.lanes[i]
            record.run.change(change)
            record.marks.append(record.place)
            if i in self._said_diverged and record.run.divergence is None:
                self._said_diverged.discard(i)
                self.screen.clear_divergence(i)
            elif record.run.divergence is not None and record.run.divergence.refused:
                # Another entry may be refused for another reason.
                self._said_diverged.discard(i)
        self._changes.clear()

    def _work(self, n: int) -> None:
        """``n`` steps of every lane, or as many as the time allows; all lanes make the same number."""
        began = time.perf_counter()
        running = [record.run for record in self.lanes if record.run.divergence is None]
        done = 0
        while done < n and running:
            chunk = min(n - done, max(1, int(CHUNK_SECONDS / self._cost)))
            before = time.perf_counter()
            for run in running:
                run.advance(chunk)
            after = time.perf_counter()
            self._cost = 0.5 * self._cost + 0.5 * (after - before) / chunk
            done += chunk
            running = [run for run in running if run.divergence is None]
            if after - began > WORK_SECONDS:
                break
        self._step_times.append((time.perf_counter(), self._most_steps()))

    async def _slow_turn(self, turn: int) -> None:
        if not self.lanes or self._changes:
            return
        loop = asyncio.get_running_loop()
        views, generation = self.views, self.bus.generation
        lanes = [LaneFrame(r.run, 0.0, np.zeros((0, 1, 1)), np.zeros(0), r.curve, [], 0) for r in self.lanes]
        texts: list[tuple[str, str]] = []
        if self.readout is not None and turn % 2 == 0:
            texts.append((self.readout.id, self._readout()))
        for view in views:
            if await loop.run_in_executor(SLOW, view.background, lanes):
                self._ask()
        if turn % 4 == 1:
            async with self._engine:
                texts += await loop.run_in_executor(SLOW, _captions, views, lanes)
                if self.checks is not None:
                    texts += await loop.run_in_executor(SLOW, self.checks)
        if texts and generation == self.bus.generation:
            await self.bus.send_texts(texts)

    def _most_steps(self) -> int:
        """Steps of the lane that has made most."""
        return max((record.run.steps for record in self.lanes), default=0)

    def _readout(self) -> str:
        steps = self._most_steps()
        burn_in = self.state.experiment.burn_in
        if 0 < steps <= burn_in:
            return f"step {steps:,} of {burn_in:,} that are not counted"
        if not self.state.playing:
            return f"paused at step {steps:,}"
        return f"step {steps:,} · {short(recent_rate(self._step_times))} steps/s · {self._drawn_rate():.0f} frames/s"


def _structure(experiment: Experiment) -> tuple[Any, ...]:
    """What cannot change without a restart."""
    return experiment.seed, experiment.n_chains, tuple(lane.sampler.key for lane in experiment.lanes)


def _divergence(run: Run) -> tuple[float, float]:
    """The KL divergence of a run's draws and what as many exact draws would have; nan on the simplex."""
    if run.target.support == SIMPLEX:
        return float("nan"), float("nan")
    if run.target.planar:
        return divergence.kl_2d(run.statistics, run.target)
    return divergence.kl_1d(run.statistics, 0)


def _captions(views: Sequence[View], lanes: Sequence[LaneFrame]) -> list[tuple[str, str]]:
    return [item for view in views for item in view.texts(lanes)]
