"""Polling of rooms: one look at a room serves all pages of this process, which are told of each change."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache

from sgmcmc_lab.app.room.rooms import Rooms, RoomState, rooms

log = logging.getLogger("sgmcmc-lab")

LOOK_SECONDS, SOONEST = 0.4, 0.1
"""The time between two looks at a room: as a rule, and after a change by this process."""
Listener = Callable[[RoomState | None], None]
"""Takes the current look at a room; None if the room is gone."""


class Hub:
    """The pages of this process that are in rooms."""

    def __init__(self, of: Rooms, seconds: float = LOOK_SECONDS):
        self._rooms, self._seconds = of, seconds
        self._listeners: dict[str, list[Listener]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._last: dict[str, RoomState | None] = {}
        self._changed: dict[str, asyncio.Event] = {}

    def join(self, code: str, listener: Listener) -> Callable[[], None]:
        """Call ``hear`` with each new look at the room, until the returned function is called."""
        self._listeners.setdefault(code, []).append(listener)
        if code in self._last:
            asyncio.get_running_loop().call_soon(self._tell, code, [listener])
        if code not in self._tasks:
            self._tasks[code] = asyncio.get_running_loop().create_task(self._watch(code))

        def leave() -> None:
            if listener in self._listeners.get(code, []):
                self._listeners[code].remove(listener)

        return leave

    def changed(self, code: str) -> None:
        """This process has changed the room: look soon."""
        if code in self._changed:
            self._changed[code].set()

    async def _watch(self, code: str) -> None:
        changed = self._changed[code] = asyncio.Event()
        try:
            while self._listeners[code]:
                room_state = before = self._last.get(code)
                reached = True
                # Cleared before the look, which may miss a change that comes meanwhile.
                changed.clear()
                try:
                    room_state = await self._rooms.state_of(code)
                except Exception as error:
                    # Redis does not answer: pages keep the last look, marked as old.
                    reached = False
                    if before is not None and not before.away:
                        log.warning("The room %s cannot be read: %s", code, type(error).__name__)
                        room_state = replace(before, away=True)
                if room_state != before or (reached and code not in self._last):
                    self._last[code] = room_state
                    self._tell(code, list(self._listeners[code]))
                if room_state is None and reached:
                    # A room that is opened later with the same code is watched anew.
                    return
                await asyncio.sleep(min(SOONEST, self._seconds))
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), max(self._seconds - SOONEST, 0.0))
        finally:
            for kept in (self._listeners, self._tasks, self._last, self._changed):
                kept.pop(code, None)

    def _tell(self, code: str, whom: list[Listener]) -> None:
        for listener in whom:
            if listener in self._listeners.get(code, []):
                try:
                    listener(self._last[code])
                except Exception:
                    log.exception("A page failed to show its room")


@cache
def hub() -> Hub:
    """The hub of this process."""
    return Hub(rooms())
