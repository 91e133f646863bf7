"""The live loop of a model of data: models are loaded, methods move and frames are computed in worker threads."""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from app.live import POOL, Live, LiveScreen, recent_rate, short
from app.study.state import StudyState
from app.study.upload import Upload
from app.study.views import STUDY_VIEWS
from app.study.views.base import MethodFrame, StudyFrame, StudyPosition, StudyScene, StudyView
from app.views.base import Data
from samplers import Change, Experiment, jit
from samplers.choices import Choice
from samplers.models import METHODS, Model
from samplers.models.files import EndedError
from samplers.models.run import ModelChain, ModelRun, functions
from samplers.parameters import SpecError
from samplers.spec import OWN_GRADIENT

log = logging.getLogger(__name__)

WORK_SECONDS = 0.04
"""Methods move for so long between two frames; a single step that takes longer is made all the same."""
CAPTION_SECONDS = 1.0
"""Captions come this often."""
PATIENT_SECONDS = 0.1
"""While something is being loaded, the page is told this often how long it has taken."""
KEPT_MODELS = 4
"""Built-in data sets that stay loaded for the next page."""

_LOADER = ThreadPoolExecutor(max_workers=2, thread_name_prefix="loader")
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


class Progress:
    """How far work in a thread is. Work that nobody waits for ends where it next tells."""

    def __init__(self) -> None:
        self.what = "Loading"
        self.share: float | None = None
        """Between 0 and 1; None where that is not known."""
        self.cancelled = False

    def tell(self, what: str, share: float | None = None) -> None:
        """Say what begins now. Raises :class:`EndedError`."""
        if self.cancelled:
            raise EndedError
        self.what, self.share = what, share

    def compiling(self, done: int, total: int, what: str) -> None:
        """The same for the compiler."""
        if what:
            name = what.removeprefix("the main loop of the ").replace("_", " ")
            self.tell(f"First start on this machine: compiling {name}", done / total)


@dataclass
class MethodRecord:
    """What the page remembers of a lane: its run, and where parameters were changed."""

    run: ModelRun
    marks: list[StudyPosition] = field(default_factory=list)


class StudyScreen(LiveScreen, Protocol):
    """What the runner asks of the page."""

    def show_work(self, what: str, share: float | None) -> None:
        """Say what is being made ready and how far it is, with a way to cancel; an empty text when all is there."""

    def show_problem(self, message: str) -> None:
        """Say why an experiment could not be opened; the one before stays."""

    def show_model(self, model: Model) -> None:
        """The model is there: say what its data are."""


