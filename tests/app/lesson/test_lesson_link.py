"""The link of a lesson: reading the lesson holds no other page."""

import asyncio
import threading
from types import SimpleNamespace

import pytest
from panel.io.server import DocHandler

from sgmcmc_lab.app.lesson import course
from sgmcmc_lab.app.server import handlers
from sgmcmc_lab.app.server.handlers import GuardedPage
from sgmcmc_lab.app.server.page_queue import PageQueue


@pytest.mark.slow
@pytest.mark.parametrize("fault", [False, True])
def test_a_lesson_is_read_beside_the_loop(fault, monkeypatch):
    """Fails where all open pages stand still while the first link of a class reads the course. Planted fault: the page
    reads it while it is made."""
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
    # The turns of the server belong to its loop; each case here has a loop of its own.
    monkeypatch.setattr(handlers, "PAGES", PageQueue(lambda: False))
    if fault:
        monkeypatch.setattr(handlers, "lesson_apart", nothing)
    handler = GuardedPage.__new__(GuardedPage)
    handler.request = SimpleNamespace(headers={}, arguments={"lesson": [b"langevin"]}, path="/another", remote_ip="")
    handler.application = SimpleNamespace(generate_session_ids=True)
    asyncio.run(handler.get())
    assert len(where) == len(loops) == 1
    assert (where == loops) == fault
