"""Pages are made one at a time, addresses take turns, and between two pages the event loop serves the open ones.

Without the queue, thirty requests in one second stopped every open page for 32 s, and the server discarded six of the
new pages before it had read the requests of their browsers to connect. In order of arrival, 150 requests of one client
kept every other one from its page for 78 s.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from sgmcmc_lab.app.live.loop import PACE

IDLE_SECONDS = 0.001
"""A loop that returns within this many seconds has nothing else to do."""
REST = 2.0
"""Beside pages that move, the time between two new pages, in units of the first one's: of 30 frames per second an open
page then has 20.
"""
MOST_WAITING = 200
"""Pages that wait for one address: at half a second each, the next one would come after more than a minute."""


class FullError(Exception):
    """So many pages wait for an address that one more would come too late."""


class PageQueue:
    """The queue of pages to be made. ``moves`` tells whether an open page moves."""

    def __init__(self, moves: Callable[[], bool]) -> None:
        self._moves = moves
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Of each address, in order of arrival; the address whose turn is next comes first."""
        self._busy = False
        self._rest: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """One page for this address, when it is its turn. Raises :class:`FullError`."""
        if self._busy:
            await self._wait(address)
        self._busy = True
        began = time.perf_counter()
        try:
            yield
        finally:
            # A separate task, because the page is sent when its handler returns.
            self._rest = asyncio.get_running_loop().create_task(self._leave_to_others(time.perf_counter() - began))

    async def _wait(self, address: str) -> None:
        waiting = self._waiting.setdefault(address, deque())
        if len(waiting) >= MOST_WAITING:
            raise FullError
        turn = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._next()
            elif turn in waiting:
                waiting.remove(turn)
            raise

    async def _leave_to_others(self, seconds: float) -> None:
        """Wait ``REST`` times as long as the page took where open pages move, otherwise until the loop is idle."""
        if self._moves():
            await asyncio.sleep(REST * seconds)
        else:
            until = time.perf_counter() + seconds
            busy = True
            while busy:
                asked = time.perf_counter()
                await asyncio.sleep(0)
                now = time.perf_counter()
                busy = now - asked > IDLE_SECONDS and now < until
        self._next()

    def _next(self) -> None:
        """Let the next address have a page; its others wait until all addresses have had theirs."""
        self._busy = False
        while self._waiting and not self._busy:
            address = next(iter(self._waiting))
            waiting = self._waiting.pop(address)
            if waiting:
                turn = waiting.popleft()
                self._busy = not turn.done()
                if self._busy:
                    turn.set_result(None)
                self._waiting[address] = waiting


PAGES = PageQueue(lambda: not PACE.quiet)
"""The queue of this server."""
