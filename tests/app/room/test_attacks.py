"""Messages of a page that is no browser to a room, and pages whose rooms do not answer."""

import asyncio
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest

from sgmcmc_lab.app import link
from sgmcmc_lab.app.lesson.course import library
from sgmcmc_lab.app.lesson.position import SKIPPED
from sgmcmc_lab.app.page import room_panel
from sgmcmc_lab.app.page.room_panel import RoomPanel
from sgmcmc_lab.app.room import presses, shown
from sgmcmc_lab.app.room.hub import Hub
from sgmcmc_lab.app.room.rooms import AWAY, MOST_OF_ADDRESS, Rooms, carefully, new_mark
from sgmcmc_lab.app.state import AppState
from tests.helpers.rooms import Store, count_threads, rest, until

STEP = "?lesson=langevin&step=2&views=marginal"
pytestmark = pytest.mark.filterwarnings("ignore:Both 'name' and 'label' were provided:PendingDeprecationWarning")


class Page:
    """A page's view of its room, without its browser: what it sends, and what it shows."""

    def __init__(self, code=""):
        self.shown, self.kept, self.said = {}, (), []
        state = AppState()
        assert link.read_query(state, STEP + (f"&room={code}" if code else "")) == []
        self.state = state
        lesson = SimpleNamespace(withhold=lambda _: None, reply=lambda _: None)
        self.tasks = set()
        self.room = RoomPanel(state, lesson, self._note, self.said.extend, self._do, lambda: None)

    def _do(self, work):
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _note(self, kind, sentence):
        self.said.append(sentence)

    def sends(self, *messages):
        for message in messages:
            self.room.bar._handle_msg(message)

    def end(self):
        self.room.end()
        for task in self.tasks:
            task.cancel()


@pytest.fixture
def a_class(monkeypatch):
    """``a_class(do)`` runs ``do(new_page, rooms)``; a page shows what its bar was last sent."""

    def run(do):
        async def whole():
            count_threads()
            kept = Rooms(Store())
            pages = []
            hub = Hub(kept, seconds=0.001)
            monkeypatch.setattr(room_panel, "rooms", lambda: kept)
            monkeypatch.setattr(room_panel, "hub", lambda: hub)
            monkeypatch.setattr(room_panel, "AGAIN_SECONDS", 0.005)
            monkeypatch.setattr(room_panel, "_make_ready", AsyncMock())

            async def new_page(code="", mark=""):
                page = Page(code)
                pages.append(page)
                if not code:
                    code = await page.room.open()
                page.code = code
                spy(page, monkeypatch)
                page.sends(["hello", mark, "", ""])
                await rest()
                return page

            try:
                return await asyncio.wait_for(do(new_page, kept), 300)
            finally:
                Store.away = False
                for page in pages:
                    page.end()

        # As on a server that has warmed up: to read a lesson takes longer than any wait here.
        library()
        return asyncio.run(whole())

    return run


def spy(page, monkeypatch):
    async def show(what):
        page.shown = what

    async def keep(student, secret):
        page.kept = (student, secret)

    page.room.bar.put, page.room.bar.keep = show, keep


@pytest.mark.slow
def test_a_page_is_one_student_whatever_it_sends(a_class):
    """Fails where one page fills the room, or answers for many."""

    async def do(new_page, rooms):
        teacher = await new_page()
        teacher.sends(["ask"])
        student = await new_page(teacher.code)
        own = student.kept[0]
        for i in range(50):
            student.sends(
                ["hello", new_mark(), "", ""],
                ["hello", "", "", ""],
                ["hello", "x" * 100_000, new_mark(), "free" * 100_000],
                ["answer", 1 + i % 2],
            )
            await asyncio.sleep(0)
        await rest()
        room_state = await rooms.state_of(teacher.code)
        return room_state.students, set(room_state.votes) == {own}, student.kept[0] == own

    assert a_class(do) == (1, True, True)


@pytest.mark.parametrize("bounded", [True, False])
def test_a_page_does_not_take_the_server_by_following_and_letting_go(bounded, a_class, monkeypatch):
    """The planted fault: a page may press as often as it likes."""

    async def do(new_page, rooms):
        teacher = await new_page()
        student = await new_page(teacher.code)
        taken = []
        monkeypatch.setattr(link, "follow", lambda state, query: taken.append(query) or [])
        if not bounded:
            monkeypatch.setattr(presses, "PRESSES", 1e9)
        student.sends(*[["let_go"], ["follow"]] * 100)
        return len(taken)

    assert (a_class(do) <= presses.PRESSES_AT_ONCE) == bounded


