"""Whom the server answers, with which headers: the HTTP side of ``panel serve app``."""

import logging
import os
import re
from html import escape
from secrets import token_urlsafe
from typing import Any

import bokeh.server.server
import bokeh.server.tornado
import panel.io.server
from bokeh.server.tornado import BokehTornado
from bokeh.server.urls import per_app_patterns, toplevel_patterns
from bokeh.server.util import check_allowlist
from bokeh.settings import settings
from bokeh.util.token import generate_secret_key
from panel.io.server import DocHandler, RootHandler
from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.routing import Matcher, Rule
from tornado.web import OutputTransform, RequestHandler

from sgmcmc_lab.app.lesson.course import lesson_apart
from sgmcmc_lab.app.live.fair_executor import FullError
from sgmcmc_lab.app.page.parts import in_parts
from sgmcmc_lab.app.room import web
from sgmcmc_lab.app.room.network import CALLER, addresses, answers_to, whose
from sgmcmc_lab.app.room.rooms import AWAY, rooms
from sgmcmc_lab.app.server import log_limit, socket
from sgmcmc_lab.app.server.connections import MAX_HEADER, OPEN, Bounded
from sgmcmc_lab.app.server.page_queue import PAGES, TOO_MANY
from sgmcmc_lab.app.server.socket import MAX_MESSAGE, GuardedSocket
from sgmcmc_lab.app.views.bundle import ASSETS

log = logging.getLogger("sgmcmc-lab")

EMBED = "SGMCMC_EMBED"
"""The environment variable that names the sites which may show the lab in a frame, with blanks between them."""
ORIGINS = "BOKEH_ALLOW_WS_ORIGIN"
"""Bokeh's variable for what ``--allow-websocket-origin`` says, in place of which it stands."""
_SCRIPT = re.compile(r"<script(?=[\s>])")
_REFUSED = (ASSETS / "refused.js").read_text(encoding="utf-8")
"""The script of a page that cannot be connected: it is there before any part of the page is."""
_SENTENCE = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark"><title>SG-MCMC Lab</title>'
    '<p style="font: 18px/1.5 sans-serif; max-width: 36em; margin: 2em auto; padding: 0 1em; overflow-wrap: anywhere">{}</p>\n'
)
"""A page that says why there is none, also on a phone."""
_TORNADOS = b"<html><title>%d: "
"""How Tornado's own page of an error begins."""
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class EmbedError(ValueError):
    """A site that may not be named so."""


def embedding_sites(text: str) -> tuple[str, ...]:
    """The sites that may show the lab in a frame. Raises :class:`EmbedError`."""
    sites = tuple(text.split())
    for site in sites:
        if not re.fullmatch(r"https?://(\*\.)?[A-Za-z0-9.-]+(:\d{1,5})?", site):
            raise EmbedError(
                f"{EMBED} has {site[:100]!r}: allowed are origins such as https://moodle.example.org, with blanks between them."
            )
    return sites


class Guard:
    """The rules against which the server checks each request."""

    def __init__(self, origins: set[str], sites: tuple[str, ...]):
        self._hosts = origins
        self._sites = sites

    def refusal(self, request: HTTPServerRequest) -> str:
        """Why the request is not answered, or nothing."""
        size = len(request.uri or "") + sum(len(name) + len(value) for name, value in request.headers.get_all())
        if size > MAX_HEADER:
            return f"The address and the headers of this request have {size:,} characters; allowed are {MAX_HEADER:,}."
        host = request.host.lower()
        if not self.knows(host):
            return self._not_allowed(host)
        # A page of another site must not make this computer work: it may link to the lab, and show it if it is named.
        if request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site") and not self._from_outside(request):
            return f"This request came from another site, which can show the lab in a frame if the server is started with {EMBED}."
        return ""

    def refusal_of_connection(self, origin: str) -> str:
        """Why Bokeh takes no connection of a page of this origin, or nothing. A proxy may have changed either name."""
        host = origin.partition("://")[2].lower()
        return "" if check_allowlist(host, settings.allowed_ws_origin() or self._hosts) else self._not_allowed(host)

    def _not_allowed(self, host: str) -> str:
        name = host if re.fullmatch(r"[a-z0-9.:_\[\]-]{1,255}", host) else "HOST:PORT"
        refused = "This name of the lab is not allowed. The server's operator can allow it by starting the server with"
        if settings.allowed_ws_origin():
            # It replaces the option. Its other names are not disclosed.
            return f"{refused} one name more in {ORIGINS}, after a comma: {name}"
        # By its own addresses the class's command serves it.
        own, _, port = name.rpartition(":")
        start = f"sgmcmc-lab --class --port {port}, or: " if own in addresses(patience=0) else ""
        return f"{refused}: {start}panel serve app --allow-websocket-origin {name}"

    def knows(self, host: str) -> bool:
        """Whether the server was named so: as this computer, or by who started it."""
        # Bokeh's own variable for the same, which replaces the option there.
        return check_allowlist(host, [*self._hosts, *(settings.allowed_ws_origin() or ())])

    def _from_outside(self, request: HTTPServerRequest) -> bool:
        kind = request.headers.get("Sec-Fetch-Dest")
        if request.headers.get("Upgrade"):
            return True  # its origin is checked apart
        return kind == "document" or (kind in ("iframe", "frame", "embed", "object") and bool(self._sites))

    @property
    def ancestors(self) -> str:
        """The sites that may show the lab in a frame, with blanks between them."""
        return " ".join(self._sites)

    def policy(self, nonce: str = "") -> str:
        """The content security policy of a response, whose own scripts carry this number.

        Bokeh's and Panel's scripts make functions of texts, load modules from blobs, and write styles into elements.
        """
        parts = {
            "default-src": "'none'",
            "script-src": "'self' 'unsafe-eval' blob:" + (f" 'nonce-{nonce}'" if nonce else ""),
            "style-src": "'self' 'unsafe-inline'",
            "img-src": "'self' data: blob:",
            "font-src": "'self' data:",
            "connect-src": "'self' blob:",
            "base-uri": "'none'",
            "form-action": "'none'",
            "frame-ancestors": self.ancestors or "'none'",
        }
        return "; ".join(f"{name} {value}" for name, value in parts.items())


