"""The messages between the server and a live page below Bokeh: a frame in one write, and its answer to one
component.
"""

import asyncio
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import numpy as np
import pytest
from bokeh.document import Document
from bokeh.document.events import MessageSentEvent
from bokeh.protocol import Protocol
from bokeh.protocol.messages.patch_doc import patch_doc
from bokeh.protocol.receiver import Receiver
from panel.io.state import set_curdoc
from panel.models.esm import ESMEvent
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application
from tornado.websocket import WebSocketHandler, websocket_connect

from sgmcmc_lab.app.live.bus import Bus, Wire
from sgmcmc_lab.app.live.page_socket import framed
from sgmcmc_lab.app.server.light_page import mapping
from sgmcmc_lab.app.server.message_filter import answered
from sgmcmc_lab.app.server.socket import GuardedSocket
from tests.helpers.cases import for_each


class Session:
    """The part of a session that a connection needs."""

    destroyed = False

    def __init__(self, document):
        self.document = document


class Page:
    """A document with two components whose script talks to the server, and the connection of a browser."""

    def __init__(self):
        self.answers, self.written = [], []
        self.document = Document()
        with set_curdoc(self.document):
            self.bus, self.other = Bus(lambda *answer: self.answers.append(answer)), Wire()
        for component in (self.bus, self.other):
            component.server_doc(doc=self.document)
        self.socket = object.__new__(GuardedSocket)
        session = Session(self.document)
        self.socket.connection = Mock(session=session)
        self.socket._take_session()
        self.document._session_context = lambda: SimpleNamespace(session=session)
        self.socket.send_framed = AsyncMock(side_effect=self.written.append)

    def model(self, component):
        return next(iter(component._models.values()))[0]

    def says(self, component, data):
        values = mapping({"model": {"id": self.model(component).id}, "data": data})
        sent = {"type": "event", "name": "data_event", "values": values}
        return {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": sent}

    def reply_to(self, *events):
        """The server's answer to a browser's message, and the number of events in it."""
        message = SimpleNamespace(content={"events": list(events)}, buffers=[])
        return asyncio.run(self.socket._patch(message))


@for_each("length", [0, 125, 126, 65535, 65536])
def test_parts_are_read_as_they_were_written(length):
    """By Tornado's client, with a text before and behind. Fault: a length that has no room in its field."""
    parts = ["begin ä", bytes(length), "x" * length, "end"]

    class Handler(WebSocketHandler):
        def open(self):
            self.ws_connection.stream.write(b"".join(map(framed, parts)))

    async def use():
        listener, port = bind_unused_port()
        server = HTTPServer(Application([("/", Handler)]))
        server.add_socket(listener)
        client = await websocket_connect(f"ws://127.0.0.1:{port}/")
        read = [await asyncio.wait_for(client.read_message(), 10) for _ in parts]
        client.close()
        server.stop()
        return read

    assert asyncio.run(use()) == parts


@pytest.mark.slow
def test_a_frame_is_the_message_that_bokeh_would_send():
    """Its parts, taken apart, are those of Bokeh's own message, and the bytes are the frame's. The second frame differs
    from the first in the bytes alone.
    """
    page = Page()
    asyncio.run(page.bus.send_frame(1, {0: (np.arange(3.0),)}))
    asyncio.run(page.bus.send_frame(2, {0: (np.arange(4.0),)}))
    heads = []
    for number, message in enumerate(page.written, 1):
        parts = list(unframed(message))
        receiver = Receiver(Protocol())
        for part in parts:
            whole = asyncio.run(receiver.consume(part))
        event = MessageSentEvent(page.document, "bokeh_event", ESMEvent(model=page.model(page.bus), data=b""))
        page.document.models.flush_synced()
        own = patch_doc.create([event])
        assert (whole.msgtype, parts[1]) == (own.msgtype, own.metadata_json)
        # Each buffer has an id of its own.
        assert parts[2].replace(whole.buffers[0].id, "") == own.content_json.replace(own.buffers[0].id, "")
        assert np.frombuffer(whole.buffers[0].data).tolist() == [0, number, 0, 2 + number, *range(2 + number)]
        heads.append(parts[:-1])
    assert heads[0] == heads[1] and len(heads[0]) == 4


def unframed(message):
    """The parts of a message with short ones only."""
    at = 0
    while at < len(message):
        first, length = message[at : at + 2]
        at += 2
        if length == 126:
            length = int.from_bytes(message[at : at + 2])
            at += 2
        part = message[at : at + length]
        yield part.decode() if first == 0x81 else part
        at += length
    assert at == len(message)


def test_an_answer_to_a_frame_goes_to_its_bus_alone():
    """It is answered by nothing, and none of Bokeh's work is done for it. Another shape is no event. Beside something
    else, and what another component says, goes Bokeh's way. Fault: the answers of every component take the short way.
    """
    page = Page()
    assert page.reply_to(page.says(page.bus, [4, 0, 0, 1280, 0, 1])) == (None, 1)
    assert page.answers == [(4, False, 0, 1280, False, True)]
    for odd in ("x", [1], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5, "x"], [1, 2, 3, 4, 5, 6.5], mapping({"a": 1}), None):
        assert page.reply_to(page.says(page.bus, odd))[1] == 0
    assert len(page.answers) == 1
    alone, other = page.says(page.bus, [5, 0, 0, 1280, 0, 0]), page.says(page.other, [1])
    assert answered(page.document, [alone]) is not None
    for events in ([alone, alone], [other], [{"kind": "ModelChanged"}]):
        assert answered(page.document, events) is None
