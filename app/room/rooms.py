"""Short links and rooms: who may do what, and what is counted. The page's part is in ``panel.py``.

A room has no account and no name. Its code lets anybody in; only who has the secret that was made with it asks,
reveals, starts a race, leads and closes. A student is a random text that her browser keeps, so that she counts once.
"""

import asyncio
import json
import logging
import re
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import scrypt, sha256
from typing import Any, TypeVar, get_type_hints
from urllib.parse import parse_qsl

from sgmcmc_lab.app.link import ALPHABET, CODE, LETTERS
from sgmcmc_lab.app.room.store import DAY, Store, store
from sgmcmc_lab.samplers.link import MAX_QUERY
from sgmcmc_lab.samplers.low_priority import workers
from sgmcmc_lab.samplers.parameters import SpecError

log = logging.getLogger("sgmcmc-lab")

COST = 2**14
"""The cost of scrypt, which derives a room's code from its maker's secret in 16 MB and .05 s. A restarted server can
thus check that they belong together; guessing a secret for a code takes some 700 years."""
_PROVER = workers(1, "rooms")
TOKEN = re.compile(r"[A-Za-z0-9_-]{16,64}")
"""The values that a browser keeps: a student's mark or a maker's secret."""
MAX_LINK = MAX_QUERY - 100
"""Characters: a room's code comes after it."""
MOST = {"link": 1_000, "room": 100}
"""Short links and rooms of a server."""
MOST_OF_ADDRESS = {"link": 250, "room": 25}
"""The largest number for one address, which a whole school, or all clients of a proxy, may share: 25 classes at a
time."""
IDLE_SECONDS = 600.0
"""Seconds without use after which a room or a link is dropped if there are too many."""
NOTE_SECONDS = 60.0
"""Seconds between two notes that a room is in use."""
MOST_STUDENTS = 1_500
MOST_ASKED = 200
"""Questions in a room, one after the other; the votes of the last two are kept."""
MAX_ENTRY = 4_000
"""Characters of what a race keeps of a student."""
RANKED = ("ks", "tau")
AWAY = "The rooms of this server do not answer now; the page itself continues."
"""The message if the store does not answer, or is full."""


class GoneError(SpecError):
    """There is no such room now."""


async def carefully(work: Awaitable[Any], say: Callable[[str], None]) -> None:
    """Await ``work``; say why it is refused, or that the store does not answer."""
    try:
        await work
    except SpecError as error:
        say(str(error))
    except Exception:
        log.exception("A room did not answer")
        say(AWAY)


@dataclass(frozen=True)
class Ask:
    """A question that a room was asked."""

    number: int
    lesson: str
    step: int
    options: int
    open: bool = True
    shown: bool = False
    """Whether everybody sees the bars."""
    first: int = 0
    """The number under which the same question was asked before; 0 where it was not."""


@dataclass(frozen=True)
class Race:
    """A target on which everybody tries a sampler."""

    number: int
    target: str
    """As links write it."""
    by: str
    after: int = 0
    """The number of the last question before it."""
    over: bool = False
    """Whether it has ended; its table is shown until the teacher goes on."""


Kind = TypeVar("Kind", Ask, Race)


