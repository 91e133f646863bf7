"""Pages that are made before a class opens a link, in all processes of a server: each makes its share.

The processes know of each other, and of what was asked for, by what they announce in the store that they share.
"""

import json
import logging
import time
from collections.abc import Callable

from app.guard.ready import KEEP_SECONDS, LONGEST, MOST, Ready
from app.room.rooms import new_mark
from app.room.store import Store, store
from samplers.parameters import SpecError

log = logging.getLogger("sgmcmc-lab")

BEAT_SECONDS = 1.0
"""How often a process announces itself, and looks for what was asked for."""
ALIVE_SECONDS = 15.0
"""One that has announced nothing for so long is gone. On a machine that is full one makes a page for seven."""
MOST_LINKS = 100
"""For which pages are asked for at a time."""


class Ahead:
    """One process among those that make pages in advance. ``clock`` tells the seconds of all of them."""

    def __init__(self, kept: Store, own: Ready, clock: Callable[[], float] = time.time):
        self._store, self._own, self._clock = kept, own, clock
        self._name = ""
        self._known: dict[str, str] = {}
        """What was asked for when it was last looked at."""
        self._away = False

    async def beat(self) -> None:
        """Announce this process, and take up its share of what was asked for meanwhile."""
        try:
            await self._take_up(await self._processes())
        except Exception as error:
            if not self._away:
                log.warning("What other processes make in advance is not known: %s", type(error).__name__)
            self._away = True
        else:
            self._away = False

    async def most(self) -> int:
        """For how many students pages can be asked for."""
        return MOST * len(await self._processes())

    async def prepare(self, query: str, count: int) -> int:
        """Let so many pages of a link be made by all processes together, and be kept for ten minutes.

        Returns how many there will be, for each has room for ``ready.MOST`` of all links. Raises :class:`SpecError`.
        """
        processes = await self._processes()
        if not 0 <= count <= MOST * len(processes):
            raise SpecError("students", count, f"allowed are from 0 to {MOST * len(processes)} pages made in advance")
        if len(query) > LONGEST:
            raise SpecError("link", f"of {len(query)} characters", f"allowed are at most {LONGEST}")
        asked = await self._store.announced("asked")
        if query not in asked and not count:
            return 0
        if query not in asked and len(asked) >= MOST_LINKS:
            raise SpecError("links", len(asked) + 1, f"allowed are {MOST_LINKS} whose pages are made in advance")
        # The mark tells it from what was asked for earlier of the same link.
        text = json.dumps([count, self._clock() + KEEP_SECONDS, new_mark()])
        await self._store.announce("asked", query, text, KEEP_SECONDS)
        await self._take_up(processes)
        shares = _shares(processes, count)
        others = {
            name: sum(wanted for of, (_, wanted) in has.items() if of != query) for name, has in processes.items()
        }
        return sum(max(0, min(share, MOST - others[name])) for name, share in shares.items())

    async def count(self, query: str) -> int:
        """How many pages of a link are ready now in all processes."""
        return sum(has[query][0] for has in (await self._processes()).values() if query in has)

    async def _processes(self) -> dict[str, dict[str, tuple[int, int]]]:
        """What each has ready and will have, by its name and by link; this one among them."""
        # Processes are forked from one that has no name yet.
        self._name = self._name or new_mark()
        own = self._own.counts()
        await self._store.announce("processes", self._name, json.dumps(own), ALIVE_SECONDS)
        known = await self._store.announced("processes")
        return {**{name: json.loads(text) for name, text in known.items()}, self._name: own}

    async def _take_up(self, processes: dict[str, dict[str, tuple[int, int]]]) -> None:
        asked = await self._store.announced("asked")
        known, self._known = self._known, asked
        for query, text in asked.items():
            # Once only: what was handed out is not made again.
            if known.get(query) != text:
                count, until, _ = json.loads(text)
                self._own.prepare(query, _shares(processes, count)[self._name], until - self._clock())


def _shares(processes: dict[str, dict[str, tuple[int, int]]], count: int) -> dict[str, int]:
    """How many of ``count`` pages each process makes: as many as the others, or one more."""
    each, more = divmod(count, len(processes))
    return {name: each + (i < more) for i, name in enumerate(sorted(processes))}


_serving: list[Ahead] = []


def serve(ready: Ready) -> None:
    """The pages of this server."""
    _serving[:] = [Ahead(store(), ready)]


def ahead() -> Ahead | None:
    """This process; None without a server."""
    return _serving[0] if _serving else None


async def beat() -> None:
    """What each process does every second."""
    if _serving:
        await _serving[0].beat()
