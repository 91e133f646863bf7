"""The live page's benchmark: frames drawn and sent, bytes and server time a frame, time to the first moving frame.

It serves the app as a person would, in a process of its own, and opens it in a headless Chromium without a GPU. Eight
browsers on one machine would measure the browsers; the eight pages are therefore eight connections that open the page,
take its frames and answer them as its script does, and draw nothing.
Needs the extra ``bench`` and a Chromium or Chrome on the machine.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from sgmcmc_lab.app.server.light_page import CHANGE, LIVE, LightPage
from sgmcmc_lab.app.server.serving import ARGUMENTS, Served, browser_path, needs, served, warm
from tests.benchmarks.control import LAST_MESSAGE, RATE, BarePage, Control, Fed, bare

FIVE_VIEWS = "views=state,marginal,ks,trace,autocorrelation"
OPENINGS = 5
"""Openings of the page that count; one before them fills the caches."""
PAGES = 8

# Frames that come and frames that are drawn, counted in the page. Paints are not frames: the bare page, which sets each
# column and range by itself, had 18 paints of its first figure a second for its 10 frames, the lab 12.4 for 12.2. So of
# the paints after a frame has come the first counts, and two frames before one paint are drawn once.
_COUNT_COMING = """(() => {
  const isFrame = %s
  window.frames_come = window.frames_drawn = 0
  window.WebSocket = class extends window.WebSocket {
    constructor(...given) {
      super(...given)
      this.addEventListener("message", ({ data }) => { if (isFrame(data)) window.frames_come += 1 })
    }
  }
})()"""
COUNT_DRAWN = """() => {
  const find = (view) => (view._actual_paint ? view : (view.child_views ?? []).map(find).find(Boolean))
  let kind = Bokeh.index.roots.map(find).find(Boolean)
  while (!Object.hasOwn(kind, "_actual_paint")) kind = Object.getPrototypeOf(kind)
  const paint = kind._actual_paint
  let newest = 0
  window.frames_come = window.frames_drawn = 0
  kind._actual_paint = function () {
    if (newest !== window.frames_come) window.frames_drawn += 1
    newest = window.frames_come
    return paint.call(this)
  }
}"""
"""To be called once the page has a figure: counts from now on."""
COME, DRAWN = "window.frames_come", "window.frames_drawn"
"""Since the page was asked for, or :data:`COUNT_DRAWN` was called; and since then."""


_IS_FRAME = {
    LightPage: f"""(() => {{
      let live = false
      return (data) => {{
        if (typeof data === "string" && data.startsWith('{CHANGE}')) live = data.includes('{LIVE}')
        return live && data instanceof ArrayBuffer && new Uint8Array(data)[0] === 0
      }}
    }})()""",
    BarePage: f"(data) => typeof data === 'string' && data.includes('{LAST_MESSAGE}')",
}
"""Functions of the page that take every message: whether a frame ends with it."""


def count_coming(kind: type[LightPage]) -> str:
    """A script to run before those of the page of this kind."""
    return _COUNT_COMING % _IS_FRAME[kind]


@dataclass(frozen=True)
class PageReport:
    """The measurements. Server time is that of the whole process, the engine's included."""

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
    control: Control
    """A bare page of five plots in the same run, fed the same arrays, thirty frames a second."""

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
            *report.control.lines(),
        )
    )