@dataclass(frozen=True)
class RoomState:
    """A room as it is now."""

    link: str
    students: int
    ask: Ask | None = None
    votes: dict[str, int] = field(default_factory=dict)
    """The option of each student, counted from 1."""
    before: dict[str, int] = field(default_factory=dict)
    """The options chosen when the question was asked the first time."""
    race: Race | None = None
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The best of each student: link, title, ks and tau."""
    away: bool = False
    """Whether the store does not answer now: the room is as it was before."""

    def leads_to(self, ask: Ask) -> bool:
        """Whether the teacher is at the step of that question."""
        return _place(self.link) == (ask.lesson, str(ask.step))

    @property
    def racing(self) -> Race | None:
        """The race that samplers can enter."""
        return self.race if self.race is not None and not self.race.over else None

    @property
    def asks(self) -> Ask | None:
        """The question that is to be seen: an open one, or its bars until the teacher goes on, to a race too."""
        ask, race = self.ask, self.race
        if ask is None or ask.open:
            return ask
        return ask if ask.shown and self.leads_to(ask) and (race is None or ask.number > race.after) else None

    def bars(self, votes: dict[str, int]) -> list[int]:
        """How many chose each option."""
        counted = Counter(votes.values())
        return [counted[option] for option in range(1, self.ask.options + 1)] if self.ask else []

    def ranking(self) -> list[tuple[str, dict[str, Any]]]:
        """Students and their entries, the best first; what is not known comes last."""
        by = self.race.by if self.race else "ks"
        return sorted(self.entries.items(), key=lambda one: (one[1][by] is None, one[1][by] or 0.0))


@dataclass(frozen=True)
class Use:
    """The owner of a short link or a room, and the time of its last use."""

    owner: str
    made: float
    used: float


def gives_way(kind: str, owner: str, kept: Mapping[str, Use], now: float) -> str | None:
    """The code that gives way to one more of this owner; None where none has to.

    It is idle, belongs to the owner with the most, and has been unused for the longest time. Raises
    :class:`SpecError`.
    """
    counts = Counter(use.owner for use in kept.values())
    own = counts[owner] >= MOST_OF_ADDRESS[kind]
    if not own and len(kept) < MOST[kind]:
        return None
    idle = {
        code: use for code, use in kept.items() if now - use.used > IDLE_SECONDS and (not own or use.owner == owner)
    }
    if not idle:
        there = f"your network has {MOST_OF_ADDRESS[kind]:,}" if own else f"there are {MOST[kind]:,}"
        raise SpecError(
            kind,
            "one more",
            f"{there} already, each used in the last {IDLE_SECONDS / 60:.0f} minutes; one that is not gives way",
        )
    return min(idle, key=lambda code: (-counts[idle[code].owner], idle[code].used))


def new_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LETTERS))


def new_mark() -> str:
    """A student's mark or a maker's secret."""
    return secrets.token_urlsafe(18)


def _derived(secret: str) -> str:
    number = int.from_bytes(scrypt(secret.encode(), salt=b"sgmcmc-lab", n=COST, r=8, p=1, dklen=32))
    return "".join(ALPHABET[number // len(ALPHABET) ** place % len(ALPHABET)] for place in range(LETTERS))


async def code_of(secret: str) -> str:
    """The code of the room that was made with this secret."""
    return await asyncio.get_running_loop().run_in_executor(_PROVER, _derived, secret)


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


class Rooms:
    """The short links and rooms of a server. ``clock`` tells the seconds of all its processes."""

    def __init__(self, kept: Store, clock: Callable[[], float] = time.time):
        self._store, self._clock = kept, clock
        self._noted: dict[str, float] = {}
        """When it was last noted that somebody is in a room."""

    # Short links

    async def share(self, link: str, owner: str = "") -> str:
        """A code for a link. Its owner is the address from which it was asked for."""
        code = new_code()
        await self._make("link", code, {"link": _checked(link)}, owner)
        return code

    async def _make(self, kind: str, code: str, fields: dict[str, str], owner: str) -> None:
        now, kept = self._clock(), await self._uses(kind)
        if (idle := gives_way(kind, owner, kept, now)) is not None:
            await self._drop(kind, idle)
        await self._store.make(f"{kind}:{code}", fields)
        await self._note(kind, code, Use(owner, now, now))

    async def _uses(self, kind: str) -> dict[str, Use]:
        known = await self._store.announced(kind)
        return {code: Use(**json.loads(text)) for code, text in known.items()}

    async def _note(self, kind: str, code: str, use: Use) -> None:
        await self._store.announce(kind, code, json.dumps(vars(use)), use.made + DAY - self._clock())

    async def _used(self, kind: str, code: str) -> None:
        """Note that somebody is in a room, or opened a link, now."""
        now = self._clock()
        self._noted = {one: at for one, at in self._noted.items() if now - at < NOTE_SECONDS}
        if code in self._noted:
            return
        self._noted[code] = now
        # A store that takes nothing more still tells what is there.
        with suppress(Exception):
            if use := (await self._uses(kind)).get(code):
                await self._note(kind, code, Use(use.owner, use.made, now))

    async def _drop(self, kind: str, code: str) -> None:
        room = await self._store.read(f"{kind}:{code}")
        ask, race = _ask(room), _race(room)
        votes = [f"votes:{code}:{one}" for one in (ask.number, ask.first)] if ask else []
        races = [f"race:{code}:{race.number}"] if race else []
        await self._store.drop(f"{kind}:{code}", f"here:{code}", *votes, *races)
        await self._store.announce(kind, code, "", -1.0)

    async def address(self, code: str) -> str:
        """The link behind a code, of a room with the way into it; empty where there is none."""
        if not CODE.fullmatch(code):
            return ""
        for kind, way in (("link", ""), ("room", f"&room={code}")):
            link = (await self._store.read(f"{kind}:{code}")).get("link", "")
            if link.startswith("?"):
                await self._used(kind, code)
                return f"{link}{way}"
        return ""

    # Actions of the maker

    async def open(self, link: str, owner: str = "") -> tuple[str, str]:
        """A new room: its code, and the secret of its maker. Its owner is the address from which it was asked for."""
        secret = new_mark()
        code = await code_of(secret)
        await self._open(code, secret, link, owner)
        return code, secret

    async def open_again(self, code: str, secret: str, link: str, owner: str = "") -> None:
        """A room that is gone, with its code and its maker; nobody is in it, and nothing was asked."""
        if not TOKEN.fullmatch(secret) or await code_of(secret) != code:
            raise SpecError("room", code, "only the page that opened it may do this")
        await self._open(code, secret, link, owner)

    async def _open(self, code: str, secret: str, link: str, owner: str) -> None:
        await self._make("room", code, {"link": _checked(link), "maker": _digest(secret)}, owner)

    async def is_maker(self, code: str, secret: str) -> bool:
        """Whether this secret was made with the room."""
        maker = (await self._room(code)).get("maker", "")
        return bool(maker) and secrets.compare_digest(maker, _digest(secret))

    async def lead(self, code: str, secret: str, link: str) -> None:
        """Show this to who follows. Another step or target takes the place of the table of a race that is over."""
        room = await self._by_maker(code, secret)
        race = _race(room)
        goes_on = race is not None and race.over and _place(room["link"]) != _place(link)
        await self._store.write(f"room:{code}", {"link": _checked(link), **({"race": ""} if goes_on else {})})

    async def ask(self, code: str, secret: str, lesson: str, step: int, options: int) -> None:
        """Ask the room a question; the same one again is held beside its first time."""
        room = await self._by_maker(code, secret)
        last = _ask(room)
        number = last.number + 1 if last else 1
        if number > MOST_ASKED:
            raise SpecError("question", number, f"allowed are {MOST_ASKED} in a room; open another one")
        again = last is not None and (last.lesson, last.step) == (lesson, step)
        first = (last.first or last.number) if last is not None and again else 0
        # A room of this code that is gone may have left some of the new number.
        gone = {number, *((last.number, last.first) if last is not None else ())} - {first, 0}
        await self._store.drop(*(f"votes:{code}:{one}" for one in gone))
        made = Ask(number, lesson, step, options, first=first)
        race = _race(room)
        table = {"race": ""} if race is not None and race.over else {}
        await self._store.write(f"room:{code}", {"ask": json.dumps(vars(made)), **table})

    async def reveal(self, code: str, secret: str) -> None:
        """Close the question, and let everybody see the bars."""
        last = _ask(await self._by_maker(code, secret))
        if last is not None:
            await self._store.write(f"room:{code}", {"ask": json.dumps({**vars(last), "open": False, "shown": True})})

    async def race(self, code: str, secret: str, target: str, by: str) -> None:
        """Begin a race on a target, or rank the one on it otherwise. An empty target ends it; its table stays."""
        room = await self._by_maker(code, secret)
        if by not in RANKED:
            raise SpecError("race", by, f"allowed is one of {', '.join(RANKED)}")
        last, ask = _race(room), _ask(room)
        number, after = (last.number, last.after) if last else (0, 0)
        if not target:
            made = json.dumps(vars(replace(last, over=True))) if last is not None else ""
            await self._store.write(f"room:{code}", {"race": made})
            return
        if last is None or last.over or last.target != target:
            await self._store.drop(f"race:{code}:{number}", f"race:{code}:{number + 1}")
            number, after = number + 1, ask.number if ask else 0
        await self._store.write(f"room:{code}", {"race": json.dumps(vars(Race(number, target, by, after)))})

    async def put_away(self, code: str, secret: str) -> None:
        """Show the bars of a question that is closed, and the table of a race that is over, no longer."""
        room = await self._by_maker(code, secret)
        ask, race = _ask(room), _race(room)
        away = {}
        if ask is not None and not ask.open:
            away["ask"] = json.dumps(vars(replace(ask, shown=False)))
        if race is not None and race.over:
            away["race"] = ""
        if away:
            await self._store.write(f"room:{code}", away)

    async def close(self, code: str, secret: str) -> None:
        """End the room."""
        await self._by_maker(code, secret)
        await self._drop("room", code)

    # Actions of a student

    async def join(self, code: str, student: str) -> None:
        """Come in; a second time changes nothing."""
        await self._room(code, student)
        await self._here(code, student)

    async def leave(self, code: str, student: str) -> None:
        """Go, and make room for somebody else; who has answered or raced stays counted there."""
        if CODE.fullmatch(code):
            await self._store.remove(f"here:{code}", student)

    async def answer(self, code: str, student: str, number: int, option: int) -> bool:
        """Answer the question with that number. Whether it was counted: the first answer of each student is."""
        ask = _ask(await self._room(code, student))
        if ask is None or not ask.open or ask.number != number:
            raise SpecError("question", number, "it is not open any more")
        if not 1 <= option <= ask.options:
            raise SpecError("answer", option, f"allowed is a whole number from 1 to {ask.options}")
        await self._here(code, student)
        return await self._store.add(f"votes:{code}:{number}", student, str(option), MOST_STUDENTS)

    async def enter(self, code: str, student: str, number: int, entry: dict[str, Any]) -> None:
        """Take what the server has measured of a student's sampler into the race, if it is her best."""
        race = _race(await self._room(code, student))
        if race is None or race.over or race.number != number:
            raise SpecError("race", number, "it is over")
        await self._here(code, student)
        text = json.dumps(entry)
        if len(text) > MAX_ENTRY:
            raise SpecError("race", f"{len(text):,} characters", f"allowed are samplers of at most {MAX_ENTRY:,}")
        key = f"race:{code}:{number}"
        if await self._store.add(key, student, text, MOST_STUDENTS):
            return
        before = _entry((await self._store.read(key)).get(student, ""))
        if before.get(race.by) is None or (entry[race.by] is not None and entry[race.by] < before[race.by]):
            await self._store.write(key, {student: text})

    async def state_of(self, code: str) -> RoomState | None:
        """The room as it is now; None where it is gone."""
        room = await self._store.read(f"room:{code}") if CODE.fullmatch(code) else {}
        if "link" not in room:
            return None
        await self._used("room", code)
        ask, race, votes, before = _ask(room), _race(room), dict[str, int](), dict[str, int]()
        if ask is not None:
            for found, number in zip((votes, before), (ask.number, ask.first), strict=True):
                kept = await self._store.read(f"votes:{code}:{number}") if number else {}
                found.update((student, int(option)) for student, option in kept.items() if option.isdecimal())
        kept = await self._store.read(f"race:{code}:{race.number}") if race is not None else {}
        entries = {student: entry for student, text in kept.items() if (entry := _entry(text))}
        students = len(await self._store.read(f"here:{code}"))
        return RoomState(room["link"], students, ask, votes, before, race, entries)

    async def _room(self, code: str, student: str = "x" * 16) -> dict[str, str]:
        room = await self._store.read(f"room:{code}") if CODE.fullmatch(code) else {}
        if not room:
            raise GoneError("room", code[:40], "there is no such room now; ask for a new code")
        if not TOKEN.fullmatch(student):
            raise SpecError("student", student[:40], "allowed is a mark that the lab made")
        return room

    async def _here(self, code: str, student: str) -> None:
        # Another page of the same student may have left.
        key = f"here:{code}"
        if await self._store.has(key, student) or await self._store.add(key, student, "", MOST_STUDENTS):
            return
        # Another process may have added her since.
        if not await self._store.has(key, student):
            raise SpecError("room", code, f"allowed are {MOST_STUDENTS} students, and it is full")

    async def _by_maker(self, code: str, secret: str) -> dict[str, str]:
        room = await self._room(code)
        if not secrets.compare_digest(room.get("maker", ""), _digest(secret)):
            raise SpecError("room", code, "only the page that opened it may do this")
        return room


def _place(link: str) -> tuple[str, str]:
    """The lesson and the step of a link; without a lesson, the target."""
    fields = dict(parse_qsl(link.removeprefix("?")))
    return (fields["lesson"], fields.get("step", "1")) if "lesson" in fields else ("", fields.get("target", ""))


def _checked(link: str) -> str:
    if not link.startswith("?") or len(link) > MAX_LINK:
        raise SpecError("link", f"{len(link):,} characters", f"allowed are links of this page of at most {MAX_LINK:,}")
    return link


def _ask(room: dict[str, str]) -> Ask | None:
    return _written(Ask, room.get("ask", ""))


def _race(room: dict[str, str]) -> Race | None:
    return _written(Race, room.get("race", ""))


def _written(kind: type[Kind], text: str) -> Kind | None:
    """The fields of a room that a process has written; None for nothing, and for what another version of the lab has
    written.
    """
    try:
        made = kind(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return None
    return made if all(isinstance(getattr(made, name), of) for name, of in get_type_hints(kind).items()) else None


def _entry(text: str) -> dict[str, Any]:
    """A student's entry in a race; empty for what is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and found.keys() >= {"link", "title", *RANKED} else {}


@cache
def rooms() -> Rooms:
    """This server's."""
    return Rooms(store())
