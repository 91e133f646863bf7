"""A student's page in a room: a live page and one WebSocket, without a Panel session.

All students of a room in this process share one look at the room and one live page.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from sgmcmc_lab.app.lesson.course import read_apart
from sgmcmc_lab.app.room import race, shown
from sgmcmc_lab.app.room.hub import SOONEST, hub
from sgmcmc_lab.app.room.pages import pages
from sgmcmc_lab.app.room.presses import Presses
from sgmcmc_lab.app.room.rooms import AWAY, TOKEN, GoneError, Race, RoomState, carefully, new_mark, rooms
from sgmcmc_lab.samplers.link import MAX_QUERY
from sgmcmc_lab.samplers.parameters import SpecError

log = logging.getLogger("sgmcmc-lab")

AGAIN_SECONDS = 4.0
"""The time between two attempts to join a room that is gone or does not answer."""
SOON = 0.02
"""Seconds after which a file that is not there is announced: a kept one takes one turn of the loop."""
COUNT_SECONDS = 2.0
"""The shortest time between two updates of the number of students."""
MOST_BARS = 64
"""The largest number of bars kept for one look."""
MAKING = "The page of the teacher's experiment is being made …"
MAKING_RACE = "The page with other samplers for the race is being made …"
MAKING_ENTRY = "The page of this sampler is being made …"
NOT_LIVE = "Follow this part on the teacher's screen, or open the whole lab"
Send = Callable[[str, str], None]
"""Takes the kind of a message and its text; of the waiting messages of a kind, only the last is needed."""


def text_of(message: dict[str, Any]) -> str:
    """A message as it is sent."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


class Audience:
    """The students of one room in this process."""

    def __init__(self, code: str):
        self.code = code
        self.students: dict[Student, None] = {}
        self.state_of: RoomState | None = None
        self.page, self.placed = text_of({"type": "page", "said": MAKING}), False
        """The message with the live page of the teacher's experiment, and whether it holds one."""
        self._made = ("", False)
        """The link of that page, and whether it offers other samplers for a race."""
        self._bars: dict[Any, str] = {}
        """The bars of the current look; most students get the same one."""
        self._counting: asyncio.TimerHandle | None = None
        """The next update of the number of students."""
        self._making: asyncio.Task[None] | None = None
        self._leave: Callable[[], None] = lambda: None

    def add(self, student: "Student") -> None:
        """Add a student who has joined."""
        self.students[student] = None
        if len(self.students) == 1:
            self._leave = hub().join(self.code, self._on_room_state)
        elif self.state_of is not None:
            student.know()
        student.show(self.page, placed=self.placed)

    def remove(self, student: "Student") -> None:
        """Remove a student who has left."""
        if student not in self.students:
            return
        del self.students[student]
        if not self.students:
            self._leave()
            self.state_of = None
            if self._counting is not None:
                self._counting.cancel()
            pages().shown.pop(self.code, None)
            _AUDIENCES.pop(self.code, None)

    def bar(self, student: str, mine: int | None, said: str, *, following: bool) -> str:
        """The message with a student's bar; ``mine`` is her answer to the question."""
        room_state = self.state_of
        assert room_state is not None
        own = student if student in room_state.entries else ""
        key = (mine, own, said, following)
        if key not in self._bars:
            if len(self._bars) >= MOST_BARS:
                self._bars.clear()
            buttons = shown.buttons_of_student(room_state, following=following)
            found = shown.bar(room_state, own, mine, buttons, AWAY if room_state.away else said)
            self._bars[key] = text_of({"type": "bar", **found})
        return self._bars[key]

    def _on_room_state(self, room_state: RoomState | None) -> None:
        before, self.state_of = self.state_of, room_state
        self._bars.clear()
        if room_state is None:
            for student in list(self.students):
                self.remove(student)
                student.lost()
            return
        if before is not None and replace(before, students=room_state.students) == room_state:
            # While a class comes in, each arrival would otherwise cost a message to every student.
            self._count_soon()
        else:
            self._draw()
        if self._made != self._wanted() and (self._making is None or self._making.done()):
            self._making = asyncio.get_running_loop().create_task(self._make())

    def _draw(self) -> None:
        self._counting = None
        for student in list(self.students):
            student.know()

    def _count_soon(self) -> None:
        if self._counting is None:
            self._counting = asyncio.get_running_loop().call_later(COUNT_SECONDS, self._draw)

    def _wanted(self) -> tuple[str, bool] | None:
        room_state = self.state_of
        return None if room_state is None else (room_state.link, room_state.racing is not None)

    async def _make(self) -> None:
        """Bring the page up to date with the teacher's, without waiting for files of earlier experiments."""
        while (wanted := self._wanted()) is not None and self._made != wanted:
            making = asyncio.get_running_loop().create_task(page_message(wanted[0], self.code, wanted[1]))
            await asyncio.wait({making}, timeout=SOON)
            if not making.done():
                # In a race the page before goes on being of use.
                said = {"said": MAKING_RACE} if wanted[1] else {"said": MAKING, "former": True}
                self._show(text_of({"type": "page", **said}), placed=False)
                # If the teacher returns to the earlier link, its page must be shown again.
                self._made = ("", False)
            while not making.done() and self._wanted() == wanted:
                await asyncio.wait({making}, timeout=SOONEST)
            if self._wanted() != wanted:
                making.cancel()
                continue
            message, self._made = making.result(), wanted
            pages().shown[self.code] = message.get("key", "")
            self.page, self.placed = text_of(message), True
            self._show(self.page, placed=True)

    def _show(self, page: str, *, placed: bool) -> None:
        for student in list(self.students):
            student.show(page, placed=placed)


