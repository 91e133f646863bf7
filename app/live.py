"""What every live loop does: frames to the page as fast as the page draws them, and no faster.

The runner of a page says what to start, what moves and what a frame holds.
"""

import asyncio
import logging
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from app.bus import Bus
from app.fair import Pool

log = logging.getLogger("sgmcmc-lab")

FRAME_SECONDS = 1 / 30
"""The shortest time between two frames; more is not seen."""
LOOP_SHARE = 0.55
"""The part of one processor that the frames of all sessions may take; with many pages open each gets fewer of them."""
DEAREST_FRAME = 0.004
"""A frame costs at most this many seconds of the loop. What is beyond that was another page being opened."""
UNANSWERED = 3
"""With so many frames on their way and not yet answered, nothing is sent but what shows an edit. The page answers every
second one, and draws one while the next is under way; more would only wait in it."""
LOST_SECONDS = 5.0
"""A page that has not answered for so long is sent one more frame."""
SHORTEST_SECONDS = 0.1
"""A rate is over so long at least: a page that was held up answers for two frames at once."""
SLOW_SECONDS = 0.25
"""Slow work, such as ensembles, R-hat and readouts, comes this often."""

# Shared by all sessions: as many places as there are processors.
POOL = Pool(2, "engine")
SLOW = Pool(1, "slow")


class Pace:
    """How long a session waits between two frames, so that all sessions together leave the event loop its rest."""

    def __init__(self) -> None:
        self._cost = 0.0
        self._frames = 0
        self._senders: set[int] = set()
        self._recent: set[int] = set()
        self._since, self._busy = time.perf_counter(), time.thread_time()
        self._last = 0.0

    def interval(self, session: int) -> float:
        """The time until the next frame of this session, which has just sent one."""
        self._frames += 1
        self._senders.add(session)
        self._last = now = time.perf_counter()
        busy = time.thread_time()
        if now - self._since > 1.0:
            self._cost = min((busy - self._busy) / self._frames, DEAREST_FRAME)
            self._since, self._busy, self._frames = now, busy, 0
            self._recent, self._senders = self._senders, set()
        return max(FRAME_SECONDS, len(self._recent) * self._cost / LOOP_SHARE)

    @property
    def quiet(self) -> bool:
        """Whether no page has had a frame for a second or two."""
        return time.perf_counter() - self._last > 1.0


PACE = Pace()


class LiveScreen(Protocol):
    """What the loop asks of the page."""

    def look(self, views: Sequence[Any]) -> Mapping[str, Any]:
        """The cards of the views, the classes of their grid, and its colours."""

    def show_status(self, what: str) -> None:
        """Say what is going on before anything moves; an empty text says nothing."""

    def show_divergence(self, index: int, message: str) -> None:
        """Say why a lane stopped."""

    def clear_divergence(self, index: int | None = None) -> None:
        """One goes on, or all start again."""

    def moving(self) -> None:
        """The first frames are on the screen: what is not urgent may follow."""

    def fit_screen(self, width: int, still: bool) -> None:
        """The page has announced itself: so many pixels wide, and whether the person asks for less motion."""


