"""The connection of a page: the messages that it accepts, their rate, and its replies to errors."""

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, WeakValueDictionary, ref

import panel as pn
from bokeh.document import Document
from bokeh.protocol.exceptions import ProtocolError, ValidationError
from bokeh.protocol.message import Message
from bokeh.server.connection import ServerConnection
from bokeh.server.session import ServerSession
from bokeh.util.token import check_token_signature, get_session_id, get_token_payload
from panel.io.server import WSHandler
from tornado.iostream import StreamClosedError

from sgmcmc_lab.app.live.fair_executor import FullError
from sgmcmc_lab.app.live.page_lock import on_this_thread
from sgmcmc_lab.app.live.page_socket import SOCKETS, listener_of
from sgmcmc_lab.app.page.parts import whole
from sgmcmc_lab.app.room.network import whose
from sgmcmc_lab.app.server import connections, page_queue
from sgmcmc_lab.app.server.connections import PAGES_OPEN
from sgmcmc_lab.app.server.message_filter import answered, passed_on
from sgmcmc_lab.app.server.page_queue import PAGES

log = logging.getLogger(__name__)
caused = logging.getLogger("sgmcmc-lab.caused")
"""For lines of which a client may cause as many as it likes."""

MAX_MESSAGE = 4_000_000
"""Characters or bytes of one part of a message. The largest that a page sends is a piece of a file, of 1 MB."""
MAX_TEXT = 1_000_000
"""Characters of a text part: a page that opens sends some 100,000, of which nearly all are refused. A message with a
longer one is passed over; the connection ends only beyond ``MAX_MESSAGE``, where Tornado stops reading."""
MAX_BUFFERS = 4
"""Binary parts of a message; a page sends one."""
RATE, BURST = 300.0, 600.0
"""Events that a page may send per second, and at once; further ones wait. Frames and a dragged slider take some 150."""
LOOP_SHARE, LOOP_BURST = 0.5, 2.0
"""Seconds that changes by all pages of an address may take of the loop, per second and at once; further ones wait."""
MAKING_SECONDS = 60.0
"""A page that is made anew has its turn for so long at most."""
CHARACTERS = 4096
"""This many characters of text count as one event, because they are read before they are refused."""
FAILURE_COSTS = 30
"""An error that a page causes, at once or in deferred work of a library, counts as this many events."""
MOST_LOGGED = 10
"""Errors logged for one page, one for each place in the code; the log counts the others."""

UNREADABLE, POLICY = 1002, 1008
"""Status codes for closing a connection (RFC 6455, 7.4)."""
REFUSED = "A page never sends this, or sends it only once."
FAILED = "The server could not do that; its log says why."
TOO_LONG = f"A text in a message has at most {MAX_TEXT:,} characters: this message was ignored."
EXPIRED = "This page is from an earlier server, or too old: reload it."


class Credit:
    """The cost that somebody may cause: so much at once, and so much more each second."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic):
        self._rate, self._burst, self._clock = rate, burst, clock
        self.left, self._last = burst, clock()

    def spend(self, cost: float) -> None:
        """Take it from what is left, which may become a debt."""
        now = self._clock()
        self.left = min(self._burst, self.left + self._rate * (now - self._last)) - cost
        self._last = now

    @property
    def owed(self) -> float:
        """Seconds until there is no debt."""
        return max(0.0, -self.left / self._rate)


_CREDITS: "WeakValueDictionary[str, Credit]" = WeakValueDictionary()
"""That of each address, as long as a page of it is open."""


class _Errors:
    """The errors that one page has caused."""

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
        socket = None if self._socket is None else self._socket()
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
        """Log the number of errors that were not logged."""
        if self._silent:
            log.warning("A page caused %d more errors of these kinds", self._silent)
        self._silent = 0


_ERRORS: "WeakKeyDictionary[Document, _Errors]" = WeakKeyDictionary()


def _errors_of(document: Document | None) -> _Errors:
    """The errors of the page with this document; without a document they are charged to nobody."""
    return _Errors() if document is None else _ERRORS.setdefault(document, _Errors())


def install() -> None:
    """Charge errors in Panel's own callbacks, immediate or deferred, to their page. They do not propagate."""
    pn.config.exception_handler = lambda error: _errors_of(pn.state.curdoc).note(error)


