"""Lanes on a density: chains of kernels, whose draws are held against the target."""

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from sgmcmc_lab.app.live.lanes.base import WORK_SECONDS, Lanes, Progress, Record
from sgmcmc_lab.app.live.loop import recent_rate, with_rates
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views.adaptation import followed
from sgmcmc_lab.app.views.base import CurvePoint, Frame, Position, Scene
from sgmcmc_lab.app.views.recipes import layouts_of
from sgmcmc_lab.samplers import Change, Experiment, Lane, Run
from sgmcmc_lab.samplers.choices import make_gradient, make_sampler
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.diagnostics import agreement, divergence, ks
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.kernels.base import KEPT
from sgmcmc_lab.samplers.kernels.exact import Exact
from sgmcmc_lab.samplers.models.run import needed
from sgmcmc_lab.samplers.targets.base import SIMPLEX, Target

CHUNK_SECONDS = 0.004
"""The engine comes back this often, so that sessions take turns."""
INLINE_SECONDS = 0.001
"""Work shorter than this is done at once: to hand it to a thread and to wait for that takes as long."""
NUMBER_SECONDS = 1e-7
"""About what one coordinate of one chain costs in a step. Before the first step has been made nothing else is known."""
LOOKED_AT = 10
"""So many numbers that gradients look at cost as much: from 1 to 14 ns each."""
HEAVY = 20_000
"""With so many coordinates of all chains, the arrays of a frame take longer than a frame may hold the loop."""
CURVE_SPACING = 1.03
"""The curve of a lane's distance from the target gets a point when the run is this much longer: evenly spaced on a
log axis."""


class LaneRecord(Record):
    """The page's record of a lane, besides the engine's statistics."""

    def __init__(self, run: Run):
        super().__init__(run)
        self.curve: list[CurvePoint] = []
        """Evenly spaced on a log axis."""

    @property
    def position(self) -> Position:
        chains = self.run.spec.n_chains
        return Position(self.run.steps, self.run.gradients / chains, self.run.data_seen / chains, self.run.seconds)

    @property
    def made(self) -> int:
        return self.run.steps

    @property
    def left(self) -> int:
        """Steps to where the run has the experiment's length; 0 once it is there."""
        spec = self.run.spec
        return max(max(self.run.counted_from, self.run.burn_in) + spec.n_steps - self.run.steps, 0)

    def record(self, rests: bool = False) -> None:
        """Add a point to the curve if the run has become enough longer, or longer at all where it rests."""
        run, last = self.run, self.curve[-1].position.steps if self.curve else 0
        if run.statistics.n_draws and run.steps > last and (rests or run.steps >= last * CURVE_SPACING):
            distance = ks.mean_distance(run.statistics, run.target)
            self.curve.append(CurvePoint(self.position, run.statistics.n_effective, distance, *_divergence(run)))


