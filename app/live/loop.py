"""The live loop: it sends frames as fast as the page draws them, and no faster.

The runner of a page defines the start, the figures and the contents of a frame.
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from sgmcmc_lab.app.live.bus import Bus
from sgmcmc_lab.app.live.fair_executor import Pool
from sgmcmc_lab.app.views.base import Feed

log = logging.getLogger("sgmcmc-lab")

FRAME_SECONDS = 1 / 30
"""The shortest time between two frames; a higher rate is not visible."""
LOOP_SHARE = 0.55
"""The share of one processor for the frames of all sessions; with many pages open, each gets fewer frames."""
DEAREST_FRAME = 0.004
"""A frame costs the loop at most this many seconds; anything more is the opening of another page."""
UNANSWERED = 3
"""With this many frames unanswered, only a frame that shows an edit is sent. The page answers every second frame, and
draws one while the next is under way; more would only wait there."""
LOST_SECONDS = 5.0
"""A page that has not answered for this long is sent one more frame."""
SHORTEST_SECONDS = 0.1
"""The shortest interval for a rate: a page that was held up answers two frames at once."""
SLOW_SECONDS = 0.25
"""The time between two rounds of slow work, such as ensembles, R-hat and readouts."""

# Shared by all sessions: one thread for each processor.
POOL = Pool(2, "engine")
SLOW = Pool(1, "slow")


class Pace:
    """The time between two frames of a session, so that all sessions together leave the loop time for other work."""

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
    """The loop's interface to the page."""

    def look(self, views: Sequence[Any]) -> Mapping[str, Any]:
        """The cards of the views, the classes of their grid, and its colours."""

    def show_status(self, what: str) -> None:
        """Show a status before the first frame; an empty text clears it."""

    def show_divergence(self, index: int, message: str) -> None:
        """Say why a lane stopped."""

    def clear_divergence(self, index: int | None = None) -> None:
        """Clear the message of one lane, or of all."""

    def moving(self) -> None:
        """The first frames are on the screen: less urgent work may follow."""

    def fit_screen(self, width: int, still: bool) -> None:
        """Fit the page to its width in pixels; ``still`` is the reader's preference for reduced motion."""

    def prefer_dark(self, dark: bool) -> None:
        """Follow the reader's preference for dark colours, which may change while the page is open."""


class Live(ABC):
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
        self._dark = False
        """Whether the reader prefers dark colours."""
        self._seen_moving = False
        self._connected = asyncio.Event()
        self._loaded = asyncio.Event()
        self._wake = asyncio.Event()
        self._restart = self._rebuild = True
        self._stale = False
        self._single = 0
        self._changes: dict[int, Any] = {}
        """Edits that no frame shows yet; somebody waits for them."""
        self._redraw = False
        self._drawn_times: deque[tuple[float, int]] = deque(maxlen=60)

    @abstractmethod
    async def build_views(self) -> None:
        """Make figures for the current choices; the page's script does not have them yet."""

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
        """Round ``turn`` of the slow work, with captions and the readout."""

    def step(self) -> None:
        """Make a single step of all runs."""
        self._single += 1
        self._ask()

    async def run(self) -> None:
        """The loop; ends when its task is cancelled."""
        # While the browser loads the page.
        await self.build_views()
        await self._connected.wait()
        if self._screen[1] or self._dark:
            await self._loaded.wait()
        slow = asyncio.create_task(self._slow_loop())
        try:
            due, fitted, announced, dark = time.perf_counter(), False, False, False
            while True:
                if self._loaded.is_set() and dark != self._dark:
                    dark = self._dark
                    self._page.prefer_dark(dark)
                # Figures and frames arrive as messages, some .7 s before the browser has drawn the rest of the page.
                if self._loaded.is_set() and not fitted:
                    fitted = True
                    self._page.fit_screen(*self._screen)
                if self._seen_moving and fitted and not announced:
                    announced = True
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
        """Put new figures on the page if the choice has changed."""
        if self._rebuild:
            await self.build_views()
        if self._stale:
            await self._send_layout()

    async def _rest(self, seconds: float) -> None:
        """Wait, unless a frame is to show an edit."""
        self._wake.clear()
        began = time.perf_counter()
        while (left := seconds - (time.perf_counter() - began)) > 0 and not self._changes and await self._woken(left):
            self._wake.clear()

    async def _woken(self, seconds: float) -> bool:
        """Wait for an event, at most this long; returns whether one came."""
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

    def _answered(self, number: int, hidden: bool, generation: int, width: int, still: bool, dark: bool) -> None:
        self._hidden, self._dark = hidden, dark
        if number == self.bus.HELLO and not self._connected.is_set():
            self._screen = (width, still)
            self._connected.set()
        elif number == self.bus.HELLO:
            # A page that is rendered again has no layout.
            self._ask(rebuild=True)
        elif number > 0 and generation == self.bus.generation:
            self._seen_moving = True
            self.frames_drawn = max(self.frames_drawn, number)
            self._drawn_times.append((time.perf_counter(), number))
        self._wake.set()

    async def _send_layout(self) -> None:
        self._stale = False
        self._feeds = []
        feeds: list[Feed] = []
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
                    log.exception("Slow work of a page failed")

    def _drawn_rate(self) -> float:
        """Frames per second that the page draws."""
        return recent_rate(self._drawn_times)


def recent_rate(times: Sequence[tuple[float, int]]) -> float:
    """The rate of growth of a count in the last two seconds, from pairs (time, count)."""
    # Copied first: the engine's thread may append to it meanwhile.
    recent = [(t, number) for t, number in tuple(times) if time.perf_counter() - t < 2.0]
    return (
        (recent[-1][1] - recent[0][1]) / max(recent[-1][0] - recent[0][0], SHORTEST_SECONDS) if len(recent) > 1 else 0.0
    )


def short(x: float) -> str:
    """A number of a readout, with three digits."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if x >= size:
            return f"{x / size:.3g}{unit}"
    # From 100 on, three digits stand before the point; with three significant digits, 999.6 would read 1e+03.
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def with_rates(where: str, rates: Mapping[str, float]) -> str:
    """A readout of progress and rates; a page that was hidden has no rates for the last seconds.

    A line breaks between two of them, never between a number and its unit.
    """
    return " · ".join([where, *(f"{short(rate)}\N{NO-BREAK SPACE}{unit}" for unit, rate in rates.items() if rate > 0)])
