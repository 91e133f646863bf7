"""Polling of rooms: one look at a room serves all pages of this process, which are told of each change."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache

from sgmcmc_lab.app.room.rooms import Look, Rooms, rooms

log = logging.getLogger("sgmcmc-lab")

LOOK_SECONDS, SOONEST = 0.4, 0.1
"""The time between two looks at a room: as a rule, and after a change by this process."""
Hear = Callable[[Look | None], None]
"""Takes the current look at a room; None if the room is gone."""


class Hub:
    """The pages of this process that are in rooms."""

    def __init__(self, of: Rooms, seconds: float = LOOK_SECONDS):
        self._rooms, self._seconds = of, seconds
        self._hearing: dict[str, list[Hear]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._last: dict[str, Look | None] = {}
        self._changed: dict[str, asyncio.Event] = {}

    def join(self, code: str, hear: Hear) -> Callable[[], None]:
        """Call ``hear`` with each new look at the room, until the returned function is called."""
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
                # Cleared before the look, which may miss a change that comes meanwhile.
                changed.clear()
                try:
                    look = await self._rooms.look(code)
                except Exception as error:
                    # Redis does not answer: pages keep the last look, marked as old.
                    reached = False
                    if before is not None and not before.away:
                        log.warning("The room %s cannot be read: %s", code, type(error).__name__)
                        look = replace(before, away=True)
                if look != before or (reached and code not in self._last):
                    self._last[code] = look
                    self._tell(code, list(self._hearing[code]))
                if look is None and reached:
                    # A room that is opened later with the same code is watched anew.
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
                    log.exception("A page failed to show its room")


@cache
def hub() -> Hub:
    """The hub of this process."""
    return Hub(rooms())
