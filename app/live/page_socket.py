"""The open connection of each page, which the server's handler enters here, and the frames of its messages."""

import struct
from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakMethod

from bokeh.document import Document
from bokeh.server.session import ServerSession

TEXT, BINARY = 0x81, 0x82
"""The first byte of an unfragmented frame (RFC 6455, 5.2)."""


class PageSocket(Protocol):
    """The server's end of a page's connection."""

    async def send_framed(self, message: bytes) -> None:
        """Send a message of :func:`framed` parts in one write."""

    def close(self, code: int, reason: str) -> None:
        """End the connection."""

    def set_nodelay(self, value: bool) -> None:
        """Whether each part is sent at once."""


SOCKETS: "WeakKeyDictionary[ServerSession, PageSocket]" = WeakKeyDictionary()
_LISTENERS: "WeakKeyDictionary[Document, WeakMethod[Callable[[Any], None]]]" = WeakKeyDictionary()


def socket_of(document: Document | None) -> PageSocket | None:
    """The open connection of a document's page; None if there is none."""
    context = None if document is None else document.session_context
    session = None if context is None else context.session
    return None if session is None else SOCKETS.get(session)


def listen(document: Document | None, take: Callable[[Any], None]) -> None:
    """Pass the page's answers to the bus of a document on to this method."""
    if document is not None:
        _LISTENERS[document] = WeakMethod(take)


def listener_of(document: Document) -> Callable[[Any], None] | None:
    """The method that takes the answers of a document's page; None if there is none."""
    return _LISTENERS[document]() if document in _LISTENERS else None


def framed(part: str | bytes) -> bytes:
    """A part of a message as a server sends it: one unmasked frame (RFC 6455, 5.2)."""
    content = part.encode() if isinstance(part, str) else part
    first, length = TEXT if isinstance(part, str) else BINARY, len(content)
    if length < 126:
        return struct.pack("!BB", first, length) + content
    if length < 1 << 16:
        return struct.pack("!BBH", first, 126, length) + content
    return struct.pack("!BBQ", first, 127, length) + content
