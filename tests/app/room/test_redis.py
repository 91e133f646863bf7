"""Rooms of two processes with a real Redis server: counted once, also where it is away, slow or full."""

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from unittest.mock import AsyncMock

import pytest
from redis.exceptions import RedisError

from sgmcmc_lab.app.room import rooms, store
from sgmcmc_lab.app.room.rooms import Rooms, new_mark
from sgmcmc_lab.app.room.store import CONNECTIONS, Redis
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.hall import redis

LINK = "?target=quartic()&lane=sgld()"
STUDENTS = 300


class Twice(Redis):
    """A planted fault: each process counts by itself who has answered."""

    async def add(self, key, field, value, most):
        own = f"{field}{id(self)}" if key.startswith("votes:") else field
        return await super().add(key, own, value, most)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with redis(tmp_path_factory.mktemp("redis")) as running:
        yield running


def of_two(server, do, kind=Redis):
    """The result of ``do`` on the rooms of two processes."""

    async def whole():
        async with AsyncExitStack() as stack:
            both = [kind(server.address) for _ in range(2)]
            for one in both:
                stack.push_async_callback(one._redis.aclose)
            return await do(*(Rooms(one) for one in both))

    return asyncio.run(whole())


async def three_hundred(first, second):
    """Each comes in and answers over both processes at once, three times, with another answer each time."""
    code, secret = await first.open(LINK)
    students = [new_mark() for _ in range(STUDENTS)]
    both = (first, second)
    await asyncio.gather(*(rooms.join(code, one) for rooms in both for one in students))
    await first.ask(code, secret, "langevin", 2, 4)
    counted = await asyncio.gather(
        *(both[k % 2].answer(code, one, 1, 1 + (i + k) % 4) for k in range(3) for i, one in enumerate(students))
    )
    clients = len(await first._store._redis.client_list())
    room_state = await second.state_of(code)
    await first.close(code, secret)
    return room_state.students, sum(room_state.bars(room_state.votes)), sum(counted), clients


@pytest.fixture
def patient(monkeypatch):
    """On a loaded machine, the last of 900 simultaneous answers waits longer than a page would."""
    monkeypatch.setattr(store, "PATIENCE", 120.0)


@pytest.mark.slow
def test_three_hundred_answers_over_two_processes_are_counted_once_each(server, patient):
    students, votes, counted, clients = of_two(server, three_hundred)
    assert (students, votes, counted) == (STUDENTS, STUDENTS, STUDENTS)
    assert clients <= 2 * CONNECTIONS, "as many connections as people"


@pytest.mark.slow
def test_a_double_count_over_two_processes_is_seen(server, patient):
    assert of_two(server, three_hundred, Twice)[1] > STUDENTS


def test_a_room_that_is_closed_at_one_process_is_gone_at_the_other(server):
    async def do(first, second):
        code, secret = await first.open(LINK)
        student = new_mark()
        await second.join(code, student)
        await first.ask(code, secret, "langevin", 2, 4)
        with pytest.raises(SpecError, match="only the page that opened it"):
            await second.close(code, new_mark())
        await second.close(code, secret)
        assert await first.state_of(code) is None
        for work in (first.join(code, student), first.answer(code, student, 1, 1), first.lead(code, secret, LINK)):
            with pytest.raises(SpecError, match="no such room"):
                await work
        keys = await first._store._redis.keys(f"*{code}*")
        return keys

    assert of_two(server, do) == []


@pytest.mark.parametrize("noted", [True, False])
def test_a_room_that_nobody_is_in_gives_way_at_both(server, noted, monkeypatch):
    """One that somebody looks at at the other process does not. Fault: that is not noted."""
    monkeypatch.setattr(rooms, "MOST_OF_ADDRESS", {"room": 3, "link": 3})

    async def do(first, second):
        now = [0.0]
        first._clock = second._clock = lambda: now[0]
        if not noted:
            second._used = first._used = AsyncMock()
        codes = []
        for now[0] in (0.0, 1.0, 2.0):
            codes.append((await first.open(LINK, "10.0.0.1"))[0])
        with pytest.raises(SpecError, match="your network has 3 already"):
            await second.open(LINK, "10.0.0.1")
        other, secret = await second.open(LINK, "10.0.0.2")
        now[0] = rooms.IDLE_SECONDS + 5
        assert await second.state_of(codes[0]) is not None
        codes.append((await second.open(LINK, "10.0.0.1"))[0])
        there = [bool(await first._store.read(f"room:{code}")) for code in codes]
        assert await first.address(other) and await first.is_maker(other, secret)
        await first.close(other, secret)
        known = await second._store.announced("room")
        for code in codes:
            await first._drop("room", code)
        return there, sum(code in known for code in (*codes, other))

    there, known = of_two(server, do)
    assert there == ([True, False, True, True] if noted else [False, True, True, True])
    assert known == 3


def test_what_is_announced_is_known_to_the_other_until_its_time_is_over(server):
    async def do(first, second):
        await first._store.announce("x", "a", "one two", 60)
        await first._store.announce("x", "b", "three", -1)
        return await second._store.announced("x"), await first._store._redis.hlen("sgmcmc-lab:known:x")

    assert of_two(server, do) == ({"a": "one two"}, 1)


def test_without_its_library_the_start_says_what_to_install(monkeypatch):
    """Fails where it ends with the name of a module that nobody has named."""
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(ImportError, match=r"^SGMCMC_REDIS needs the extra class: pip install"):
        Redis("redis://localhost")


def test_a_full_server_still_shows_what_is_there_and_a_stopped_one_is_given_up_in_time(server, monkeypatch):
    """Fails where a page would wait for a Redis server without end."""
    monkeypatch.setattr(store, "PATIENCE", 0.3)

    async def do(first, second):
        code, secret = await first.open(LINK)
        own = first._store._redis
        await own.config_set("maxmemory", 1)
        with pytest.raises(RedisError, match="maxmemory"):
            await first.open(LINK)
        with pytest.raises(RedisError):
            await second.join(code, new_mark())
        assert (await second.state_of(code)).link == LINK
        await own.config_set("maxmemory", 0)
        server.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises((RedisError, OSError)):
                await asyncio.wait_for(second.state_of(code), 30)
        finally:
            server.process.send_signal(signal.SIGCONT)
        room_state = await second.state_of(code)
        await first.close(code, secret)
        return room_state.link

    assert of_two(server, do) == LINK
