"""Pages that are made before they are asked for: a room is about to open a link.

They are made while the server has nothing else to do, each a session of its own that nobody has. A request for the link
gets one of them; one that nobody asked for ends like a page that nobody connected to.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from bokeh.server.session import ServerSession, current_time

from app.guard.turns import TURNS
from samplers.parameters import SpecError

MOST = 60
"""Pages that are kept ready at a time, of all links together. Each is some 4 MB."""
LONGEST = 4000
"""Characters of a link's query."""
KEEP_SECONDS = 600.0
"""For so long after it was last asked that they be ready."""
QUIET_SECONDS = 0.05
"""While the server makes pages for those who wait, it is asked so often whether they are there."""
IDLE_SECONDS = 1.0
"""Where all are made, it is looked so often for more to make and for those whose time is over."""


@dataclass
class _Link:
    query: str
    wanted: int
    until: float
    sessions: deque[ServerSession] = field(default_factory=deque)


class Ready:
    """The pages of one server that are ready.

    ``make`` makes the session of a query; nobody else knows its name. ``clock`` tells seconds.
    """

    def __init__(self, make: Callable[[str], Awaitable[ServerSession]], clock: Callable[[], float] = time.monotonic):
        self._make, self._clock = make, clock
        self._links: dict[Any, _Link] = {}
        self._filling: asyncio.Task[None] | None = None

    def prepare(self, query: str, count: int, seconds: float = KEEP_SECONDS) -> int:
        """Let so many pages of a link be made, and be kept for so long from now; those that are ready count.

        Returns how many there will be, for there is room for ``MOST`` of all links. Raises :class:`SpecError`.
        """
        if not 0 <= count <= MOST:
            raise SpecError("students", count, f"allowed are from 0 to {MOST} pages made in advance")
        if len(query) > LONGEST:
            raise SpecError("link", f"of {len(query)} characters", f"allowed are at most {LONGEST}")
        self._drop_old()
        key = _key(query)
        others = sum(link.wanted for at, link in self._links.items() if at != key)
        link = self._links.setdefault(key, _Link(query, 0, 0.0))
        link.wanted, link.until = min(count, MOST - others), self._clock() + seconds
        self._drop(link, link.wanted)
        if self._filling is None or self._filling.done():
            self._filling = asyncio.get_running_loop().create_task(self._fill())
        return link.wanted

    def counts(self) -> dict[str, tuple[int, int]]:
        """Of each link how many pages are ready now, and how many will be."""
        self._drop_old()
        return {link.query: (len(link.sessions), link.wanted) for link in self._links.values()}

    def take(self, query: str) -> ServerSession | None:
        """A page of this link, which from now on is the asker's alone; None where none is ready."""
        link = self._links.get(_key(query))
        if link is None or not link.sessions:
            return None
        session = link.sessions.popleft()
        link.wanted -= 1
        # Its time until somebody must have connected begins now.
        session._last_unsubscribe_time = current_time()
        session.unblock_expiration()
        return session

    async def _fill(self) -> None:
        while self._links:
            self._drop_old()
            short = [link for link in self._links.values() if len(link.sessions) < link.wanted]
            if not short or TURNS.crowded:
                await asyncio.sleep(QUIET_SECONDS if short else IDLE_SECONDS)
                continue
            async with TURNS.lock:
                session = await self._make(short[0].query)
            session.block_expiration()
            short[0].sessions.append(session)
            # It may have become too many, or too late, meanwhile.
            self._drop(short[0], short[0].wanted if self._links.get(_key(short[0].query)) is short[0] else 0)

    def _drop_old(self) -> None:
        now = self._clock()
        for key, link in list(self._links.items()):
            if now > link.until:
                del self._links[key]
                self._drop(link, 0)

    def _drop(self, link: _Link, left: int) -> None:
        while len(link.sessions) > left:
            session = link.sessions.pop()
            # The server ends it with those that nobody connected to.
            session.request_expiration()
            session.unblock_expiration()


def _key(query: str) -> tuple[tuple[str, str], ...]:
    """What a link says, however it is written."""
    return tuple(parse_qsl(query.removeprefix("?"), keep_blank_values=True))
