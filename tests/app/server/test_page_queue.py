"""Pages requested at once are made one after another, addresses take turns, and open pages get frames in between."""

import asyncio
from contextlib import asynccontextmanager
from itertools import pairwise
from types import SimpleNamespace

import pytest
from panel.io.server import DocHandler

from sgmcmc_lab.app.live.fair_executor import FullError
from sgmcmc_lab.app.server import handlers, page_queue
from sgmcmc_lab.app.server.handlers import GuardedPage
from sgmcmc_lab.app.server.page_queue import PageQueue


class NoQueue:
    """Planted fault: every request is answered at once."""

    def __init__(self, moves):
        pass

    @asynccontextmanager
    async def turn(self, address):
        yield


class OneLine(PageQueue):
    """Planted fault: one line for all addresses."""

    def turn(self, address):
        return super().turn("everybody")


def order_of(queue, *addresses):
    """The addresses in the order of their pages, when all ask in this order while a page is made."""
    made = []

    async def page(address):
        async with queue.turn(address):
            made.append(address)

    async def together():
        async with queue.turn("the first"):
            asked = [asyncio.create_task(page(address)) for address in addresses]
            await asyncio.sleep(0)
        await asyncio.gather(*asked)

    asyncio.run(together())
    return made


@pytest.mark.parametrize("kind", [PageQueue, NoQueue])
def test_between_two_pages_the_others_have_the_loop(kind):
    """Fails where simultaneous requests are answered without a frame in between, or in another order."""
    done = []

    async def make(number, queue):
        async with queue.turn("an address"):
            done.append(number)
            if number == 1:
                raise ValueError

    async def frames():
        while True:
            await asyncio.sleep(0)
            done.append("frame")

    async def together():
        queue = kind(lambda: False)
        moving = asyncio.create_task(frames())
        await asyncio.gather(*(make(number, queue) for number in range(5)), return_exceptions=True)
        moving.cancel()

    asyncio.run(together())
    pages = [i for i, what in enumerate(done) if what != "frame"]
    assert [done[i] for i in pages] == list(range(5))
    apart = [b - a > 1 for a, b in pairwise(pages)]
    assert all(apart) if kind is PageQueue else not any(apart)


@pytest.mark.parametrize("kind", [PageQueue, OneLine])
def test_addresses_take_turns(kind):
    """Fails where 150 pages of one address keep another one from its first."""
    made = order_of(kind(lambda: False), *["a"] * 150, *["b"] * 3, "c")
    assert (made[:7] == ["a", "b", "c", "a", "b", "a", "b"]) == (kind is PageQueue)
    assert (len(made), made.count("a")) == (154, 150)


def test_an_address_has_so_many_pages_waiting_and_no_more(monkeypatch):
    """Another address comes in all the same. Fault: no bound."""
    monkeypatch.setattr(page_queue, "MOST_WAITING", 2)
    queue = PageQueue(lambda: False)

    async def ask(address):
        async with queue.turn(address):
            pass

    async def together():
        async with queue.turn("a"):
            asked = [asyncio.create_task(ask(address)) for address in ("a", "a", "a", "b")]
            await asyncio.sleep(0)
        return [isinstance(one, FullError) for one in await asyncio.gather(*asked, return_exceptions=True)]

    assert asyncio.run(together()) == [False, False, True, False]


@pytest.mark.parametrize("when", ["waiting", "called"])
def test_a_request_that_is_cancelled_holds_up_nobody(when):
    """Fails where its turn is lost: nobody comes after it."""
    queue, made = PageQueue(lambda: False), []

    async def ask(name):
        async with queue.turn("an address"):
            made.append(name)

    async def together():
        async with queue.turn("an address"):
            first, second = asyncio.create_task(ask("first")), asyncio.create_task(ask("second"))
            await asyncio.sleep(0)
            if when == "waiting":
                first.cancel()
            else:
                call = queue._next
                queue._next = lambda: (call(), first.cancel())
        await asyncio.wait_for(second, 60)

    asyncio.run(together())
    assert made == ["second"]


