"""The guarded server with an honest browser: its pages run under the policy, and in a frame of a site that was named.

That all controls still reach the server is held by ``test_app``, ``test_lesson_app`` and ``test_study_app``; that no
page breaks the policy, by the ``page_log`` of every browser test, for a violation is an error on the console.
"""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from tests.browser import IDLE, LIGHT_PAGE, serve
from tests.browser.lab import PATIENCE, wait_until


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
        page.goto(named.url, timeout=1000 * PATIENCE)
        frame = wait_until(lambda: page.frames[1:] and page.frames[1], "the frame")
        frame.wait_for_function(IDLE, timeout=1000 * PATIENCE)
        wait_until(lambda: frame.get_by_role("button", name="Pause").count(), "the page in the frame")
        assert not page_log.errors
        page.goto(other.url, timeout=1000 * PATIENCE)
        wait_until(lambda: page_log.errors, "the browser's refusal")
        page.close()  # no more is said after that
    assert all("frame-ancestors" in error or "ERR_BLOCKED_BY" in error for error in page_log.errors), page_log.errors
    page_log.errors.clear()


def test_nobody_shows_the_lab_in_a_frame_by_default(page, page_log, server):
    with platform() as other:
        other.address = server.url + LIGHT_PAGE
        start = len(server.log)
        page.goto(other.url, timeout=1000 * PATIENCE)
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
    page.wait_for_function(IDLE, timeout=1000 * PATIENCE)


def test_a_page_runs_its_own_scripts_only(walk, page_log, server):
    """By either name of this machine."""
    page = walk(LIGHT_PAGE).page
    for host in ("localhost", "127.0.0.1"):
        if host != "localhost":
            page.goto(server.url.replace("localhost", host) + LIGHT_PAGE, timeout=1000 * PATIENCE)
            page.wait_for_function(IDLE, timeout=1000 * PATIENCE)
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
