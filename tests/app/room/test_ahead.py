"""Pages that are made in advance by several processes: together as many as were asked for, each handed out once."""

import asyncio
from types import SimpleNamespace

import pytest

from app.guard import ready
from app.guard.ready import KEEP_SECONDS, LONGEST, MOST, Ready
from app.guard.turns import Turns
from app.room import ahead
from app.room.ahead import ALIVE_SECONDS, MOST_LINKS, Ahead
from app.room.store import Memory
from samplers.parameters import SpecError

LINK = "?seed=1"


class Session:
    """What is made in place of a page."""

    def __init__(self):
        self.ended = False

    def block_expiration(self):
        pass

    unblock_expiration = block_expiration

    def request_expiration(self):
        self.ended = True


class Hall:
    """Processes with one store and one clock; a page costs nothing."""

    def __init__(self, count):
        self.now = 0.0
        self.store = Memory(lambda: self.now)
        self.made = []
        self.processes = [self.another() for _ in range(count)]

    def another(self):
        made = []
        self.made.append(made)

        async def make(query):
            made.append(Session())
            return made[-1]

        own = Ready(make, lambda: self.now)
        return SimpleNamespace(own=own, ahead=Ahead(self.store, own, lambda: self.now), made=made)

    async def goes_on(self):
        """Every process looks, and makes what it wants to."""
        for one in self.processes:
            await one.ahead.beat()
        for _ in range(600):
            await asyncio.sleep(0)

    def alive(self):
        return [sum(not session.ended for session in one.made) for one in self.processes]


@pytest.fixture
def hall(monkeypatch):
    monkeypatch.setattr(ready, "TURNS", Turns())
    monkeypatch.setattr(ready, "QUIET_SECONDS", 0)
    monkeypatch.setattr(ready, "IDLE_SECONDS", 0)
    return Hall


def in_hall(hall, count, do):
    async def whole():
        made = hall(count)
        await made.goes_on()
        return await do(made)

    return asyncio.run(whole())


async def a_class(hall):
    """Thirty are asked for; all are taken, and nobody gets one twice."""
    teacher = hall.processes[0].ahead
    coming = await teacher.prepare(LINK, 31)
    # They make them after one look, and tell it at the next.
    await hall.goes_on()
    await hall.goes_on()
    ready_now = await teacher.count(LINK)
    shares = hall.alive()
    taken = [one.own.take(LINK) for _ in range(40) for one in hall.processes]
    await hall.goes_on()
    found = [session for session in taken if session is not None]
    return coming, ready_now, sorted(shares), len(found), len(set(found)), sum(len(one.made) for one in hall.processes)


@pytest.mark.parametrize(("count", "shares"), [(1, [31]), (2, [15, 16]), (4, [7, 8, 8, 8])])
def test_each_process_makes_its_share_and_each_page_is_one_persons(hall, count, shares):
    assert in_hall(hall, count, a_class) == (31, 31, shares, 31, 31, 31)


def test_all_making_all_is_seen(hall, monkeypatch):
    """The planted fault: each process makes as many as the teacher has asked for."""
    monkeypatch.setattr(ahead, "_shares", dict.fromkeys)
    *_, made = in_hall(hall, 2, a_class)
    assert made == 62


def test_what_was_handed_out_is_made_again_only_when_it_is_asked_for_again(hall):
    async def do(made):
        teacher = made.processes[1].ahead
        await teacher.prepare(LINK, 4)
        await made.goes_on()
        assert [one.own.take(LINK) is not None for one in made.processes] == [True, True]
        await made.goes_on()
        await made.goes_on()
        assert made.alive() == [2, 2]
        await teacher.prepare(LINK, 4)
        await made.goes_on()
        return made.alive()

    # Two that are somebody's, and the four anew.
    assert in_hall(hall, 2, do) == [3, 3]


def test_they_are_thrown_away_in_all_processes_when_they_are_given_up_and_in_time(hall):
    async def do(made):
        teacher = made.processes[0].ahead
        await teacher.prepare(LINK, 6)
        await teacher.prepare("?seed=2", 4)
        await made.goes_on()
        assert made.alive() == [5, 5]
        await teacher.prepare(LINK, 0)
        await made.goes_on()
        assert made.alive() == [2, 2]
        made.now = KEEP_SECONDS - 1
        late = made.another()
        made.processes.append(late)
        await made.goes_on()
        before = made.alive()
        made.now = KEEP_SECONDS + 1
        await made.goes_on()
        return before, made.alive(), await teacher.count("?seed=2")

    before, after, count = in_hall(hall, 2, do)
    assert before[:2] == [2, 2]
    assert after == [0, 0, 0], "one that began late keeps them no longer"
    assert count == 0


def test_a_process_that_ended_has_no_share(hall):
    async def do(made):
        made.processes.pop()
        made.now = ALIVE_SECONDS + 1
        await made.goes_on()
        await made.processes[0].ahead.prepare(LINK, 10)
        await made.goes_on()
        return made.alive()

    assert in_hall(hall, 2, do) == [10]


def test_it_is_bounded_by_the_room_of_all_processes(hall):
    async def do(made):
        first, second = (one.ahead for one in made.processes)
        assert await first.most() == 2 * MOST
        for query, count in ((LINK, 2 * MOST + 1), (LINK, -1), ("?" + "x" * LONGEST, 1)):
            with pytest.raises(SpecError, match="allowed are"):
                await first.prepare(query, count)
        assert await first.prepare("?seed=1", 2 * MOST - 10) == 2 * MOST - 10
        await made.goes_on()
        await made.goes_on()
        assert await second.prepare("?seed=2", 30) == 10
        await made.goes_on()
        assert made.alive() == [MOST, MOST]
        for seed in range(3, MOST_LINKS + 1):
            await first.prepare(f"?seed={seed}", 1)
        with pytest.raises(SpecError, match=f"allowed are {MOST_LINKS}"):
            await first.prepare("?seed=0", 1)
        assert await first.prepare("?seed=0", 0) == 0

    in_hall(hall, 2, do)


def test_a_store_that_is_away_ends_nothing(hall, monkeypatch, caplog):
    async def do(made):
        async def away(*_):
            raise OSError("no such server")

        teacher = made.processes[0].ahead
        await teacher.prepare(LINK, 2)
        await made.goes_on()
        with monkeypatch.context() as patch:
            patch.setattr(made.store, "announced", away)
            await made.goes_on()
            await made.goes_on()
        await made.goes_on()
        return made.alive()

    assert in_hall(hall, 2, do) == [1, 1]
    assert len([one for one in caplog.records if "in advance" in one.message]) == 2, "said once by each"
