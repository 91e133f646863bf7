"""A connection that is a page to the server, and draws nothing: one machine can have a whole class of them."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

CHANGE, LIVE = '{"events"', '"esm_event"'
"""How a change of the document begins, and what is in the live loop's: the bytes after others are arrays of figures."""


class LightPage:
    """A connection that opens the page as its script does, counts its frames and answers them."""

    def __init__(self) -> None:
        self.frames = 0
        self.on_frame: Callable[[], None] | None = None
        self.written: Any = None
        """Done when what was sent last has left this machine's buffers."""
        self.document = ""
        """The page's document, as JSON."""
        self.feeds: list[Any] = []
        """The targets of the arrays of a frame: model, columns, operation, rollover and names of each."""
        self.on_numbers: Callable[[NDArray[np.float64]], None] | None = None
        """Called with each frame's numbers."""
        self.on_text: Callable[[str], None] | None = None
        """Called with what Bokeh sends as text: changes of the document."""

    async def connect(self, url: str, host: str = "", source: str | None = None) -> None:
        """Ask for the page, connect, and ask for its document.

        ``host`` is by which name, if not that in ``url``; ``source`` is this computer's address, if not the usual one.
        """
        from tornado.httpclient import AsyncHTTPClient, HTTPRequest
        from tornado.websocket import websocket_connect

        headers = {"Host": host} if host else {}
        answer = await AsyncHTTPClient().fetch(
            HTTPRequest(url, headers=headers, network_interface=source, request_timeout=120)
        )
        token = re.search(r'"token":"([^"]+)"', answer.body.decode())
        assert token is not None, "the page has no token"
        # A short address leads to the page's own.
        address = answer.effective_url.split("?", maxsplit=1)[0].replace("http", "ws", 1) + "/ws"
        self._socket = await websocket_connect(
            HTTPRequest(address, headers=headers, network_interface=source),
            subprotocols=["bokeh", token[1]],
            max_message_size=1 << 28,
        )
        # The server takes no message before it has said that it is there.
        await self._read('"ACK"')
        self.send("PULL-DOC-REQ", {})
        self.document = await self._read('{"doc"')

    async def open(self, url: str, host: str = "", source: str | None = None) -> None:
        """Connect as :meth:`connect` does, and say that the page is there."""
        await self.connect(url, host, source)
        self._bus = next(
            model["id"] for model in models(json.loads(self.document)) if model["attributes"].get("class_name") == "Bus"
        )
        self.answer(-2, -1)
        self.event("document_ready", {})

    async def _read(self, part: str) -> str:
        """The next text with this part in it."""
        while (content := await self._socket.read_message()) is not None:
            if isinstance(content, str) and part in content[:100]:
                return content
        raise ConnectionError("the server closed the connection")

    async def take(self) -> None:
        """Take frames and answer them, until it is cancelled."""
        live = False
        while (message := await self._socket.read_message()) is not None:
            if isinstance(message, str) and message.startswith(CHANGE):
                live = LIVE in message
            if isinstance(message, bytes) and message[:1] == b"\0" and live:
                self.frames += 1
                if self.on_frame is not None:
                    self.on_frame()
                if self.on_numbers is not None:
                    self.on_numbers(np.frombuffer(message))
                generation, number = np.frombuffer(message[:16]).astype(int).tolist()
                if number == 1 or number % 2 == 0:
                    self.answer(number, generation)
            elif isinstance(message, bytes) and message.startswith(b'{"type": "layout"'):
                layout = json.loads(message)
                self.feeds = layout["feeds"]
                self.answer(0, layout["generation"])
            elif isinstance(message, str) and self.on_text is not None:
                self.on_text(message)

    def close(self) -> None:
        """Leave the page."""
        self._socket.close()

    def answer(self, number: int, generation: int) -> None:
        """Tell the loop that a frame has been drawn."""
        self.event("data_event", {"model": {"id": self._bus}, "data": [number, 0, generation, 1280, 0, 0]})

    def event(self, name: str, values: dict[str, Any], buffers: dict[str, bytes] | None = None) -> None:
        """Let something happen on the page."""
        event = {"type": "event", "name": name, "values": mapping(values)}
        self.patch({"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": event}, buffers)

    def click(self, button: str) -> None:
        """Press a button, by its model's id."""
        self.event("dom_event", {"model": {"id": button}, "node": "click", "data": mapping({})})

    def upload(self, box: str, name: Any, content: bytes, parts: Any = 1) -> None:
        """Bring a file to a box, by its model's id, as the first of so many parts."""
        chunk = {
            "status": "upload_event",
            "chunk": 1,
            "name": name,
            "total_chunks": parts,
            "mime_type": "text/plain",
            "data": {"type": "bytes", "data": {"id": "chunk"}},
        }
        self.event("data_event", {"model": {"id": box}, "data": mapping(chunk)}, {"chunk": content})
        self.event("data_event", {"model": {"id": box}, "data": mapping({"status": "finished"})})

    def set(self, model: str, name: str, value: Any) -> None:
        """Ask for another value of a model's property."""
        self.patch({"kind": "ModelChanged", "model": {"id": model}, "attr": name, "new": value})

    def patch(self, change: Any, buffers: dict[str, bytes] | None = None) -> None:
        """Ask for a change of the document."""
        self.send("PATCH-DOC", {"events": [change]}, buffers)

    def send(self, kind: str, content: Any, buffers: dict[str, bytes] | None = None) -> None:
        """Send a message."""
        header: dict[str, Any] = {"msgid": uuid4().hex, "msgtype": kind}
        if buffers:
            header["num_buffers"] = len(buffers)
        for fragment in (header, {}, content):
            self.raw(json.dumps(fragment))
        for key, data in (buffers or {}).items():
            self.raw(json.dumps({"id": key}))
            self.raw(data)

    def raw(self, fragment: str | bytes) -> None:
        """Send a part of a message as it is."""
        self.written = self._socket.write_message(fragment, binary=isinstance(fragment, bytes))
        # Nobody need wait for it, and the server may have closed.
        self.written.add_done_callback(lambda done: done.cancelled() or done.exception())


def mapping(values: dict[str, Any]) -> dict[str, Any]:
    """A mapping as Bokeh writes it."""
    return {"type": "map", "entries": [list(entry) for entry in values.items()]}


def models(content: Any) -> Iterator[dict[str, Any]]:
    """Every model in a serialised document."""
    if isinstance(content, dict):
        if "attributes" in content:
            yield content
        content = list(content.values())
    if isinstance(content, list):
        for each in content:
            yield from models(each)


def labelled(content: Any) -> dict[str, dict[str, Any]]:
    """The first of the components with each label, in a serialised document or a change of it."""
    found: dict[str, dict[str, Any]] = {}
    for model in models(content):
        data = model["attributes"].get("data")
        if isinstance(data, dict) and "label" in data.get("attributes", {}):
            found.setdefault(data["attributes"]["label"], model)
    return found
