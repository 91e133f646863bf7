"""Lanes on a model of data: methods with their independent runs, whose scores are on held-out data."""

import time
from collections import OrderedDict, deque
from dataclasses import replace
from typing import Any

from sgmcmc_lab.app.live.lanes.base import WORK_SECONDS, Lanes, Progress, Record
from sgmcmc_lab.app.live.loop import recent_rate, short, with_rates
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.state.upload import Upload
from sgmcmc_lab.app.views import VIEWS, fitting
from sgmcmc_lab.app.views.base import Frame, LaneFrame, Position, Scene
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.choices import Choice
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models import Model
from sgmcmc_lab.samplers.models.run import ModelChain, ModelRun, needed

KEPT_MODELS = 4
"""Built-in data sets that stay loaded for the next page."""

_MODELS: "OrderedDict[Choice, Model]" = OrderedDict()


def load(experiment: Experiment, uploaded: Any = None) -> Model:
    """The model with its data. Built-in data are loaded once for all sessions; an upload is its session's."""
    if uploaded is not None:
        return experiment.make_model(uploaded)
    choice = experiment.target
    model = _MODELS.get(choice) or experiment.make_model()
    _MODELS[choice] = model
    _MODELS.move_to_end(choice)
    while len(_MODELS) > KEPT_MODELS:
        _MODELS.popitem(last=False)
    return model


class MethodRecord(Record):
    """The page's record of a lane; on the axes it is where its first chain is."""

    @property
    def position(self) -> Position:
        return _position(self.run.chains[0])

    @property
    def made(self) -> int:
        return self.run.rows


class ModelLanes(Lanes):
    """Methods side by side; the one that is furthest behind on the page's axis makes the next step."""

    heavy = True

    def __init__(self, experiment: Experiment, model: Model, records: list[MethodRecord]):
        super().__init__(experiment)
        self.model, self.records = model, records
        self._step_times: deque[tuple[float, int]] = deque(maxlen=60)
        self._pictured = 0.0

    @classmethod
    def prepare(cls, progress: Progress, experiment: Experiment, upload: Upload | None) -> "ModelLanes":
        """The lanes, with what they need compiled and the data loaded. Raises :class:`SpecError`."""
        jit.prepare([*needed(experiment), *jit.readings()], progress.compiling)
        progress.tell("Loading the data")
        uploaded = None
        if upload is not None:
            uploaded = upload.data(lambda share: progress.tell(f"Reading {upload.name}", share))
        progress.tell("Preparing the data")
        model = load(experiment, uploaded)
        for key in fitting(experiment):
            VIEWS[key].prepare(model)
        records = []
        for i, spec in enumerate(experiment.runs()):
            progress.tell("Starting the methods", i / len(experiment.lanes))
            records.append(MethodRecord(ModelRun(spec, model)))
        return cls(experiment, model, records)

    def scene(self, state: AppState) -> Scene:
        """The scene for which views are built."""
        return Scene(
            target=self.model,
            lanes=state.lane_titles(),
            coordinate=state.coordinate,
            axis=state.axis,
            dark=state.dark,
            large=state.present,
            shown=state.shown,
        )

    @property
    def moving(self) -> bool:
        return any(run.next is not None for run in self.runs)

    def recorded(self) -> Experiment:
        lanes = tuple(
            replace(lane, changes=tuple(run.changes), n_steps=run.steps)
            for lane, run in zip(self.experiment.lanes, self.runs, strict=True)
        )
        return replace(self.experiment, lanes=lanes)

    def facts(self) -> dict[str, str]:
        return dict(self.model.facts())

    def short(self, state: AppState, single: int) -> bool:
        return not state.playing and not single

    def move(self, state: AppState, single: int) -> None:
        """Steps for as long as a frame may take, and no more than the state says.

        The frame ends where the chain whose turn it is has made its steps: another may not make one in its place, for
        the methods would drift apart on the page's axis.
        """
        began = time.perf_counter()
        goals = {id(run): run.steps + state.speed for run in self.runs}
        if not state.playing:
            for run in self.runs:
                run.advance(single)
        while state.playing and time.perf_counter() - began < WORK_SECONDS:
            ready = [(run, chain) for run in self.runs if (chain := run.next) is not None]
            if not ready:
                break
            run, chain = min(ready, key=lambda one: _position(one[1]).on(state.axis))
            if chain.steps >= goals[id(run)]:
                break
            run.step(chain)
        self._step_times.append((time.perf_counter(), self._inside(state).steps))

    def frame(self, state: AppState) -> Frame:
        now = time.perf_counter()
        since, self._pictured = now - self._pictured, now
        return self._frame(state, [record.frame(state.axis) for record in self.records], since)

    def whole(self, state: AppState) -> Frame:
        return self._frame(state, [record.still() for record in self.records])

    def _frame(self, state: AppState, lanes: list[LaneFrame], since: float = 0.0) -> Frame:
        return Frame(lanes, min(state.shown, len(lanes) - 1), state.playing, since)

    def readout(self, state: AppState, frames_a_second: float) -> str:
        chain = self._inside(state)
        seen = f"step {chain.steps:,} · {short(chain.data_seen)} {self.model.data_name}"
        return with_rates(seen, {"steps/s": recent_rate(self._step_times)}) if state.playing else f"paused at {seen}"

    def _inside(self, state: AppState) -> ModelChain:
        return self.runs[min(state.shown, len(self.runs) - 1)].chains[0]


def _position(chain: ModelChain) -> Position:
    return Position(chain.steps, float("nan"), chain.data_seen, chain.seconds)
