"""How many connections the server holds, how long it waits for a request, and its answer to what is none."""

import errno
import logging
import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Any

from tornado.iostream import IOStream

from sgmcmc_lab.app.room.network import CALLER, whose
from sgmcmc_lab.app.server.life import Serving

if sys.platform != "win32":
    import resource

log = logging.getLogger("sgmcmc-lab")

MAX_HEADER = 65_536
"""Bytes of a request's line and headers."""
READ_HEADER = 1_000_000
"""The bytes that are read, so that a sender of more than ``MAX_HEADER`` gets a message."""
MAX_BODY = 10_000
"""Bytes of a request's body; a page sends none. Tornado would keep 100 MB of each, also of one that is then refused."""
TIMEOUT = 30.0
"""Seconds within which a request's headers are there, or its body; then the connection is closed. Tornado waits an
hour for headers, and for a body without end."""
WAITING_OF_ADDRESS = 500
"""Connections of one address that wait for a request: of one more the oldest gives way."""
MOST_OF_ADDRESS = 2_000
"""Connections of one address. A class of 1,500 behind one address has one for each page, and a few while it opens."""
MOST_PAGES = 1_800
"""WebSockets of one address: fewer, so that whoever opens one more reads why there is none."""
TOO_MANY = f"{MOST_PAGES:,} pages of your network are open, as many as may be: close some, and reload this one."
MOST_FILES = 10_000
"""Open files that the server asks the system for."""
_EMPTY = b"HTTP/1.1 400 Bad Request\r\n\r\n"
"""Tornado's answer to a request that it cannot read."""
AGAIN_SECONDS = 60.0
"""How often it is logged that the system has no more files."""


def _bad() -> bytes:
    text = b"This is no request that the lab can read: its first line, a header, its host or its length is wrong.\n"
    headers = (
        b"Content-Type: text/plain; charset=utf-8",
        b"Content-Security-Policy: default-src 'none'; frame-ancestors 'none'",
        b"X-Content-Type-Options: nosniff",
        b"Referrer-Policy: no-referrer",
        b"Connection: close",
        b"Content-Length: %d" % len(text),
    )
    return b"\r\n".join((_EMPTY.rstrip(), *headers, b"", text))


_BAD = _bad()


def raise_limit() -> int:
    """Ask the system for more open files than it gives a process by itself; how many connections may be open then."""
    if sys.platform == "win32":
        return MOST_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    # A quarter is for files, the store, and what libraries open.
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft * 3 // 4


class Connections:
    """The open connections of this process, and those of each owner that wait for a request, the oldest first."""

    def __init__(
        self,
        most: int = MOST_FILES,
        clock: Callable[[], float] = time.monotonic,
        most_of_address: int = MOST_OF_ADDRESS,
    ):
        self.most, self._clock, self._most_of_address = most, clock, most_of_address
        self._owners: dict[Any, str] = {}
        self._counts: Counter[str] = Counter()
        self._waiting: defaultdict[str, dict[Any, float]] = defaultdict(dict)
        """Since when each waits."""
        self._said = -math.inf

    def begin(self, stream: Any, owner: str) -> bool:
        """Take one more; False where there are too many and none gives way."""
        if len(self._owners) >= self.most and not self._close_oldest(self._waiting):
            return False
        # A proxy on this computer stands for everybody.
        of_all = owner == "" or ip_address(owner).is_loopback
        if not of_all and self._counts[owner] >= self._most_of_address and not self._close_oldest([owner]):
            return False
        self._owners[stream] = owner
        self._counts[owner] += 1
        self.wait(stream)
        return True

    def wait(self, stream: Any) -> None:
        """From now on it waits for a request."""
        owner = self._owners.get(stream)
        if owner is not None:
            self.heard(stream)
            self._waiting[owner][stream] = self._clock()
            if len(self._waiting[owner]) > WAITING_OF_ADDRESS:
                self._close_oldest([owner])

    def heard(self, stream: Any) -> None:
        """Its request is there."""
        owner = self._owners.get(stream)
        if owner is not None and self._waiting[owner].pop(stream, None) is not None and not self._waiting[owner]:
            del self._waiting[owner]

    def end(self, stream: Any) -> None:
        """It is closed."""
        self.heard(stream)
        owner = self._owners.pop(stream, None)
        if owner is not None:
            self._counts[owner] -= 1
            if not self._counts[owner]:
                del self._counts[owner]

    def no_more_files(self, error: BaseException | None) -> bool:
        """Whether an error says that the system has no more files; the oldest connection that waits gives way then."""
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            return False
        self._close_oldest(self._waiting)
        if self._clock() - self._said >= AGAIN_SECONDS:
            self._said = self._clock()
            log.error("The system has no more open files for the server, which has %d connections", len(self._owners))
        return True

    def _close_oldest(self, owners: Iterable[str]) -> bool:
        """Close the one that waits longest, of these owners; whether there was one."""
        firsts = (next(iter(self._waiting[owner].items())) for owner in owners if self._waiting.get(owner))
        oldest = min(firsts, key=lambda one: one[1], default=None)
        if oldest is not None:
            oldest[0].close()
        return oldest is not None


OPEN = Connections()
"""The open connections of this process."""
PAGES_OPEN = Connections(most_of_address=MOST_PAGES)
"""Those of them that are WebSockets of pages: behind a proxy, too, each has the address of its reader."""


class Stream(IOStream):
    """A connection of :data:`OPEN`, on which what is no request is answered in a sentence."""

    def write(self, data: bytes | memoryview) -> Any:
        """Tornado's, which answers nothing to what it cannot read."""
        return super().write(_BAD if data == _EMPTY else data)

    def close_fd(self) -> None:
        """Called once, when it is closed by either end."""
        super().close_fd()
        OPEN.end(self)


class Bounded(Serving):
    """Tornado's server, with bounds."""

    def initialize(self, request_callback: Any, **options: Any) -> None:
        """Tornado's, with bounds for what its options leave open."""
        bounds = {
            "max_header_size": READ_HEADER,
            "max_body_size": MAX_BODY,
            "idle_connection_timeout": TIMEOUT,
            "body_timeout": TIMEOUT,
        }
        super().initialize(request_callback, **{**bounds, **options})
        OPEN.most = raise_limit()

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        """Serve a connection, or close it at once."""
        # A connection with TLS, which a proxy should handle, has no bound.
        if type(stream) is IOStream:
            stream = Stream(stream.socket, max_buffer_size=self.max_buffer_size, read_chunk_size=self.read_chunk_size)
            if not OPEN.begin(stream, whose(address[0]) if isinstance(address, tuple) else ""):
                stream.close()
                return
        super().handle_stream(stream, address)

    def start_request(self, server_conn: Any, request_conn: Any) -> Any:
        """From now on the connection waits for its next request."""
        OPEN.wait(server_conn.stream)
        CALLER.set(whose(request_conn.context.remote_ip))
        return super().start_request(server_conn, request_conn)
