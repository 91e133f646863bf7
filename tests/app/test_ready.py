"""Pages that are made before they are asked for: how many, for how long, for whom, and that they are the same pages."""

import asyncio
from collections import deque
from pathlib import Path
from types import SimpleNamespace

import pytest
from bokeh.util.token import get_session_id, get_token_payload
from panel.io.application import build_single_handler_application
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

from app.guard import ready
from app.guard.ready import KEEP_SECONDS, LONGEST, MOST, Ready
from app.guard.server import GuardedTornado
from app.guard.turns import Turns
from samplers.parameters import SpecError
from tests.documents import told as whole

APP = Path(__file__).resolve().parents[2] / "app"


class Session:
    """What is made in place of a page."""

    def __init__(self, query):
        self.query, self.kept, self.ended = query, 0, False

    def block_expiration(self):
        self.kept += 1

    def unblock_expiration(self):
        self.kept -= 1

    def request_expiration(self):
        self.ended = True


@pytest.fixture
def lot(monkeypatch):
    """Pages that cost nothing, all that were made, and a clock to set."""
    monkeypatch.setattr(ready, "TURNS", Turns())
    monkeypatch.setattr(ready, "QUIET_SECONDS", 0)
    made, clock = [], SimpleNamespace(now=0.0)

    async def make(query):
        # Others' frames do not become fewer for it.
        assert not ready.TURNS.crowded
        made.append(Session(query))
        return made[-1]

    return SimpleNamespace(ready=Ready(make, lambda: clock.now), made=made, clock=clock)


async def some_rounds():
    for _ in range(400):
        await asyncio.sleep(0)


def test_so_many_are_made_as_was_asked_and_no_more_than_there_is_room_for(lot):
    """Fails where people could let a server make pages without end, many for one link or few for many."""

    async def asked():
        first = lot.ready.prepare("?seed=1", MOST - 10)
        second = lot.ready.prepare("?seed=2", 30)
        third = lot.ready.prepare("?seed=3", 30)
        await some_rounds()
        return first, second, third

    assert asyncio.run(asked()) == (MOST - 10, 10, 0)
    assert len(lot.made) == MOST and all(session.kept == 1 for session in lot.made)


def test_fewer_are_kept_where_fewer_are_asked_for(lot):
    async def asked():
        lot.ready.prepare("?seed=1", 8)
        await some_rounds()
        lot.ready.prepare("?seed=1", 3)
        await some_rounds()

    asyncio.run(asked())
    assert [session.ended for session in lot.made].count(False) == 3
    assert all(session.kept == (not session.ended) for session in lot.made)


@pytest.mark.parametrize(("query", "number"), [("?seed=1", MOST + 1), ("?seed=1", -1), ("?" + "x" * LONGEST, 1)])
def test_what_cannot_be_is_refused_in_a_sentence(lot, query, number):
    async def asked():
        lot.ready.prepare(query, number)

    with pytest.raises(SpecError, match="allowed are"):
        asyncio.run(asked())
    assert not lot.made


class Again(deque):
    """The planted fault: who is given one leaves it for the next."""

    def popleft(self):
        return self[0]


@pytest.mark.parametrize("kind", [deque, Again])
def test_each_is_one_persons(kind, lot):
    """Fails where two people would get one page, or a page of another link."""

    async def asked():
        lot.ready.prepare("?target=ring&seed=1", 2)
        lot.ready.prepare("?seed=2", 1)
        await some_rounds()
        link = lot.ready._links[ready._key("target=ring&seed=1")]
        link.sessions = kind(link.sessions)
        asked = ("target=ring&seed=%31", "?target=ring&seed=1", "target=ring&seed=1", "")
        return [lot.ready.take(query) for query in asked]

    first, second, third, none = asyncio.run(asked())
    assert none is None and first.query == second.query == "?target=ring&seed=1"
    if kind is Again:
        assert first is second is third
    else:
        assert first is not second and third is None and first.kept == second.kept == 0


def test_those_that_nobody_wanted_end(lot):
    """Fails where a link that was shared once would keep its pages, or one that is still shared would lose them."""

    async def asked():
        for query in ("?seed=1", "?seed=2"):
            lot.ready.prepare(query, 3)
        await some_rounds()
        lot.clock.now = KEEP_SECONDS - 1
        lot.ready.prepare("?seed=2", 3)
        lot.clock.now = KEEP_SECONDS + 1
        lot.ready.prepare("?seed=2", 3)
        await some_rounds()
        return lot.ready.take("?seed=1")

    assert asyncio.run(asked()) is None
    assert [session.ended for session in lot.made] == [session.query == "?seed=1" for session in lot.made]


def test_who_waits_for_a_page_comes_first(lot):
    """Fails where a reader would wait for pages that nobody has asked for yet."""

    async def asked():
        async with ready.TURNS:
            lot.ready.prepare("?seed=1", 3)
            await some_rounds()
            during = len(lot.made)
        await some_rounds()
        return during

    assert asyncio.run(asked()) == 0
    assert len(lot.made) == 3


def test_it_is_the_page_that_a_request_would_get_and_becomes_the_askers():
    """Fails where a page made in advance is another than one made at the request, or where two have a part in common,
    or where a page goes on knowing its maker instead of its reader. Planted fault: it is of another link.
    """
    query = "theme=dark&views=state,trace"

    async def all_of():
        server = GuardedTornado(
            {"/app": build_single_handler_application(str(APP))}, absolute_url="http://localhost:5006/", io_loop=None
        )
        made = [await server._page_of_nobody(query) for _ in range(2)]
        line = RequestStartLine("GET", f"/app?{query}", "HTTP/1.1")
        request = HTTPServerRequest(start_line=line, headers=HTTPHeaders({"Host": "localhost", "Cookie": "a=b"}))
        payload = {"headers": {"Host": "localhost", "X": "y"}, "cookies": {"a": "b"}, "arguments": request.arguments}
        asked = await server._applications["/app"].create_session_if_needed(
            "name", request, server._token("name", payload)
        )
        other = await server._page_of_nobody("views=state,trace")
        server.hand_over(made[0], request, payload)
        await made[1].with_document_locked(lambda: setattr(made[1].document, "title", "Another"))
        return made, asked, other

    (first, second), asked, other = asyncio.run(all_of())
    documents = [session.document for session in (first, second, asked)]
    assert second.document.title == "Another"
    second.document._title = first.document.title
    assert len({whole(document) for document in documents}) == 1
    assert whole(other.document) != whole(asked.document)
    assert not {model.id for model in first.document.models} & {model.id for model in second.document.models}
    context = first.document.session_context
    assert context.request.headers == {"Host": "localhost", "X": "y"} and context.request.cookies == {"a": "b"}
    assert get_session_id(first.token) == first.id != second.id
    assert get_token_payload(first.token)["cookies"] == {"a": "b"}
