"""Many open the page: so many connections in the same second, and then they work for some minutes.

The connections are raw ones: they open the page, take its frames and answer them, and draw nothing, so that one machine
can have a whole class of them. Two pages are open before the class comes; while it works, two more are in a real
Chromium, which has what the server leaves of the processor: a class's browsers are on machines of their own. Then a
bare page of plain Bokeh goes through the same. Needs the extra ``bench``.
"""

import asyncio
import json
import math
import re
import statistics
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samplers.benchmarks.control import BarePage, Control, Fed, bare
from samplers.benchmarks.light import LightPage, labelled
from samplers.benchmarks.page import COME, COUNT_DRAWN, DRAWN, FIVE_VIEWS, count_coming
from samplers.benchmarks.serving import ARGUMENTS, Served, browser_path, children, needs, put_behind, served, warm
from samplers.parameters import SpecError

MOST = 300
"""Pages at most: a lecture hall."""
MOST_MINUTES = 60.0
MOST_SECONDS = 600.0
"""Over which they come."""
OPEN = 2
"""Pages that are open already."""
PATIENCE = 120.0
"""A page that has not moved after so many seconds has failed."""
LATER = 15.0
"""For so long the server is left alone before the class comes."""
SETTLE = 5.0
"""For so long after it has come, before its work is measured."""

WORKING = "?lane=sgld&lane=hmc&views=state,ks,trace"
"""What a class works with: two lanes and three views, one of which marks where a step size was changed."""
CONTROL_RATE = 10.0
"""Frames a second of the bare page, as many as each page of the class is to have."""
CONTROL_MINUTES = 1.0
"""At most, of the bare page's work."""
CLICK_SECONDS = 20.0
"""Each page changes a step size so often."""
LOST_CLICK = 5.0
"""A click whose effect has not come after so many seconds counts as one of so many."""


@dataclass(frozen=True)
class Opening:
    """How a class came. Server time is that of the whole process, the engine's included."""

    pages: int
    failed: int
    """Pages that did not move."""
    median_seconds: float
    """From the request to the first frame."""
    slowest_seconds: float
    server_seconds_per_page: float
    """From the first request until the last of them has moved, with the frames of all pages meanwhile."""
    open_frames_per_second: float
    """Of a page that was open already, meanwhile."""
    longest_standstill: float
    """Of those, in seconds."""


@dataclass(frozen=True)
class Working:
    """How it went on."""

    minutes: float
    fewest_frames: float
    """Of a connection, a second."""
    median_frames: float
    drawn_frames: float
    """That Chromium drew a second, of the slower of its two pages."""
    server_cores: float
    server_ms_per_frame: float
    click_ms: float
    """95 % of clicks have their effect in a connection's frame within so many milliseconds."""
    drawn_click_ms: float
    """The same until it is painted, in Chromium."""
    clicks: int
    megabytes_per_page: float
    """The server's memory, from before the class came."""
    errors: int
    """Connections lost, errors in the server's log, and in Chromium."""


@dataclass(frozen=True)
class Counts:
    """What was counted of a class at work."""

    seconds: float
    """For so long."""
    frames: list[int]
    """Of each connection."""
    come: list[int]
    """To each of the pages in Chromium."""
    drawn: list[int]
    """By each of them."""
    server_seconds: float
    clicks: list[float]
    """Seconds until a connection saw the effect of each."""
    drawn_clicks: list[float]
    """The same until Chromium had painted it."""
    megabytes: float
    """That the server has come to hold, for the connections and the pages in Chromium."""
    errors: int

    def working(self) -> Working:
        """The figures that are asked for."""
        return Working(
            minutes=self.seconds / 60,
            fewest_frames=min(self.frames) / self.seconds,
            median_frames=statistics.median(self.frames) / self.seconds,
            drawn_frames=min(self.drawn) / self.seconds,
            server_cores=self.server_seconds / self.seconds,
            server_ms_per_frame=1000 * self.server_seconds / max(sum(self.frames) + sum(self.come), 1),
            click_ms=p95(self.clicks),
            drawn_click_ms=p95(self.drawn_clicks),
            clicks=len(self.clicks) + len(self.drawn_clicks),
            megabytes_per_page=self.megabytes / (len(self.frames) + len(self.drawn)),
            errors=self.errors,
        )


