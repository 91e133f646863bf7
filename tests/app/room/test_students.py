"""The actions of a student's light page in a room, and its contents."""

import asyncio
import json
import time

import pytest

from sgmcmc_lab.app.lesson.course import library
from sgmcmc_lab.app.room import race, shown
from sgmcmc_lab.app.room import student as students
from sgmcmc_lab.app.room.hub import Hub
from sgmcmc_lab.app.room.race import target_text
from sgmcmc_lab.app.room.rooms import AWAY, Rooms, new_mark
from sgmcmc_lab.app.room.student import Student, audience
from sgmcmc_lab.app.room.web import RoomSocket
from sgmcmc_lab.app.state import DEFAULT
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.rooms import Store, count_threads, rest, until

SLOW = 0.5
"""Seconds of a live page whose link says so."""
STEP = "?lesson=langevin&step=2&views=marginal"
QUARTIC = "?target=quartic&lane=sgld"


class Page:
    """A page without its browser."""

    def __init__(self, code):
        self.bar, self.live, self.kept, self.sent = {}, {}, "", []
        self.student = Student(code, self.take)

    def take(self, kind, text):
        message = json.loads(text)
        assert message["type"] == kind
        self.sent.append(message)
        if message["type"] == "keep":
            self.kept = message["student"]
        else:
            setattr(self, "bar" if message["type"] == "bar" else "live", message)

    @property
    def buttons(self):
        return [action for action, *_ in self.bar["buttons"]]

    def sends(self, *messages):
        for message in messages:
            self.student.on_message(message)


@pytest.fixture
def room(monkeypatch):
    """``room(do)`` runs ``do(new_page, rooms, code, secret)`` in a room on a quartic; no live page is made."""

    def run(do, link=QUARTIC):
        async def whole():
            count_threads()
            kept = Rooms(Store())
            hub = Hub(kept, seconds=0.001)
            monkeypatch.setattr(students, "rooms", lambda: kept)
            monkeypatch.setattr(students, "hub", lambda: hub)
            monkeypatch.setattr(students, "AGAIN_SECONDS", 0.005)
            monkeypatch.setattr(students, "COUNT_SECONDS", 0.005)

            async def made(query, code, racing=False):
                await asyncio.sleep(SLOW if "slow" in query else 0.002)
                return {"type": "page", "said": "", "key": query, "racing": racing, "fragment": "", "lab": ""}

            monkeypatch.setattr(students, "page_message", made)
            code, secret = await kept.open(link)
            pages = []

            async def new_page(mark="", free=""):
                page = Page(code)
                pages.append(page)
                page.sends(["hello", mark, "", free])
                await rest()
                return page

            try:
                return await asyncio.wait_for(do(new_page, kept, code, secret), 60)
            finally:
                Store.away = False
                for page in pages:
                    page.student.end()

        library()
        return asyncio.run(whole())

    return run


def test_a_page_is_there_however_long_a_lesson_is_read(room, monkeypatch):
    """A thread waits for a processor beside other processes. Fault: :func:`rest` counts turns of the loop alone."""
    monkeypatch.setattr("sgmcmc_lab.app.lesson.course.library", lambda: time.sleep(0.3))

    async def do(new_page, rooms, code, secret):
        page = await new_page()
        assert page.bar["students"] == 1 and page.live["key"] == QUARTIC

    room(do)


def test_students_follow_and_one_lets_go(room):
    async def do(new_page, rooms, code, secret):
        a, b = await new_page(), await new_page(free="free")
        await until(lambda: a.bar.get("students") == 2)
        await rest()
        # A page that has stopped following, and was loaded again, has an experiment, too.
        assert (a.live["key"], b.live["key"]) == (QUARTIC, QUARTIC)
        assert ("let_go" in a.buttons, "follow" in b.buttons) == (True, True)
        await rooms.lead(code, secret, STEP)
        await until(lambda: a.live["key"] == STEP)
        assert b.live["key"] == QUARTIC
        b.sends(["follow"])
        assert b.live["key"] == STEP
        a.sends(["let_go"])
        await rooms.lead(code, secret, QUARTIC)
        await until(lambda: b.live["key"] == QUARTIC)
        assert a.live["key"] == STEP

    room(do)


def test_of_many_leads_the_last_is_shown(room):
    """Fault: a look that comes while a page is made begins nothing and is forgotten."""

    async def do(new_page, rooms, code, secret):
        page = await new_page()
        for seed in range(20):
            await rooms.lead(code, secret, f"{QUARTIC}&seed={seed}")
            await asyncio.sleep(0.0015)
        await until(lambda: page.live.get("key", "").endswith("seed=19"))

    room(do)


