"""The live page's benchmark: frames drawn and sent, bytes and server time a frame, time to the first moving frame.

It serves the app as a person would, in a process of its own, and opens it in a headless Chromium without a GPU. Eight
browsers on one machine would measure the browsers; the eight pages are therefore eight connections that open the page,
take its frames and answer them as its script does, and draw nothing.
Needs the extra ``bench`` and a Chromium or Chrome on the machine.
"""

import asyncio
import importlib
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen
from uuid import uuid4

import numpy as np

from samplers import jit
from samplers.parameters import SpecError

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FIVE_VIEWS = "views=state,marginal,ks,trace,autocorrelation"
OPENINGS = 5
"""Openings of the page that count; one before them fills the caches."""
PAGES = 8

# Bokeh paints a figure in one method. Counting its calls for the first figure counts the frames that are really drawn.
_COUNT_PAINTS = """() => {
  const plots = []
  const visit = (view) => {
    if (typeof view._actual_paint === "function") plots.push(view)
    for (const child of view.child_views ?? []) visit(child)
  }
  for (const root of Bokeh.index.roots) visit(root)
  const paint = plots[0]._actual_paint.bind(plots[0])
  window.paints = 0
  plots[0]._actual_paint = () => { window.paints += 1; return paint() }
}"""


@dataclass(frozen=True)
class PageReport:
    """What was measured. Server time is that of the whole process, the engine's included."""

    first_frame_seconds: float
    """Median time from the request to the first frame in the page, with warm caches."""
    drawn_per_second: float
    server_ms_per_frame: float
    kilobytes_per_frame: float
    edit_ms: float
    """Median time from the return key in an entry of D to the first painted frame with the new drift."""
    pages: int
    sent_per_second_and_page: float
    """To connections that answer each frame at once and draw nothing."""
    server_cores: float
    """While it sends that."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def as_text(report: PageReport) -> str:
    """The report as lines to read."""
    return "\n".join(
        (
            f"first moving frame after   {report.first_frame_seconds:6.2f} s   (asked: under 2, warm caches)",
            f"frames drawn, one page     {report.drawn_per_second:6.1f} /s  (asked: at least 20, five live views)",
            f"server time                {report.server_ms_per_frame:6.2f} ms a frame  (asked: under 5)",
            f"bytes                      {report.kilobytes_per_frame:6.2f} kB a frame  (asked: under 5)",
            f"an edit of D is seen after {report.edit_ms:5.0f} ms  (asked: under 100)",
            f"frames sent, {report.pages} pages      {report.sent_per_second_and_page:6.1f} /s and page  (asked: 15)",
            f"server, {report.pages} pages           {report.server_cores:6.2f} cores  (asked: under .5)",
        )
    )


def measure(quick: bool, say: Callable[[str], None]) -> PageReport:
    """Serve the app and measure it. Raises :class:`SpecError` where a browser or a package is missing."""
    try:
        import psutil
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise SpecError("--page", error.name, 'it needs the extra bench: pip install -e ".[bench]"') from None
    path = browser_path("--page")
    seconds = 3.0 if quick else 10.0
    say("warming the caches")
    # The page declares the models' functions, too, and would compile them while it is measured.
    importlib.import_module("samplers.models")
    jit.prepare(jit.declared())
    with served("--page") as (url, process):
        server = psutil.Process(process.pid)

        def cpu() -> float:
            times = server.cpu_times()
            return float(times.user + times.system)

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, headless=True, args=ARGUMENTS)
            opening, drawn, used, frames, received = _watched(browser, url, seconds, cpu, say)
            say("edits of a recipe")
            edits = _edits(browser, url)
            browser.close()
        say(f"{PAGES} pages")
        sent, cores = asyncio.run(_serve_many(f"{url}?{FIVE_VIEWS}", seconds, cpu))
    return PageReport(
        first_frame_seconds=opening,
        drawn_per_second=drawn,
        server_ms_per_frame=1000 * used / max(frames, 1),
        kilobytes_per_frame=received / max(frames, 1) / 1000,
        edit_ms=1000 * statistics.median(edits),
        pages=PAGES,
        sent_per_second_and_page=sent,
        server_cores=cores,
    )


def browser_path(option: str) -> str:
    """The browser that CHROMIUM names, or the first one on the path. Raises :class:`SpecError` for ``option``."""
    path = next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *BROWSERS))), None)
    if path is None:
        raise SpecError(option, "no browser", f"it needs one of {', '.join(BROWSERS)} on the machine")
    return path


def _watched(
    browser: Any, url: str, seconds: float, cpu: Callable[[], float], say: Callable[[str], None]
) -> tuple[float, float, float, int, int]:
    """Seconds to the first frame, frames drawn a second, and the server's seconds, frames and bytes meanwhile."""
    say("opening the page")
    openings = []
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    for _ in range(OPENINGS + 1):
        counted = _Page(context, f"{url}?{FIVE_VIEWS}")
        openings.append(counted.first_frame())
        counted.page.close()

    say("one page with five live views")
    one = _Page(context, f"{url}?{FIVE_VIEWS}")
    one.first_frame()
    # What the pages before it left behind is cleared away in this time.
    one.page.wait_for_timeout(8000)
    one.page.evaluate(_COUNT_PAINTS)
    one.reset()
    began, used = time.perf_counter(), cpu()
    one.page.wait_for_timeout(seconds * 1000)
    took, used = time.perf_counter() - began, cpu() - used
    drawn = one.page.evaluate("window.paints") / took
    one.page.close()
    return statistics.median(openings[1:]), drawn, used, one.frames, one.received