async def _read_lesson(request: HTTPServerRequest) -> None:
    """Before a page of a lesson is made: in a server's first seconds it has not been read, and the page waits for that.

    It does not wait for the other lessons, for some of which functions are compiled.
    """
    for name in request.arguments.get("lesson", [])[-1:]:
        await lesson_apart(name.decode(errors="replace"))


class GuardedPage(DocHandler):
    """A page, of a session of its own: a link cannot name the session of somebody else."""

    _left = False

    async def get(self, *args: Any, **kwargs: Any) -> None:
        named = "Bokeh-Session-Id" in self.request.headers or self.request.arguments.keys() & {
            "bokeh-session-id",
            "bokeh-token",
        }
        if named and self.application.generate_session_ids:
            _refuse(self, "A link to the lab cannot name a session: open it without bokeh-session-id and bokeh-token.")
            return
        # Panel reads ``theme`` as UTF-8, and would answer 500 to other bytes.
        for values in self.request.arguments.values():
            values[:] = [value.decode(errors="replace").encode() for value in values]
        await _read_lesson(self.request)
        try:
            async with PAGES.turn(whose(self.request.remote_ip or "")) as between:
                # A reader who has left meanwhile needs no page.
                if self._left:
                    return
                with in_parts() as parts:
                    await super().get(*args, **kwargs)
                if parts:
                    self.finish()
                    await parts.make(between)
        except FullError:
            _refuse(self, TOO_MANY, 503)

    def on_connection_close(self) -> None:
        """The reader is gone."""
        super().on_connection_close()
        self._left = True

    async def post(self, *args: Any, **kwargs: Any) -> None:
        """Say to a page that could not be connected why; a browser names its origin here as for a connection."""
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(self.application.guard.refusal_of_connection(self.request.headers.get("Origin", "")))

    def write(self, chunk: str | bytes | dict[Any, Any]) -> None:
        """Give the page's own scripts the number without which the browser runs no script inside a page."""
        if isinstance(chunk, str):
            nonce = token_urlsafe(16)
            before, end, after = chunk.rpartition("</body>")
            chunk = f"{before}<script>{_REFUSED}</script>{end}{after}" if end else chunk
            chunk = _SCRIPT.sub(f'<script nonce="{nonce}"', chunk)
            self.set_header("Content-Security-Policy", self.application.guard.policy(nonce))
        super().write(chunk)


class Front(RootHandler):
    """Leads from the server's address to its page, with what a link says after it."""

    def redirect(self, url: str, *rest: Any, **named: Any) -> None:
        """Tornado's, which leaves the query behind."""
        query = self.request.query
        super().redirect(f"{url}?{query}" if query else url, *rest, **named)


class ShortLink(RequestHandler):
    """Leads from the code of a link or a room to its page."""

    async def get(self, code: str) -> None:
        """Redirect, to this server's own page alone."""
        self.set_header("Cache-Control", "no-store")
        try:
            link = await rooms().address(code)
        except Exception as error:
            log.warning("A short link cannot be looked up: %s", type(error).__name__)
            _refuse(self, f"{AWAY} Try again in a moment.", 503)
            return
        if link:
            # A short link has no room.
            students = f"&room={code}" in link
            self.redirect(f"../room/{code}" if students else f"../app{link}")
        else:
            _refuse(
                self,
                "No link or room has this code now. A code expires after a day, and when its server stops. Ask for a new one, or wait until the teacher has opened the room again.",
                404,
            )


class Refused(RequestHandler):
    """Says in a sentence why a request is not answered."""

    def initialize(self, guard: Guard) -> None:
        self._guard = guard

    def prepare(self) -> None:
        _refuse(self, self._guard.refusal(self.request))


