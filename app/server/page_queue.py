"""Pages are made part by part, addresses take turns, and between two parts the event loop serves the open pages.

Without the queue, thirty requests in one second stopped every open page for 32 s, and the server discarded six of the
new pages before it had read the requests of their browsers to connect. In order of arrival, 150 requests of one client
kept every other one from its page for 78 s.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from sgmcmc_lab.app.live.fair_executor import FullError
from sgmcmc_lab.app.live.loop import PACE

IDLE_SECONDS = 0.001
"""A loop that returns within this many seconds has nothing else to do."""
REST = 2.0
"""Beside pages that move, the time until an address may have its next page, in units of the time that its last one
took: of 30 frames per second an open page then has 20.
"""
FRAME_SECONDS = 0.02
"""Beside pages that move, the least time between two parts of a page: for the frames that are due."""
MOST_WAITING = 200
"""Pages that wait for one address: at half a second each, the next one would come after more than a minute."""
TOO_MANY = f"{MOST_WAITING} pages are being made for your network already, which is as many as may wait. Try again in a minute."


class PageQueue:
    """The queue of pages to be made. ``moves`` tells whether an open page moves."""

    def __init__(self, moves: Callable[[], bool]) -> None:
        self._moves = moves
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """The requests of each address in order of arrival; the address whose turn is next comes first."""
        self._rests: dict[str, float] = {}
        """The time until which an address has no other page."""
        self._latest = ""
        """The address of the last page."""
        self._busy = False
        self._rest: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """One page for this address, when it is its turn; between two parts of the page, await what this yields: open
        pages have a frame, and another address that waits has a part or a page. Raises :class:`FullError`.
        """
        began = time.perf_counter()
        if self._busy or self._rests.get(address, 0.0) > began:
            await self._wait(address)
        self._busy = True
        # Asked now: while the page is made, nothing moves.
        began, moves, took, has = time.perf_counter(), self._moves(), 0.0, True

        async def between() -> None:
            nonlocal began, took, has
            part = time.perf_counter() - began
            took += part
            if moves:
                await asyncio.sleep(FRAME_SECONDS)
            await _idle(part)
            now = time.perf_counter()
            if any(other != address and self._rests.get(other, 0.0) <= now for other in self._waiting):
                self._busy, self._latest, has = False, address, False
                await self._wait(address, first=True)
                has = True
            began = time.perf_counter()

        try:
            yield between
        finally:
            now = time.perf_counter()
            took += now - began
            if moves:
                self._rests[address] = now + REST * took
            if has:
                self._latest = address
                if address in self._waiting:
                    self._waiting[address] = self._waiting.pop(address)
                # A separate task, because the page is sent when its handler returns.
                self._rest = asyncio.get_running_loop().create_task(self._leave_to_others(took))

    async def _wait(self, address: str, first: bool = False) -> None:
        """Wait for a turn, behind the others of this address or, with a page that is begun, before them."""
        waiting = self._waiting.setdefault(address, deque())
        turn = asyncio.get_running_loop().create_future()
        if first:
            waiting.appendleft(turn)
        elif len(waiting) >= MOST_WAITING:
            raise FullError
        else:
            waiting.append(turn)
        # Where a page is being made, the next one is looked for after it: not with each request.
        if not self._busy:
            self._next()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._busy = False
                self._next()
            elif turn in waiting:
                waiting.remove(turn)
            raise

    async def _leave_to_others(self, seconds: float) -> None:
        await _idle(seconds)
        self._busy = False
        self._next()

    def _next(self) -> None:
        """Let the next address that does not rest have a page; its others wait until all addresses have had theirs."""
        now = time.perf_counter()
        self._rests = {address: until for address, until in self._rests.items() if until > now}
        for address in sorted(self._waiting, key=self._latest.__eq__):
            waiting = self._waiting[address]
            while waiting and waiting[0].done():
                waiting.popleft()
            if not waiting:
                del self._waiting[address]
            elif not self._busy and address not in self._rests:
                self._busy = True
                waiting.popleft().set_result(None)
        if self._waiting and not self._busy:
            soonest = min(self._rests[address] for address in self._waiting)
            asyncio.get_running_loop().call_later(soonest - now, self._next)


async def _idle(seconds: float) -> None:
    """Wait until the loop is idle, for so many seconds at most."""
    until = time.perf_counter() + seconds
    busy = True
    while busy:
        asked = time.perf_counter()
        await asyncio.sleep(0)
        now = time.perf_counter()
        busy = now - asked > IDLE_SECONDS and now < until


PAGES = PageQueue(lambda: not PACE.quiet)
"""The queue of this server."""
