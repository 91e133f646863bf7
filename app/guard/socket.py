"""The connection of a page: which messages it takes, how many, and what it says of errors."""

import asyncio
import json
import logging
import struct
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, WeakMethod, ref

import panel as pn
from bokeh.document import Document
from bokeh.protocol.exceptions import ValidationError
from bokeh.protocol.message import Message
from bokeh.server.session import ServerSession
from bokeh.util.token import check_token_signature, get_token_payload
from panel.io.server import WSHandler
from tornado.iostream import StreamClosedError

from app.guard.writes import answered, passed_on
from app.turn import on_this_thread

log = logging.getLogger(__name__)

MAX_MESSAGE = 4_000_000
"""Characters or bytes of one part of a message. The largest that a page sends is a piece of a file, of 1 MB."""
MAX_TEXT = 1_000_000
"""Characters of a part that is text: a page that opens sends some 100,000, of which nearly all are refused. A message
with a longer one is passed over; the connection ends only beyond ``MAX_MESSAGE``, of which Tornado reads no more."""
MAX_BUFFERS = 4
"""Binary parts of a message; a page sends one."""
RATE, BURST = 300.0, 600.0
"""Events a second, and at once, that a page may send; what is more waits. Frames and a dragged slider take some 150."""
CHARACTERS = 4096
"""So many of a message's text count as an event, for they are read before they are refused."""
FAILURE_COSTS = 30
"""An error that a page causes, at once or in what the library defers, counts as so many events."""
MOST_LOGGED = 10
"""Errors of one page that are logged, each place in the code once; the log says how many more there were."""

TEXT, BINARY = 0x81, 0x82
"""The first byte of a part of a message that is whole (RFC 6455, 5.2)."""
UNREADABLE, POLICY = 1002, 1008
"""Codes of RFC 6455 with which a connection is closed."""
REFUSED = "A page does not send this, or not twice."
FAILED = "The server could not do that; its log says why."
TOO_LONG = f"A text in a message has at most {MAX_TEXT:,} characters: this message was passed over."
EXPIRED = "This page is of an earlier server or too old: reload it."


class _Errors:
    """Those that one page has caused."""

    def __init__(self) -> None:
        self._socket: ReferenceType[GuardedSocket] | None = None
        self.count = 0
        self._places: set[tuple[str, str, int]] = set()
        self._silent = 0

    def charge(self, socket: "GuardedSocket") -> None:
        """Charge this connection from now on."""
        self._socket = ref(socket)

    def note(self, error: BaseException) -> None:
        """Charge the page for an error, and log it if its place is new."""
        self.count += 1
        socket = self._socket and self._socket()
        if socket is not None:
            socket.charge(FAILURE_COSTS)
        frames = traceback.extract_tb(error.__traceback__)
        place = (type(error).__name__, *((frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)))
        if place in self._places or len(self._places) == MOST_LOGGED:
            self._silent += 1
            return
        self._places.add(place)
        log.error("A page's message failed", exc_info=error)

    def close(self) -> None:
        """Log how many errors were not."""
        if self._silent:
            log.warning("A page caused %d more errors of these kinds", self._silent)
        self._silent = 0


_ERRORS: "WeakKeyDictionary[Document, _Errors]" = WeakKeyDictionary()


def _errors_of(document: Document | None) -> _Errors:
    """Those of the page with this document; without one they are nobody's."""
    return _Errors() if document is None else _ERRORS.setdefault(document, _Errors())


def install() -> None:
    """Let errors in what Panel calls of itself, at once or later, be charged to their page. They end there."""
    pn.config.exception_handler = lambda error: _errors_of(pn.state.curdoc).note(error)