@dataclass(frozen=True)
class ClassReport:
    """What was measured."""

    opening: Opening
    working: Working | None
    control: Control
    over_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def as_text(report: ClassReport) -> str:
    """The report as lines to read."""
    came, on = report.opening, report.working
    lines = [
        f"pages asked for within {report.over_seconds:g} s",
        line("pages", f"{came.pages:8d}", ""),
        line("did not move", f"{came.failed:8d}", "0"),
        line("first frame, median", f"{came.median_seconds:8.2f} s", "under 5"),
        line("first frame, slowest", f"{came.slowest_seconds:8.2f} s", "under 10"),
        line("server time for each", f"{came.server_seconds_per_page:8.3f} s", "under .3, with frames meanwhile"),
        line("frames of an open page", f"{came.open_frames_per_second:8.1f} /s", "at least 5"),
        line("its longest standstill", f"{came.longest_standstill:8.2f} s", "under .5"),
    ]
    if on is not None:
        lines += [
            f"two lanes and three views for {on.minutes:.3g} minutes, {on.clicks} changes of a step size",
            line("frames of a page, fewest", f"{on.fewest_frames:8.1f} /s", "at least 10"),
            line("frames of a page, median", f"{on.median_frames:8.1f} /s", ""),
            line("frames drawn in Chromium", f"{on.drawn_frames:8.1f} /s", ""),
            line("server", f"{on.server_cores:8.2f} cores", "under 1"),
            line("click to frame, p95", f"{on.click_ms:8.0f} ms", "under 150"),
            line("click to picture, p95", f"{on.drawn_click_ms:8.0f} ms", "under 150"),
            line("server memory", f"{on.megabytes_per_page:8.2f} MB a page", "under 4"),
            line("errors", f"{on.errors:8d}", "0"),
        ]
    return "\n".join([*lines, *report.control.lines()])


def line(what: str, value: str, asked: str) -> str:
    """A line of a report: a figure, and what is asked of it."""
    return f"  {what:<25}{value:<19}{f'(asked: {asked})' if asked else ''}".rstrip()


def measure(pages: int, say: Callable[[str], None], minutes: float = 0.0, over: float = 1.0) -> ClassReport:
    """Serve the app, let so many open it within ``over`` seconds, and work for so many minutes.

    Raises :class:`SpecError` for a number out of bounds, and where a package or a browser is missing.
    """
    if not 1 <= pages <= MOST:
        raise SpecError("--pages", pages, f"allowed are from 1 to {MOST} pages")
    if not 0 <= minutes <= MOST_MINUTES:
        raise SpecError("--minutes", minutes, f"allowed are from 0 to {MOST_MINUTES:g}")
    if not 0 < over <= MOST_SECONDS:
        raise SpecError("--over", over, f"allowed are more than 0, and up to {MOST_SECONDS:g} seconds")
    needs("--pages", "psutil", "tornado", "playwright")
    path = browser_path("--minutes") if minutes else ""
    # By itself the client would let ten ask at a time.
    from tornado.httpclient import AsyncHTTPClient

    AsyncHTTPClient.configure(None, max_clients=2 * MOST)
    warm(say)
    with served("--pages") as server:
        lab = Class(LightPage, server, WORKING if minutes else "", say)
        opening, working, fed = asyncio.run(lab.comes(pages, over, minutes, path))
    say("the control: bare pages of five plots")
    with bare("--pages", fed, CONTROL_RATE) as server:
        control = Class(BarePage, server, "", say)
        came, on, _ = asyncio.run(control.comes(pages, over, min(minutes, CONTROL_MINUTES), path))
    return ClassReport(opening, working, _beside(opening, working, came, on), over)


def _beside(opening: Opening, working: Working | None, came: Opening, on: Working | None) -> Control:
    """The class beside one of bare pages: how it works, or where it does not, how it came."""
    if working is None or on is None:
        frames, server = opening.open_frames_per_second, opening.server_seconds_per_page
        its_frames, its_server, unit = came.open_frames_per_second, came.server_seconds_per_page, "s of server a page"
    else:
        frames, server = working.drawn_frames, working.server_ms_per_frame
        its_frames, its_server, unit = on.drawn_frames, on.server_ms_per_frame, "ms of server a frame"
    return Control(
        frames=frames / its_frames if its_frames else math.nan,
        server=server / its_server if its_server else math.nan,
        opening=opening.median_seconds / came.median_seconds,
        own=f"{its_frames:.1f} frames/s, {its_server:.2f} {unit}, first frame after {came.median_seconds:.2f} s",
    )


