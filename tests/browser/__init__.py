"""Helpers of the browser tests: find a Chromium, serve the app, open a page and keep its errors.

The fixtures that use them are in ``conftest.py``; a test that needs a server with other options, or two of them,
uses :func:`serve` itself.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Request

from sgmcmc_lab.app.server.serving import ARGUMENTS, BROWSERS

ROOT = Path(__file__).resolve().parent.parent.parent
VIEWPORT = {"width": 1280, "height": 720}
# The network is cut off: every name and address but this machine's is unknown. The app must not miss them.
CUT_OFF = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"
LIGHT_PAGE = "?views=marginal&hide=equations,workbench"
"""The link of a page that is soon there."""
SELDOM = """
window.requestAnimationFrame = (draw) => setTimeout(() => draw(performance.now()), 200 - (performance.now() % 200))
window.cancelAnimationFrame = clearTimeout
"""
"""Draws a page five times a second. As fast as it can, it takes a core, and the server most of another."""
PATIENCE = float(os.environ.get("SGMCMC_LAB_TEST_PATIENCE", "180"))
"""Seconds until a wait gives up: far more than a loaded machine needs."""
IDLE = "window.Bokeh && Bokeh.documents.length > 0 && Bokeh.documents.every((one) => one.is_idle)"
# The figures come by a message of their own, perhaps long after the document is drawn.
FIGURES_DRAWN = ".grid[aria-busy=false]"
IN_JSON = """(_, x) => ArrayBuffer.isView(x) ? [...x] :
  typeof x === "number" && !Number.isFinite(x) ? {number: String(x)} : x"""
LOCAL = {"localhost", "127.0.0.1", None, ""}
# The text in Panel's log after a failure of the app's code; the page itself still answers 200.
CRASHES = ("Traceback (most recent call last)", "Error running application", "ERROR:", " ERROR ")


def in_ci() -> bool:
    """Whether this is a CI run, where nothing may be skipped."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def find_chromium() -> str | None:
    """The browser that CHROMIUM names, or the first one on the path."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class Server:
    """A running ``panel serve app``."""

    process: subprocess.Popen
    port: int
    log_file: Path

    @property
    def url(self) -> str:
        """The address of the app."""
        return f"http://localhost:{self.port}/app"

    @property
    def log(self) -> str:
        """The server's log so far."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def crashes(self, start: int = 0) -> list[str]:
        """The lines of the log, from character ``start`` on, that tell of an error in the app's code."""
        return [line for line in self.log[start:].splitlines() if any(mark in line for mark in CRASHES)]


@contextmanager
def serve(
    folder: Path,
    *options: str,
    environment: Mapping[str, str] | None = None,
    timeout: float = 120,
    port: int | None = None,
    command: Sequence[str] = (),
) -> Iterator[Server]:
    """``panel serve app`` as the README has it, from the root, on ``port`` or a free one, with its log in ``folder``.

    The ``panel`` command rather than ``python -m panel``: the latter would put the root on the path and so hide a
    package that is not installed. ``command`` stands in its place.
    """
    panel = shutil.which("panel", path=sysconfig.get_path("scripts"))
    assert panel, "panel is not installed in the environment that runs the tests"
    port = port or free_port()
    log_file = folder / f"server-{port}.log"
    full = [*(command or [panel]), "serve", "app", "--address", "127.0.0.1", "--port", str(port), *options]
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            full,
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that workers of --num-procs end with it
        )
    server = Server(process, port, log_file)
    try:
        _wait_for(server, timeout)
        yield server
    finally:
        _stop(process)


def _wait_for(server: Server, timeout: float) -> None:
    """Until the port answers; the app's own page is not asked for, so that no session is made."""
    end = time.monotonic() + timeout
    while True:
        if server.process.poll() is not None:
            raise AssertionError(f"panel serve ended with {server.process.returncode}:\n{server.log}")
        try:
            with urlopen(f"http://127.0.0.1:{server.port}/static/js/bokeh.min.js", timeout=5) as answer:
                answer.read()
            return
        except (URLError, OSError) as reason:
            if time.monotonic() > end:
                raise AssertionError(f"no answer after {timeout:g} s ({reason}):\n{server.log}") from None
        time.sleep(0.1)


