"""The connections of pages take turns by address, as pages do, and each address has a bound for them."""

import asyncio
from functools import partial
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest
from bokeh.document import Document
from panel.io.server import WSHandler
from panel.io.state import set_curdoc

from sgmcmc_lab.app.page import parts
from sgmcmc_lab.app.server import page_queue, socket
from sgmcmc_lab.app.server.connections import TOO_MANY, Connections
from sgmcmc_lab.app.server.page_queue import PageQueue
from sgmcmc_lab.app.server.socket import POLICY, Credit, GuardedSocket


class OneLine(PageQueue):
    """Planted fault: one line for all addresses."""

    def turn(self, address):
        return super().turn("everybody")


@pytest.fixture
def opened(monkeypatch):
    """The addresses of the connections that were opened, in order."""
    found = []

    def open_one(handler):
        found.append(handler.request.remote_ip)
        handler._begun.set()

    monkeypatch.setattr(WSHandler, "open", open_one)
    monkeypatch.setattr(socket, "PAGES", PageQueue(lambda: False))
    monkeypatch.setattr(socket, "PAGES_OPEN", Connections(most_of_address=200))
    return found


def connection(address, known=True, document=None):
    """A connection with a good token, of a page that the server has, or had."""
    made = object.__new__(GuardedSocket)
    document = Document() if document is None else document
    made.request = SimpleNamespace(remote_ip=address)
    made.ws_connection = Mock(selected_subprotocol="bokeh")
    made.close, made._good_token = Mock(), lambda: True
    made._session_of_token = lambda: SimpleNamespace(document=document) if known else None
    return made


@pytest.mark.parametrize("waits", [True, False])
def test_a_connection_waits_until_its_page_is_whole(waits, opened, monkeypatch):
    """Fails where a browser gets a page of which parts come later: Panel drops these. Fault: nobody waits."""
    if not waits:
        monkeypatch.setattr(socket, "whole", AsyncMock())
    document, seen, done = Document(), [], []

    async def connect():
        with set_curdoc(document), parts.in_parts() as left:
            parts.keep(lambda: [lambda: seen.append(len(opened))] * 3, Mock())
        comes = asyncio.create_task(connection("127.0.0.1", document=document).open())
        left_meanwhile = connection("127.0.0.3", document=document)
        leaves = asyncio.create_task(left_meanwhile.open())
        other = asyncio.create_task(connection("127.0.0.2").open())
        other.add_done_callback(lambda _: done.append(len(seen)))
        await asyncio.sleep(0)
        left_meanwhile.ws_connection = None
        await left.make(partial(asyncio.sleep, 0))
        await asyncio.gather(comes, other, leaves)

    asyncio.run(connect())
    assert opened[0] == ("127.0.0.2" if waits else "127.0.0.1") and done[0] < 3
    assert (seen == [1, 1, 1]) == waits
    # Nobody who has left meanwhile is connected, and another connection to the same page waits for nothing.
    assert ("127.0.0.3" in opened) != waits
    asyncio.run(connection("127.0.0.4", document=document).open())
    assert opened[-1] == "127.0.0.4"


async def all_open(*connections):
    await asyncio.gather(*(one.open() for one in connections))


@pytest.mark.parametrize("kind", [PageQueue, OneLine])
def test_a_page_that_is_made_anew_has_its_turn(kind, opened, monkeypatch):
    """Fails where 150 connections to sessions that have ended keep another address from its own. Fault: one line."""
    monkeypatch.setattr(socket, "PAGES", kind(lambda: False))
    lost = [connection("127.0.0.1", known=False) for _ in range(150)]
    asyncio.run(all_open(*lost, connection("127.0.0.2", known=False)))
    assert (opened.index("127.0.0.2") < 3) == (kind is PageQueue)
    assert len(opened) == 151


def test_a_page_that_is_there_waits_for_no_turn(opened):
    """Fails where a page cannot connect while others are made."""

    async def connect():
        async with socket.PAGES.turn("127.0.0.1"):
            await connection("127.0.0.2").open()
            assert opened == ["127.0.0.2"]

    asyncio.run(connect())