@pytest.mark.parametrize("moves", [True, False])
def test_open_pages_that_move_have_two_thirds_of_the_time(moves, monkeypatch):
    """One address takes the third, and another one does not wait for that. Pages take a second each of the test's
    clock, which a timer moves on.

    Faults: the next page comes when the loop is idle; moves are asked for when a page is made.
    """
    now, made, making = [0.0], [], []
    monkeypatch.setattr(page_queue.time, "perf_counter", lambda: now[0])

    async def page(address, queue):
        async with queue.turn(address):
            made.append((address, now[0]))
            making.append(address)
            now[0] += 1.0
        making.clear()

    async def together():
        loop = asyncio.get_running_loop()

        def later(seconds, call):
            def move():
                now[0] = max(now[0], due)
                call()

            due = now[0] + seconds
            return loop.call_soon(move)

        monkeypatch.setattr(loop, "call_later", later, raising=False)
        # While a page is made, one that moves has no frame.
        queue = PageQueue(lambda: moves and not making)
        asked = [asyncio.create_task(page("a", queue)) for _ in range(3)]
        await asyncio.sleep(0)
        asked.append(asyncio.create_task(page("b", queue)))
        await asyncio.gather(*asked)

    asyncio.run(together())
    expected = (
        [("a", 0.0), ("b", 1.0), ("a", 3.0), ("a", 6.0)] if moves else [("a", 0.0), ("b", 1.0), ("a", 2.0), ("a", 3.0)]
    )
    assert made == expected


@pytest.mark.parametrize("leaves", [None, "begun", "waiting", "fault"])
def test_a_page_does_not_wait_for_all_parts_of_another_address(leaves):
    """Two addresses have a part each in turn, and a second page of the first comes after its first one. A reader who
    leaves between two parts keeps nobody waiting. Fault: nothing is left to others between two parts.
    """
    queue, made, tasks = PageQueue(lambda: False), [], {}

    async def page(name, address):
        async with queue.turn(address) as between:
            for part in range(3):
                if part:
                    await (asyncio.sleep(0) if leaves == "fault" else between())
                made.append(f"{name}{part}")
                if name == "b" and part == 1 and leaves in ("begun", "waiting"):
                    tasks["a" if leaves == "waiting" else "b"].cancel()

    async def together():
        for name, address in (("a", "one"), ("b", "another"), ("c", "one")):
            tasks[name] = asyncio.create_task(page(name, address))
        await asyncio.wait_for(asyncio.gather(*tasks.values(), return_exceptions=True), 60)
        # Another one has its turn at once: nobody holds it.
        await asyncio.wait_for(page("d", "one"), 60)

    asyncio.run(together())
    assert made[-3:] == ["d0", "d1", "d2"]
    first = {
        None: ["a0", "b0", "a1", "b1", "a2", "b2", "c0", "c1", "c2"],
        "begun": ["a0", "b0", "a1", "b1", "a2", "c0", "c1", "c2"],
        "waiting": ["a0", "b0", "a1", "b1", "c0", "b2", "c1", "c2"],
        "fault": ["a0", "a1", "a2", "b0", "b1", "b2", "c0", "c1", "c2"],
    }
    assert made[:-3] == first[leaves]


@pytest.mark.parametrize("left", [True, False])
def test_nothing_is_made_for_a_reader_who_has_left(left, monkeypatch):
    """Fails where links that were opened and closed again keep the server from pages that somebody waits for."""
    made = []

    async def get(self):
        made.append(self)

    async def wait(handler):
        async with handlers.PAGES.turn("another address"):
            waiting = asyncio.create_task(handler.get())
            await asyncio.sleep(0)
            if left:
                handler.on_connection_close()
        await waiting

    monkeypatch.setattr(DocHandler, "get", get)
    monkeypatch.setattr(handlers, "PAGES", PageQueue(lambda: False))
    handler = GuardedPage.__new__(GuardedPage)
    handler.application = SimpleNamespace(generate_session_ids=True)
    handler.request = SimpleNamespace(headers={}, arguments={}, path="/app", remote_ip="127.0.0.1")
    asyncio.run(wait(handler))
    assert made == ([] if left else [handler])


def test_whoever_has_too_many_pages_waiting_reads_why(monkeypatch):
    """Fails where a page is made for her all the same, or the sentence has another number."""

    class Full:
        @asynccontextmanager
        async def turn(self, address):
            raise FullError
            yield

    said = []
    monkeypatch.setattr(handlers, "PAGES", Full())
    monkeypatch.setattr(handlers, "_refuse", lambda handler, sentence, status: said.append((status, sentence)))
    handler = GuardedPage.__new__(GuardedPage)
    handler.application = SimpleNamespace(generate_session_ids=True)
    handler.request = SimpleNamespace(headers={}, arguments={}, path="/app", remote_ip="127.0.0.1")
    asyncio.run(handler.get())
    ((status, sentence),) = said
    assert status == 503 and sentence.startswith(f"{page_queue.MOST_WAITING} pages are being made")
