"""Pages are made one at a time, and between two of them the loop is for the pages that are there."""

import asyncio
import time
from types import TracebackType

MOMENT = 0.01
"""A loop that answers after so many seconds, and not twice as many, has nothing else to do."""
REST = 1.0
"""While the loop has something else to do, the next page waits for this multiple of the time that the last one took.
Thirty requests that come at once would else be answered before anything else is done: nine seconds without a frame,
and only then would all of them connect."""


class Turns:
    """A context that one has at a time, first come, first served, with a rest after each."""

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
        until = time.perf_counter() + REST * (time.perf_counter() - self._began)
        self._rest = asyncio.get_running_loop().create_task(self._let_others(until))

    async def _let_others(self, until: float) -> None:
        try:
            busy = True
            while busy:
                asked = time.perf_counter()
                await asyncio.sleep(MOMENT)
                now = time.perf_counter()
                busy = now - asked > 2 * MOMENT and now < until
        finally:
            self._lock.release()