class StudyRunner(Live):
    """Runs the experiment of a :class:`StudyState` and feeds its views."""

    def __init__(self, state: StudyState, screen: StudyScreen):
        super().__init__(screen)
        self.state, self.screen = state, screen
        self.model: Model | None = None
        self.records: list[MethodRecord] = []
        self.views: list[StudyView] = []
        self._built: tuple[StudyScene, list[str]] | None = None
        """What the figures were built for."""
        self._opened: tuple[Experiment, Upload | None] = (state.experiment, None)
        """The experiment and the upload that run now: what a cancelled or refused one gives way to."""
        self._begun = self._known = state.experiment
        self._changes: list[int]
        self._cancelled = asyncio.Event()
        self._texts: list[tuple[str, str]] = []
        self._captioned = self._pictured = 0.0
        self._step_times: deque[tuple[float, int]] = deque(maxlen=60)
        self._said_diverged: set[int] = set()
        self._rebuild = False
        state.param.watch(self._on_experiment, "experiment")
        state.param.watch(lambda *_: self._ask(restart=True), ["resets", "upload"])
        state.param.watch(lambda *_: self._ask(rebuild=True), ["views", "axis", "shown", "dark", "present"])
        state.param.watch(lambda *_: self._ask(), "playing")

    def experiment(self) -> Experiment:
        """The experiment with the changes made so far: run for as many steps it gives the same draws."""
        lanes = tuple(
            replace(lane, changes=tuple(record.run.changes), n_steps=record.run.steps)
            for lane, record in zip(self._begun.lanes, self.records, strict=False)
        )
        return replace(self._begun, lanes=lanes) if lanes else self.state.experiment

    def cancel(self) -> None:
        """Give up what is being loaded; what ran before it comes back."""
        self._cancelled.set()

    def _active(self) -> bool:
        if not self._watched or not self.records:
            return False
        moving = any(record.run.next is not None for record in self.records)
        return self._redraw or (moving and (bool(self._single) or self.state.playing))

    def _on_experiment(self, event: Any) -> None:
        # Of several changes made at once the event knows only the last one's old value.
        old, new = self._known, event.new
        self._known = new
        if _structure(old) != _structure(new):
            self._ask(restart=True)
            return
        self._changes += [i for i, pair in enumerate(zip(old.lanes, new.lanes, strict=True)) if pair[0] != pair[1]]
        self._ask(rebuild=self._built is not None and self._built[0].methods != self.state.lane_titles())

    async def _begin(self) -> None:
        self._restart = False
        self._changes.clear()
        self._cancelled.clear()
        state = self.state
        experiment = state.experiment
        try:
            opened = await self._patiently(_prepare, experiment, state.own_data)
        except SpecError as error:
            self._give_way(str(error))
            return
        except Exception:
            # What ran before goes on; what was brought may be such that no check thought of it.
            log.exception("An unexpected error while an experiment was opened")
            self._give_way("The experiment cannot be opened: an unexpected error, of which the server's log says more.")
            return
        if opened is None:
            if not self._restart:
                self._give_way("")
            return
        self.model, self.records = opened
        self._opened, self._begun = (experiment, state.upload), experiment
        self._said_diverged.clear()
        self._step_times.clear()
        self.screen.clear_divergence()
        self.screen.show_model(self.model)
        self._rebuild = self._redraw = True

    async def _patiently(self, work: Callable[..., Any], *args: Any) -> Any:
        """The result of work in a thread; None where the person cancelled it or asked for something else meanwhile."""
        began = time.perf_counter()
        progress = Progress()
        job = asyncio.get_running_loop().run_in_executor(_LOADER, work, progress, *args)
        # Nobody may be there to hear of an error any more.
        job.add_done_callback(lambda done: done.cancelled() or done.exception())
        told = False
        try:
            while not job.done():
                await asyncio.wait({job}, timeout=PATIENT_SECONDS)
                if self._cancelled.is_set() or self._restart:
                    progress.cancelled = True
                    return None
                if not job.done() and (passed := time.perf_counter() - began) > 3 * PATIENT_SECONDS:
                    told = True
                    self.screen.show_work(f"{progress.what}: {passed:.0f} s so far.", progress.share)
        finally:
            if told:
                self.screen.show_work("", None)
        return job.result()

    def _give_way(self, message: str) -> None:
        """Go back to what ran before the experiment that could not be opened."""
        if message:
            self.screen.show_problem(message)
        if self.model is None and self.state.experiment == self._opened[0]:
            self.screen.show_status("Nothing is loaded. Press Reset to load it, or choose other data.", 1.0)
            return
        experiment, upload = self._opened
        brought = self.state.upload
        # A file that could be read stays, for another try with other cut-offs, unless what ran before was on a file.
        if brought is not None and brought.read and not experiment.of_own_data:
            upload = brought
        self.state.go_back(experiment, upload)
        # The runs and their figures are still there, and go on; unless nothing has ever run.
        self._restart = self.model is None
        self._rebuild = self._restart or self._wanted() != self._built

    def view_builders(self) -> list[Callable[[], None]]:
        """What makes new figures; none for a model that is still to be loaded."""
        self._rebuild = False
        if self.model is None or self._restart:
            return []
        self._stale = True
        self._built = self._wanted()
        scene, keys = self._built
        self.views = []
        self._texts = []
        self._captioned = 0.0
        return [partial(self._build, scene, key) for key in keys]

    def _build(self, scene: StudyScene, key: str) -> None:
        self.views.append(STUDY_VIEWS[key](scene))

    def _wanted(self) -> tuple[StudyScene, list[str]]:
        """What figures are built for, and which."""
        state = self.state
        assert self.model is not None
        scene = StudyScene(self.model, state.lane_titles(), state.shown, state.axis, state.dark, state.present)
        return scene, state.shown_views()

    async def _frame(self) -> None:
        single, self._single = self._single, 0
        first = self.frames_sent == 0 or self._redraw
        self._redraw = False
        changes, self._changes = self._changes, []
        choices = [(i, self.state.experiment.lanes[i].sampler) for i in dict.fromkeys(changes)]
        work = (choices, single, self.state.playing, first)
        data = await asyncio.get_running_loop().run_in_executor(POOL, self._work, *work)
        if choices:
            # What the page goes back to is what runs, not what it was opened with.
            experiment, upload = self._opened
            lanes = list(experiment.lanes)
            for i, choice in choices:
                lanes[i] = replace(lanes[i], sampler=choice)
            self._opened = (replace(experiment, lanes=tuple(lanes)), upload)
        if self._restart or self._rebuild:
            return
        self.frames_sent += 1
        await self.bus.send_frame(self.frames_sent, data)
        texts, self._texts = self._texts, []
        if texts:
            await self.bus.send_texts(texts)
        for i, record in enumerate(self.records):
            stopped = record.run.divergence
            if stopped is not None and i not in self._said_diverged:
                self._said_diverged.add(i)
                self.screen.show_divergence(i, stopped.message)

    def _work(
        self, choices: Sequence[tuple[int, Choice]], single: int, playing: bool, first: bool
    ) -> dict[int, tuple[Any, ...]]:
        for i, choice in choices:
            record = self.records[i]
            record.run.change(Change(0, choice, OWN_GRADIENT))
            record.marks.append(_position(record.run.chains[0]))
        if playing:
            self._move()
        else:
            for record in self.records:
                record.run.advance(single)
        return self._picture(first)

    def _move(self) -> None:
        """Steps for as long as a frame may take: each by the chain that is furthest behind on the axis."""
        began = time.perf_counter()
        axis = self.state.axis
        while time.perf_counter() - began < WORK_SECONDS:
            ready = [(record.run, chain) for record in self.records if (chain := record.run.next) is not None]
            if not ready:
                break
            run, chain = min(ready, key=lambda one: _position(one[1]).on(axis))
            run.step(chain)
        self._step_times.append((time.perf_counter(), self._inside().steps))

    def _picture(self, first: bool) -> dict[int, tuple[Any, ...]]:
        """The data of each feed, by its place in the layout."""
        methods = [MethodFrame(record.run.chains, record.marks) for record in self.records]
        now = time.perf_counter()
        shown = min(self.state.shown, len(methods) - 1)
        frame = StudyFrame(methods, shown, self.state.playing, now - self._pictured)
        self._pictured = now
        out: dict[int, tuple[Any, ...]] = {}
        for view, places in self._feeds:
            if first or self.frames_sent % view.every == 0:
                data: Data = view.compute(frame)
                out.update({places[name]: columns for name, columns in data.items()})
        if first or time.perf_counter() - self._captioned > CAPTION_SECONDS:
            self._captioned = time.perf_counter()
            self._texts = [item for view, _ in self._feeds for item in view.texts(frame)]
            if self.checks is not None:
                self._texts += self.checks()
        return out

    async def _slow_turn(self, turn: int) -> None:
        if self.records and self.readout is not None and turn % 2 == 0:
            await self.bus.send_texts([(self.readout.id, self._readout())])

    def _inside(self) -> ModelChain:
        return self.records[min(self.state.shown, len(self.records) - 1)].run.chains[0]

    def _readout(self) -> str:
        run = self._inside()
        seen = f"step {run.steps:,} · {short(run.data_seen)} {run.model.data_name}"
        if not self.state.playing:
            return f"paused at {seen}"
        return f"{seen} · {short(recent_rate(self._step_times))} steps/s"


def _prepare(progress: Progress, experiment: Experiment, upload: Upload | None) -> tuple[Model, list[MethodRecord]]:
    """The model, and the run of each lane. Raises :class:`SpecError`."""
    jit.prepare((f for lane in experiment.lanes for f in functions(METHODS[lane.sampler.key])), progress.compiling)
    progress.tell("Loading the data")
    uploaded = None
    if upload is not None:
        uploaded = upload.data(lambda share: progress.tell(f"Reading {upload.name}", share))
    progress.tell("Preparing the data")
    model = load(experiment, uploaded)
    for view in STUDY_VIEWS.values():
        if view.fits(experiment):
            view.prepare(model)
    records = []
    for i, spec in enumerate(experiment.runs()):
        progress.tell("Starting the methods", i / len(experiment.lanes))
        records.append(MethodRecord(ModelRun(spec, model)))
    return model, records


def _position(chain: ModelChain) -> StudyPosition:
    return StudyPosition(chain.data_seen, chain.steps, chain.seconds)


def _structure(experiment: Experiment) -> tuple[Any, ...]:
    """What cannot change without a restart."""
    samplers = tuple(lane.sampler.key for lane in experiment.lanes)
    return experiment.target, experiment.seed, experiment.n_chains, samplers