def _refuse(handler: RequestHandler, sentence: str, status: int = 403) -> None:
    handler.set_status(status)
    handler.finish(_page(sentence))


def _page(sentence: str) -> bytes:
    return _SENTENCE.format(escape(sentence)).encode()


def _without_page(status: int, request: HTTPServerRequest) -> str:
    """Why Tornado or Bokeh has no answer, for a person who has typed an address."""
    if status == 405:
        return f"The lab takes no {request.method} requests at this address."
    if status >= 500:
        return "The lab could not answer, and its log says why. Try again in a moment."
    return f"The address {request.path[:100]} is no page of the lab. Its page is at /app."


class _Refusable(Matcher):
    """Takes the requests that are not answered, before any other rule."""

    def __init__(self, guard: Guard):
        self._guard = guard

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        if request.connection is not None:
            OPEN.heard(request.connection.stream)
            # Behind a proxy it is another one than that of the connection.
            CALLER.set(whose(request.remote_ip or ""))
        if self._guard.refusal(request):
            return {}
        # Panel takes the host apart at its only colon. Both names are this computer's.
        request.host = request.host.replace("[::1]", "localhost", 1)
        return None


CHECK_UNUSED_MS = 1000
"""How often it is looked for pages that nobody has any more. By Bokeh's 17 s those that were opened meanwhile end all
at once, and the others stand still for it: .9 s for twenty links that nobody connected to."""


class GuardedTornado(BokehTornado):
    """The web application of ``panel serve``, which answers whom :class:`Guard` lets in."""

    def __init__(self, applications: Any, **options: Any):
        given = options.get("websocket_max_message_size_bytes", MAX_MESSAGE)
        options["websocket_max_message_size_bytes"] = min(given, MAX_MESSAGE)
        # One key for all processes of --num-procs, which are forked later; it ends with the server.
        if options.get("secret_key") is None:
            options["secret_key"] = generate_secret_key().encode()
        if "BOKEH_SIGN_SESSIONS" not in os.environ:
            options["sign_sessions"] = True
        options.setdefault("check_unused_sessions_milliseconds", CHECK_UNUSED_MS)
        # Panel's route to files of components imports whatever module a client names; a page asks for none of them.
        options["extra_patterns"] = [
            pattern
            for pattern in options.get("extra_patterns") or ()
            if pattern[1] is not panel.io.server.ComponentResourceHandler
        ]
        options["extra_patterns"] += [(r"/s/([^/]{1,40})", ShortLink), *web.HANDLERS]
        super().__init__(applications, **options)
        # By these names this computer is meant, whatever else is allowed; Bokeh's handler of pages looks here, too.
        port = options["absolute_url"].rstrip("/").rpartition(":")[2]
        self.websocket_origins.update(f"{name}:{port}" for name in ("localhost", "127.0.0.1", "[::1]"))
        self.guard = guard = Guard(self.websocket_origins, embedding_sites(os.environ.get(EMBED, "")))
        answers_to(guard.knows)
        self.default_router.rules.insert(0, Rule(_Refusable(guard), Refused, {"guard": guard}))

        class Headers(OutputTransform):
            def __init__(self, request: HTTPServerRequest):
                self._request = request

            def transform_first_chunk(
                self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
            ) -> tuple[int, HTTPHeaders, bytes]:
                for name, value in {"Content-Security-Policy": guard.policy(), **_HEADERS}.items():
                    headers.setdefault(name, value)
                headers.pop("Server", None)
                if chunk.startswith(_TORNADOS % status_code):
                    chunk = _page(_without_page(status_code, self._request))
                    headers["Content-Length"] = str(len(chunk))
                return status_code, headers, chunk

        self.add_transform(Headers)

    def log_request(self, handler: RequestHandler) -> None:
        """A line for what failed in the server, and none that a client may make as many and as long as it likes."""
        if handler.get_status() >= 500:
            request = handler.request
            log.error("%d %s %.200s", handler.get_status(), request.method, request.uri)


def install() -> None:
    """Make ``panel serve`` guarded. Must run before the server is made; a second call changes nothing.

    ``panel serve`` owns the command line and makes the server, so this replaces what it looks up by name, as Panel
    itself does with Bokeh's: ``BokehTornado`` and ``HTTPServer`` in ``bokeh.server.server``, and the handlers in
    ``per_app_patterns`` and ``toplevel_patterns``.
    """
    embedding_sites(os.environ.get(EMBED, ""))
    socket.install()
    log_limit.install()
    # Without the script for other sites' pages, autoload.js, and without metadata: elsewhere a page is in a frame.
    per_app_patterns[:] = [(r"/ws", GuardedSocket), (r"/?", GuardedPage)]
    toplevel_patterns[0] = (r"/?", Front)
    bokeh.server.tornado.RootHandler = Front
    bokeh.server.server.BokehTornado = GuardedTornado
    bokeh.server.server.HTTPServer = Bounded
