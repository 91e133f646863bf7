"""The guarded server with an honest browser: its pages run under the policy, and in a frame of a site that was named.

That all controls still reach the server is held by ``test_app``, ``test_lesson_app`` and ``test_study_app``; that no
page breaks the policy, by the ``page_log`` of every browser test, for a violation is an error on the console.
"""

import asyncio
import re
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.browser import IDLE, LIGHT_PAGE, serve
from tests.browser.lab import wait_until


class Site:
    """A learning platform: a page of another origin, with whatever ``address`` names in a frame."""

    address = "about:blank"
    url = ""


@contextmanager
def platform():
    site = Site()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            if self.path == "/":
                self.wfile.write(
                    f"<title>x</title><link rel=icon href='data:,'><iframe src='{site.address}' width=900 height=600>".encode()
                )

        def log_message(self, *_):
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Answer) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        site.url = f"http://127.0.0.1:{listening.server_port}/"
        try:
            yield site
        finally:
            listening.shutdown()
            thread.join()


def test_a_site_that_was_named_shows_the_lab_in_a_frame(page, page_log, tmp_path):
    with (
        platform() as named,
        platform() as other,
        serve(tmp_path, environment={"SGMCMC_EMBED": named.url.rstrip("/")}) as server,
    ):
        named.address = other.address = server.url + LIGHT_PAGE
        page.goto(named.url)
        frame = wait_until(lambda: page.frames[1:] and page.frames[1], "the frame")
        frame.wait_for_function(IDLE)
        wait_until(lambda: frame.get_by_role("button", name="Pause").count(), "the page in the frame")
        assert not page_log.errors
        page.goto(other.url)
        wait_until(lambda: page_log.errors, "the browser's refusal")
        page.close()  # no more is said after that
    assert all("frame-ancestors" in error or "ERR_BLOCKED_BY" in error for error in page_log.errors), page_log.errors
    page_log.errors.clear()


def test_nobody_shows_the_lab_in_a_frame_by_default(page, page_log, server):
    with platform() as other:
        other.address = server.url + LIGHT_PAGE
        start = len(server.log)
        page.goto(other.url)
        wait_until(lambda: page_log.errors, "the browser's refusal")
        page.close()  # no more is said after that
    assert "frame-ancestors" in str(page_log.errors) or "403" in str(page_log.errors)
    # It cost no session.
    assert "WebSocket connection opened" not in server.log[start:]
    page_log.errors.clear()


def test_an_expired_page_is_closed_and_a_reload_mends_it(walk, server):
    page = walk(LIGHT_PAGE).page
    told = page.evaluate(
        f"""() => new Promise((done) => {{
            const socket = new WebSocket("ws://localhost:{server.port}/app/ws", ["bokeh", "e30.e30"])
            socket.onclose = (event) => done([event.code, event.reason])
        }})"""
    )
    assert told[0] == 1008 and "reload" in told[1]
    page.reload()
    page.wait_for_function(IDLE)


def test_a_page_runs_its_own_scripts_only(walk, page_log, server):
    """By either name of this machine."""
    page = walk(LIGHT_PAGE).page
    for host in ("localhost", "127.0.0.1"):
        if host != "localhost":
            page.goto(server.url.replace("localhost", host) + LIGHT_PAGE)
            page.wait_for_function(IDLE)
        assert not page_log.errors
        page.evaluate(
            """() => {
                document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.ran = 1'>")
                const inline = document.createElement("script")
                inline.textContent = "window.ran = 2"
                document.body.append(inline)
                const outside = document.createElement("script")
                outside.src = "https://example.org/x.js"
                document.body.append(outside)
            }"""
        )
        wait_until(lambda: len(page_log.errors) >= 3, lambda: f"three refusals: {page_log.errors}")
        assert page.evaluate("window.ran") is None
        # No more is said of it after that.
        page.goto("about:blank")
        assert all("Content Security Policy" in error or "404" in error for error in page_log.errors)
        page_log.errors.clear()
        page_log.outside.remove("https://example.org/x.js")
    page.close()


@contextmanager
def proxy(port, changed):
    """Stands before the server and changes or leaves out lines of each request's head; the port where it listens."""
    begun, told = threading.Event(), []

    async def pass_on(source, sink):
        with suppress(OSError, asyncio.CancelledError):
            while content := await source.read(1 << 16):
                sink.write(content)
                await sink.drain()
        sink.close()

    async def answer(reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except (asyncio.IncompleteReadError, asyncio.CancelledError):
            # A browser opens connections in advance, and may never use one.
            writer.close()
            return
        # One request a connection, so that each has its own head.
        upgrades = "upgrade: websocket" in head.lower()
        for name, value in {**changed, **({} if upgrades else {"Connection": "close"})}.items():
            line = f"{name}: {value}\r\n" if value else ""
            head = re.sub(rf"(?im)^{name}:.*\r\n", line, head)
        source, sink = await asyncio.open_connection("127.0.0.1", port)
        sink.write(head.encode())
        # Either end may leave, and the proxy may end first.
        with suppress(asyncio.CancelledError):
            await asyncio.gather(pass_on(reader, sink), pass_on(source, writer))

    async def listen():
        ended = asyncio.Event()
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
            told.extend((listening.sockets[0].getsockname()[1], asyncio.get_running_loop(), ended))
            begun.set()
            await ended.wait()

    thread = threading.Thread(target=asyncio.run, args=(listen(),))
    thread.start()
    begun.wait()
    front, loop, ended = told
    try:
        yield front
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        # As nginx does where nobody has told it otherwise: the page comes, and its connection is refused.
        (
            {"Host": "127.0.0.1:{own}"},
            "starting the server with: panel serve app --allow-websocket-origin 127.0.0.1:{front}",
        ),
        ({"Host": "localhost:{own}", "Origin": "http://inner.example"}, "--allow-websocket-origin inner.example"),
        (
            {"Host": "inner.example:80"},
            "starting the server with: panel serve app --allow-websocket-origin inner.example:80",
        ),
        (
            {"Host": "127.0.0.1:{own}", "Origin": "http://127.0.0.1:{own}", "Upgrade": None},
            "does not pass on WebSockets",
        ),
        # Both are changed to names that are allowed: nothing is refused.
        ({"Host": "127.0.0.1:{own}", "Origin": "http://127.0.0.1:{own}"}, ""),
    ],
    ids=["host", "origin", "unknown", "no-upgrade", "both"],
)
def test_a_page_behind_a_proxy_runs_or_says_what_to_start_the_server_with(changed, sentence, page, page_log, server):
    """Fails where it stands there with no more than that there is no connection."""
    changed = {name: value and value.format(own=server.port) for name, value in changed.items()}
    with proxy(server.port, changed) as front:
        page.goto(f"http://127.0.0.1:{front}/app{LIGHT_PAGE}")
        if sentence:
            page.get_by_text(sentence.format(front=front)).wait_for()
            assert any("403" in error or "400" in error for error in page_log.errors), page_log.errors
        else:
            page.wait_for_function(IDLE)
            page.get_by_role("button", name="Pause").first.wait_for()
        # No connection is left when the proxy ends; until here the page tries again and again.
        page.goto("about:blank")
        if sentence:
            page_log.errors.clear()
