"""Pages that are asked for at once are made one after the other, and the others live on in between."""

import asyncio
import threading
from itertools import pairwise
from types import SimpleNamespace

import pytest
from panel.io.server import DocHandler

from app import live
from app.guard import server
from app.guard.server import GuardedPage
from app.guard.turns import Turns
from app.lesson import course


class NoTurns:
    """The planted fault: whoever comes is served."""

    async def __aenter__(self):
        pass

    async def __aexit__(self, *_):
        pass


@pytest.mark.parametrize("turns", [Turns, NoTurns])
def test_between_two_pages_others_have_a_turn(turns):
    """Fails where thirty requests of one second are answered without a frame between, or in another order."""
    done = []

    async def make(number, turn):
        async with turn:
            done.append(number)
            if number == 1:
                raise ValueError

    async def frames():
        while True:
            await asyncio.sleep(0)
            done.append("frame")

    async def together():
        turn = turns()
        moving = asyncio.create_task(frames())
        await asyncio.gather(*(make(number, turn) for number in range(5)), return_exceptions=True)
        moving.cancel()

    asyncio.run(together())
    pages = [i for i, what in enumerate(done) if what != "frame"]
    assert [done[i] for i in pages] == list(range(5))
    apart = [b - a > 1 for a, b in pairwise(pages)]
    assert all(apart) if turns is Turns else not any(apart)


@pytest.mark.parametrize("left", [True, False])
def test_nothing_is_made_for_a_reader_who_has_left(left, monkeypatch):
    """Fails where links that were opened and closed again keep the server from those that are waited for."""
    made = []

    async def get(self):
        made.append(self)

    async def wait(handler):
        async with server.TURNS:
            waiting = asyncio.create_task(handler.get())
            await asyncio.sleep(0)
            if left:
                handler.on_connection_close()
        await waiting

    monkeypatch.setattr(DocHandler, "get", get)
    handler = GuardedPage.__new__(GuardedPage)
    monkeypatch.setattr(server, "TURNS", Turns())
    handler.application = SimpleNamespace(generate_session_ids=True, path_of_ready="/app")
    handler.request = SimpleNamespace(headers={}, arguments={}, path="/another")
    asyncio.run(wait(handler))
    assert made == ([] if left else [handler])
    assert not server.TURNS.crowded


def test_it_is_known_whether_somebody_waits():
    """Fails where a page that was made, or given up, would count as one that is waited for."""

    async def counted():
        turns = Turns()
        before = turns.crowded
        async with turns:
            waiting = asyncio.create_task(turns.__aenter__())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            during = turns.crowded
        return before, during, turns.crowded

    assert asyncio.run(counted()) == (False, True, False)


@pytest.mark.parametrize("fault", [False, True])
@pytest.mark.parametrize("ahead", [False, True])
def test_a_lesson_is_read_beside_the_loop(ahead, fault, monkeypatch):
    """Fails where all open pages stand still while the first link of a class reads the course, of pages that are made
    in advance too. Fault: whoever makes the page reads it."""
    where, loops = [], []

    read = course.read

    def read_one(path):
        where.append(threading.get_ident())
        return read(path)

    async def make(*_):
        loops.append(threading.get_ident())
        course.lesson_of("langevin")
        return SimpleNamespace()

    async def nothing(*_):
        pass

    monkeypatch.setattr(course, "read", read_one)
    monkeypatch.setattr(course, "_FILES", {})
    monkeypatch.setattr(DocHandler, "get", make)
    monkeypatch.setattr(server, "TURNS", Turns())
    if fault:
        monkeypatch.setattr(server, "lesson_apart", nothing)
    handler = GuardedPage.__new__(GuardedPage)
    handler.request = SimpleNamespace(headers={}, arguments={"lesson": [b"langevin"]}, path="/another")
    handler.application = SimpleNamespace(generate_session_ids=True, path_of_ready="/app")
    pages = {"/app": SimpleNamespace(create_session_if_needed=make)}
    of = SimpleNamespace(path_of_ready="/app", _applications=pages, secret_key=b"", sign_sessions=False, _token=print)

    asyncio.run(server.GuardedTornado._page_of_nobody(of, "?lesson=langevin") if ahead else handler.get())
    assert len(where) == len(loops) == 1
    assert (where == loops) == fault


def test_frames_are_few_while_somebody_waits_for_figures(monkeypatch):
    """In a full class a page's first picture would wait for the frames of all that are there. Fault: frames go on as
    if nobody waited.
    """
    pace, turns, found = live.Pace(), live.Turns(), []
    monkeypatch.setattr(live, "_TURNS", turns)

    async def use():
        found.append(pace.interval(1))
        await turns.take(lambda: found.append(pace.interval(1)))
        found.append(pace.interval(1))

    asyncio.run(use())
    assert found == [live.FRAME_SECONDS, live.CROWDED_SECONDS, live.FRAME_SECONDS]