_AUDIENCES: dict[str, Audience] = {}


def audience(code: str) -> Audience:
    """The students of a room in this process."""
    return _AUDIENCES.setdefault(code, Audience(code))


async def page_message(query: str, code: str, racing: bool = False) -> dict[str, Any]:
    """The message with the live page of a link, or with a sentence if there is none."""
    lab = f"app{query}&room={code}"
    try:
        page, fragment = await pages().of(query, racing)
    except SpecError as error:
        return {"type": "page", "said": f"{error} {NOT_LIVE}.", "lab": lab}
    except Exception:
        log.exception("The live page of a room could not be made")
        return {"type": "page", "said": f"The live page could not be made. {NOT_LIVE}.", "lab": lab}
    return {"type": "page", "said": "", "key": page.key, "fragment": fragment, "lab": lab}


_LEAVING: set[asyncio.Task[None]] = set()


async def _leave_room(code: str, mark: str) -> None:
    # If the store does not answer, the student stays counted.
    with suppress(Exception):
        await rooms().leave(code, mark)


class Student:
    """One student's page; ``send`` delivers messages to it."""

    def __init__(self, code: str, send: Send):
        self.code, self._send = code, send
        self.mark = self._said = ""
        """The random text that the browser keeps, so that she counts once; and the reply to her last action."""
        self._following, self._entering, self.ended = True, False, False
        self._placed = False
        """Whether the page has an experiment; without one, even a page that has stopped following gets the
        teacher's."""
        self._opening: object = None
        """The race entry that was opened last."""
        self._answered: dict[int, int] = {}
        self._room_state: RoomState | None = None
        self._bar = ""
        self._presses = Presses()
        self._tasks: set[asyncio.Task[None]] = set()

    def end(self) -> None:
        """The connection is gone."""
        self.ended = True
        self._leave()
        for task in self._tasks:
            task.cancel()

    def _leave(self) -> None:
        self._room_state = None
        there = _AUDIENCES.get(self.code)
        if there is None or self not in there.students:
            return
        there.remove(self)
        if not any(other.mark == self.mark for other in there.students):
            task = asyncio.get_running_loop().create_task(_leave_room(self.code, self.mark))
            _LEAVING.add(task)
            task.add_done_callback(_LEAVING.discard)

    def on_message(self, message: Any) -> None:
        """Take a message from the page: an action and its arguments."""
        if not self._presses.take() or not (isinstance(message, list) and message and isinstance(message[0], str)):
            return
        try:
            self._take(message[0], message[1:])
        except SpecError as error:
            self._say(str(error))

    def _take(self, action: str, given: list[Any]) -> None:
        if action == "hello" and not self.mark and len(given) == 3 and isinstance(given[0], str):
            self.mark = given[0] if TOKEN.fullmatch(given[0]) else new_mark()
            self._following = given[2] != "free"
            self._do(self._come_in())
        elif action == "leave":
            self._leave()
        elif self._room_state is None:
            return
        elif action in ("follow", "let_go"):
            self._following = action == "follow"
            self._draw()
            if self._following:
                there = audience(self.code)
                self.show(there.page, placed=there.placed)
        elif action == "answer" and len(given) == 1 and type(given[0]) is int:
            self._answer(given[0])
        elif action == "enter" and len(given) == 1 and isinstance(given[0], str):
            self._enter(given[0])
        elif action == "open" and len(given) == 1 and type(given[0]) is int:
            self._open(given[0])

    async def _come_in(self) -> None:
        while not self.ended:
            try:
                await rooms().join(self.code, self.mark)
                break
            except GoneError:
                self._stay_outside(shown.GONE)
            except SpecError as error:
                self._stay_outside(str(error))
            except Exception as error:
                log.warning("A room cannot be joined: %s", type(error).__name__)
                self._stay_outside(AWAY)
            await asyncio.sleep(AGAIN_SECONDS)
        # A question may belong to a lesson that has not been read yet.
        await read_apart()
        if self.ended:
            return
        self._said = ""
        self._send("keep", text_of({"type": "keep", "student": self.mark, "secret": ""}))
        audience(self.code).add(self)

    def _stay_outside(self, why: str) -> None:
        self._show(text_of({"type": "bar", **shown.outside(why)}))

    def lost(self) -> None:
        """The room is gone; the page tries to come in again."""
        self._room_state = None
        self._do(self._come_in())

    def know(self) -> None:
        """Show the room as it is now."""
        before, self._room_state = self._room_state, audience(self.code).state_of
        if shown.is_past(self._said, before, self._room_state):
            self._said = ""
        self._draw()

    def show(self, page: str, *, placed: bool) -> None:
        """Show the teacher's page, if this page follows, or has no experiment yet."""
        if self._following or not self._placed:
            self._placed = self._placed or placed
            self._send("page", page)

    def _answer(self, option: int) -> None:
        ask = self._room_state.ask if self._room_state is not None else None
        if ask is not None and ask.open and not 1 <= option <= ask.options:
            raise SpecError("answer", option, f"allowed is a whole number from 1 to {ask.options}")
        if ask is not None and ask.number not in self._answered:
            self._answered = {ask.number: option}
            self._draw()
            self._do(self._send_answer(ask.number, option))

    async def _send_answer(self, number: int, option: int) -> None:
        try:
            await rooms().answer(self.code, self.mark, number, option)
            hub().changed(self.code)
        except BaseException:
            # The student may answer again.
            self._answered.pop(number, None)
            raise

    def _enter(self, query: str) -> None:
        if self._room_state is None or self._room_state.racing is None or self._entering:
            return
        self._entering = True
        self._say(shown.ENTERING)
        self._do(self._measure(query[:MAX_QUERY], self._room_state.racing))

    async def _measure(self, query: str, held: Race) -> None:
        try:
            entry = await race.measured(partial(race.measure_link, query, held.target))
            await rooms().enter(self.code, self.mark, held.number, entry)
            self._say(shown.entered(entry))
        finally:
            self._entering = False

    def _open(self, row: int) -> None:
        if self._room_state is not None and 0 <= row < min(shown.ROWS, len(self._room_state.entries)):
            _, entry = self._room_state.ranking()[row]
            self._following = False
            self._opening = opening = object()
            self._say(MAKING_ENTRY)
            self._do(self._show_entry(entry["link"], self._room_state.racing is not None, opening))

    async def _show_entry(self, query: str, racing: bool, opening: object) -> None:
        page = await page_message(query, self.code, racing)
        if self._opening is not opening:
            return
        self._say("")
        if not self._following:
            self._send("page", text_of(page))

    def _say(self, sentence: str) -> None:
        self._said = sentence
        self._draw()

    def _draw(self) -> None:
        there = _AUDIENCES.get(self.code)
        if there is None or there.state_of is None or self not in there.students:
            return
        ask = there.state_of.ask
        number = ask.number if ask is not None else 0
        mine = there.state_of.votes.get(self.mark, self._answered.get(number))
        self._show(there.bar(self.mark, mine, self._said, following=self._following))

    def _show(self, bar: str) -> None:
        if bar != self._bar:
            self._bar = bar
            self._send("bar", bar)

    def _do(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(carefully(work, self._say))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