class GuardedSocket(WSHandler):
    """Bokeh's handler of a page's messages, with bounds.

    It relies on these names of Bokeh's and Panel's handler: ``receiver``, ``connection``, ``send_message``,
    ``write_lock``; on the ``stream`` of Tornado's ``ws_connection``; and on the receiver's ``consume``.
    """

    _credit = BURST
    _last = 0.0
    _pulled = False
    _text = 0
    _too_long = False
    _owner = False
    _parts = 0
    _signed = ""
    _errors = _Errors()

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        """Keep the token, which the browser sends as its second protocol."""
        self._signed = subprotocols[1] if len(subprotocols) == 2 else ""
        return super().select_subprotocol(subprotocols)

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Refuse a token of another server with a code and a sentence that the page's script can read."""
        if self.selected_subprotocol == "bokeh" and self._good_token():
            super().open(*args, **kwargs)
        else:
            self.close(POLICY, EXPIRED)

    def _good_token(self) -> bool:
        # Whatever is wrong with what a client sent as its token, the token is not good.
        try:
            application = self.application
            signed = check_token_signature(
                self._signed, signed=application.sign_sessions, secret_key=application.secret_key
            )
            return signed and time.time() < get_token_payload(self._signed)["session_expiry"]
        except Exception:
            return False

    async def send_message(self, message: Message[Any]) -> None:
        """The first message says that the connection has its session."""
        if not self._owner and self.connection is not None and self.ws_connection is not None:
            self._take_session()
        await super().send_message(message)

    def _take_session(self) -> None:
        """Let this be the session's one connection. An earlier one was lost, or is somebody else's."""
        self._owner = True
        session = self.connection.session
        self._errors = _errors_of(session.document)
        self._errors.charge(self)
        earlier, _SOCKETS[session] = _SOCKETS.get(session), self
        if earlier not in (None, self):
            earlier.close(POLICY, "This page is connected anew.")

    async def on_message(self, fragment: str | bytes) -> None:
        """Take one part of a message, and the message when that was its last."""
        if self.ws_connection is None:
            return  # what a client had sent before it heard that the connection is closed
        if self.connection is None or self.receiver is None:
            self.close(POLICY, "Wait for the server's first message.")
            return
        text = len(fragment) if isinstance(fragment, str) else 0
        if text > MAX_TEXT:
            # Nothing of it is looked at; an empty text in its place lets the message come to its end.
            fragment, self._too_long = "{}", True
        try:
            if self._parts == 0:
                _check_header(fragment)
            self._parts += 1
            message = await self.receiver.consume(fragment)
            if message is not None:
                self._parts = 0
                _check_buffers(message)
        except Exception as reason:
            log.warning("A page sent what is no message: %s", type(reason).__name__)
            self.close(UNREADABLE, "That is no message of a page.")
            return
        self._text += text
        if message is not None:
            cost, self._text = 1.0 + self._text / CHARACTERS, 0
            await self._take(message, cost)

    async def send_framed(self, message: bytes) -> None:
        """Send a message whose parts are :func:`framed`. Bokeh's way is a write and a task for each of them."""
        with await self.write_lock.acquire():
            if self.ws_connection is not None:
                with suppress(StreamClosedError):
                    await self.ws_connection.stream.write(message)

    def on_close(self) -> None:
        """Say goodbye once, also where both ends close."""
        session = self._session()
        if session is None:
            self.connection = None
        elif _SOCKETS.get(session) is self:
            del _SOCKETS[session]
        self._errors.close()
        super().on_close()

    def _session(self) -> ServerSession | None:
        """The session of the connection; None where there is none, or where it has ended."""
        try:
            return None if self.connection is None else self.connection.session
        except AssertionError:  # Bokeh's own answer for a connection whose session has ended
            return None

    async def _take(self, message: Message[Any], cost: float) -> None:
        session = self._session()
        if session is None:
            return  # what was on its way when the page's session ended
        if not self._owner:
            self._take_session()
        reply, before = None, self._errors.count
        too_long, self._too_long = self._too_long, False
        try:
            if too_long:
                reply = self.connection.error(message, TOO_LONG)
            elif message.msgtype == "PATCH-DOC":
                reply, events = await self._patch(message)
                cost += events
            elif message.msgtype == "PULL-DOC-REQ" and not self._pulled:
                self._pulled = True
                reply = await ServerSession.pull(message, self.connection)
            else:
                reply = self.connection.error(message, REFUSED)
        except Exception as error:
            # Bokeh's own handler would send the error's text, and log all of the message.
            self._errors.note(error)
        # Not where the error is known, for Bokeh would add its traceback.
        if self._errors.count > before and self.connection is not None:
            reply = self.connection.error(message, FAILED)
        if reply is not None:
            await self.send_message(reply)
        await self._wait(cost)

    async def _patch(self, message: Message[Any]) -> tuple[Message[Any] | None, int]:
        """Apply what a page may write; the reply, and how many events were applied.

        Each page sends sizes and colours of its figures, which are not wanted; so that is answered as if it were done.
        """
        session = self.connection.session
        if session.destroyed:
            return None, 0
        events = passed_on(session.document, message.content, {buffer.id for buffer in message.buffers})
        if not events:
            return self.connection.ok(message), 0
        # A page says of every second frame that it has drawn it. That changes no model and waits for nobody's change.
        if (answer := answered(session.document, events)) is not None:
            take = _LISTENERS[session.document]() if session.document in _LISTENERS else None
            if take is not None:
                take(answer)
            return None, 1
        message.content = {"events": events}
        message.apply_to_document = on_this_thread(message.apply_to_document)
        return await ServerSession.patch(message, self.connection), len(events)

    def charge(self, cost: float) -> None:
        """Let what the page sends next wait for this."""
        self._credit -= cost

    async def _wait(self, cost: float) -> None:
        """Let other pages have their turn, and this one wait if it sends too much. Meanwhile nothing is read."""
        now = time.monotonic()
        self._credit = min(BURST, self._credit + RATE * (now - self._last)) - cost
        self._last = now
        await asyncio.sleep(max(0.0, -self._credit / RATE))


