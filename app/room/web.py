"""The addresses of a room for its students: its page, its socket, and the live pages and scripts of all rooms."""

import gzip
import json
import logging
import re
from functools import cache
from hashlib import sha256

from tornado.ioloop import IOLoop
from tornado.iostream import StreamClosedError
from tornado.web import RequestHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from sgmcmc_lab.app.link import CODE
from sgmcmc_lab.app.room.bar import LOOK
from sgmcmc_lab.app.room.pages import pages
from sgmcmc_lab.app.room.student import Student
from sgmcmc_lab.app.views.bundle import ASSETS, bundle

log = logging.getLogger("sgmcmc-lab")

MAX_MESSAGE = 20_000
"""Bytes of a student's message; the longest is a link."""
FOR_GOOD = "public, max-age=31536000, immutable"
"""How long a browser keeps a file whose content never changes."""
SCRIPTS = ("bokeh.js", "bokeh-widgets.js", "live.js", "room.js")
_POLICY = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; frame-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'"
"""The policy of a room's page; its frame has its own."""


class _Compressed(RequestHandler):
    """A text that is compressed once, with an ETag of its content."""

    def _finish(self, kind: str, content: bytes, tag: str, fresh: str = "no-cache") -> None:
        """Send a compressed text, or status 304 if the browser has it; ``fresh`` is how long it may be kept."""
        self.set_header("Content-Type", f"{kind}; charset=utf-8")
        self.set_header("Cache-Control", fresh)
        self.set_header("Vary", "Accept-Encoding")
        self._tag = tag
        self.set_etag_header()
        if self.check_etag_header():
            self.set_status(304)
            self.finish()
            return
        if "gzip" in self.request.headers.get("Accept-Encoding", ""):
            self.set_header("Content-Encoding", "gzip")
            self.finish(content)
        else:
            self.finish(gzip.decompress(content))

    def compute_etag(self) -> str | None:
        """The ETag of the content."""
        return f'"{self._tag}"'


@cache
def _text(name: str) -> tuple[bytes, str]:
    """A script or the page of rooms, compressed, and its ETag."""
    # These imports load the code of live pages, which no other page of the lab needs.
    from sgmcmc_lab.app.live_page.document import engine_file, engine_script, live_script, script_of

    if name == "room.html":
        text = (ASSETS / "live" / "room.html").read_text(encoding="utf-8").replace("/* LOOK */", LOOK)
    elif name == "room.js":
        text = bundle("live/room.js")
    elif name == engine_file():
        text = engine_script()
    else:
        text = live_script() if name == "live.js" else script_of(name.removesuffix(".js"))
    return gzip.compress(text.encode(), 9, mtime=0), sha256(text.encode()).hexdigest()[:32]


class RoomPage(_Compressed):
    """The page of a room, the same for all rooms."""

    def get(self, code: str) -> None:
        """Send the page; its socket reports whether the room exists."""
        ancestors = self.application.guard.ancestors or "'none'"
        self.set_header("Content-Security-Policy", f"{_POLICY}; frame-ancestors {ancestors}")
        self._finish("text/html", *_text("room.html"))


class RoomScript(_Compressed):
    """The scripts of that page, and of the live pages beside it."""

    def get(self, name: str) -> None:
        """Send one."""
        self._finish("text/javascript", *_text(name))


class RoomEngine(_Compressed):
    """The engine of live pages, whose name has its digest: a browser asks for it once."""

    def get(self, name: str) -> None:
        """Send it."""
        from sgmcmc_lab.app.live_page.document import engine_file

        if name != engine_file():
            self.set_status(404)
            self.finish("The server has another version of the engine now: reload the page of the room.")
            return
        self._finish("text/javascript", *_text(name), FOR_GOOD)


class RoomLive(_Compressed):
    """A live page of what the teacher shows."""

    def get(self, key: str) -> None:
        """Send the page. Behind a proxy, too, a reader's requests reach the process of her socket."""
        page = pages().kept(key)
        if page is None:
            self.set_status(404)
            self.finish("The server has dropped this live page: reload the page of the room.")
            return
        self.set_header(
            "Content-Security-Policy", f"{page.policy}; frame-ancestors 'self' {self.application.guard.ancestors}"
        )
        self._finish("text/html", page.content, key)


class RoomSocket(WebSocketHandler):
    """The connection of a student's page. A slow page gets only the last message of each kind."""

    student: Student | None = None

    @property
    def max_message_size(self) -> int:
        """Bytes of a message; a longer one ends the connection."""
        return MAX_MESSAGE

    def check_origin(self, origin: str) -> bool:
        """Whether the page comes from this server."""
        return not self.application.guard.refusal_of_connection(origin)

    def open(self, code: str) -> None:
        """Begin: the page has loaded."""
        self._waiting: dict[str, str] = {}
        self._sending = False
        self.set_nodelay(True)
        if not CODE.fullmatch(code):
            self.close(1008, "There is no such room.")
            return
        self.student = Student(code, self._send)

    def on_message(self, message: str | bytes) -> None:
        """Hand the message to the :class:`Student`."""
        try:
            found = json.loads(message)
        except (ValueError, RecursionError):
            return
        if self.student is not None:
            self.student.on_message(found)

    def on_close(self) -> None:
        """The page is gone."""
        if self.student is not None:
            self.student.end()

    def _send(self, kind: str, text: str) -> None:
        self._waiting[kind] = text
        if not self._sending:
            self._sending = True
            IOLoop.current().add_callback(self._flush)

    async def _flush(self) -> None:
        try:
            while self._waiting:
                kind = next(iter(self._waiting))
                await self.write_message(self._waiting.pop(kind))
        except (WebSocketClosedError, StreamClosedError):
            pass
        finally:
            self._sending = False


HANDLERS = [
    (f"/room/files/({'|'.join(map(re.escape, SCRIPTS))})", RoomScript),
    (r"/room/files/(engine-[0-9a-f]{16}\.js)", RoomEngine),
    (r"/room/files/([0-9a-f]{32})\.html", RoomLive),
    (r"/room/([^/]{1,40})", RoomPage),
    (r"/room/([^/]{1,40})/socket", RoomSocket),
]