def test_an_answer_counts_once_and_bars_are_hidden_until_they_are_revealed(room):
    async def do(new_page, rooms, code, secret):
        a, b = await new_page(), await new_page()
        await rooms.ask(code, secret, "step-size", 1, 4)
        await until(lambda: a.bar["ask"] and b.bar["ask"])
        a.sends(["answer", 1], ["answer", 3])
        b.sends(["answer", 9], ["answer", "1"], ["answer"])
        await until(lambda: a.bar["ask"]["mine"] == 1)
        await rest()
        assert (await rooms.state_of(code)).votes == {a.kept: 1}
        assert "allowed is a whole number from 1 to 4" in b.bar["said"]
        assert all(one["now"] is None and not one["right"] for page in (a, b) for one in page.bar["ask"]["options"])
        assert not any(one["reply"] for page in (a, b) for one in page.bar["ask"]["options"])
        await rooms.reveal(code, secret)
        await until(lambda: not b.bar["ask"]["open"])
        assert sum(one["now"] for one in b.bar["ask"]["options"]) == 1
        await until(lambda: not a.bar["ask"]["open"])
        replies = [
            {one["number"]: one["reply"] for one in page.bar["ask"]["options"] if one["reply"]} for page in (a, b)
        ]
        assert list(replies[0]) == [1] and "flat above 0" in replies[0][1], "who chose a wrong option reads why"
        assert replies[1] == {}, "who did not answer reads none"
        assert b.bar["ask"]["mine"] is None and sum(one["right"] for one in b.bar["ask"]["options"]) == 1

    room(do, "?lesson=step-size&views=marginal")


def test_a_page_is_one_student_whatever_it_sends(room):
    async def do(new_page, rooms, code, secret):
        page = await new_page()
        first = page.kept
        page.sends(["hello", new_mark(), "", ""], ["hello", new_mark(), secret, ""])
        again = await new_page(first)
        await rest()
        assert again.kept == first and (await rooms.state_of(code)).students == 1

    room(do)


def test_a_secret_makes_no_teacher_of_a_student(room):
    async def do(new_page, rooms, code, secret):
        page = await new_page()
        page.sends(["hello", "x", secret, ""], ["ask"], ["reveal"], ["close"], ["race"], ["lead", STEP], ["again"])
        await rest()
        room_state = await rooms.state_of(code)
        assert (room_state.ask, room_state.race, room_state.link, page.bar["maker"]) == (None, None, QUARTIC, False)

    room(do)


@pytest.mark.parametrize(
    "message", [None, 3, "text", [], [[]], [1, 2], ["hello"], ["hello", 1, 2, 3], ["open", -1], ["open", 10**30], ["enter", 5], ["answer", True], {"a": 1}],
)  # fmt: skip
def test_any_message_is_taken(room, message):
    async def do(new_page, rooms, code, secret):
        page = Page(code)
        page.sends(message)
        page.sends(["hello", "", "", ""])
        await rest()
        page.sends(message)
        await rest()
        assert page.bar["students"] == 1
        page.student.end()

    room(do)


def test_a_flood_is_passed_over(room):
    """Fault: no bound; each press draws the bar anew."""

    async def do(new_page, rooms, code, secret):
        page = await new_page()
        before = len(page.sent)
        page.sends(*([["let_go"], ["follow"]] * 500))
        assert len(page.sent) - before < 80

    room(do)


def test_a_race_takes_a_link_and_measures_it(room):
    async def do(new_page, rooms, code, secret):
        a, b = await new_page(), await new_page()
        target = target_text(Experiment.from_query(QUARTIC, DEFAULT)[0])
        await rooms.race(code, secret, target, "ks")
        await until(lambda: a.bar["race"])
        a.sends(["enter", f"?target={target}&lane=sgld(step_size:0.05)"])
        b.sends(["enter", "?target=gaussian&lane=sgld"])
        await until(lambda: "allowed is the target of the race" in b.bar["said"])
        await until(lambda: a.bar["race"]["rows"])
        assert a.bar["race"]["rows"][0][3] is True and b.bar["race"]["rows"][0][3] is False
        b.sends(["open", 0])
        await until(lambda: "sgld(step_size:0.05)" in b.live["key"])
        assert "follow" in b.buttons
        # In a race another sampler can be chosen in the page of a row, too.
        assert b.live["racing"]
        # A student who follows again before the page is made is not led off by it.
        a.sends(["open", 0], ["follow"])
        await rest()
        assert a.live["key"] == QUARTIC and "let_go" in a.buttons
        # A page with other samplers takes the place of the teacher's until the race ends.
        await until(lambda: a.live["racing"])
        await rooms.race(code, secret, "", "ks")
        await until(lambda: not a.live["racing"])

    room(do)


def test_a_result_stays_until_the_teacher_goes_on(room):
    """Also for a student who has stopped following. Planted faults: the table is gone with the race, or her own line
    stays.
    """

    async def do(new_page, rooms, code, secret):
        page = await new_page()
        target = target_text(Experiment.from_query(QUARTIC, DEFAULT)[0])
        await rooms.race(code, secret, target, "ks")
        await until(lambda: page.bar["race"])
        page.sends(["let_go"], ["enter", f"?target={target}&lane=sgld(step_size:0.05)"])
        await until(lambda: page.bar["said"].startswith("Yours: "))
        await rooms.race(code, secret, "", "ks")
        await until(lambda: "enter" not in page.buttons)
        assert page.bar["race"]["rows"] and page.bar["said"].startswith("Yours: ")
        await rooms.lead(code, secret, STEP)
        await until(lambda: page.bar["race"] is None)
        assert page.bar["said"] == ""

    room(do)