def test_a_student_does_nothing_that_is_the_makers(a_class):
    async def do(new_page, rooms):
        teacher = await new_page()
        student, other = await new_page(teacher.code), await new_page()
        student.sends(
            ["ask"], ["reveal"], ["race"], ["by_tau"], ["end_race"], ["close"], ["code"], ["__init__"], ["panel"], [], "ask", [["ask"]],
            ["hello", student.kept[0], other.kept[1], ""], ["hello", student.kept[0], teacher.kept[1][:-1], ""], ["answer", True], ["answer", 10**30],
            ["open", -1], ["open", 10**9], ["enter"], ["ask"], ["close"],
        )  # fmt: skip
        await rest()
        room_state = await rooms.state_of(teacher.code)
        assert (room_state.ask, room_state.race, room_state.students) == (None, None, 1)
        # A message that is the maker's own does it.
        teacher.sends(["close"])
        await until(lambda: student.shown["said"])
        return await rooms.state_of(teacher.code), student.shown["said"]

    gone, said = a_class(do)
    assert gone is None
    assert said == shown.GONE


@pytest.mark.slow
def test_after_a_start_of_the_server_the_teacher_opens_the_room_again_and_all_are_back(a_class):
    """Fails where a class has to come in anew, or a student with a secret of her own takes the room."""

    async def do(new_page, rooms):
        teacher = await new_page()
        student, other = await new_page(teacher.code), await new_page(teacher.code)
        other.sends(["let_go"])
        teacher.sends(["ask"])
        await until(lambda: student.shown["ask"])
        student.sends(["answer", 1])
        await until(lambda: "(1)" in str(teacher.shown["buttons"]))
        rooms._store._kept.clear()
        await until(lambda: all(not one.shown["ask"] for one in (teacher, student, other)))
        said = [one.shown["said"] for one in (teacher, student, other)]
        offered = ["again" in str(one.shown["buttons"]) for one in (teacher, student, other)]
        forger = await new_page(teacher.code)
        for _ in range(20):
            forger.sends(["hello", "", new_mark(), ""])
        await until(lambda: "again" in str(forger.shown["buttons"]))
        forger.sends(["again"])
        student.sends(["again"], ["ask"], ["close"])
        await until(lambda: forger.said)
        # A fault would leave a try without an end for each greeting.
        await until(lambda: len(forger.tasks) == 1)
        assert await rooms.state_of(teacher.code) is None
        teacher.sends(["again"], ["again"])
        await until(lambda: teacher.shown["students"] == 3)
        await rest()
        teacher.sends(["ask"])
        await until(lambda: student.shown["ask"])
        student.sends(["answer", 2])
        await until(lambda: "(1)" in str(teacher.shown["buttons"]))
        follows = [one.room._following for one in (student, other)]
        return said, offered, forger.said, follows, student.shown["ask"]["mine"]

    said, offered, refused, follows, mine = a_class(do)
    assert said == [room_panel.GONE_OWN, shown.GONE, shown.GONE]
    assert offered == [True, False, False]
    assert "only the page that opened it" in refused[0]
    assert (follows, mine) == ([True, False], 2)


MANY = 100


def test_a_page_opens_few_rooms_in_its_life(a_class):
    """Fails where one page makes rooms and leaves them. Between them its room is closed, for it has one at a time."""

    async def do(new_page, rooms):
        teacher = await new_page()
        said = []
        for _ in range(room_panel.MOST_OPENED + 1):
            code = await teacher.room.open()
            if code:
                await rooms.close(code, teacher.room._secret)
                teacher.room._go()
            said.append(bool(code))
        return said, teacher.said

    said, warnings = a_class(do)
    assert said == [*[True] * room_panel.MOST_OPENED, False]
    assert f"allowed are {room_panel.MOST_OPENED} rooms of one page" in warnings[0]


@pytest.mark.slow
def test_a_page_opens_one_room(a_class):
    """Fails where one page takes all rooms of a server."""

    async def do(new_page, rooms):
        teacher = await new_page()
        await asyncio.gather(*(teacher.room.open() for _ in range(MANY)))
        for _ in range(MANY):
            teacher.sends(["leave"])
            await teacher.room.open()
        kept = sum(key.startswith("room:") for key in rooms._store._alive())
        return kept, teacher.state.room == teacher.code

    assert a_class(do) == (1, True)


