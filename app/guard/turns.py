"""Pages are made one at a time, and between two of them the loop is for the pages that are there."""

import asyncio
import time
from types import TracebackType

REST = 1 / 3
"""After a page was made the next one waits for this part of the time that it took. Thirty requests that come at once
would else be answered before anything else is done: nine seconds without a frame, and then all of them connect."""


class Turns:
    """A context that one has at a time, first come, first served, with a rest after each."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._began = 0.0

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        self._began = time.perf_counter()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        took = time.perf_counter() - self._began
        asyncio.get_running_loop().call_later(REST * took, self._lock.release)
