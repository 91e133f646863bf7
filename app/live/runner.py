"""The live loop of a page: lanes are made ready and move in threads, frames go out as fast as they are drawn."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from typing import Any, NamedTuple, Protocol

from sgmcmc_lab.app.live.fair_executor import FullError, Pool, ProcessorShare
from sgmcmc_lab.app.live.lanes import DensityLanes, Lanes, Progress, prepare, scene_of
from sgmcmc_lab.app.live.loop import POOL, SLOW, Live, LiveScreen
from sgmcmc_lab.app.live.readings import of_figures
from sgmcmc_lab.app.live.step_player import StepPlayer
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.state.upload import Upload
from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.app.views.base import Frame, View
from sgmcmc_lab.samplers import Change, Experiment
from sgmcmc_lab.samplers.choices import Choice
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.files import EndedError
from sgmcmc_lab.samplers.models.run import needed
from sgmcmc_lab.samplers.parameters import SpecError

log = logging.getLogger(__name__)

PATIENT_SECONDS = 0.1
"""The time between two messages on the page about an experiment that is being prepared."""
LONG_SECONDS = 1.0
"""Seconds after which a running step is reported on the page, and no longer waited for."""
LONG = "A step of this experiment takes {}. Fewer chains, less data or fewer gradients per step make it shorter. These changes, another target and Reset take effect at once."
EARLY_SECONDS = 0.7
"""Where exact answers take longer, the chains begin beside rough ones."""
LIGHT = 1000
"""The most chains of a density that start within a millisecond or two."""
ROUGH = "Until it is there, the pictures show that of a few draws, and no claim is judged."
_LOADER = Pool(2, "loader")
MOST_SEARCHES, MOST_WAITING = 2, 50
"""Searches of one address that run at a time, and that wait for it."""
_FINDER = Pool(2, "finder", most_of_address=MOST_SEARCHES, most_waiting=MOST_WAITING)
"""Where exact answers are still to be found, which takes many seconds: no other address waits for it."""
IN_TURN = "The exact answer: waiting for its turn"
TOO_MANY = f"{MOST_WAITING} pages from your network wait for their exact answers already, which is as many as may wait. Try again in a minute."


class Screen(LiveScreen, Protocol):
    """The runner's interface to the page."""

    def show_work(self, what: str, share: float | None) -> None:
        """Say what is being made ready and how far it is, with a way to cancel; an empty text when all is there."""

    def show_former(self, former: bool) -> None:
        """Whether the figures are those of a former experiment, while the new one is being made ready."""

    def show_problem(self, message: str) -> None:
        """Say why an experiment could not be opened; the one before stays. An empty text takes it back."""

    def show_facts(self, facts: dict[str, str]) -> None:
        """An experiment was opened: say what its data are."""


def _retrieve_error(job: "asyncio.Future[Any]") -> None:
    """Take the error of a job for which nobody may be waiting any more: asyncio logs those that are not taken."""
    if not job.cancelled():
        job.exception()


@cache
def _prepare_readings() -> None:
    """Have the readings of captions and claims compiled, or loaded: the first page moves before they are there."""
    threading.Thread(target=jit.prepare, args=(jit.readings(),), name="readings", daemon=True).start()


class Search(NamedTuple):
    """The exact answers of a target, while a thread computes them."""

    density: tuple[Choice, float]
    progress: Progress
    job: asyncio.Future[None]
    began: float
    go_on: threading.Event
    """Cleared while rough answers are computed, for which somebody waits."""

    @classmethod
    def of(cls, experiment: Experiment, share: ProcessorShare) -> "Search":
        """Begin to compute them. Raises :class:`FullError`."""
        progress, go_on = Progress(), threading.Event()
        go_on.set()
        progress.what = IN_TURN

        def tell(what: str, share: float | None) -> None:
            go_on.wait()
            progress.tell(what, share)

        def find() -> None:
            target = experiment.make_target()
            target.prepare(tell)
            # Made of the answers, and not on the event loop.
            _ = target.columns

        job = asyncio.get_running_loop().run_in_executor(_FINDER.of(share), find)
        job.add_done_callback(_retrieve_error)
        return cls(experiment.density, progress, job, time.perf_counter(), go_on)

    def give_up(self) -> None:
        """End it, also where it still waits for its turn."""
        self.progress.cancelled = True
        self.job.cancel()


