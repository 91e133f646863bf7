"""Who watches a room: one look at it for all pages of this process, and each is told when something has changed."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache

from app.room.rooms import Look, Rooms, rooms

log = logging.getLogger("sgmcmc-lab")

LOOK_SECONDS, SOONEST = 0.4, 0.1
"""Between two looks at a room: as a rule, and after a change by this process."""
Hear = Callable[[Look | None], None]
"""Is told what a room is like now; None where it is gone."""


class Hub:
    """The pages of this process that are in rooms."""

    def __init__(self, of: Rooms, seconds: float = LOOK_SECONDS):
        self._rooms, self._seconds = of, seconds
        self._hearing: dict[str, list[Hear]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._last: dict[str, Look | None] = {}
        self._changed: dict[str, asyncio.Event] = {}

    def join(self, code: str, hear: Hear) -> Callable[[], None]:
        """Tell ``hear`` of the room from now on, until what is returned is called."""
        self._hearing.setdefault(code, []).append(hear)
        if code in self._last:
            asyncio.get_running_loop().call_soon(self._tell, code, [hear])
        if code not in self._tasks:
            self._tasks[code] = asyncio.get_running_loop().create_task(self._watch(code))

        def leave() -> None:
            if hear in self._hearing.get(code, []):
                self._hearing[code].remove(hear)

        return leave

    def changed(self, code: str) -> None:
        """This process has changed the room: look soon."""
        if code in self._changed:
            self._changed[code].set()

    async def _watch(self, code: str) -> None:
        changed = self._changed[code] = asyncio.Event()
        try:
            while self._hearing[code]:
                look = before = self._last.get(code)
                reached = True
                # Not after the look, which may not see a change that comes meanwhile.
                changed.clear()
                try:
                    look = await self._rooms.look(code)
                except Exception as error:
                    # Redis is away for a while: what is known stays, and is said to be what was.
                    reached = False
                    if before is not None and not before.away:
                        log.warning("The room %s cannot be looked at: %s", code, type(error).__name__)
                        look = replace(before, away=True)
                if look != before or (reached and code not in self._last):
                    self._last[code] = look
                    self._tell(code, list(self._hearing[code]))
                if look is None and reached:
                    # Who comes into one of the same code that is opened later has nothing to do with this one.
                    return
                await asyncio.sleep(min(SOONEST, self._seconds))
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), max(self._seconds - SOONEST, 0.0))
        finally:
            for kept in (self._hearing, self._tasks, self._last, self._changed):
                kept.pop(code, None)

    def _tell(self, code: str, whom: list[Hear]) -> None:
        for hear in whom:
            if hear in self._hearing.get(code, []):
                try:
                    hear(self._last[code])
                except Exception:
                    log.exception("A page could not take what its room is like")


@cache
def hub() -> Hub:
    """This server's."""
    return Hub(rooms())
