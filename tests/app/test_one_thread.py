"""What a browser sends, and what is written out for it, is the event loop's thread's alone."""

import asyncio
import threading
from collections import defaultdict
from types import SimpleNamespace

from bokeh.core.serialization import Serializer
from bokeh.document import Document
from bokeh.document.events import ModelChangedEvent
from bokeh.models import Div
from bokeh.protocol import Protocol
from bokeh.protocol.messages.patch_doc import patch_doc
from bokeh.server.connection import ServerConnection
from bokeh.server.session import ServerSession
from tornado.ioloop import IOLoop

from app import one_thread


def test_a_document_is_touched_by_the_thread_of_the_loop_alone(monkeypatch):
    """A change from the browser and the change that answers it, a scheduled callback, the page for a new browser."""
    threads = defaultdict(set)
    sent = []
    document = Document()
    div = Div(text="old")
    document.add_root(div)

    def note(what):
        threads[what].add(threading.get_ident())

    def answer(attr, old, new):
        note("change")
        div.width = 7

    async def send_message(message):
        sent.append(message.msgtype)

    def encode(self, value, original=Serializer.encode):
        note("writing")
        return original(self, value)

    async def use():
        session = ServerSession("session", document, io_loop=IOLoop.current())
        connection = ServerConnection(Protocol(), SimpleNamespace(send_message=send_message), None, session)
        change = patch_doc.create([ModelChangedEvent(document, div, "text", "new")])
        monkeypatch.setattr(Serializer, "encode", encode)
        await ServerSession.patch(change, connection)
        await session.with_document_locked(note, "callback")
        reply = await ServerSession.pull(SimpleNamespace(header={"msgid": "1"}), connection)
        sent.extend([] if reply is None else [reply.msgtype])  # before Bokeh 3.10 the caller sends it

    one_thread.keep()
    div.on_change("text", answer)
    asyncio.run(use())
    assert sent == ["PATCH-DOC", "PULL-DOC-REPLY"]
    assert threads == {what: {threading.get_ident()} for what in ("change", "writing", "callback")}