class DensityLanes(Lanes):
    """Kernels side by side; all make the same number of steps."""

    def __init__(self, experiment: Experiment, early: Target | None = None):
        super().__init__(experiment)
        self.early = early is not None
        self._begun_early = self.early
        self.records = [LaneRecord(Run(spec, early=early)) for spec in experiment.runs()]
        numbers = sum(record.run.spec.n_chains * record.run.target.dim for record in self.records)
        self.heavy = numbers >= HEAVY
        self._guess()
        self._step_times: deque[tuple[float, int]] = deque(maxlen=60)

    def _guess(self) -> None:
        """An estimate of the cost of a step, before one has been made."""
        specs = [run.now for run in self.runs]
        numbers = [
            max(spec.n_chains * run.target.dim, spec.numbers_per_step() / LOOKED_AT)
            for spec, run in zip(specs, self.runs, strict=True)
        ]
        self._cost, self._measured = NUMBER_SECONDS * sum(numbers), False

    def change(self, lane: int, change: Change) -> None:
        super().change(lane, change)
        self._guess()

    @classmethod
    def prepare(
        cls, progress: Progress, experiment: Experiment, readings: Sequence[Any] | None = None
    ) -> "DensityLanes":
        """The lanes, with what they need and these readings, by default all, compiled, and the target known."""
        experiment.make_target().prepare(progress.tell)
        jit.prepare([*needed(experiment), *(jit.readings() if readings is None else readings)], progress.compiling)
        _prepare_answers(experiment.make_target())
        return cls(experiment)

    @classmethod
    def prepare_early(cls, experiment: Experiment, readings: Sequence[Any]) -> "DensityLanes | None":
        """The lanes before the target is known, beside rough answers for it; None where there are none.

        A lane of exact draws has nothing to begin with.
        """
        if any(lane.sampler.key == Exact.key for lane in experiment.lanes):
            return None
        jit.prepare([*needed(experiment), *readings])
        early = experiment.make_target().early()
        if early is None:
            return None
        _prepare_answers(early)
        return cls(experiment, early)

    def known(self) -> Target | None:
        """The target, known now, against whose exact answers what was counted so far can be held; None where it cannot.
        This takes a moment.
        """
        exact: Any = self.experiment.make_target()
        known: Target | None = exact.counted_like(self.runs[0].target)
        if known is not None:
            _prepare_answers(known)
        return known

    def know(self, known: Target) -> None:
        """Hold what was counted so far against the exact answers of :meth:`known`."""
        for record in self.records:
            for run in filter(None, (record.run, record.whole)):
                run.know(known)
            # Its distances were those from the rough answers.
            record.curve.clear()
        self.early = False

    @staticmethod
    def compared(experiment: Experiment) -> bool:
        """Whether the exact answers with which each frame compares draws are computed."""
        target = experiment.make_target()
        return ks.is_ready(target) and divergence.is_ready(target)

    @staticmethod
    def scene(state: AppState, lanes: Any = None) -> Scene | None:
        """The scene for which views are built: they show the target before anything moves. None while that is not
        known.
        """
        target = state.experiment.make_target()
        if (
            isinstance(lanes, DensityLanes)
            and lanes._begun_early
            and lanes.experiment.density == state.experiment.density
        ):
            target = lanes.runs[0].target
        if not target.ready:
            return None
        return Scene(
            target=target,
            lanes=state.lane_titles(),
            coordinate=state.coordinate,
            axis=state.axis,
            dark=state.dark,
            layouts=layouts_of(state.experiment),
            large=state.present,
            parts=tuple(SAMPLERS[state.experiment.lanes[0].sampler.key].parts),
            throws=sum(make_sampler(lane.sampler).momentum == KEPT for lane in state.experiment.lanes),
            noted=sum(_noted(lane, target) for lane in state.experiment.lanes),
            diverges=any(SAMPLERS[lane.sampler.key].diverges for lane in state.experiment.lanes),
            adapts=followed(make_sampler(lane.sampler) for lane in state.experiment.lanes),
        )

    def facts(self) -> dict[str, str]:
        return dict(self.runs[0].target.facts())

    @property
    def moving(self) -> bool:
        return any(run.divergence is None for run in self.runs)

    def recorded(self) -> Experiment:
        first = self.runs[0].spec
        lanes = tuple(
            Lane(run.spec.sampler, run.spec.gradient, tuple(run.changes), schedule=run.spec.schedule)
            for run in self.runs
        )
        n_steps = max(self._steps, 1)
        return Experiment(
            first.target,
            lanes,
            first.seed,
            first.n_chains,
            n_steps=n_steps,
            start=first.start,
            momentum=first.momentum,
            temperature=first.temperature,
        )

    def apart(self) -> Run | None:
        first = self.runs[0]
        return first if first.divergence is None else None

    def short(self, state: AppState, single: int) -> bool:
        return _wanted(state, single) * self._cost < INLINE_SECONDS

    def move(self, state: AppState, single: int) -> None:
        """The state's number of steps, or as many as the time allows."""
        n, done = _wanted(state, single), 0
        began = time.perf_counter()
        running = [record for record in self.records if record.run.divergence is None]
        while done < n and running:
            ends = [record.left for record in running if record.left]
            # The first step tells what one costs.
            chunk = min(n - done, max(1, int(CHUNK_SECONDS / self._cost)), *ends) if self._measured else 1
            before = time.thread_time()
            for record in running:
                if self.given_up:
                    return
                record.run.advance(chunk)
            # The time of this thread alone: waiting for other threads is no cost of a step.
            cost = (time.thread_time() - before) / chunk
            self._cost, self._measured = 0.5 * (self._cost + cost) if self._measured else cost, True
            done += chunk
            # Claims are of a lesson's step. Elsewhere nobody asks for it, and a copy is as large as the run.
            for record in running:
                if state.position.step is not None and record.whole is None and not record.left:
                    record.whole = record.run.standing()
            running = [record for record in running if record.run.divergence is None]
            if time.perf_counter() - began > WORK_SECONDS:
                break
        self._step_times.append((time.perf_counter(), self._steps))

    def frame(self, state: AppState) -> Frame:
        for record in self.records:
            record.record(rests=not state.playing)
        return Frame(record.frame(state.axis) for record in self.records)

    def whole(self, state: AppState) -> Frame:
        return Frame(record.still() for record in self.records)

    def doubts(self, state: AppState) -> str:
        # A lesson's step asks what it shows.
        if state.position.restricted or self.early:
            return ""
        said = [agreement.doubt(run) for run in self.runs]
        several = len(said) > 1
        return " ".join(
            f"{title}: {one}" if several else one for title, one in zip(state.lane_titles(), said, strict=True) if one
        )

    def readout(self, state: AppState, frames_a_second: float) -> str:
        steps, burn_in = self._steps, max(run.burn_in for run in self.runs)
        if 0 < steps <= burn_in:
            return f"burn-in {steps:,} of {burn_in:,}"
        if state.slow:
            return f"step {steps:,} · the next one in its parts"
        if not state.playing:
            return f"paused at step {steps:,}"
        rates = {"steps/s": recent_rate(self._step_times), "frames/s": round(frames_a_second)}
        return with_rates(f"step {steps:,}", rates)

    @property
    def _steps(self) -> int:
        """Steps of the lane that has made most."""
        return max(run.steps for run in self.runs)


def _noted(lane: Lane, target: Target) -> bool:
    noise = make_gradient(lane.gradient).noise()
    # Only noise that is subtracted can be too large for that; on the simplex the â of a minibatch may be below 0.
    return (
        bool(getattr(SAMPLERS[lane.sampler.key], "accept", False))
        or SAMPLERS[lane.sampler.key].diverges
        or max(noise.correction, noise.sample_size) > 0
        or noise.estimated
        or (target.support == SIMPLEX and noise.batch_size > 0)
    )


def _wanted(state: AppState, single: int) -> int:
    return state.speed if state.playing and not state.slow else single


def _prepare_answers(target: Target) -> None:
    ks.prepare(target)
    divergence.prepare(target)


def _divergence(run: Run) -> tuple[float, float]:
    """The KL divergence of a run's draws and what as many i.i.d. draws would have; nan on the simplex."""
    if run.target.support == SIMPLEX:
        return float("nan"), float("nan")
    if run.target.planar:
        return divergence.kl_2d(run.statistics, run.target)
    return divergence.kl_1d(run.statistics, 0)