def framed(part: str | bytes) -> bytes:
    """A part of a message as a server sends it: one frame of RFC 6455 (5.2), not masked."""
    content = part.encode() if isinstance(part, str) else part
    first, length = TEXT if isinstance(part, str) else BINARY, len(content)
    if length < 126:
        return struct.pack("!BB", first, length) + content
    if length < 1 << 16:
        return struct.pack("!BBH", first, 126, length) + content
    return struct.pack("!BBQ", first, 127, length) + content


def _check_header(fragment: str | bytes) -> None:
    """Refuse a message whose first part promises what no page sends, before any other part is read."""
    header = json.loads(fragment)
    buffers = header.get("num_buffers", 0)
    if type(buffers) is not int or not 0 <= buffers <= MAX_BUFFERS:
        raise ValidationError("num_buffers")
    if not isinstance(header.get("msgid"), str) or len(header["msgid"]) > 100:
        raise ValidationError("msgid")


def _check_buffers(message: Message[Any]) -> None:
    if not all(isinstance(buffer.id, str) for buffer in message.buffers):
        raise ValidationError("buffer")


_SOCKETS: "WeakKeyDictionary[ServerSession, GuardedSocket]" = WeakKeyDictionary()


_LISTENERS: "WeakKeyDictionary[Document, WeakMethod[Callable[[Any], None]]]" = WeakKeyDictionary()


def listen(document: Document | None, take: Callable[[Any], None]) -> None:
    """Give the answers of a document's bus to this method."""
    if document is not None:
        _LISTENERS[document] = WeakMethod(take)


def socket_of(document: Document | None) -> GuardedSocket | None:
    """The open connection of a document's page; None before it has one and after it has gone."""
    context = None if document is None else document.session_context
    session = None if context is None else context.session
    return None if session is None else _SOCKETS.get(session)