class _Page:
    """An open page, with its frames counted: each is one binary message."""

    def __init__(self, context: Any, url: str):
        self.reset()
        self.page = context.new_page()
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._count))
        self._began = time.perf_counter()
        self.page.goto(url, wait_until="commit")

    def reset(self) -> None:
        self.frames = self.received = 0

    def first_frame(self) -> float:
        """Wait for a frame; the seconds since the request."""
        while self.frames == 0 and time.perf_counter() - self._began < 120:
            self.page.wait_for_timeout(5)
        return time.perf_counter() - self._began

    def _count(self, message: str | bytes) -> None:
        self.received += len(message)
        self.frames += isinstance(message, bytes)


EDITS = 9
WORKBENCH = "target=double_well&lane=recipe(step_size:0.01;layout:theta_r;diffusion_entries:0,0,1;curl_entries:-1)~full&views=drift,ks"
# The time at which the arrows of the drift have changed and are painted, since the key went down.
_WATCH_ARROWS = """() => {
  const arrows = () => Bokeh.documents.flatMap((doc) => [...doc._all_models.values()])
    .filter((model) => model.type === "GlyphRenderer" && model.glyph.type === "Segment")
    .map((model) => Object.values(model.data_source.data).map((column) => column.reduce((sum, x) => sum + x, 0)).join()).join()
  let began = 0
  let before = ""
  window.edit = new Promise((resolve) => {
    const look = () => {
      if (began && arrows() !== before) requestAnimationFrame(() => resolve(performance.now() - began))
      else requestAnimationFrame(look)
    }
    look()
  })
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { before = arrows(); began = performance.now() }
  }, { once: true, capture: true })
}"""


def _edits(browser: Any, url: str) -> list[float]:
    """The seconds from the return key to the new arrows, of each edit."""
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(f"{url}?{WORKBENCH}")
    entry = page.get_by_label("D r r", exact=True).first
    entry.wait_for(timeout=120_000)
    page.wait_for_timeout(8000)
    took = []
    for k in range(EDITS):
        entry.fill(f"{1 + (k + 1) / 10:.1f} + theta^2")
        page.evaluate(_WATCH_ARROWS)
        entry.press("Enter")
        took.append(page.evaluate("window.edit") / 1000)
        page.wait_for_timeout(1500)
    page.close()
    return took