@pytest.mark.slow
def test_an_answer_that_did_not_arrive_can_be_given_again(a_class):
    """Fails where a student sees as hers an answer that nobody counts."""

    async def do(new_page, rooms):
        teacher = await new_page()
        teacher.sends(["ask"])
        student = await new_page(teacher.code)
        Store.away = True
        student.sends(["answer", 2])
        await until(lambda: student.shown["said"] and teacher.shown["said"])
        await rest()
        during = student.shown["said"], student.shown["ask"]["mine"], teacher.shown["said"]
        teacher.sends(["reveal"])
        await rest()
        Store.away = False
        await until(lambda: not (student.shown["said"] or teacher.shown["said"]))
        after = student.shown["said"], student.shown["ask"]["mine"], teacher.shown["said"]
        student.sends(["answer", 2])
        await until(lambda: sum(one["now"] for one in teacher.shown["ask"]["options"]))
        return during, after, student.shown["ask"]["mine"], list((await rooms.state_of(teacher.code)).votes.values())

    assert a_class(do) == ((AWAY, None, AWAY), ("", None, ""), 2, [2])


def test_who_comes_while_the_rooms_are_away_is_told_and_comes_in_when_they_are_back(a_class):
    async def do(new_page, rooms):
        teacher = await new_page()
        Store.away = True
        student = await new_page(teacher.code)
        during = student.shown["said"]
        Store.away = False
        await until(lambda: student.shown["students"] == 1)
        return during, student.shown["said"]

    assert a_class(do) == (AWAY, "")


def test_a_room_that_cannot_be_opened_is_said(a_class):
    async def do(new_page, rooms):
        teacher = Page()
        share = teacher.room.share

        def press():
            share._do_later(carefully(share._open_room(), share._warn))

        Store.away = True
        press()
        await rest()
        Store.away = False
        for _ in range(MOST_OF_ADDRESS["room"]):
            await rooms.open(STEP)
        press()
        await rest()
        return teacher.said

    away, full = a_class(do)
    assert away == AWAY
    assert "your network has 25 already" in full


def test_a_class_that_has_answered_lets_the_teacher_play(a_class):
    """After *Reveal* no page waits for the question. Planted fault: only a student's page takes its answer."""

    async def do(new_page, rooms):
        teacher = await new_page()
        teacher.sends(["ask"])
        await until(lambda: teacher.shown["ask"])
        waits = teacher.state.position.waiting
        teacher.sends(["reveal"])
        await until(lambda: not teacher.state.position.waiting)
        return waits, teacher.state.position.answer, teacher.state.playing

    assert a_class(do) == (True, SKIPPED, False)


def test_the_teacher_closes_the_bars_and_the_table(a_class):
    async def do(new_page, rooms):
        teacher = await new_page()
        student = await new_page(teacher.code)

        def buttons():
            return {action: words for action, words, _ in teacher.shown["buttons"]}

        teacher.sends(["ask"], ["reveal"])
        await until(lambda: buttons().get("put_away") == "Close the bars")
        await until(lambda: student.shown["ask"])
        teacher.sends(["put_away"])
        await until(lambda: student.shown["ask"] is None and teacher.shown["ask"] is None)
        assert "put_away" not in buttons()
        teacher.sends(["race"])
        await until(lambda: student.shown["race"])
        teacher.sends(["end_race"])
        await until(lambda: buttons().get("put_away") == "Close the table")
        await until(lambda: "The race is over" in student.shown["race"]["says"])
        assert "enter" not in [action for action, *_ in student.shown["buttons"]]
        teacher.sends(["put_away"])
        await until(lambda: student.shown["race"] is None)

    a_class(do)


def test_who_has_left_comes_back(a_class):
    """As the same student. Planted fault: the bar is gone."""

    async def do(new_page, rooms):
        teacher = await new_page()
        student = await new_page(teacher.code)
        own = student.kept[0]
        student.sends(["leave"])
        await rest()
        left = student.state.room, [action for action, *_ in student.shown["buttons"]]
        student.sends(["back"])
        await until(lambda: student.shown["students"])
        return left, student.state.room == teacher.code, student.kept[0] == own

    assert a_class(do) == (("", ["back"]), True, True)


def test_only_the_teachers_word_leads_the_class_to_a_row(a_class):
    """Her table has links; a student's has none. Planted fault: a row without its link."""

    async def do(new_page, rooms):
        teacher = await new_page()
        student = await new_page(teacher.code)
        teacher.sends(["race"])
        await until(lambda: student.shown["race"])
        link = f"{STEP}&seed=7"
        await rooms.enter(teacher.code, student.kept[0], 1, {"link": link, "title": "SGLD", "ks": 0.1, "tau": 1.0})
        await until(lambda: teacher.shown["race"]["rows"] and student.shown["race"]["rows"])
        return [page.shown["race"]["rows"][0][-2:] for page in (teacher, student)], link

    (of_teacher, of_student), link = a_class(do)
    assert of_teacher == [False, link] and of_student == [True, ""]
