"""The live page's benchmark: frames drawn and sent, bytes and server time a frame, time to the first moving frame.

It serves the app as a person would, in a process of its own, and opens it in a headless Chromium without a GPU.
Needs the extra ``bench`` and a Chromium or Chrome on the machine.
"""

import os
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

# Bokeh paints a figure in one method. Counting its calls for the first figure counts the frames that are really drawn;
# without it a page takes frames and answers them, but leaves the machine's processors to the server.
_EACH_PLOT = """
  const plots = []
  const visit = (view) => {
    if (typeof view._actual_paint === "function") plots.push(view)
    for (const child of view.child_views ?? []) visit(child)
  }
  for (const root of Bokeh.index.roots) visit(root)
"""
_COUNT_PAINTS = f"""() => {{ {_EACH_PLOT}
  const paint = plots[0]._actual_paint.bind(plots[0])
  window.paints = 0
  plots[0]._actual_paint = () => {{ window.paints += 1; return paint() }}
}}"""
_STOP_PAINTING = f"() => {{ {_EACH_PLOT} for (const plot of plots) plot._actual_paint = () => undefined }}"


@dataclass(frozen=True)
class PageReport:
    """What was measured. Server time is that of the whole process, the engine's included."""

    first_frame_seconds: float
    """Median time from the request to the first frame in the page, with warm caches."""
    drawn_per_second: float
    server_ms_per_frame: float
    kilobytes_per_frame: float
    pages: int
    sent_per_second_and_page: float
    """With painting switched off in the pages, as if they were on machines of their own."""
    server_cores: float
    """While it sends that."""
    sent_per_second_and_painting_page: float
    """With all pages painting on this machine too."""

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
            f"frames sent, {report.pages} pages      {report.sent_per_second_and_page:6.1f} /s and page  (asked: 15)",
            f"server, {report.pages} pages           {report.server_cores:6.2f} cores  (asked: under .5)",
            f"  the same, pages painting {report.sent_per_second_and_painting_page:6.1f} /s and page, all on this machine's processors",
        )
    )


def measure(quick: bool, say: Callable[[str], None]) -> PageReport:
    """Serve the app and measure it. Raises :class:`SpecError` where a browser or a package is missing."""
    try:
        import psutil
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise SpecError("--page", error.name, 'it needs the extra bench: pip install -e ".[bench]"') from None
    path = next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *BROWSERS))), None)
    if path is None:
        raise SpecError("--page", "no browser", f"it needs one of {', '.join(BROWSERS)} on the machine")
    seconds = 3.0 if quick else 10.0
    say("warming the caches")
    jit.prepare(jit.declared())
    with _served() as (url, process), sync_playwright() as playwright:
        server = psutil.Process(process.pid)
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=ARGUMENTS)

        def cpu() -> float:
            times = server.cpu_times()
            return float(times.user + times.system)

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
        drawn, frames, received = one.page.evaluate("window.paints") / took, one.frames, one.received
        one.page.close()

        say(f"{PAGES} pages")
        pages = [
            _Page(browser.new_context(viewport={"width": 1280, "height": 720}), f"{url}?{FIVE_VIEWS}")
            for _ in range(PAGES)
        ]
        for each in pages:
            each.first_frame()

        def sent_by_all() -> tuple[float, float]:
            pages[0].page.wait_for_timeout(3000)
            for each in pages:
                each.reset()
            began, used = time.perf_counter(), cpu()
            pages[0].page.wait_for_timeout(seconds * 1000)
            took, used = time.perf_counter() - began, cpu() - used
            return sum(each.frames for each in pages) / took / PAGES, used / took

        painting, _ = sent_by_all()
        for each in pages:
            each.page.evaluate(_STOP_PAINTING)
        sent, cores = sent_by_all()
        browser.close()
    return PageReport(
        first_frame_seconds=statistics.median(openings[1:]),
        drawn_per_second=drawn,
        server_ms_per_frame=1000 * used / max(frames, 1),
        kilobytes_per_frame=received / max(frames, 1) / 1000,
        pages=PAGES,
        sent_per_second_and_page=sent,
        server_cores=cores,
        sent_per_second_and_painting_page=painting,
    )


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


@contextmanager
def _served() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    app = Path(__file__).parent.parent / "app"
    process = subprocess.Popen(
        [sys.executable, "-m", "panel", "serve", str(app), "--port", str(port), "--address", "127.0.0.1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://localhost:{port}/app"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                with urlopen(url, timeout=60):
                    break
            except (URLError, ConnectionError):
                if time.monotonic() > deadline or process.poll() is not None:
                    raise SpecError("--page", url, "the server did not start") from None
                time.sleep(0.2)
        yield url, process
    finally:
        process.terminate()
        process.wait(timeout=20)