class Runner(Live):
    """Runs the experiment of an :class:`AppState` and feeds its views."""

    def __init__(self, state: AppState, screen: Screen, address: str = ""):
        """``address`` is whose page it is."""
        super().__init__(screen)
        self.state, self.screen, self.address = state, screen, address
        self.lanes: Lanes | None = None
        self.views: list[Any] = []
        self._built: tuple[Any, list[str]] | None = None
        """The scene and the views for which the figures are built."""
        self._drew = False
        """Whether the figures hold something of the lanes."""
        self._opened: tuple[Experiment, Upload | None] = (state.experiment, None)
        """The running experiment, and the upload: what a cancelled or refused experiment gives way to."""
        self._known = state.experiment
        self._changes: dict[int, Change]
        self._cancelled = asyncio.Event()
        self._said_diverged: set[int] = set()
        self.player = StepPlayer()
        self.say_step: Callable[[StepPlayer], list[tuple[str, str]]] = lambda _: []
        """The page's texts about a step that is taken apart, by the model's id."""
        self.lit_step: Callable[[StepPlayer], list[str]] = lambda _: []
        """The colour of each of its parts."""
        self.doubts: Any = None
        """The model whose text says why draws do not agree with their target."""
        self._parts_hidden = False
        """Whether the coming step is shown without its parts at first, for a person asks for one after the other."""
        self._next: asyncio.TimerHandle | None = None
        """In slow motion: the call that makes the next one."""
        self._engine = asyncio.Lock()
        self._said_long = False
        self._search: Search | None = None
        self._search_ends: asyncio.Task[None] | None = None
        pools = POOL, SLOW, _LOADER, _FINDER
        self._moving, self._slowly, self._loading, self._finding = (pool.share(address) for pool in pools)
        state.param.watch(self._on_experiment, "experiment")
        state.param.watch(lambda *_: self._ask(restart=True), ["resets", "upload"])
        state.param.watch(
            lambda *_: self._ask(rebuild=True), ["views", "axis", "coordinate", "shown", "dark", "present"]
        )
        state.param.watch(lambda *_: self._ask(), "speed")
        state.param.watch(lambda *_: self._change_pace(), ["playing", "slow"])
        # A lesson has names of its own for the lanes.
        state.position.param.watch(
            lambda *_: self._ask(rebuild=self._built is not None and self._wanted() != self._built),
            ["lesson", "number"],
        )

    def experiment(self) -> Experiment:
        """The experiment with the changes made so far: run for as many steps it gives the same draws."""
        return self.lanes.recorded() if self.lanes is not None else self.state.experiment

    @property
    def ended(self) -> bool:
        """Whether no lane can make another step."""
        return self.lanes is not None and not self.lanes.moving

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            if self._search_ends is not None:
                self._search_ends.cancel()
            if self._search is not None:
                self._search.give_up()

    def cancel(self) -> None:
        """Give up what is being made ready; what ran before it comes back."""
        self._cancelled.set()

    def _active(self) -> bool:
        if not self._watched or self.lanes is None:
            return False
        playing = self.state.playing and not self.state.slow
        return self._redraw or (self.lanes.moving and (bool(self._single) or playing))

    def play_step(self, way: str) -> None:
        """A part or a step forwards or back, as a person asks for it: part, part_back, step or step_back."""
        self.state.playing = False
        if way in ("part_back", "step_back"):
            getattr(self.player, way)()
            self._ask()
        elif self.player.part_forward() if way == "part" else self.player.step_forward():
            self._parts_hidden = way == "part"
            self.step()
        else:
            self._ask()

    def _change_pace(self) -> None:
        """It plays or pauses, or a step takes another time."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
        if self.state.slow and self.state.playing:
            self.player.play(self.state.slow)
        elif self.state.slow:
            self.player.rest()
        else:
            self.player.clear()
        self._ask()

    def _step_when_due(self) -> None:
        self._next = None
        if self.state.slow and self.state.playing:
            self.step()

    def _take_apart(self, lanes: Lanes, changed: bool) -> None:
        """Look at the coming step of the first lane, where one is made in seconds."""
        run, slow, player = lanes.apart(), self.state.slow, self.player
        if run is None or not slow:
            player.clear()
            return
        if changed:
            player.forget_newest()
        if player.look(run) and self.state.playing:
            player.play(slow)
        elif self._parts_hidden:
            player.hide()
        self._parts_hidden = False
        if self.state.playing and self._next is None:
            self._next = asyncio.get_running_loop().call_later(slow, self._step_when_due)

    def _on_experiment(self, event: Any) -> None:
        # If several changes are made at once, the event has only the old value of the last one.
        old, new = self._known, event.new
        self._known = new
        if _structure(old) != _structure(new) or not _succeeds(new, old):
            self._ask(restart=True)
            return
        to = new.target if old.target != new.target else None
        for i, (before, after) in enumerate(zip(old.lanes, new.lanes, strict=True)):
            if before != after or to:
                # The last of several changes between two frames counts; a hidden page has no frames.
                earlier = self._changes[i].target if i in self._changes else None
                self._changes[i] = Change(0, after.sampler, after.gradient, to or earlier)
        self._ask(rebuild=self._built is not None and self._wanted() != self._built)

    async def _begin(self) -> None:
        self._restart = False
        self._changes.clear()
        self._cancelled.clear()
        state = self.state
        experiment = state.experiment
        try:
            lanes = await self._patiently(experiment, state.own_data)
        except SpecError as error:
            self._give_way(str(error))
            return
        except FullError:
            self._give_way(TOO_MANY)
            return
        except Exception:
            # The former runs continue; what was brought may be such that no check thought of it.
            log.exception("An unexpected error while an experiment was opened")
            self._give_way(
                "The experiment cannot be opened: an unexpected error occurred, and the server's log has the details."
            )
            return
        if lanes is None:
            if not self._restart:
                self._give_way("")
            return
        async with self._engine:
            self.lanes = lanes
        self._opened = experiment, state.upload
        self._said_diverged.clear()
        self.player.clear()
        self.screen.clear_divergence()
        self.screen.show_problem("")
        self.screen.show_facts(lanes.facts())
        if isinstance(lanes, DensityLanes) and lanes.early and self._search is not None:
            self._search_ends = asyncio.create_task(self._end_search(self._search, lanes))
        # The views may hold curves of the lanes that were there before.
        self._rebuild |= self._drew or self._wanted() != self._built
        if not self._rebuild:
            self.screen.show_former(False)
        self._redraw = True

    async def _patiently(self, experiment: Experiment, upload: Upload | None) -> Lanes | None:
        """The lanes; None where the person cancelled them or asked for something else meanwhile."""
        began = time.perf_counter()
        progress = Progress()
        known = experiment.of_model or experiment.make_target().ready
        readings = of_figures(self.state.shown_views())
        if known and _is_light(experiment, readings):
            return prepare(progress, experiment, upload, readings)
        job: asyncio.Future[Lanes]
        search = None if known else self._search_for(experiment)
        if search is None:
            job = asyncio.get_running_loop().run_in_executor(
                _LOADER.of(self._loading), prepare, progress, experiment, upload, readings
            )
        else:
            progress, job = search.progress, asyncio.ensure_future(self._unknown(search, experiment, readings))
        job.add_done_callback(_retrieve_error)
        announced = False
        try:
            while not job.done():
                await asyncio.wait({job}, timeout=PATIENT_SECONDS)
                if self._cancelled.is_set() or self._restart:
                    return None
                if not job.done() and (passed := time.perf_counter() - began) > 3 * PATIENT_SECONDS:
                    announced = True
                    self.screen.show_former(bool(self.views) and self._wanted() != self._built)
                    self.screen.show_work(f"{progress.what}: {passed:.0f} s so far.", progress.share)
        finally:
            if announced:
                self.screen.show_work("", None)
            # Nobody waits for it any more, also where the page is closed.
            if not job.done():
                job.cancel()
                progress.cancelled |= known
            if search is not None and not self._searched:
                search.give_up()
        return job.result()

    def _search_for(self, experiment: Experiment) -> Search:
        """The search for its exact answers, which goes on where the page begins again on the same density."""
        search = self._search
        if search is None or search.density != experiment.density or search.job.done() or search.progress.cancelled:
            if search is not None:
                search.give_up()
            search = self._search = Search.of(experiment, self._finding)
        return search

    @property
    def _searched(self) -> bool:
        """Whether the page still waits for the answers that are being computed."""
        search = self._search
        return search is not None and not self._cancelled.is_set() and search.density == self.state.experiment.density

    async def _unknown(self, search: Search, experiment: Experiment, readings: Sequence[Any]) -> Lanes:
        """The lanes on a target whose exact answers are being computed: after a moment, beside rough ones."""
        loop, lanes = asyncio.get_running_loop(), None
        await asyncio.wait({search.job}, timeout=EARLY_SECONDS)
        if not search.job.done():
            search.go_on.clear()
            try:
                lanes = await loop.run_in_executor(
                    _LOADER.of(self._loading), DensityLanes.prepare_early, experiment, readings
                )
            finally:
                search.go_on.set()
        if lanes is None:
            await asyncio.shield(search.job)
            lanes = await loop.run_in_executor(
                _LOADER.of(self._loading), DensityLanes.prepare, search.progress, experiment, readings
            )
        return lanes

    async def _end_search(self, search: Search, lanes: DensityLanes) -> None:
        """Tell how far the exact answers are while the lanes move, and give them to the lanes in the end."""
        try:
            while not search.job.done():
                await asyncio.wait({search.job}, timeout=PATIENT_SECONDS)
                if self.lanes is not lanes or not self._searched:
                    if not self._searched:
                        search.give_up()
                    return
                if not search.job.done():
                    passed = time.perf_counter() - search.began
                    what = f"{search.progress.what}: {passed:.0f} s so far. {ROUGH}"
                    self.screen.show_work(what, search.progress.share)
        finally:
            self.screen.show_work("", None)
        try:
            search.job.result()
        except (EndedError, asyncio.CancelledError):
            return
        except SpecError as error:
            self.screen.show_problem(str(error))
            return
        known = await asyncio.get_running_loop().run_in_executor(_LOADER.of(self._loading), lanes.known)
        async with self._engine:
            if self.lanes is not lanes:
                return
            if known is not None:
                lanes.know(known)
        if known is None:
            # The mass is where the rough answers have none: the chains start there, too, and the figures show it.
            self._ask(restart=True)
            return
        self.screen.show_facts(lanes.facts())
        self._ask(rebuild=True)

    def _give_way(self, message: str) -> None:
        """Go back to what ran before the experiment that could not be opened."""
        self.screen.show_former(False)
        if message:
            self.screen.show_problem(message)
        if self.lanes is None and self.state.experiment == self._opened[0]:
            self.screen.show_status("Nothing is loaded. Press Reset to load it, or choose something else.")
            return
        experiment, upload = self._opened
        brought = self.state.upload
        # A file that could be read stays, for another try with other cut-offs, unless what ran before was on a file.
        if brought is not None and brought.read and not experiment.of_own_data:
            upload = brought
        self.state.go_back(experiment, upload)
        # The runs and their figures are still there, and go on; unless nothing has ever run.
        self._restart = self.lanes is None
        self._rebuild = self._restart or self._wanted() != self._built

    async def build_views(self) -> None:
        """Make new figures, none for a model that is still to be loaded.

        A thread makes those that no page has had: a figure takes as long as ten frames, and more where it shows a
        density that is slow. Between two that are there, other pages have a turn.
        """
        self._rebuild = False
        readings = of_figures(self.state.shown_views())
        if self.lanes is not None and not jit.is_ready(readings):
            await asyncio.get_running_loop().run_in_executor(_LOADER.of(self._loading), jit.prepare, readings)
        scene, keys = wanted = self._wanted()
        if scene is None:
            return
        before = {view.key: view for view in self.views}
        # Until the page has the new figures, nothing is computed for the ones before: they are of other data.
        self._built, self._stale, self._drew = wanted, True, False
        views = []
        for key in keys:
            view, former = VIEWS[key], before.get(key)
            if view.is_made(scene, former):
                views.append(view.made(scene, former))
                await asyncio.sleep(0)
            else:
                loader = _LOADER.of(self._loading)
                views.append(await asyncio.get_running_loop().run_in_executor(loader, _drawn, view, scene, former))
        self.views = views

    def _wanted(self) -> tuple[Any, list[str]]:
        """The scene and the views for which figures are built."""
        return scene_of(self.state, self.lanes), self.state.shown_views()

    async def _send_layout(self) -> None:
        if self.lanes is not None:
            self.lanes.forget_sent()
        await super()._send_layout()

    async def _frame(self) -> None:
        lanes, loop = self.lanes, asyncio.get_running_loop()
        assert lanes is not None
        first = self.frames_sent == 0 or self._redraw
        single, self._single, self._redraw, self._drew = self._single, 0, False, True
        changes, self._changes = self._changes, {}
        async with self._engine:
            for i, change in changes.items():
                lanes.change(i, change)
                self._forget_divergence(i, lanes.runs[i].divergence)
            if changes:
                # The page returns to the running experiment, not to the one with which it was opened.
                self._opened = self.state.experiment, self._opened[1]
            if lanes.short(self.state, single):
                lanes.move(self.state, single)
            else:
                await self._move(lanes, single)
            if self._restart or self._rebuild:
                return
            if self.state.slow:
                self._take_apart(lanes, bool(changes))
            if lanes.heavy:
                data = await loop.run_in_executor(POOL.of(self._moving), self._picture, lanes, first)
            else:
                data = self._picture(lanes, first)
        # Also where something else was asked for meanwhile, which may be refused: views send nothing twice.
        self.frames_sent += 1
        await self.bus.send_frame(self.frames_sent, data)
        if self.state.slow:
            playing = self.player.playing()
            await self.bus.send_step(
                self.say_step(self.player), playing.windows if playing else (), self.lit_step(self.player)
            )
        for i, run in enumerate(lanes.runs):
            if run.divergence is not None and i not in self._said_diverged:
                self._said_diverged.add(i)
                self.screen.show_divergence(i, run.divergence.message)

    async def _move(self, lanes: Lanes, single: int) -> None:
        """Let them move in a thread. Where a step is long, and something else is asked for, they stay alone in it."""
        began: list[float] = []

        def move() -> None:
            began.append(time.perf_counter())
            lanes.move(self.state, single)

        job = asyncio.get_running_loop().run_in_executor(POOL.of(self._moving), move)
        job.add_done_callback(_retrieve_error)
        while not job.done():
            await asyncio.wait({job}, timeout=PATIENT_SECONDS if self._said_long else LONG_SECONDS)
            if job.done() or not began or time.perf_counter() - began[0] < LONG_SECONDS:
                continue
            if self._restart or self._changes:
                lanes.given_up, self.lanes, self._restart = True, None, True
                break
            if not self._said_long:
                self._said_long = True
                self.screen.show_status(LONG.format("more than a second"))
            # A view that is chosen meanwhile is there at once, and filled at the step's end.
            await self._lay_out()
        else:
            job.result()
            if (took := time.perf_counter() - began[0]) > LONG_SECONDS:
                self._said_long = True
                self.screen.show_status(LONG.format(f"about {took:.0f} s"))
                return
        if self._said_long:
            self._said_long = False
            self.screen.show_status("")

    def _picture(self, lanes: Lanes, first: bool) -> dict[int, tuple[Any, ...]]:
        """The data of each feed, by its index in the layout."""
        frame, data = self._with_step(lanes.frame(self.state)), {}
        for view, indices in self._feeds:
            if first or self.frames_sent % view.every == 0:
                data.update({indices[name]: columns for name, columns in view.compute(frame).items()})
        return data

    def _with_step(self, frame: Frame) -> Frame:
        frame.playing = self.player.playing()
        return frame

    def _forget_divergence(self, i: int, divergence: Any) -> None:
        if i in self._said_diverged and divergence is None:
            self._said_diverged.discard(i)
            self.screen.clear_divergence(i)
        elif divergence is not None and divergence.refused:
            # Another entry may be refused for another reason.
            self._said_diverged.discard(i)

    async def _slow_turn(self, turn: int) -> None:
        lanes = self.lanes
        if lanes is None or self._changes:
            return
        loop = asyncio.get_running_loop()
        views, generation = self.views, self.bus.generation
        texts: list[tuple[str, str]] = []
        if self.readout is not None and turn % 2 == 0:
            texts.append((self.readout.id, lanes.readout(self.state, self._drawn_rate())))
        speaks = jit.is_ready(jit.readings())
        if not speaks:
            _prepare_readings()
        now = self._with_step(lanes.whole(self.state))
        if any(len(view.scene.lanes) != len(now) for view in views):
            # The views are of the next experiment already, whose runs are still to begin.
            return
        for view in views:
            # Most have no such work, and a thread is a way of its own for nothing.
            works = type(view).background is not View.background
            if works and await loop.run_in_executor(SLOW.of(self._slowly), view.background, now):
                self._ask()
        if speaks and turn % 4 == 1 and await self._step_ends():
            texts += await loop.run_in_executor(SLOW.of(self._slowly), self._texts, views, now, lanes, loop)
        if texts and generation == self.bus.generation:
            await self.bus.send_texts(texts)

    async def _step_ends(self) -> bool:
        """Whether the lanes stand still within a second, for captions. All pages have one thread for theirs, and
        none waits in it for the end of another's long step.
        """
        try:
            async with asyncio.timeout(LONG_SECONDS), self._engine:
                return True
        except TimeoutError:
            return False

    def _texts(
        self, views: list[Any], now: Any, lanes: Lanes, loop: asyncio.AbstractEventLoop
    ) -> list[tuple[str, str]]:
        """Captions and check marks, in a thread. The lanes stand still meanwhile, but not while others' were made."""
        still = asyncio.wait_for(self._engine.acquire(), PATIENT_SECONDS)
        try:
            asyncio.run_coroutine_threadsafe(still, loop).result()
        except TimeoutError:
            return []
        try:
            said = [item for view in views for item in view.texts(now)] + (
                self.checks() if self.checks and not lanes.early else []
            )
            return said + ([(self.doubts.id, escape(lanes.doubts(self.state)))] if self.doubts is not None else [])
        finally:
            loop.call_soon_threadsafe(self._engine.release)


