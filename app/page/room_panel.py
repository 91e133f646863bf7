"""The room as one page has it: its maker leads, asks and races; a student follows, answers and enters.

A room changes the page's state as a link does, and nothing else of it.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import panel as pn

from sgmcmc_lab.app import link
from sgmcmc_lab.app.lesson.course import read_apart
from sgmcmc_lab.app.lesson.position import SKIPPED
from sgmcmc_lab.app.live.page_lock import on_page
from sgmcmc_lab.app.page.lesson_panel import LessonPanel
from sgmcmc_lab.app.page.share import ShareDialog
from sgmcmc_lab.app.room import pages, race, shown
from sgmcmc_lab.app.room.bar import RoomBar
from sgmcmc_lab.app.room.hub import hub
from sgmcmc_lab.app.room.network import address_of
from sgmcmc_lab.app.room.presses import Presses
from sgmcmc_lab.app.room.rooms import AWAY, TOKEN, Ask, GoneError, RoomState, carefully, new_mark, rooms
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.samplers.parameters import SpecError

log = logging.getLogger("sgmcmc-lab")

MOST_OPENED = 20
"""Rooms that one page opens, one after the other."""
AGAIN_SECONDS = 4.0
"""Seconds until a room is joined again whose server did not answer."""
GONE_OWN = "Your room is gone: it was closed, its server was started again, or a day is over. Open it again: it has the same code, and students whose pages are open come back by themselves."


class RoomPanel:
    """The room of a page, if it is in one."""

    def __init__(
        self,
        state: AppState,
        lesson: LessonPanel,
        notify: Callable[[str, str], None],
        tell: Callable[[Sequence[str]], None],
        do_later: Callable[[Coroutine[Any, Any, None]], None],
        write_link: Callable[[], None],
    ):
        self.state, self.lesson = state, lesson
        self._notify, self._tell, self._do_later, self._write_link = notify, tell, do_later, write_link
        self._document = pn.state.curdoc
        self.panel = pn.Column(sizing_mode="stretch_width", margin=0)
        self.share = ShareDialog(state, lambda: self.is_maker, self.open, notify, do_later)
        self._student = self._secret = self._said = ""
        self._proof = ""
        """By what a room that is gone can be opened again: its maker's secret."""
        self._following = self._entering = self._opening = self.ended = False
        self._free = False
        """Whether this page had stopped following before it was loaded again."""
        self._coming: object = None
        """The latest attempt to enter."""
        self._opened = 0
        """Rooms that this page has opened."""
        self._presses = Presses()
        self._room_state: RoomState | None = None
        self._shown: dict[str, Any] = {}
        self._led = self._followed = ""
        """The experiment last shown to the room, and the state when the room's was taken."""
        self._answered: dict[int, int] = {}
        self._quit: Callable[[], None] = lambda: None
        if state.room:
            self._make_bar()

    @property
    def is_maker(self) -> bool:
        """Whether the page has opened the room that it is in."""
        return bool(self._secret)

    async def open(self) -> str:
        """Open a room, which shows what this page shows. Returns its code; an empty text where there can be none.

        A page has one room: one that it has made is closed before it opens another.
        """
        if self.is_maker or self._opening:
            return self.state.room
        self._opening = True
        self._led = link.to_lead(self.state)
        try:
            code, secret = await rooms().open(self._led, self._one_more())
        except SpecError as error:
            self._notify("warning", str(error))
            return ""
        finally:
            self._opening = False
        self.leave()
        self._secret = secret
        # Her students' first page is made before they come.
        self._do_later(_make_ready(self._led))

        def begin() -> None:
            self.state.room = code
            self._make_bar()
            self._write_link()

        on_page(self._document, begin)
        return code

    def _one_more(self) -> str:
        """Count a room that this page opens; the address that it is for. Raises :class:`SpecError`."""
        if self._opened == MOST_OPENED:
            raise SpecError("room", MOST_OPENED + 1, f"allowed are {MOST_OPENED} rooms of one page; reload it")
        self._opened += 1
        return address_of(self._document)

    def leave(self) -> None:
        """Hear of the room no more."""
        self._quit()
        self._quit = lambda: None

    def end(self) -> None:
        """The page is gone."""
        self.ended = True
        self.leave()

    def changed(self) -> None:
        """The page shows something else: lead the room to it, or, of a student, follow no more."""
        if not self.state.room or self._room_state is None:
            return
        now = link.to_lead(self.state)
        if self.is_maker and now != self._led:
            self._led = now
            self._do(rooms().lead(self.state.room, self._secret, now))
        elif self._following and _compared(now) != self._followed:
            self._following = False
            self._draw()

    # The page's part of it

    def _make_bar(self) -> None:
        self.bar = RoomBar(self.state.room, self._on_message)
        self._student, self._said, self._proof, self._was_in = "", "", "", False
        self.panel.objects = [self.bar]

    def _on_message(self, message: list[Any]) -> None:
        if not self._presses.take():
            return
        action, given = message[0], message[1:]
        if action == "hello" and len(given) == 3 and all(isinstance(one, str) for one in given):
            # A component that is drawn anew is shown all again.
            self._shown = {}
            student, secret, free = given
            self._free = free == "free"
            self._do(self._come_in(student, secret))
            return
        if action == "leave" and not self.is_maker:
            self._go()
            return
        if action == "back" and not self.state.room:
            self.state.room = self.bar.code
            self._write_link()
            self._do(self._come_in(self._student, ""))
            return
        if action == "again" and self._proof and not self._opening:
            self._do(self._open_again())
            return
        if self._room_state is None:
            return
        whole = given[0] if len(given) == 1 and type(given[0]) is int else -1
        does = self._of_maker() if self.is_maker else self._of_student(whole)
        if action == "open":
            self._open_entry(whole)
        elif action in does:
            does[action]()

    def _of_maker(self) -> dict[str, Callable[[], None]]:
        code, secret = self.state.room, self._secret
        return {
            "code": self.share.open,
            "ask": self._ask,
            "reveal": lambda: self._do(rooms().reveal(code, secret)),
            "race": self._race,
            "by_ks": lambda: self._rank("ks"),
            "by_tau": lambda: self._rank("tau"),
            "end_race": lambda: self._do(rooms().race(code, secret, "", "ks")),
            "put_away": lambda: self._do(rooms().put_away(code, secret)),
            "close": lambda: self._do(rooms().close(code, secret)),
        }

    def _of_student(self, given: int) -> dict[str, Callable[[], None]]:
        return {
            "follow": self._follow,
            "let_go": self._let_go,
            "answer": lambda: self._answer(given),
            "enter": self._enter,
        }

    async def _come_in(self, student: str, secret: str) -> None:
        """Come in now, or when the room is there: a page tries again until it is in, leaves or ends."""
        code = self.state.room
        coming = self._coming = object()
        # A page is one student, regardless of later messages.
        self._student = self._student or (student if TOKEN.fullmatch(student) else new_mark())
        # A page that has just opened the room is asked for what it keeps before it keeps it.
        secret = self._secret or (secret if TOKEN.fullmatch(secret) else "")
        maker = False
        while not self.ended and self.state.room == code and self._coming is coming:
            try:
                maker = bool(secret) and await self._made(code, secret)
                if not maker:
                    await rooms().join(code, self._student)
                break
            except GoneError:
                self._proof = secret
                await self._stay_outside(GONE_OWN if secret else shown.GONE)
            except SpecError as error:
                await self._stay_outside(str(error))
                return
            except Exception as error:
                log.warning("A room cannot be joined: %s", type(error).__name__)
                await self._stay_outside(AWAY)
            await asyncio.sleep(AGAIN_SECONDS)
        # The room's experiment and question may belong to a lesson.
        await read_apart()
        if self.ended or self.state.room != code or self._coming is not coming:
            return
        self._said = self._proof = ""
        self._secret = secret if maker else ""
        await self.bar.keep(self._student, self._secret)
        self.leave()
        if not self._was_in:
            self._following = not (maker or self._free)
        self._was_in = True
        self._quit = hub().join(code, self._on_room_state)

    async def _stay_outside(self, why: str) -> None:
        self._said = why
        again = [["again", "Open the room again", True]] if self._proof else []
        outside = shown.outside(why, again)
        if outside != self._shown:
            self._shown = outside
            await self.bar.put(outside)

    async def _open_again(self) -> None:
        secret, self._opening = self._proof, True
        try:
            await rooms().open_again(self.state.room, secret, link.to_lead(self.state), self._one_more())
        except SpecError as error:
            self._notify("warning", str(error))
            return
        finally:
            self._opening = False
        await self._come_in(self._student, secret)

    async def _made(self, code: str, secret: str) -> bool:
        try:
            return await rooms().is_maker(code, secret)
        except SpecError:
            return False

    def _on_room_state(self, room_state: RoomState | None) -> None:
        on_page(self._document, lambda: self._know(room_state))

    def _know(self, room_state: RoomState | None) -> None:
        if self.ended:
            return
        if room_state is None:
            self.leave()
            secret, self._room_state, self._secret = self._secret, None, ""
            self.lesson.withhold(False)
            self._do(self._come_in(self._student, secret))
            return
        before, self._room_state = self._room_state, room_state
        if self._following and (before is None or before.link != room_state.link):
            self._take(room_state.link)
        ask = room_state.ask
        self.lesson.withhold(not self.is_maker and ask is not None and ask.open and self._is_here(ask))
        if ask is not None and ask.shown and self._is_here(ask) and self.state.position.waiting:
            if self.is_maker:
                # Her class has answered; she starts the run herself.
                self.state.position.reply(SKIPPED)
            else:
                self.lesson.reply(room_state.votes.get(self._student, SKIPPED))
        if self.is_maker and before is None:
            # The page may have been loaded with another link than the room's.
            self.changed()
        if shown.is_past(self._said, before, room_state):
            self._said = ""
        self._draw()

    def _go(self) -> None:
        self.leave()
        self._room_state, self._secret = None, ""
        self.lesson.withhold(False)
        self._was_in, self.state.room = False, ""
        self._shown = shown.after_leaving()
        self._do(self.bar.put(self._shown))
        self._write_link()

    def _is_here(self, ask: Ask) -> bool:
        position = self.state.position
        return position.lesson is not None and (position.lesson.key, position.number) == (ask.lesson, ask.step)

    # Follow

    def _follow(self) -> None:
        assert self._room_state is not None
        self._following = True
        self._take(self._room_state.link)
        self._draw()

    def _let_go(self) -> None:
        self._following = False
        self._draw()

    def _take(self, query: str) -> None:
        # Changes from here on are the teacher's.
        self._following = False
        with pn.io.hold():
            self._tell(link.follow(self.state, query))
        self._followed = _compared(link.to_lead(self.state))
        self._following = True

    # Ask

    def _ask(self) -> None:
        position = self.state.position
        if position.lesson is not None and position.step is not None and position.step.question is not None:
            options = len(position.step.question.options)
            self._do(rooms().ask(self.state.room, self._secret, position.lesson.key, position.number, options))

    def _answer(self, option: int) -> None:
        assert self._room_state is not None
        if self._room_state.ask is not None:
            number = self._room_state.ask.number
            self._answered = {number: option}
            self._draw()
            self._do(self._send_answer(number, option))

    async def _send_answer(self, number: int, option: int) -> None:
        try:
            await rooms().answer(self.state.room, self._student, number, option)
        except BaseException:
            # It may be given again.
            self._answered.pop(number, None)
            raise

    # Race

    def _race(self) -> None:
        experiment = self.state.experiment
        if experiment.of_model or experiment.of_own_data or not experiment.make_target().ready:
            self._notify("warning", "A race needs a density whose exact answers are known.")
            return
        self._do(rooms().race(self.state.room, self._secret, race.target_text(experiment), "ks"))

    def _rank(self, by: str) -> None:
        if self._room_state is not None and self._room_state.racing is not None:
            self._do(rooms().race(self.state.room, self._secret, self._room_state.racing.target, by))

    def _enter(self) -> None:
        if self._room_state is None or self._room_state.racing is None or self._entering:
            return
        try:
            made = race.raced(self.state.experiment, self._room_state.racing.target)
        except SpecError as error:
            self._say(str(error))
            return
        self._entering = True
        self._say(shown.ENTERING)
        self._do(self._measure(made, self._room_state.racing.number))

    async def _measure(self, made: Any, number: int) -> None:
        try:
            entry = await race.measured(partial(race.measure, made))
            await rooms().enter(self.state.room, self._student, number, entry)
            self._say(shown.entered(entry))
        except SpecError as error:
            self._say(str(error))
        finally:
            self._entering = False

    def _open_entry(self, row: int) -> None:
        if self._room_state is not None and 0 <= row < min(shown.ROWS, len(self._room_state.entries)):
            _, entry = self._room_state.ranking()[row]
            self._following = False
            with pn.io.hold():
                self._tell(link.follow(self.state, entry["link"]))
            self._draw()

    # The display

    def _say(self, sentence: str) -> None:
        self._said = sentence
        self._draw()

    def _draw(self) -> None:
        if self._room_state is None:
            return
        now = self._what(self._room_state)
        if now != self._shown:
            self._shown = now
            self._do(self.bar.put(now))

    def _what(self, room_state: RoomState) -> dict[str, Any]:
        """The contents of the bar: of the bars only what this page may see."""
        said = AWAY if room_state.away else self._said
        mine = (
            room_state.votes.get(self._student, self._answered.get(room_state.ask.number))
            if room_state.ask is not None
            else None
        )
        return shown.bar(room_state, self._student, mine, self._buttons(room_state), said, maker=self.is_maker)

    def _buttons(self, room_state: RoomState) -> list[list[Any]]:
        if not self.is_maker:
            return shown.buttons_of_student(room_state, following=self._following)
        step = self.state.position.step
        again = room_state.ask is not None and self._is_here(room_state.ask)
        ask = (
            [["ask", "Ask again" if again else "Ask this question", not again]]
            if step is not None and step.question is not None
            else []
        )
        reveal = (
            [["reveal", f"Reveal the answers ({len(room_state.votes)})", True]]
            if room_state.ask is not None and room_state.ask.open
            else []
        )
        racing = room_state.racing is not None and room_state.racing.target == race.target_text(self.state.experiment)
        other = (
            [
                ["by_tau", "Rank by gradients", False]
                if room_state.racing.by == "ks"
                else ["by_ks", "Rank by KS", False],
                ["end_race", "End the race", False],
            ]
            if room_state.racing is not None
            else []
        )
        start = [] if racing or self.state.experiment.of_model else [["race", "Race on this target", False]]
        bars, over = (
            room_state.asks is not None and room_state.asks.shown,
            room_state.race is not None and room_state.race.over,
        )
        away = [["put_away", "Close the bars" if bars else "Close the table", False]] if bars or over else []
        return [
            ["code", "Show the code", False],
            *ask,
            *reveal,
            *start,
            *other,
            *away,
            ["close", "Close the room", False],
        ]

    def _do(self, work: Coroutine[Any, Any, Any]) -> None:
        self._do_later(carefully(self._change(work), self._say))

    async def _change(self, work: Coroutine[Any, Any, Any]) -> None:
        await work
        if self.is_maker:
            hub().changed(self.state.room)


async def _make_ready(query: str) -> None:
    try:
        await pages.pages().of(query)
    except SpecError:
        pass  # Its students are told why.
    except Exception:
        log.exception("The live page of a room could not be made")


def _compared(query: str) -> str:
    """The part of a query that decides whether a page agrees with the teacher's: all but ``play``."""
    return "&".join(part for part in query.split("&") if not part.startswith("play="))
