"""A student's page of a room: a light connection beside a live page, without a Panel session.

All students of a room in this process share one look at the room and one live page.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from app.lesson.course import read_apart
from app.room import race, shown
from app.room.followed import pages
from app.room.hub import hub
from app.room.rooms import AWAY, KEPT, GoneError, Look, new_mark, rooms
from app.state import DEFAULT
from samplers import Experiment
from samplers.choices import MAX_QUERY
from samplers.parameters import SpecError

log = logging.getLogger("sgmcmc-lab")

MESSAGES, MESSAGES_AT_ONCE = 5.0, 30.0
"""Messages that a page may send in a second, and at once; others are passed over."""
AGAIN_SECONDS = 4.0
"""The time between two tries to come into a room that is gone or does not answer."""
MAKING = "The page of this experiment is being made …"
NOT_LIVE = "Follow this part on the teacher's screen, or open the whole lab"
Send = Callable[[dict[str, Any]], None]


class Audience:
    """The students of one room in this process."""

    def __init__(self, code: str):
        self.code = code
        self.students: list[Student] = []
        self.look: Look | None = None
        self.page: dict[str, Any] = {"type": "page", "said": MAKING}
        """The live page of what the teacher shows, as a message."""
        self._making: asyncio.Task[None] | None = None
        self._leave: Callable[[], None] = lambda: None

    def add(self, student: "Student") -> None:
        """A student who came in."""
        self.students.append(student)
        if len(self.students) == 1:
            self._leave = hub().join(self.code, self._hear)
        elif self.look is not None:
            student.know(self.look)
            student.show(self.page)

    def remove(self, student: "Student") -> None:
        """A student who left."""
        if student not in self.students:
            return
        self.students.remove(student)
        if not self.students:
            self._leave()
            self.look = None
            _AUDIENCES.pop(self.code, None)

    def _hear(self, look: Look | None) -> None:
        before, self.look = self.look, look
        if look is None:
            for student in list(self.students):
                self.remove(student)
                student.lost()
            return
        for student in list(self.students):
            student.know(look)
        if (before is None or before.link != look.link) and (self._making is None or self._making.done()):
            self._making = asyncio.get_running_loop().create_task(self._make())

    async def _make(self) -> None:
        """Show what the teacher shows, until that is the present one."""
        made = ""
        while self.look is not None and made != self.look.link:
            made = self.look.link
            self.page = await page_message(made, self.code)
            for student in list(self.students):
                student.show(self.page)


_AUDIENCES: dict[str, Audience] = {}


def audience(code: str) -> Audience:
    """The students of a room in this process."""
    return _AUDIENCES.setdefault(code, Audience(code))


async def page_message(query: str, code: str) -> dict[str, Any]:
    """The live page of a link, for the page of a room; a sentence where there is none."""
    lab = f"app{query}&room={code}"
    try:
        page, fragment = await pages().of(query)
    except SpecError as error:
        return {"type": "page", "said": f"{error} {NOT_LIVE}.", "lab": lab}
    except Exception:
        log.exception("The live page of a room could not be made")
        return {"type": "page", "said": f"No live page could be made of this. {NOT_LIVE}.", "lab": lab}
    return {"type": "page", "said": "", "key": page.key, "fragment": fragment, "lab": lab}


class Student:
    """One page; ``send`` takes its messages."""

    def __init__(self, code: str, send: Send):
        self.code, self._send = code, send
        self._student = self._said = ""
        self._following, self._entering, self.ended = True, False, False
        self._answered: dict[int, int] = {}
        self._look: Look | None = None
        self._bar: dict[str, Any] = {}
        self._credit, self._heard = MESSAGES_AT_ONCE, time.monotonic()
        self._tasks: set[asyncio.Task[None]] = set()

    def end(self) -> None:
        """The connection is gone."""
        self.ended = True
        self._leave()
        for task in self._tasks:
            task.cancel()

    def _leave(self) -> None:
        self._look = None
        if (there := _AUDIENCES.get(self.code)) is not None:
            there.remove(self)

    def hear(self, message: Any) -> None:
        """Take a message of the page: an action and what it is about."""
        now = time.monotonic()
        self._credit = min(MESSAGES_AT_ONCE, self._credit + MESSAGES * (now - self._heard))
        self._heard = now
        if self._credit < 1 or not (isinstance(message, list) and message and isinstance(message[0], str)):
            return
        self._credit -= 1
        try:
            self._take(message[0], message[1:])
        except SpecError as error:
            self._say(str(error))

    def _take(self, action: str, given: list[Any]) -> None:
        if action == "hello" and not self._student and len(given) == 3 and isinstance(given[0], str):
            self._student = given[0] if KEPT.fullmatch(given[0]) else new_mark()
            self._following = given[2] != "free"
            self._do(self._come_in())
        elif action == "leave":
            self._leave()
        elif self._look is None:
            return
        elif action in ("follow", "let_go"):
            self._following = action == "follow"
            self._draw()
            if self._following:
                self._send(audience(self.code).page)
        elif action == "answer" and len(given) == 1 and type(given[0]) is int:
            self._answer(given[0])
        elif action == "enter" and len(given) == 1 and isinstance(given[0], str):
            self._enter(given[0])
        elif action == "open" and len(given) == 1 and type(given[0]) is int:
            self._open(given[0])

    async def _come_in(self) -> None:
        while not self.ended:
            try:
                await rooms().join(self.code, self._student)
                break
            except GoneError:
                self._stay_outside(shown.GONE)
            except SpecError as error:
                self._stay_outside(str(error))
                return
            except Exception as error:
                log.warning("A room cannot be come into: %s", type(error).__name__)
                self._stay_outside(AWAY)
            await asyncio.sleep(AGAIN_SECONDS)
        # A question may be of a lesson that is not read yet.
        await read_apart()
        if self.ended:
            return
        self._said = ""
        self._send({"type": "keep", "student": self._student, "secret": ""})
        audience(self.code).add(self)

    def _stay_outside(self, why: str) -> None:
        self._show(shown.outside(why))

    def lost(self) -> None:
        """The room is gone; the page tries to come in again."""
        self._look = None
        self._do(self._come_in())

    def know(self, look: Look) -> None:
        """Show the room as it is now."""
        self._look = look
        self._draw()

    def show(self, page: dict[str, Any]) -> None:
        """Show the teacher's page, if this page follows."""
        if self._following:
            self._send(page)

    def _answer(self, option: int) -> None:
        ask = self._look.ask if self._look is not None else None
        if ask is not None:
            self._answered = {ask.number: option}
            self._draw()
            self._do(self._send_answer(ask.number, option))

    async def _send_answer(self, number: int, option: int) -> None:
        try:
            await rooms().answer(self.code, self._student, number, option)
        except BaseException:
            # It may be given again.
            self._answered.pop(number, None)
            raise

    def _enter(self, query: str) -> None:
        if self._look is None or self._look.race is None or self._entering:
            return
        experiment, problems = Experiment.from_query(query[:MAX_QUERY], DEFAULT)
        if problems:
            raise SpecError("race", query[:80], problems[0])
        made = race.raced(experiment, self._look.race.target)
        self._entering = True
        self._say(shown.ENTERING)
        self._do(self._measure(made, self._look.race.number))

    async def _measure(self, made: Experiment, number: int) -> None:
        try:
            entry = await race.measured(made)
            await rooms().enter(self.code, self._student, number, entry)
            self._say(shown.entered(entry))
        finally:
            self._entering = False

    def _open(self, row: int) -> None:
        if self._look is not None and 0 <= row < min(shown.ROWS, len(self._look.entries)):
            _, entry = self._look.ranking()[row]
            self._following = False
            self._say(MAKING)
            self._do(self._show_entry(entry["link"]))

    async def _show_entry(self, query: str) -> None:
        page = await page_message(query, self.code)
        self._say("")
        self._send(page)

    def _say(self, sentence: str) -> None:
        self._said = sentence
        self._draw()

    def _draw(self) -> None:
        if self._look is not None:
            said = AWAY if self._look.away else self._said
            buttons = shown.buttons_of_student(self._look, following=self._following)
            self._show(shown.bar(self._look, self._student, self._answered, buttons, said))

    def _show(self, bar: dict[str, Any]) -> None:
        if bar != self._bar:
            self._bar = bar
            self._send({"type": "bar", **bar})

    def _do(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._carefully(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carefully(self, work: Any) -> None:
        """Show a refusal as a sentence; a store that does not answer ends nothing."""
        try:
            await work
        except SpecError as error:
            self._say(str(error))
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("A room did not answer")
            self._say(AWAY)