class LightPage:
    """A connection that opens the page as its script does, counts its frames and answers them."""

    def __init__(self) -> None:
        self.frames = 0
        self.on_frame: Callable[[], None] | None = None
        self.written: Any = None
        """Done when what was sent last has left this machine's buffers."""
        self.document = ""
        """The page's document, as JSON."""

    async def open(self, url: str) -> None:
        """Ask for the page, connect, ask for its document, and say that it is there."""
        from tornado.httpclient import AsyncHTTPClient, HTTPRequest
        from tornado.websocket import websocket_connect

        page = (await AsyncHTTPClient().fetch(url, request_timeout=120)).body.decode()
        token = re.search(r'"token":"([^"]+)"', page)
        assert token is not None, "the page has no token"
        address = url.split("?", maxsplit=1)[0].replace("http", "ws", 1) + "/ws"
        self._socket = await websocket_connect(
            HTTPRequest(address), subprotocols=["bokeh", token[1]], max_message_size=1 << 28
        )
        # The server takes no message before it has said that it is there.
        await self._read('"ACK"')
        self.send("PULL-DOC-REQ", {})
        self.document = await self._read('{"doc"')
        self._bus = next(
            model["id"]
            for model in models(json.loads(self.document))
            if "end of the live loop" in str(model["attributes"].get("esm"))
        )
        self.answer(-2, -1)
        self.event("document_ready", {})

    async def _read(self, part: str) -> str:
        """The next text with this part in it."""
        while (content := await self._socket.read_message()) is not None:
            if isinstance(content, str) and part in content[:100]:
                return content
        raise ConnectionError("the server closed the connection")

    async def take(self) -> None:
        """Take frames and answer them, until it is cancelled."""
        while (message := await self._socket.read_message()) is not None:
            if isinstance(message, bytes) and message[:1] == b"\0":
                self.frames += 1
                if self.on_frame is not None:
                    self.on_frame()
                generation, number = np.frombuffer(message[:16]).astype(int).tolist()
                if number == 1 or number % 2 == 0:
                    self.answer(number, generation)
            elif isinstance(message, bytes) and message.startswith(b'{"type": "layout"'):
                self.answer(0, json.loads(message)["generation"])

    def close(self) -> None:
        """Leave the page."""
        self._socket.close()

    def answer(self, number: int, generation: int) -> None:
        """Tell the loop that a frame has been drawn."""
        self.event("data_event", {"model": {"id": self._bus}, "data": [number, 0, generation, 1280, 0]})

    def event(self, name: str, values: dict[str, Any]) -> None:
        """Let something happen on the page."""
        event = {"type": "event", "name": name, "values": {"type": "map", "entries": [list(x) for x in values.items()]}}
        self.patch({"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": event})

    def patch(self, change: Any) -> None:
        """Ask for a change of the document."""
        self.send("PATCH-DOC", {"events": [change]})

    def send(self, kind: str, content: Any) -> None:
        """Send a message."""
        for fragment in ({"msgid": uuid4().hex, "msgtype": kind}, {}, content):
            self.raw(json.dumps(fragment))

    def raw(self, fragment: str | bytes) -> None:
        """Send a part of a message as it is."""
        self.written = self._socket.write_message(fragment, binary=isinstance(fragment, bytes))
        # Nobody need wait for it, and the server may have closed.
        self.written.add_done_callback(lambda done: done.cancelled() or done.exception())


def models(content: Any) -> Iterator[dict[str, Any]]:
    """Every model in a serialised document."""
    if isinstance(content, dict):
        if "attributes" in content:
            yield content
        content = list(content.values())
    if isinstance(content, list):
        for each in content:
            yield from models(each)


async def _serve_many(url: str, seconds: float, cpu: Callable[[], float]) -> tuple[float, float]:
    """Frames sent a second to each of the pages, and the server's cores."""
    pages = [LightPage() for _ in range(PAGES)]
    tasks = []
    for page in pages:
        await page.open(url)
        tasks.append(asyncio.create_task(page.take()))
    # The server's work of opening the pages ends in this time.
    await asyncio.sleep(5)
    for page in pages:
        page.frames = 0
    began, used = time.perf_counter(), cpu()
    await asyncio.sleep(seconds)
    took, used = time.perf_counter() - began, cpu() - used
    for page, task in zip(pages, tasks, strict=True):
        task.cancel()
        page.close()
    return sum(page.frames for page in pages) / took / PAGES, used / took


@contextmanager
def served(option: str, patience: float = 60.0) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address of the app, served in a process of its own. Raises :class:`SpecError` for ``option``."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    app = Path(__file__).parent.parent.parent / "app"
    process = subprocess.Popen(
        [sys.executable, "-m", "panel", "serve", str(app), "--port", str(port), "--address", "127.0.0.1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://localhost:{port}/app"
    try:
        deadline = time.monotonic() + patience
        while True:
            try:
                with urlopen(url, timeout=patience):
                    break
            except (URLError, ConnectionError):
                if time.monotonic() > deadline or process.poll() is not None:
                    raise SpecError(option, url, "the server did not start") from None
                time.sleep(0.2)
        yield url, process
    finally:
        process.terminate()
        process.wait(timeout=20)
