"""Pages requested at once are made one after another, and open pages get frames in between."""

import asyncio
from itertools import pairwise
from types import SimpleNamespace

import pytest
from panel.io.server import DocHandler

from sgmcmc_lab.app.server import handlers
from sgmcmc_lab.app.server.handlers import GuardedPage
from sgmcmc_lab.app.server.page_queue import PageQueue


class NoQueue:
    """Planted fault: every request is answered at once."""

    async def __aenter__(self):
        pass

    async def __aexit__(self, *_):
        pass


@pytest.mark.parametrize("kind", [PageQueue, NoQueue])
def test_between_two_pages_the_others_have_the_loop(kind):
    """Fails where simultaneous requests are answered without a frame in between, or in another order."""
    done = []

    async def make(number, queue):
        async with queue:
            done.append(number)
            if number == 1:
                raise ValueError

    async def frames():
        while True:
            await asyncio.sleep(0)
            done.append("frame")

    async def together():
        queue = kind()
        moving = asyncio.create_task(frames())
        await asyncio.gather(*(make(number, queue) for number in range(5)), return_exceptions=True)
        moving.cancel()

    asyncio.run(together())
    pages = [i for i, what in enumerate(done) if what != "frame"]
    assert [done[i] for i in pages] == list(range(5))
    apart = [b - a > 1 for a, b in pairwise(pages)]
    assert all(apart) if kind is PageQueue else not any(apart)


@pytest.mark.parametrize("left", [True, False])
def test_nothing_is_made_for_a_reader_who_has_left(left, monkeypatch):
    """Fails where links that were opened and closed again keep the server from pages that somebody waits for."""
    made = []

    async def get(self):
        made.append(self)

    async def wait(handler):
        async with handlers.PAGES:
            waiting = asyncio.create_task(handler.get())
            await asyncio.sleep(0)
            if left:
                handler.on_connection_close()
        await waiting

    monkeypatch.setattr(DocHandler, "get", get)
    monkeypatch.setattr(handlers, "PAGES", PageQueue())
    handler = GuardedPage.__new__(GuardedPage)
    handler.application = SimpleNamespace(generate_session_ids=True)
    handler.request = SimpleNamespace(headers={}, arguments={}, path="/app")
    asyncio.run(wait(handler))
    assert made == ([] if left else [handler])