def measure(quick: bool, say: Callable[[str], None]) -> PageReport:
    """Serve the app and measure it. Raises :class:`SpecError` where a browser or a package is missing."""
    needs("--page", "psutil", "playwright")
    from playwright.sync_api import sync_playwright

    path = browser_path("--page")
    seconds = 3.0 if quick else 10.0
    warm(say)
    with served("--page") as server:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, headless=True, args=ARGUMENTS)
            lab = _watched(browser, f"{server.url}?{FIVE_VIEWS}", seconds, server, say)
            say("edits of a recipe")
            edits = _edits(browser, server.url)
            browser.close()
        say(f"{PAGES} pages")
        # Playwright has a loop of its own while it is on.
        sent, cores, fed = asyncio.run(_serve_many(f"{server.url}?{FIVE_VIEWS}", seconds, server))
    say("the control: a bare page of five plots")
    with bare("--page", fed, RATE) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=ARGUMENTS)
        control = _watched(browser, server.url, seconds, server, say, kind=BarePage)
        browser.close()
    return PageReport(
        first_frame_seconds=lab.opening,
        drawn_per_second=lab.drawn,
        server_ms_per_frame=lab.milliseconds,
        kilobytes_per_frame=lab.received / max(lab.frames, 1) / 1000,
        edit_ms=1000 * statistics.median(edits),
        pages=PAGES,
        sent_per_second_and_page=sent,
        server_cores=cores,
        control=Control(
            frames=lab.drawn / max(control.drawn, 1e-9),
            server=lab.milliseconds / max(control.milliseconds, 1e-9),
            opening=lab.opening / control.opening,
            own=f"{control.drawn:.1f} frames/s, {control.milliseconds:.2f} ms, {control.opening:.2f} s",
        ),
    )


@dataclass(frozen=True)
class _Watched:
    """The observations of one page."""

    opening: float
    """Seconds to the first frame."""
    drawn: float
    """Frames a second."""
    used: float
    """The server's seconds, and the frames and bytes that it sent meanwhile."""
    frames: int
    received: int

    @property
    def milliseconds(self) -> float:
        """The server's, of a frame."""
        return 1000 * self.used / max(self.frames, 1)


def _watched(
    browser: Any,
    url: str,
    seconds: float,
    server: Served,
    say: Callable[[str], None],
    kind: type[LightPage] = LightPage,
) -> _Watched:
    """Open a page some times, and watch one; ``kind`` is what it is, the lab's or a bare one."""
    say("opening the page")
    openings = []
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    for _ in range(OPENINGS + 1):
        counted = _Page(context, url, kind)
        openings.append(counted.first_frame())
        counted.page.close()

    say("one page with five live views")
    one = _Page(context, url, kind)
    one.first_frame()
    # Earlier pages are cleared away in this time.
    one.page.wait_for_timeout(8000)
    one.page.evaluate(COUNT_DRAWN)
    one.received = 0
    began, used = time.perf_counter(), server.cpu()
    one.page.wait_for_timeout(seconds * 1000)
    took, used = time.perf_counter() - began, server.cpu() - used
    drawn, frames = one.page.evaluate(DRAWN) / took, one.page.evaluate(COME)
    one.page.close()
    return _Watched(statistics.median(openings[1:]), drawn, used, frames, one.received)


class _Page:
    """An open page, with its frames counted."""

    def __init__(self, context: Any, url: str, kind: type[LightPage]):
        self.received = 0
        self.page = context.new_page()
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._count))
        self.page.add_init_script(count_coming(kind))
        self._began = time.perf_counter()
        self.page.goto(url, wait_until="commit")

    def first_frame(self) -> float:
        """Wait for a frame; the seconds since the request."""
        self.page.wait_for_function(f"{COME} > 0", polling=5, timeout=120_000)
        return time.perf_counter() - self._began

    def _count(self, message: str | bytes) -> None:
        self.received += len(message)


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


async def _serve_many(url: str, seconds: float, server: Served) -> tuple[float, float, Fed]:
    """Frames sent a second to each of the pages, the server's cores, and what the first was fed."""
    pages = [LightPage() for _ in range(PAGES)]
    tasks = []
    for page in pages:
        await page.open(url)
        tasks.append(asyncio.create_task(page.take()))
    # The server's work of opening the pages ends in this time.
    await asyncio.sleep(5)
    for page in pages:
        page.frames = 0
    began, used = time.perf_counter(), server.cpu()
    await asyncio.sleep(seconds)
    took, used = time.perf_counter() - began, server.cpu() - used
    sent = sum(page.frames for page in pages) / took / PAGES
    fed = await Fed.taken(pages[0])
    for page, task in zip(pages, tasks, strict=True):
        task.cancel()
        page.close()
    return sent, used / took, fed