class Class:
    """One class on one server. ``kind`` is what a page is: the lab's, or a bare one."""

    def __init__(self, kind: type[LightPage], server: Served, query: str, say: Callable[[str], None]):
        self._kind, self._server, self._say = kind, server, say
        self._url = f"{server.url}{query}"
        self._tasks: list[asyncio.Task[None]] = []

    async def comes(self, pages: int, over: float, minutes: float, path: str) -> tuple[Opening, Working | None, Fed]:
        """How it comes, how it works, and what a page is fed."""
        seen: list[list[float]] = [[] for _ in range(OPEN)]
        views = f"{self._server.url}?{FIVE_VIEWS}"
        before = [await self._opened(views, partial(_note, times)) for times in seen]
        fed = await self._fed(before[0])
        await asyncio.sleep(LATER)
        memory = self._server.megabytes()
        self._say(f"{pages} pages within {over:g} s")
        began, used = time.perf_counter(), self._server.cpu()
        found = await asyncio.gather(*(self._comes_one(self._url, over * k / pages) for k in range(pages)))
        ended, used = time.perf_counter(), self._server.cpu() - used
        there = [page for page, _ in found if page is not None]
        moved = [seconds for page, seconds in found if page is not None]
        standing = []
        for times in seen:
            during = [began, *(t for t in times if began < t < ended), ended]
            standing.append((max(b - a for a, b in pairwise(during)), len(during) - 2))
        opening = Opening(
            pages=pages,
            failed=pages - len(moved),
            median_seconds=statistics.median(moved) if moved else math.nan,
            slowest_seconds=max(moved, default=math.nan),
            server_seconds_per_page=used / pages,
            open_frames_per_second=statistics.mean(frames for _, frames in standing) / (ended - began),
            longest_standstill=max(gap for gap, _ in standing),
        )
        counts = await self._works(there, minutes, memory, path) if minutes and there else None
        for task in self._tasks:
            task.cancel()
        return opening, counts.working() if counts else None, fed

    async def _opened(self, url: str, on_frame: Callable[[], None]) -> LightPage:
        page = self._kind()
        page.on_frame = on_frame
        await page.open(url)
        self._tasks.append(asyncio.create_task(page.take()))
        return page

    async def _comes_one(self, url: str, delay: float) -> tuple[LightPage | None, float]:
        """The page, and the seconds from the request to the first frame; no page where there was none."""
        await asyncio.sleep(delay)
        moved, began = asyncio.Event(), time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE):
                page = await self._opened(url, moved.set)
                await moved.wait()
        except Exception:
            # Whatever it was, this page did not come.
            return None, math.nan
        return page, time.perf_counter() - began

    async def _fed(self, page: LightPage) -> Fed:
        """What a page is fed; nothing is to be known of a bare one."""
        return Fed([], []) if isinstance(page, BarePage) else await Fed.taken(page)

    async def _works(self, pages: Sequence[LightPage], minutes: float, memory: float, path: str) -> Counts:
        self._say(f"{minutes:g} minutes of work")
        bare = self._kind is BarePage
        clicks = [] if bare else [Clicks(page, CLICK_SECONDS * k / len(pages)) for k, page in enumerate(pages)]
        async with in_chromium(path, self._url, self._kind) as watched:
            await asyncio.sleep(SETTLE)
            for page in pages:
                page.frames = 0
                page.on_frame = None
            for one in watched:
                await one.count()
            began, used = time.perf_counter(), self._server.cpu()
            with suppress(TimeoutError):
                async with asyncio.timeout(60 * minutes):
                    clicking = [] if bare else [one.run() for one in clicks] + [one.run() for one in watched]
                    await asyncio.gather(asyncio.sleep(60 * minutes), *clicking)
            took, used = time.perf_counter() - began, self._server.cpu() - used
            frames, seen = [page.frames for page in pages], [await one.counted() for one in watched]
            memory = self._server.megabytes() - memory
        lost = sum(int(task.done()) for task in self._tasks)
        return Counts(
            seconds=took,
            frames=frames,
            come=[come for come, _ in seen],
            drawn=[drawn for _, drawn in seen],
            server_seconds=used,
            clicks=[x for one in clicks for x in one.took],
            drawn_clicks=[x for one in watched for x in one.took],
            megabytes=memory,
            errors=lost + self._server.errors() + sum(one.errors for one in watched),
        )


def _note(times: list[float]) -> None:
    times.append(time.perf_counter())


def p95(seconds: Sequence[float]) -> float:
    """95 % of them are no longer, in milliseconds; nan of none."""
    return 1000 * float(np.quantile(seconds, 0.95)) if seconds else math.nan


