"""Pages that are asked for at once are made one after the other, and the others live on in between."""

import asyncio
from itertools import pairwise
from types import SimpleNamespace

import pytest
from panel.io.server import DocHandler

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
        async with handler.application.turns:
            waiting = asyncio.create_task(handler.get())
            await asyncio.sleep(0)
            if left:
                handler.on_connection_close()
        await waiting

    monkeypatch.setattr(DocHandler, "get", get)
    handler = GuardedPage.__new__(GuardedPage)
    handler.application = SimpleNamespace(turns=Turns(), generate_session_ids=True)
    handler.request = SimpleNamespace(headers={}, arguments={})
    asyncio.run(wait(handler))
    assert made == ([] if left else [handler])