class GuardedSocket(WSHandler):
    """Bokeh's handler of a page's messages, with bounds.

    It relies on these names of Bokeh's and Panel's handler: ``receiver``, ``connection``, ``send_message``,
    ``write_lock``; on the ``stream`` of Tornado's ``ws_connection``; and on the receiver's ``consume``.
    """

    connection: ServerConnection | None
    _pulled = False
    _text = 0
    _too_long = False
    _owner = False
    _parts = 0
    _took = 0.0
    _signed = ""
    _errors = _Errors()

    @cached_property
    def _credit(self) -> Credit:
        return Credit(RATE, BURST)

    @cached_property
    def _address(self) -> str:
        return whose(self.request.remote_ip or "")

    @cached_property
    def _credit_of_address(self) -> Credit:
        return _CREDITS.setdefault(self._address, Credit(LOOP_SHARE, LOOP_BURST))

    @cached_property
    def _begun(self) -> asyncio.Event:
        """Set when the connection has its session, or is closed."""
        return asyncio.Event()

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        """Keep the token, which the browser sends as its second protocol."""
        self._signed = subprotocols[1] if len(subprotocols) == 2 else ""
        return super().select_subprotocol(subprotocols)

    async def open(self, *args: Any, **kwargs: Any) -> None:
        """Refuse a token of another server with a code and a sentence that the page's script can read.

        A page whose session has ended is made anew, in its turn.
        """
        if self.selected_subprotocol != "bokeh" or not self._good_token():
            self.close(POLICY, EXPIRED)
            return
        if not PAGES_OPEN.begin(self, self._address):
            self.close(POLICY, connections.TOO_MANY)
            return
        PAGES_OPEN.heard(self)
        session = self._session_of_token()
        if session is not None:
            await whole(session.document)
            # Its reader may have left meanwhile.
            if self.ws_connection is not None:
                super().open(*args, **kwargs)
            return
        try:
            async with PAGES.turn(self._address):
                if self.ws_connection is not None:
                    super().open(*args, **kwargs)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._begun.wait(), MAKING_SECONDS)
        except FullError:
            self.close(POLICY, page_queue.TOO_MANY)

    def _session_of_token(self) -> ServerSession | None:
        try:
            return self.application_context.get_session(get_session_id(self._signed))
        except ProtocolError:
            return None

    def _good_token(self) -> bool:
        # Any error means that the client's token is not valid.
        try:
            application = self.application
            signed = check_token_signature(
                self._signed, signed=application.sign_sessions, secret_key=application.secret_key
            )
            return signed and time.time() < get_token_payload(self._signed)["session_expiry"]
        except Exception:
            return False

    async def send_message(self, message: Message[Any]) -> None:
        """Send a message; the first one shows that the connection has its session."""
        self._begun.set()
        if not self._owner and self.connection is not None and self.ws_connection is not None:
            self._take_session()
        await super().send_message(message)

    def _take_session(self) -> None:
        """Make this the session's only connection. An earlier one was lost, or belongs to somebody else."""
        assert self.connection is not None
        self._owner = True
        session = self.connection.session
        self._errors = _errors_of(session.document)
        self._errors.charge(self)
        earlier, SOCKETS[session] = SOCKETS.get(session), self
        if earlier not in (None, self):
            earlier.close(POLICY, "This page has connected again.")

    async def on_message(self, fragment: str | bytes) -> None:
        """Take one part of a message, and the whole message after its last part."""
        if self.ws_connection is None:
            return  # sent before the client knew that the connection was closed
        if self.connection is None or self.receiver is None:
            self.close(POLICY, "Wait for the server's first message.")
            return
        text = len(fragment) if isinstance(fragment, str) else 0
        if text > MAX_TEXT:
            # The text is not read; an empty one in its place completes the message.
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
            caused.warning("A page sent an invalid message: %s", type(reason).__name__)
            self.close(UNREADABLE, "That is not a valid message.")
            return
        self._text += text
        if message is not None:
            cost, self._text = 1.0 + self._text / CHARACTERS, 0
            await self._take(message, cost)

    async def send_framed(self, message: bytes) -> None:
        """Send a message of framed parts in one write; Bokeh would use a write and a task for each part."""
        with await self.write_lock.acquire():
            if self.ws_connection is not None:
                with suppress(StreamClosedError):
                    await self.ws_connection.stream.write(message)

    def on_close(self) -> None:
        """End the connection once, even if both ends close it."""
        self._begun.set()
        PAGES_OPEN.end(self)
        session = self._session()
        if session is None:
            self.connection = None
        elif SOCKETS.get(session) is self:
            del SOCKETS[session]
        self._errors.close()
        super().on_close()

    def _session(self) -> ServerSession | None:
        """The session of the connection; None where there is none, or where it has ended."""
        try:
            return None if self.connection is None else self.connection.session
        except AssertionError:  # Bokeh raises this for a connection whose session has ended
            return None

    async def _take(self, message: Message[Any], cost: float) -> None:
        session, connection = self._session(), self.connection
        if session is None or connection is None:
            return  # sent before the page's session ended
        if not self._owner:
            self._take_session()
        reply, before, self._took = None, self._errors.count, 0.0
        too_long, self._too_long = self._too_long, False
        try:
            if too_long:
                reply = connection.error(message, TOO_LONG)
            elif message.msgtype == "PATCH-DOC":
                reply, events = await self._patch(message)
                cost += events
            elif message.msgtype == "PULL-DOC-REQ" and not self._pulled:
                self._pulled = True
                reply = await ServerSession.pull(message, connection)
            else:
                reply = connection.error(message, REFUSED)
        except Exception as error:
            # Bokeh's own handler would send the error's text, and log the whole message.
            self._errors.note(error)
        # Not in the ``except`` block, where Bokeh would add the traceback.
        if self._errors.count > before and self.connection is not None:
            reply = self.connection.error(message, FAILED)
        if reply is not None:
            await self.send_message(reply)
        await self._wait(cost)

    async def _patch(self, message: Message[Any]) -> tuple[Message[Any] | None, int]:
        """Apply the permitted events; returns the reply and the number of events applied.

        Each page sends sizes and colours of its figures. They are not applied, but answered as if they were.
        """
        connection = self.connection
        assert connection is not None
        session = connection.session
        if session.destroyed:
            return None, 0
        events = passed_on(session.document, message.content, {buffer.id for buffer in message.buffers})
        if not events:
            return connection.ok(message), 0
        # A page acknowledges every second frame. This changes no model, and need not wait for other changes.
        if (answer := answered(session.document, events)) is not None:
            if (take := listener_of(session.document)) is not None:
                take(answer)
            return None, 1
        message.content = {"events": events}
        message.apply_to_document = on_this_thread(self._timed(message.apply_to_document))
        return await ServerSession.patch(message, connection), len(events)

    def _timed(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, which notes how long the loop was busy with it."""

        def timed(*args: Any) -> Any:
            began = time.perf_counter()
            try:
                return work(*args)
            finally:
                self._took = time.perf_counter() - began

        return timed

    def charge(self, cost: float) -> None:
        """Delay the page's next message by this cost."""
        self._credit.left -= cost

    async def _wait(self, cost: float) -> None:
        """Give other pages their turn, and delay this one if it sends too much. Meanwhile nothing is read."""
        self._credit.spend(cost)
        owed = self._credit.owed
        if self._took:
            self._credit_of_address.spend(self._took)
            owed = max(owed, self._credit_of_address.owed)
        await asyncio.sleep(owed)


def _check_header(fragment: str | bytes) -> None:
    """Refuse a message with an invalid header, before any other part is read."""
    header = json.loads(fragment)
    buffers = header.get("num_buffers", 0)
    if type(buffers) is not int or not 0 <= buffers <= MAX_BUFFERS:
        raise ValidationError("num_buffers")
    if not isinstance(header.get("msgid"), str) or len(header["msgid"]) > 100:
        raise ValidationError("msgid")


def _check_buffers(message: Message[Any]) -> None:
    if not all(isinstance(buffer.id, str) for buffer in message.buffers):
        raise ValidationError("buffer")
