"""The teacher's experiment as a live page for her students: one file, with the settings in its link's fragment.

Another process makes the files. One file serves all experiments with the same target, samplers and gradients,
as far as a live page can adjust their parameters; the fragment holds the values.
"""

import asyncio
import gzip
import re
from collections import Counter, OrderedDict
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from hashlib import sha256
from html import unescape
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from sgmcmc_lab.app import link
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.interrupts import begin_worker
from sgmcmc_lab.samplers.lanes import Lane
from sgmcmc_lab.samplers.parameters import SpecError

if TYPE_CHECKING:
    from sgmcmc_lab.app.live_page import Followed

MOST = 40
"""The largest number of files kept, of about 200 kB each."""
MOST_WAITING = 20
"""The longest queue of files to be made; further requests are refused."""
ALLOWED = re.compile('<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
RESETS = re.compile("[0-9]{1,6}")
Moves = Mapping[str, list[Any] | None]
"""The adjustable parameters of a file with their values; None is the whole range."""


@dataclass(frozen=True)
class Shown:
    """The experiment that a teacher's page shows now."""

    experiment: Experiment
    """With the values after all changes, from the target's own start."""
    start: tuple[float, ...]
    momentum: tuple[float, ...]
    lesson: str
    step: int
    coordinate: int
    views: tuple[str, ...]
    axis: str
    speed: int
    playing: bool
    resets: int

    @property
    def structure(self) -> tuple[Any, ...]:
        """The parts that all experiments of one file have in common."""
        place = self.lesson, self.step, self.coordinate
        if self.experiment.of_model:
            # A recording serves one experiment only.
            return self.experiment, self.views, self.axis, self.speed, *place
        lanes = tuple((lane.sampler.key, lane.gradient.key, lane.schedule) for lane in self.experiment.lanes)
        return self.experiment.density, lanes, self.experiment.burn_in, self.experiment.thin, *place


@dataclass(frozen=True)
class Page:
    """A live page, compressed."""

    key: str
    shown: Shown
    content: bytes
    policy: str
    made: "Followed"
    racing: bool = False
    """Whether its reader can choose other samplers."""

    def fragment(self, shown: Shown) -> str | None:
        """The settings with which this page shows ``shown``; None if it cannot."""
        # A file holds a recorded view only if the teacher's page showed it when the file was made.
        if shown.structure != self.shown.structure or not {*shown.views} <= {*self.made.views, *self.shown.views}:
            return None
        experiment = shown.experiment
        if experiment.of_model:
            return ""
        for own, lane, moves in zip(self.shown.experiment.lanes, experiment.lanes, self.made.moves, strict=True):
            for before, now, allowed in (
                (own.sampler, lane.sampler, moves[0]),
                (own.gradient, lane.gradient, moves[1]),
            ):
                first, then = before.values(), now.values()
                changed = {one for one in then if then[one] != first[one]}
                over = [one for one in changed if one in allowed and allowed[one] is not None]
                if len(over) > 1 or not all(_has(allowed, one, then[one]) for one in changed):
                    return None
        n_chains = min(experiment.n_chains, self.made.most_chains)
        # A run in a live page goes on after its last step.
        n_steps = self.shown.experiment.n_steps
        placed = replace(experiment, n_chains=n_chains, n_steps=n_steps, start=shown.start, momentum=shown.momentum)
        words: dict[str, Any] = {"speed": shown.speed, "resets": shown.resets, "play": int(shown.playing)}
        if shown.axis in ("steps", "gradients", "data"):
            words["axis"] = shown.axis
        if views := [view for view in shown.views if view in self.made.views]:
            words["views"] = ",".join(views)
        return f"{placed.to_query()}&{urlencode(words)}"


def _has(moves: Moves, name: str, value: Any) -> bool:
    if name not in moves:
        return False
    stops = moves[name]
    return stops is None or value in stops


@lru_cache(64)
def shown_by(query: str) -> Shown:
    """The contents of a page with this link. Raises :class:`SpecError` for an experiment on the teacher's own file."""
    state = AppState()
    link.read_query(state, query)
    experiment = state.experiment
    if state.missing_table is not None or experiment.of_own_data:
        raise SpecError("target", experiment.target.key, "it uses the teacher's own file, which only her page has")
    position = state.position
    # A lesson's question does not stop the run here: the class answers it in the room.
    fields, _ = link.read_fields(query)
    playing = fields.get("play", "1") == "1" and not state.refused
    resets = fields.get("resets", "")
    return Shown(
        replace(_settled(experiment), start=(), momentum=()),
        experiment.start,
        experiment.momentum,
        position.lesson.key if position.lesson is not None else "",
        position.number,
        state.coordinate,
        tuple(state.shown_views()),
        state.axis,
        state.speed,
        playing,
        int(resets) if RESETS.fullmatch(resets) else 0,
    )


def _settled(experiment: Experiment) -> Experiment:
    """The experiment with the values after all changes, and without the changes."""
    targets = [change.target for lane in experiment.lanes for change in lane.changes if change.target is not None]
    target = targets[-1] if targets else experiment.target
    return replace(experiment, target=target, lanes=tuple(map(_last, experiment.lanes)))


def _last(lane: Lane) -> Lane:
    if not lane.changes:
        return lane
    return replace(lane, sampler=lane.changes[-1].sampler, gradient=lane.changes[-1].gradient, changes=())


def make(query: str, racing: bool = False) -> tuple[bytes, str, Any]:
    """A file, compressed; its policy; and the settings that its fragment can hold. Raises :class:`SpecError`."""
    # Only the process that makes files imports these modules.
    from sgmcmc_lab.app.live_page import followed_page

    state = AppState()
    link.read_query(state, query)
    state.experiment = shown_by(query).experiment
    made = followed_page(state, racing)
    found = ALLOWED.search(made.text)
    assert found is not None
    return gzip.compress(made.text.encode(), 6, mtime=0), unescape(found[1]), made._replace(text="")


class Pages:
    """The live pages of this process's rooms."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Page] = OrderedDict()
        self._making: dict[str, asyncio.Task[Page]] = {}
        self._waiting: Counter[str] = Counter()
        """The number of requests that wait for each file, by its key."""
        self._worker = asyncio.Lock()
        """One file is made at a time."""
        self._pool: ProcessPoolExecutor | None = None
        self.shown: dict[str, str] = {}
        """The key of each room's current page, by the room's code. These pages are always kept."""

    def kept(self, key: str) -> Page | None:
        """The page with this key, if it is kept."""
        return self._kept.get(key)

    async def of(self, query: str, racing: bool = False) -> tuple[Page, str]:
        """The page for a link, which offers other samplers in a race, and its fragment. Raises :class:`SpecError`."""
        shown = shown_by(query)
        racing = racing and not shown.experiment.of_model
        if (page := self._serving(shown, racing)) is None:
            page = await self._soon(query, shown, racing)
        fragment = page.fragment(shown)
        assert fragment is not None
        return page, fragment

    def _serving(self, shown: Shown, racing: bool) -> Page | None:
        """The kept page that can show this."""
        for page in reversed(self._kept.values()):
            if page.racing >= racing and page.fragment(shown) is not None:
                self._kept.move_to_end(page.key)
                return page
        return None

    async def _soon(self, query: str, shown: Shown, racing: bool) -> Page:
        """A page that is made for all who wait for it."""
        key = sha256(f"{racing} {query}".encode()).hexdigest()[:32]
        if key not in self._making:
            if len(self._making) >= MOST_WAITING:
                raise SpecError("live page", "one more", f"{MOST_WAITING} wait already; try again in a moment")
            self._making[key] = asyncio.get_running_loop().create_task(self._make(key, query, shown, racing))
        self._waiting[key] += 1
        try:
            return await asyncio.shield(self._making[key])
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key]

    async def _make(self, key: str, query: str, shown: Shown, racing: bool) -> Page:
        try:
            async with self._worker:
                if not self._waiting[key]:
                    # A teacher who moves a slider leaves many experiments that nobody waits for.
                    raise asyncio.CancelledError
                # The file before may serve this one, too: it was made while the teacher paused or moved a slider.
                if (page := self._serving(shown, racing)) is not None:
                    return page
                content, policy, made = await self._made(query, racing)
        finally:
            del self._making[key]
        page = self._kept[key] = Page(key, shown, content, policy, made, racing)
        old = [one for one in self._kept if one not in self.shown.values() and one != key]
        for one in old[: max(0, len(self._kept) - MOST)]:
            del self._kept[one]
        return page

    async def _made(self, query: str, racing: bool) -> Any:
        if self._pool is None:
            # A spawned process: a fork of a process with threads may hang.
            self._pool = ProcessPoolExecutor(1, get_context("spawn"), begin_worker)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, make, query, racing)
        except BrokenProcessPool:
            self._pool = None
            raise SpecError(
                "live page", query[:80], "the process that made it has ended; the next request starts another"
            ) from None


@cache
def pages() -> Pages:
    """The pages of this process."""
    return Pages()
