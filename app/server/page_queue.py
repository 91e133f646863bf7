"""Pages are made one at a time, and between two of them the event loop serves the open pages.

Without the queue, thirty requests in one second stopped every open page for 32 s, and the server discarded six of the
new pages before it had read the requests of their browsers to connect.
"""

import asyncio
import time
from types import TracebackType

IDLE_SECONDS = 0.001
"""A loop that returns within this many seconds has nothing else to do."""


class PageQueue:
    """A context manager for one page at a time, in the order of requests. After each, the loop serves open pages."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._began = 0.0
        self._rest: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        self._began = time.perf_counter()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A separate task, because the page is sent when its handler returns.
        self._rest = asyncio.get_running_loop().create_task(self._leave_to_others(time.perf_counter() - self._began))

    async def _leave_to_others(self, seconds: float) -> None:
        """Wait until the loop is idle, at most for as long as the page took."""
        until = time.perf_counter() + seconds
        try:
            busy = True
            while busy:
                asked = time.perf_counter()
                await asyncio.sleep(0)
                now = time.perf_counter()
                busy = now - asked > IDLE_SECONDS and now < until
        finally:
            self._lock.release()


PAGES = PageQueue()
"""The queue of this server."""