class Clicks:
    """Changes a page's step size now and then, and notes how long it takes until a frame marks the change."""

    def __init__(self, page: LightPage, delay: float):
        self.took: list[float] = []
        self._page, self._delay, self._newest = page, delay, -math.inf
        slider = next(x for label, x in labelled(json.loads(page.document)).items() if label.startswith("Step size"))
        data = slider["attributes"]["data"]
        self._slider, self._stop = data["id"], data["attributes"]["value"]
        self._seen = asyncio.Event()

    async def run(self) -> None:
        """Click until cancelled, or until the connection is lost, which is an error of its own."""
        from tornado.websocket import WebSocketClosedError

        await asyncio.sleep(self._delay)
        with suppress(WebSocketClosedError):
            while True:
                await self._click()
                await asyncio.sleep(CLICK_SECONDS)

    async def _click(self) -> None:
        self._seen.clear()
        self._page.on_numbers = self._look
        began = time.perf_counter()
        # By turns, for a step size that is there already is no change.
        for name in ("value", "value_throttled"):
            self._page.set(self._slider, name, self._stop - 1 + len(self.took) % 2)
        try:
            await asyncio.wait_for(self._seen.wait(), LOST_CLICK)
            self.took.append(time.perf_counter() - began)
        except TimeoutError:
            self.took.append(LOST_CLICK)

    def _look(self, numbers: NDArray[np.float64]) -> None:
        newest = newest_mark(numbers, self._page.feeds)
        if newest > self._newest:
            self._newest = newest
            # A mark that comes too late is looked for, too: it is not that of the click after it.
            self._page.on_numbers = None
            self._seen.set()


def newest_mark(numbers: NDArray[np.float64], feeds: Sequence[Any]) -> float:
    """Where the last of a frame's dashed lines stands; they are the feeds of one column of a source."""
    newest, at = -math.inf, 2
    while at < len(numbers):
        _, columns, operation, *_ = feeds[int(numbers[at])]
        length = int(numbers[at + 1])
        if operation == "replace" and len(columns) == 1 and length:
            newest = max(newest, float(numbers[at + 2 : at + 2 + length].max()))
        at += 2 + length * len(columns)
    return newest


_WATCH_MARKS = """() => {
  const marks = () => Bokeh.documents.flatMap((doc) => [...doc._all_models.values()])
    .filter((model) => model.type === "GlyphRenderer" && model.glyph.type === "VSpan")
    .flatMap((model) => [...(model.data_source.data.x ?? [])]).reduce((most, x) => Math.max(most, x), -1)
  window.edit = new Promise((resolve) => {
    document.addEventListener("keydown", () => {
      const before = marks(), began = performance.now()
      const look = () => {
        if (marks() !== before) requestAnimationFrame(() => resolve(performance.now() - began))
        else requestAnimationFrame(look)
      }
      look()
    }, { once: true, capture: true })
  })
}"""


class Watched:
    """A page in Chromium, whose step size is changed by a key."""

    def __init__(self, page: Any):
        self._page = page
        self.took: list[float] = []
        self.errors = 0
        page.on("pageerror", self._note)

    async def open(self, url: str, kind: type[LightPage]) -> None:
        """Open it; no time of it is measured. ``kind`` is what it is, the lab's or a bare one."""
        await self._page.add_init_script(count_coming(kind.IS_FRAME))
        await self._page.goto(url, timeout=1000 * PATIENCE)
        await self._page.locator(".bk-Figure").first.wait_for(timeout=1000 * PATIENCE)

    async def count(self) -> None:
        """Count frames from now on."""
        await self._page.evaluate(COUNT_DRAWN)

    async def counted(self) -> tuple[int, int]:
        """Frames that came and that were drawn."""
        return await self._page.evaluate(COME), await self._page.evaluate(DRAWN)

    def _note(self, _: Any) -> None:
        self.errors += 1

    async def run(self) -> None:
        """Press a key on the slider now and then, until cancelled, or until the page is lost, which is an error."""
        from playwright.async_api import Error

        slider = self._page.get_by_role("slider", name=re.compile("Step size")).first
        try:
            while True:
                await slider.focus()
                await self._page.evaluate(_WATCH_MARKS)
                await slider.press("ArrowLeft" if len(self.took) % 2 else "ArrowRight")
                try:
                    self.took.append(await asyncio.wait_for(self._page.evaluate("window.edit"), LOST_CLICK) / 1000)
                except TimeoutError:
                    self.took.append(LOST_CLICK)
                await asyncio.sleep(CLICK_SECONDS / 4)
        except Error:
            self.errors += 1


@asynccontextmanager
async def in_chromium(path: str, url: str, kind: type[LightPage]) -> AsyncIterator[list[Watched]]:
    """Two pages in the browser at ``path``, which steps back behind the server."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        before = children()
        browser = await playwright.chromium.launch(executable_path=path, headless=True, args=ARGUMENTS)
        watched = [Watched(await browser.new_page(viewport={"width": 1280, "height": 720})) for _ in range(2)]
        for one in watched:
            await one.open(url, kind)
        # Not before: a browser gives threads of a new page priorities of its own.
        put_behind(children() - before)
        yield watched
        await browser.close()
