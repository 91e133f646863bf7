"""Messages for a page arrive there."""

import asyncio
from types import SimpleNamespace

import pytest
from bokeh.document import Document
from bokeh.document.events import ModelChangedEvent
from bokeh.models import Div
from bokeh.protocol import Protocol
from panel.io import document as library
from tornado.websocket import WebSocketHandler

from sgmcmc_lab.app.server.patches import _dispatch, _drain, found

LIBRARY_DISPATCH, LIBRARY_DRAIN = map(
    found, ("panel.io.document:_dispatch_msgs", "panel.io.document:_drain_unconnected_events")
)
"""Panel's own, also where a server was made in this process."""


class Wire:
    """A connection whose network is slow until ``written`` is done."""

    def __init__(self, texts):
        self.texts, self.arrived = texts, []
        self.written = asyncio.get_running_loop().create_future()
        self.protocol, self._socket = Protocol(), Socket(self)

    def is_closing(self):
        return False

    def write_message(self, message, binary=False):
        self.arrived.extend(text for text in self.texts if text in str(message))
        return self.written


class Socket(WebSocketHandler):
    """The server's end of a :class:`Wire`."""

    def __init__(self, connection):
        self.ws_connection = connection


def sent(texts):
    """The messages sent for two changes, the second of which waits while the first one's task ends."""
    document, div = Document(), Div()
    document.add_root(div)

    async def use():
        wire = Wire(texts)
        for text in texts:
            library.schedule_write_events(document, [wire], [ModelChangedEvent(document, div, "text", text)])
            for _ in range(5):
                await asyncio.sleep(0)
            # From now on nothing waits for the network, and the task is about to end.
            wire.written.done() or wire.written.set_result(None)
        for _ in range(20):
            await asyncio.sleep(0)
        return wire.arrived

    return asyncio.run(use())


def test_a_change_kept_while_another_is_sent_is_sent(monkeypatch: pytest.MonkeyPatch):
    """Planted fault: the library's own way, by which the second change stays on the server."""
    texts = ["the first change", "the second change"]
    monkeypatch.setattr(library, "_dispatch_msgs", LIBRARY_DISPATCH)
    assert sent(texts) == ["the first change"]
    monkeypatch.setattr(library, "_dispatch_msgs", _dispatch(LIBRARY_DISPATCH))
    assert sent(texts) == texts


def changed_while_drawn(listens):
    """The changes that reach the connections of a page which has not yet said that it is drawn."""
    document, div, reached = Document(), Div(), []
    document.add_root(div)
    session = SimpleNamespace(connection_count=int(listens))
    context = SimpleNamespace(session=session)
    document._session_context = lambda: context
    document.on_change(lambda event: reached.append(getattr(event, "attr", type(event).__name__)))
    with library.hold(document):
        div.text = "changed"
        document.add_next_tick_callback(lambda: None)
    return sorted(reached)


def test_a_change_while_the_page_is_drawn_is_sent(monkeypatch: pytest.MonkeyPatch):
    """The browser has the document by then. Planted fault: the library's own way, which drops the change. Where nobody
    listens yet, it is in the document that is still to be sent.
    """
    monkeypatch.setattr(library, "_drain_unconnected_events", LIBRARY_DRAIN)
    assert changed_while_drawn(True) == changed_while_drawn(False) == ["SessionCallbackAdded"]
    monkeypatch.setattr(library, "_drain_unconnected_events", _drain(LIBRARY_DRAIN))
    assert changed_while_drawn(True) == ["SessionCallbackAdded", "text"]
    assert changed_while_drawn(False) == ["SessionCallbackAdded"]