class Live:
    """The loop of one session."""

    def __init__(self, screen: LiveScreen):
        self._page = screen
        self.bus = Bus(self._answered)
        self.readout: Any = None
        """The model whose text is the readout."""
        self.checks: Callable[[], list[tuple[str, str]]] | None = None
        """Texts for a lesson's check marks, by their model's id. Called about once a second while nothing moves."""
        self.views: Sequence[Any] = []
        self.frames_sent = self.frames_drawn = 0
        self._feeds: list[tuple[Any, dict[str, int]]] = []
        self._hidden = False
        self._screen = (0, False)
        self._seen_moving = False
        self._connected = asyncio.Event()
        self._loaded = asyncio.Event()
        self._wake = asyncio.Event()
        self._restart = self._rebuild = True
        self._stale = False
        self._single = 0
        self._changes: dict[int, Any] = {}
        """What was edited and is in no frame yet; somebody waits for it."""
        self._redraw = False
        self._drawn_times: deque[tuple[float, int]] = deque(maxlen=60)

    @abstractmethod
    def build_views(self) -> None:
        """Make new figures for what is chosen now; the page's script does not know them yet."""

    @abstractmethod
    def _active(self) -> bool:
        """Whether there is a frame to be made."""

    @abstractmethod
    async def _begin(self) -> None:
        """Start again from the first state."""

    @abstractmethod
    async def _frame(self) -> None:
        """Compute a frame, and send it."""

    @abstractmethod
    async def _slow_turn(self, turn: int) -> None:
        """Slow work, by its number; captions and the readout."""

    def step(self) -> None:
        """One single step of all that runs."""
        self._single += 1
        self._ask()

    async def run(self) -> None:
        """The loop; ends when its task is cancelled."""
        await self._connected.wait()
        if self._screen[1]:
            await self._loaded.wait()
        slow = asyncio.create_task(self._slow_loop())
        try:
            due, fitted, told = time.perf_counter(), False, False
            while True:
                # Figures and frames come by messages, some .7 s before the browser has drawn the rest of the page.
                if self._loaded.is_set() and not fitted:
                    fitted = True
                    self._page.fit_screen(*self._screen)
                if self._seen_moving and fitted and not told:
                    told = True
                    self._page.moving()
                await self._lay_out()
                if self._restart:
                    await self._begin()
                    continue
                waiting = self.frames_sent - self.frames_drawn
                if not self._active() or (waiting >= UNANSWERED and not self._changes):
                    self._wake.clear()
                    if not await self._woken(LOST_SECONDS):
                        # An answer was lost; one more frame asks for another.
                        self.frames_drawn = max(self.frames_drawn, self.frames_sent - 1)
                    continue
                await self._frame()
                due = max(due + PACE.interval(id(self)), time.perf_counter())
                await self._rest(due - time.perf_counter())
        finally:
            slow.cancel()

    async def _lay_out(self) -> None:
        """New figures on the page where others are chosen."""
        if self._rebuild:
            self.build_views()
        if self._stale:
            await self._send_layout()

    async def _rest(self, seconds: float) -> None:
        """Wait, but not with a frame that shows an edit."""
        self._wake.clear()
        began = time.perf_counter()
        while (left := seconds - (time.perf_counter() - began)) > 0 and not self._changes and await self._woken(left):
            self._wake.clear()

    async def _woken(self, seconds: float) -> bool:
        """Wait so long for something to happen: whether it did."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._wake.wait()
        return False

    def page_loaded(self) -> None:
        """The browser has drawn the page, whose models may change from now on."""
        self._loaded.set()
        self._wake.set()

    @property
    def announced(self) -> bool:
        """Whether the page has said that it is there."""
        return self._connected.is_set()

    @property
    def _watched(self) -> bool:
        """Whether somebody looks at the page."""
        return not self._hidden and self.bus.connected

    def _ask(self, restart: bool = False, rebuild: bool = False) -> None:
        self._restart |= restart
        self._rebuild |= rebuild
        self._redraw = True
        self._wake.set()

    def _answered(self, number: int, hidden: bool, generation: int, width: int, still: bool) -> None:
        self._hidden = hidden
        if number == self.bus.HELLO and not self._connected.is_set():
            self._screen = (width, still)
            self._connected.set()
        elif number == self.bus.HELLO:
            # A page that was rendered again knows no layout.
            self._ask(rebuild=True)
        elif number > 0 and generation == self.bus.generation:
            self._seen_moving = True
            self.frames_drawn = max(self.frames_drawn, number)
            self._drawn_times.append((time.perf_counter(), number))
        self._wake.set()

    async def _send_layout(self) -> None:
        self._stale = False
        self._feeds, feeds = [], []
        for view in self.views:
            indices = {}
            for name, feed in view.feeds.items():
                indices[name] = len(feeds)
                feeds.append(feed)
            self._feeds.append((view, indices))
        await self.bus.set_layout(self.views, feeds, self._page.look(self.views))
        self.frames_sent = self.frames_drawn = 0
        self._drawn_times.clear()
        self._redraw = True

    async def _slow_loop(self) -> None:
        turn = 0
        while True:
            await asyncio.sleep(SLOW_SECONDS)
            if self._watched and not (self._restart or self._rebuild or self._stale):
                turn += 1
                try:
                    await self._slow_turn(turn)
                except Exception:
                    log.exception("Slow work of a page met an error")

    def _drawn_rate(self) -> float:
        """Frames that the page draws a second."""
        return recent_rate(self._drawn_times)


def recent_rate(times: Sequence[tuple[float, int]]) -> float:
    """How fast a count, noted as (time, count), has grown in the last two seconds."""
    # A copy at once: the engine's thread may add to it meanwhile.
    recent = [(t, number) for t, number in tuple(times) if time.perf_counter() - t < 2.0]
    return (
        (recent[-1][1] - recent[0][1]) / max(recent[-1][0] - recent[0][0], SHORTEST_SECONDS) if len(recent) > 1 else 0.0
    )


def short(x: float) -> str:
    """A number of a readout, with three digits."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if x >= size:
            return f"{x / size:.3g}{unit}"
    # From 100 on the digits before the point are three; rounded by significance 999.6 would read 1e+03.
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def with_rates(where: str, rates: Mapping[str, float]) -> str:
    """A readout of how far something is, and how fast; a page that was hidden knows nothing of the last seconds."""
    return " · ".join([where, *(f"{short(rate)} {unit}" for unit, rate in rates.items() if rate > 0)])
