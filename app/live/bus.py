"""Figures and frames to the page, and acknowledgements back, without Panel's synchronisation.

A figure has some forty models. It is a Bokeh document in the browser, and none on the server. So the page's document is
small, and a change of it never walks the models of figures. A frame is one binary message, which the page's script
writes into the glyphs' data sources. The page answers when the frame is on the screen, and says whether it is hidden.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import panel as pn
from bokeh.core.serialization import Serializer
from bokeh.document.events import MessageSentEvent
from bokeh.protocol.messages.patch_doc import patch_doc
from panel.custom import JSComponent
from panel.models.esm import ESMEvent, ReactiveESM

from sgmcmc_lab.app.live.page_socket import PageSocket, framed, listen, socket_of
from sgmcmc_lab.app.views.base import Feed
from sgmcmc_lab.app.views.bundle import ASSETS, component


class Wire(JSComponent):
    """A component whose script gets messages without Panel's synchronisation, which would be too slow for frames."""

    def __init__(self, **params: Any):
        super().__init__(**params)
        self._document = pn.state.curdoc
        self._head = b""

    @property
    def socket(self) -> PageSocket | None:
        """The connection of the page; None if there is none."""
        return socket_of(self._document)

    async def _send(self, data: dict[str, Any]) -> None:
        await self._send_bytes(json.dumps(data).encode())

    async def _send_bytes(self, content: bytes) -> None:
        document, socket = self._document, self.socket
        if document is None or socket is None:
            return
        # To encode a message, Bokeh would list every model of the page; only the bytes differ between messages.
        if not self._head:
            data = document.get_model_by_name(self.name)
            models = document.select({"type": ReactiveESM})
            self._head = _head(next(model for model in models if model.data is data))
        await socket.send_framed(self._head + framed(content))


def _head(model: Any) -> bytes:
    """The parts of a message to a component's script that precede its bytes, as sent over the wire."""
    event = MessageSentEvent(model.document, "bokeh_event", ESMEvent(model=model, data=b""))
    # The page has the component: a reference to it is enough.
    serializer = Serializer(references={model})
    message = patch_doc(patch_doc.create_header(), {}, {"events": serializer.encode([event])})
    (buffer,) = serializer.buffers
    message.add_buffer(buffer)
    parts = message.header_json, message.metadata_json, message.content_json, json.dumps(buffer.ref)
    return b"".join(map(framed, parts))


class Bus(Wire):
    """The figures of a page, and the messages to and from its script; one bus for each session.

    A message is bytes. A frame is an array of floats, the first a small integer, whose first byte is zero. Any other
    message is JSON, which begins with a brace.
    """

    HELLO: ClassVar[int] = -2
    """The number with which a page announces itself."""

    _esm = component("bus.js")
    _stylesheets: ClassVar[list[str]] = [(ASSETS / "figures.css").read_text(encoding="utf-8")]

    def __init__(self, on_answer: Callable[[int, bool, int, int, bool, bool], None], **params: Any):
        super().__init__(margin=0, sizing_mode="stretch_width", css_classes=["views"], **params)
        self._on_answer = on_answer
        self._generation = 0
        listen(self._document, self._handle_msg)

    @property
    def generation(self) -> int:
        """Counts the layouts; frames of an earlier layout are not drawn."""
        return self._generation

    @property
    def connected(self) -> bool:
        """Whether a page is there to receive frames."""
        return self.socket is not None

    def _handle_msg(self, answer: Any) -> None:
        if isinstance(answer, list) and len(answer) == 6 and all(isinstance(x, int) for x in answer):
            number, hidden, generation, width, still, dark = answer
            if number == self.HELLO:
                self._send_at_once()
            self._on_answer(number, bool(hidden), generation, width, bool(still), bool(dark))

    def _send_at_once(self) -> None:
        """Send each part of a message at once, without Nagle's algorithm.

        Bokeh sends a message in five parts; by default the second waits until the browser has acknowledged the first.
        """
        if (socket := self.socket) is not None:
            socket.set_nodelay(True)

    async def set_layout(self, views: Sequence[Any], feeds: Sequence[Feed], look: Mapping[str, Any]) -> None:
        """Show the figures of these views, and let frames hold the data of these feeds.

        ``look``: the ``cards`` of the views, each with the place and the words around the figure; the ``classes`` of
        the grid; and its ``colours``.
        """
        self._generation += 1
        listed = [
            [feed.model.id, list(feed.columns), feed.operation, feed.rollover, list(feed.names)] for feed in feeds
        ]
        cards = [{**card, "figure": view.document} for view, card in zip(views, look["cards"], strict=True)]
        await self._send({"type": "layout", "generation": self._generation, "feeds": listed, **look, "cards": cards})

    async def send_former(self, former: bool) -> None:
        """Grey the figures while another experiment replaces theirs, or undo it."""
        await self._send({"type": "former", "former": former})

    async def send_frame(self, number: int, data: dict[int, tuple[Any, ...]]) -> None:
        """Send the arrays of each feed, by its index in the layout."""
        parts: list[Any] = [[self._generation, number]]
        for index, columns in data.items():
            parts.append([index, len(columns[0])])
            parts.extend(columns)
        await self._send_bytes(np.concatenate(parts, dtype=np.float64).tobytes())

    async def send_texts(self, items: Sequence[tuple[str, str]]) -> None:
        """Set the text of labels, and the description of figures, by their model's id."""
        await self._send({"type": "text", "items": [list(item) for item in items]})

    async def send_step(
        self, items: Sequence[tuple[str, str]], windows: Sequence[tuple[float, float]], colours: Sequence[str]
    ) -> None:
        """Set texts as :meth:`send_texts` does, and highlight the classes ``part-0``, ``part-1`` …, each in its time
        and colour.
        """
        listed = [list(item) for item in items]
        await self._send({"type": "step", "items": listed, "windows": list(windows), "colours": list(colours)})

    async def send_file(self, name: str, content: bytes) -> None:
        """Let the browser save a file."""
        await self._send({"type": "file", "name": name, "content": b64encode(content).decode()})

    async def send_copy(self) -> None:
        """Put the page's address on the browser's clipboard."""
        await self._send({"type": "copy"})

    async def send_address(self, query: str, entry: bool) -> None:
        """Show another query in the address: as a new entry of the browser's history, or in place of the last."""
        await self._send({"type": "address", "query": query, "entry": entry})