def _stop(process: subprocess.Popen) -> None:
    group = hasattr(os, "killpg")
    for ask, patience in ((signal.SIGTERM, 10), (getattr(signal, "SIGKILL", signal.SIGTERM), 10)):
        if process.poll() is None:
            if group:
                os.killpg(process.pid, ask)
            else:
                process.send_signal(ask)
        try:
            process.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue


@dataclass
class PageLog:
    """The errors of a page. A test that expects an error clears the list."""

    errors: list[str] = field(default_factory=list)
    """Uncaught exceptions and console errors."""
    outside: list[str] = field(default_factory=list)
    """Addresses on other machines that the page asked for; it got none of them."""

    def watch(self, page: Page) -> None:
        """Keep the errors of this page from now on."""
        for event, keep in self._kinds():
            page.on(event, keep)

    def forget(self, page: Page) -> None:
        """Keep no more of its errors."""
        for event, keep in self._kinds():
            page.remove_listener(event, keep)

    def _kinds(self) -> Iterator[tuple[Any, Any]]:
        yield "pageerror", self._exception
        yield "console", self._console
        yield "request", self._request

    def _exception(self, error: Error) -> None:
        self.errors.append(f"uncaught: {error.stack or error}")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"console: {message.text} ({message.location.get('url', '')})")

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in LOCAL:
            self.outside.append(request.url)


def new_context(chromium: Browser, *, often: bool = False, **options: Any) -> BrowserContext:
    """A context whose pages draw seldom, for no test counts frames, or as ``often`` as they can."""
    context = chromium.new_context(**{"viewport": VIEWPORT, **options})
    context.set_default_timeout(1000 * PATIENCE)
    if not often:
        context.add_init_script(SELDOM)
    return context


def open_app(page: Page, server: Server, query: str = "") -> None:
    """Open the app and wait until its figures are drawn; fail where the log or the page says that it crashed."""
    start = len(server.log)
    page.goto(server.url + query)
    try:
        wait_for_figures(page)
    except Error as error:
        pytest.fail(f"the app was not drawn in {PATIENCE:g} s: {error.message}\n{server.log[start:]}")
    crashes = server.crashes(start)
    if crashes:
        pytest.fail(f"the server reports {crashes}:\n{server.log[start:]}")


def wait_for_figures(page: Page) -> None:
    """Wait until the document of the app is drawn, and its figures are."""
    page.wait_for_function(IDLE)
    page.locator(FIGURES_DRAWN).first.wait_for(state="attached")


def numbers(page: Any, expression: str, arg: Any = None) -> Any:
    """The value of a function in a page, arrays included.

    It comes as one text, for Playwright takes twenty times as long for arrays. JSON has no NaN and no infinities.
    """

    def read(found: dict[str, Any]) -> Any:
        return float(found["number"]) if found.keys() == {"number"} else found

    return json.loads(
        page.evaluate(f"(given) => JSON.stringify(({expression})(given), {IN_JSON})", arg), object_hook=read
    )


def until(page: Any, expression: str, arg: Any = None) -> None:
    """Wait until this is so in a page, or in a frame, whose policy forbids what Playwright's own waiting needs: to make
    a function of a text, and in a page of another driver.
    """
    given = () if arg is None else (arg,)
    ends = time.monotonic() + PATIENCE
    while not page.evaluate(expression, *given):
        if time.monotonic() > ends:
            pytest.fail(f"it was not so in {PATIENCE:g} s: {expression}")
        time.sleep(0.05)


def arguments(*more: str) -> Sequence[str]:
    """The browser's command line with ``more`` options."""
    return [*ARGUMENTS, CUT_OFF, *more]
