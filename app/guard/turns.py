"""Pages are made one at a time, and between two of them the loop is for the pages that are there."""

import asyncio
import time
from types import TracebackType

MOMENT = 0.001
"""A loop that answers within so many seconds has nothing else to do."""


async def rest(taken: float) -> None:
    """Leave the loop to the others, until they want nothing of it or have had it for as long as it was ``taken``."""
    until = time.perf_counter() + taken
    busy = True
    while busy:
        asked = time.perf_counter()
        await asyncio.sleep(0)
        now = time.perf_counter()
        busy = now - asked > MOMENT and now < until


class Turns:
    """A context that one has at a time, first come, first served, with a rest after each."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        """Held while a page is made. Who makes one for nobody takes it alone: nobody waits for that."""
        self._began = 0.0
        self._rest: asyncio.Task[None] | None = None
        self._wanted = 0

    @property
    def crowded(self) -> bool:
        """Whether somebody waits for a page."""
        return self._wanted > 0

    async def __aenter__(self) -> None:
        self._wanted += 1
        try:
            await self.lock.acquire()
        except BaseException:
            self._wanted -= 1
            raise
        self._began = time.perf_counter()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wanted -= 1
        self._rest = asyncio.get_running_loop().create_task(self._let_others(time.perf_counter() - self._began))

    async def _let_others(self, taken: float) -> None:
        try:
            await rest(taken)
        finally:
            self.lock.release()


TURNS = Turns()
"""Those of this server."""