def test_a_room_that_is_gone_is_said_and_comes_back(room):
    async def do(new_page, rooms, code, secret):
        page = await new_page()
        await until(lambda: page.live.get("key") == QUARTIC)
        await rooms.close(code, secret)
        await until(lambda: "This room is gone" in page.bar["said"])
        await rooms.open_again(code, secret, STEP)
        await until(lambda: page.bar["students"] == 1 and page.live.get("key") == STEP)
        assert (await rooms.state_of(code)).students == 1

    room(do)


def test_rooms_that_do_not_answer_are_said(room):
    async def do(new_page, rooms, code, secret):
        page = await new_page()
        Store.away = True
        await until(lambda: page.bar["said"] == AWAY)
        late = await new_page()
        assert late.bar["said"] == AWAY
        Store.away = False
        await until(lambda: page.bar["said"] == "" and late.bar["students"] == 2)

    room(do)


def test_who_leaves_hears_no_more(room):
    async def do(new_page, rooms, code, secret):
        a, b = await new_page(), await new_page()
        a.sends(["leave"])
        heard = len(a.sent)
        await rooms.ask(code, secret, "langevin", 2, 4)
        await until(lambda: b.bar["ask"])
        assert len(a.sent) == heard
        b.student.end()
        assert not audience(code).students

    room(do)


def test_a_page_that_no_file_can_show_says_so(monkeypatch):
    class Refuses:
        async def of(self, query, racing):
            raise SpecError("target", "network", "it uses the teacher's own file, which only her page has")

    monkeypatch.setattr(students, "pages", Refuses)
    found = asyncio.run(students.page_message("?target=network", "k7mq2x9d"))
    assert "own file" in found["said"] and "whole lab" in found["said"] and "key" not in found
    assert found["lab"] == "app?target=network&room=k7mq2x9d"


@pytest.mark.slow
def test_the_next_page_does_not_wait_for_one_that_nobody_shows(room):
    """And students are told that it is being made. Fault: one after the other."""

    async def do(new_page, rooms, code, secret):
        page = await new_page()
        await rooms.lead(code, secret, "?slow")
        await until(lambda: page.live["said"] == students.MAKING)
        began = asyncio.get_running_loop().time()
        await rooms.lead(code, secret, STEP)
        await until(lambda: page.live.get("key") == STEP)
        assert asyncio.get_running_loop().time() - began < SLOW
        await asyncio.sleep(SLOW)
        assert page.live["key"] == STEP

    room(do)


def test_the_page_before_comes_back_where_the_teacher_goes_back(room):
    """Fails where students keep the sentence that a page is being made. Fault: a page is shown once alone."""

    async def do(new_page, rooms, code, secret):
        page = await new_page()
        await until(lambda: page.live.get("key") == QUARTIC)
        await rooms.lead(code, secret, "?slow")
        await until(lambda: page.live["said"] == students.MAKING)
        await rooms.lead(code, secret, QUARTIC)
        await until(lambda: page.live.get("key") == QUARTIC)

    room(do)


def test_a_closed_page_makes_room_for_another_one(room, monkeypatch):
    """Fault: whoever was there once counts for the day."""
    monkeypatch.setattr("sgmcmc_lab.app.room.rooms.MOST_STUDENTS", 2)

    async def do(new_page, rooms, code, secret):
        a, b = await new_page(), await new_page()
        late = await new_page()
        assert "it is full" in late.bar["said"]
        a.student.end()
        await until(lambda: late.bar["students"] == 2)
        # The same student's second page stays counted.
        again = await new_page(b.kept)
        again.student.end()
        await rest()
        assert (await rooms.state_of(code)).students == 2

    room(do)


def test_a_measured_time_below_nothing_is_not_known(monkeypatch):
    """An estimate from too few steps; it would win a race by gradients."""
    experiment = race.raced(
        Experiment.from_query(QUARTIC, DEFAULT)[0], target_text(Experiment.from_query(QUARTIC, DEFAULT)[0])
    )
    assert race.measure(experiment)["tau"] > 0
    monkeypatch.setattr("sgmcmc_lab.app.room.race.autocorrelation.tau_int", lambda statistics, k: -0.2)
    assert race.measure(experiment)["tau"] is None
    assert shown.entered({"ks": 0.4, "tau": None}).endswith("is not known yet.")


def test_of_states_that_wait_the_last_one_is_sent():
    """To a page that takes one message at a time. Fault: a list of all."""

    class Slow(RoomSocket):
        def __init__(self):
            self._waiting, self._sending, self.sent = {}, False, []

        async def write_message(self, text):
            self.sent.append(text)
            await asyncio.sleep(0.01)

    async def do():
        socket = Slow()
        for number in range(100):
            socket._send("bar", f"bar {number}")
            socket._send("page", f"page {number}")
            await asyncio.sleep(0)
        await until(lambda: not socket._sending)
        return socket.sent

    sent = asyncio.run(do())
    assert sent[-2:] == ["bar 99", "page 99"] or sent[-2:] == ["page 99", "bar 99"]
    assert len(sent) <= 4