def test_a_reader_who_has_left_or_comes_too_late_has_no_page(opened, monkeypatch):
    """Fails where pages are made for nobody, or the queue is as long as somebody likes."""
    monkeypatch.setattr(page_queue, "MOST_WAITING", 2)
    lost = [connection("127.0.0.1", known=False) for _ in range(4)]
    lost[1].ws_connection = None
    lost[1]._begun.set()
    type_of = property(lambda self: "bokeh")
    monkeypatch.setattr(GuardedSocket, "selected_subprotocol", type_of)
    asyncio.run(all_open(*lost))
    assert len(opened) == 2
    lost[3].close.assert_called_once_with(POLICY, page_queue.TOO_MANY)


@pytest.mark.parametrize("bounded", [True, False])
def test_an_address_has_so_many_pages_open_and_no_more(bounded, opened, monkeypatch):
    """Fails where one address opens as many as it likes, or keeps another one out. A closed one makes room."""
    monkeypatch.setattr(socket, "PAGES_OPEN", Connections(most_of_address=2 if bounded else 99))
    pages = [connection("10.0.0.5") for _ in range(3)]
    asyncio.run(all_open(*pages, connection("10.0.0.6")))
    assert [one.close.called for one in pages] == [False, False, bounded]
    assert opened[-1] == "10.0.0.6"
    if bounded:
        pages[2].close.assert_called_once_with(POLICY, TOO_MANY)
    socket.PAGES_OPEN.end(pages[0])
    late = connection("10.0.0.5")
    asyncio.run(late.open())
    assert not late.close.called


@pytest.mark.parametrize("apart", [True, False])
def test_changes_by_one_address_leave_time_for_those_of_others(apart, monkeypatch):
    """Two pages of 127.0.0.1 keep the loop busy for 3 s and 1 s: each waits until its address has paid at half a
    second each. Fails where a page of 127.0.0.2 waits for them. Fault: both are one address.
    """
    slept = AsyncMock()
    monkeypatch.setattr(socket, "Credit", partial(Credit, clock=lambda: 0.0))
    monkeypatch.setattr(socket, "_CREDITS", {})
    monkeypatch.setattr(socket.asyncio, "sleep", slept)
    pages = [connection(address) for address in ("127.0.0.1", "127.0.0.1", "127.0.0.2" if apart else "127.0.0.1")]

    async def change():
        for page, took in zip(pages, (3.0, 1.0, 1.0), strict=True):
            page._took = took
            await page._wait(1.0)
        # A message that changes nothing, such as an answer to a frame, does not wait for those that do.
        pages[0]._took = 0.0
        await pages[0]._wait(1.0)

    asyncio.run(change())
    assert [call.args[0] for call in slept.await_args_list] == [2.0, 4.0, 0.0 if apart else 6.0, 0.0]


def test_a_debt_is_paid_and_no_more_is_saved_than_the_burst():
    now = [0.0]
    credit = Credit(2.0, 10.0, lambda: now[0])
    credit.spend(14.0)
    assert credit.owed == 2.0
    now[0] = 1.0
    credit.spend(0.0)
    assert credit.owed == 1.0
    now[0] = 100.0
    credit.spend(10.0)
    assert credit.owed == 0.0 and credit.left == 0.0


def test_the_time_of_a_change_is_noted():
    """Fails where a change that raises an error costs nothing."""
    page = connection("127.0.0.1")
    with pytest.raises(ZeroDivisionError):
        page._timed(lambda: 1 / 0)()
    assert page._took > 0
    assert page._timed(divmod)(7, 2) == (3, 1)


def test_a_reason_for_closing_fits_its_frame():
    """RFC 6455, 5.5: 125 bytes, with two for the code."""
    assert max(len(text.encode()) for text in (TOO_MANY, page_queue.TOO_MANY)) <= 123
