"""A class on the whole lab: many connections open the page in the same second, and then work for some minutes.

The connections are raw: they open the page, take and answer its frames, and draw nothing, so that one machine can hold
a whole class. Two pages are open before the class comes. While it works, two more run in a real Chromium, which gets
only the processor time that the server leaves, because a class's browsers run on other machines. Then a bare page of
plain Bokeh goes through the same test. Needs the extra ``bench``.
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

from sgmcmc_lab.app.server.light_page import LightPage, labelled
from sgmcmc_lab.app.server.serving import (
    ARGUMENTS,
    Served,
    browser_path,
    children,
    needs,
    put_behind,
    served,
    warm,
)
from sgmcmc_lab.samplers.parameters import SpecError
from tests.benchmarks.control import BarePage, Control, Fed, bare
from tests.benchmarks.page import COME, COUNT_DRAWN, DRAWN, FIVE_VIEWS, count_coming

MOST = 300
"""Pages at most: a lecture hall."""
MOST_MINUTES = 60.0
MOST_SECONDS = 600.0
"""The longest time over which the class comes."""
OPEN = 2
"""Pages that are open before the class comes."""
PATIENCE = 120.0
"""A page that has not moved after this many seconds has failed."""
LATER = 15.0
"""Seconds of rest for the server before the class comes."""
SETTLE = 5.0
"""Seconds of rest after the class has come, before its work is measured."""

WORKING = "?lane=sgld&lane=hmc&views=state,ks,trace"
"""The experiment of a class at work: two lanes and three views, one of which marks changes of a step size."""
CONTROL_RATE = 10.0
"""Frames per second of the bare page, the rate required of each page of the class."""
CONTROL_MINUTES = 1.0
"""The longest work of the bare page."""
CLICK_SECONDS = 20.0
"""Seconds between two changes of a step size on a page."""
LOST_CLICK = 5.0
"""A click without an effect after this many seconds is counted with this time."""


@dataclass(frozen=True)
class Opening:
    """The opening of a class. Server time is that of the whole process, including the engine."""

    pages: int
    failed: int
    """Pages that did not move."""
    median_seconds: float
    """From the request to the first frame."""
    slowest_seconds: float
    server_seconds_per_page: float
    """From the first request until the last page has moved, including the frames of all pages meanwhile."""
    open_frames_per_second: float
    """The frames of a page that was already open, meanwhile."""
    longest_standstill: float
    """The longest standstill of those pages, in seconds."""


@dataclass(frozen=True)
class Working:
    """The class at work."""

    minutes: float
    fewest_frames: float
    """Per second, of a connection."""
    median_frames: float
    drawn_frames: float
    """Per second, drawn by the slower of the two pages in Chromium."""
    server_cores: float
    server_ms_per_frame: float
    click_ms: float
    """The 95 % quantile of the time from a click to the frame with its effect, on a raw connection."""
    drawn_click_ms: float
    """The same in Chromium, until the frame is painted."""
    clicks: int
    megabytes_per_page: float
    """Growth of the server's memory since before the class came."""
    errors: int
    """Connections lost, errors in the server's log, and in Chromium."""


@dataclass(frozen=True)
class Counts:
    """The counts of a class at work."""

    seconds: float
    """The length of the work."""
    frames: list[int]
    """Frames of each connection."""
    come: list[int]
    """Frames that came to each of the pages in Chromium."""
    drawn: list[int]
    """Frames that each of them drew."""
    server_seconds: float
    clicks: list[float]
    """Seconds until a connection saw the effect of each."""
    drawn_clicks: list[float]
    """The same until Chromium had painted it."""
    megabytes: float
    """Growth of the server's memory, for the connections and the pages in Chromium."""
    errors: int

    def working(self) -> Working:
        """The figures of the report."""
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
    """The measurements."""

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
    """A line of a report: a figure and its requirement."""
    return f"  {what:<25}{value:<19}{f'(asked: {asked})' if asked else ''}".rstrip()


def measure(pages: int, say: Callable[[str], None], minutes: float = 0.0, over: float = 1.0) -> ClassReport:
    """Serve the app, open this many pages within ``over`` seconds, and let them work for ``minutes``.

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
    # By default the client makes only ten requests at a time.
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
    """The class relative to one of bare pages: at work, or at the opening if it does not work."""
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
    """One class on one server. ``kind`` is the type of its pages: the lab's, or bare ones."""

    def __init__(self, kind: type[LightPage], server: Served, query: str, say: Callable[[str], None]):
        self._kind, self._server, self._say = kind, server, say
        self._url = f"{server.url}{query}"
        self._tasks: list[asyncio.Task[None]] = []

    async def comes(self, pages: int, over: float, minutes: float, path: str) -> tuple[Opening, Working | None, Fed]:
        """Measure the opening and the work; returns also the data fed to a page."""
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
        """The page, and the seconds from the request to the first frame; None and nan if it failed."""
        await asyncio.sleep(delay)
        moved, began = asyncio.Event(), time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE):
                page = await self._opened(url, moved.set)
                await moved.wait()
        except Exception:
            # After any error, this page is missing.
            return None, math.nan
        return page, time.perf_counter() - began

    async def _fed(self, page: LightPage) -> Fed:
        """The data fed to a page; empty for a bare one."""
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
    """The 95 % quantile in milliseconds; nan without values."""
    return 1000 * float(np.quantile(seconds, 0.95)) if seconds else math.nan


class Clicks:
    """Changes a page's step size at intervals, and notes the time until a frame marks the change."""

    def __init__(self, page: LightPage, delay: float):
        self.took: list[float] = []
        self._page, self._delay, self._newest = page, delay, -math.inf
        slider = next(x for label, x in labelled(json.loads(page.document)).items() if label.startswith("Step size"))
        data = slider["attributes"]["data"]
        self._slider, self._stop = data["id"], data["attributes"]["value"]
        self._seen = asyncio.Event()

    async def run(self) -> None:
        """Click until cancelled, or until the connection is lost, which is counted separately."""
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
        # Two values in turn, because the same step size again is no change.
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
            # A late mark is awaited, too, so that it is not taken for that of the next click.
            self._page.on_numbers = None
            self._seen.set()


def newest_mark(numbers: NDArray[np.float64], feeds: Sequence[Any]) -> float:
    """The position of the last dashed line in a frame; such lines are the feeds with a single column."""
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
    """A page in Chromium, whose step size a key changes."""

    def __init__(self, page: Any):
        self._page = page
        self.took: list[float] = []
        self.errors = 0
        page.on("pageerror", self._note)

    async def open(self, url: str, kind: type[LightPage]) -> None:
        """Open the page, untimed. ``kind`` is its type, the lab's or a bare one."""
        await self._page.add_init_script(count_coming(kind))
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
        """Press a key on the slider at intervals, until cancelled, or until the page is lost, which is an error."""
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
    """Two pages in the browser at ``path``, which gets a lower priority than the server."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        before = children()
        browser = await playwright.chromium.launch(executable_path=path, headless=True, args=ARGUMENTS)
        watched = [Watched(await browser.new_page(viewport={"width": 1280, "height": 720})) for _ in range(2)]
        for one in watched:
            await one.open(url, kind)
        # Not before: a browser itself sets the priorities of a new page's threads.
        put_behind(children() - before)
        yield watched
        await browser.close()