def _drawn(view: type[View], scene: Any, before: Any) -> View:
    """A view with its figure's document, which takes as long as the figure."""
    made = view.made(scene, before)
    _ = made.document
    return made


def _is_light(experiment: Experiment, readings: Sequence[Any]) -> bool:
    """Whether its lanes are made in a moment. A thread would have to wait for the loop, which in a full class it gets
    only when all pages have been made.
    """
    chains = experiment.n_chains * len(experiment.lanes)
    if experiment.of_model or chains > LIGHT or not jit.is_ready([*needed(experiment), *readings]):
        return False
    return DensityLanes.compared(experiment)


def _structure(experiment: Experiment) -> tuple[Any, ...]:
    """The settings that cannot change without a restart."""
    begins = (
        experiment.seed,
        experiment.temperature,
        experiment.n_chains,
        experiment.start,
        experiment.momentum,
    )
    # A schedule counts the steps from the start.
    return *begins, tuple((lane.sampler.key, lane.schedule) for lane in experiment.lanes)


def _succeeds(new: Experiment, old: Experiment) -> bool:
    """Whether chains on the old target can go on on the new one."""
    if old.of_model or new.of_model or old.target == new.target:
        return old.target == new.target
    # Exact answers that are still to be found are waited for as at the start.
    return new.make_target().ready and new.make_target().succeeds(old.make_target())
