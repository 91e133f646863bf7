"""Pages that are asked for at once are made one after the other, and the others live on in between."""

import asyncio
from itertools import pairwise
from types import SimpleNamespace

import pytest
from panel.io.server import DocHandler

from app.guard import server
from app.guard.server import GuardedPage
from app.guard.turns import Turns


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
