"""A class opens the page: so many connections in the same second, beside two pages that are open already.

The connections are raw ones, as those of ``page``: they open the page, take its frames and answer them, and draw
nothing, so that one machine can have a whole class of them. Needs the extra ``bench``.
"""

import asyncio
import importlib
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from samplers import jit
from samplers.benchmarks.page import FIVE_VIEWS, LightPage, served
from samplers.parameters import SpecError

MOST = 300
"""Pages at most: a lecture hall."""
OPEN = 2
"""Pages that are open already."""
PATIENCE = 120.0
"""A page that has not moved after so many seconds has failed."""
LATER = 15.0
"""For so long the server is left alone before the class comes, and it may make pages ready."""

SECOND = 1.0
"""In which all ask for the page."""


@dataclass(frozen=True)
class ClassReport:
    """What was measured. Server time is that of the whole process, the engine's included."""

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

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def as_text(report: ClassReport) -> str:
    """The report as lines to read."""
    return "\n".join(
        (
            f"pages in the same second   {report.pages:6d}",
            f"did not move               {report.failed:6d}     (asked: 0)",
            f"first frame, median        {report.median_seconds:6.2f} s   (asked: under 5)",
            f"first frame, slowest       {report.slowest_seconds:6.2f} s   (asked: under 10)",
            f"server time for each       {report.server_seconds_per_page:6.3f} s",
            f"frames of an open page     {report.open_frames_per_second:6.1f} /s  (asked: at least 5)",
            f"its longest standstill     {report.longest_standstill:6.2f} s   (asked: under .5)",
        )
    )


def measure(pages: int, say: Callable[[str], None]) -> ClassReport:
    """Serve the app, and let so many open it. Raises :class:`SpecError` where a package is missing."""
    if not 1 <= pages <= MOST:
        raise SpecError("--class", pages, f"allowed are from 1 to {MOST} pages")
    try:
        import psutil
        from tornado.httpclient import AsyncHTTPClient
    except ImportError as error:
        raise SpecError("--class", error.name, 'it needs the extra bench: pip install -e ".[bench]"') from None
    # By itself the client would let ten ask at a time.
    AsyncHTTPClient.configure(None, max_clients=2 * MOST)
    say("warming the caches")
    importlib.import_module("samplers.models")
    jit.prepare(jit.declared())
    with served("--class") as (url, process):
        server = psutil.Process(process.pid)

        def cpu() -> float:
            times = server.cpu_times()
            return float(times.user + times.system)

        return asyncio.run(_class_comes(url, pages, cpu, say))


async def _class_comes(url: str, pages: int, cpu: Callable[[], float], say: Callable[[str], None]) -> ClassReport:
    say(f"{OPEN} pages")
    seen: list[list[float]] = [[] for _ in range(OPEN)]
    tasks = []
    for times in seen:
        page = LightPage()
        page.on_frame = lambda times=times: times.append(time.perf_counter())
        await page.open(f"{url}?{FIVE_VIEWS}")
        tasks.append(asyncio.create_task(page.take()))
    await asyncio.sleep(LATER)
    say(f"{pages} pages in the same second")
    began, used = time.perf_counter(), cpu()
    found = await asyncio.gather(*(_open_one(url, SECOND * k / pages, tasks) for k in range(pages)))
    ended, used = time.perf_counter(), cpu() - used
    for task in tasks:
        task.cancel()
    moved = [seconds for seconds in found if seconds is not None]
    standing = []
    for times in seen:
        during = [began, *(t for t in times if began < t < ended), ended]
        standing.append((max(b - a for a, b in pairwise(during)), len(during) - 2))
    return ClassReport(
        pages=pages,
        failed=pages - len(moved),
        median_seconds=statistics.median(moved) if moved else float("nan"),
        slowest_seconds=max(moved, default=float("nan")),
        server_seconds_per_page=used / pages,
        open_frames_per_second=statistics.mean(frames for _, frames in standing) / (ended - began),
        longest_standstill=max(gap for gap, _ in standing),
    )


async def _open_one(url: str, delay: float, tasks: list[Any]) -> float | None:
    """Seconds from the request to the first frame; None where there was none."""
    await asyncio.sleep(delay)
    page, moved = LightPage(), asyncio.Event()
    page.on_frame = moved.set
    began = time.perf_counter()
    try:
        async with asyncio.timeout(PATIENCE):
            await page.open(url)
            tasks.append(asyncio.create_task(page.take()))
            await moved.wait()
    except Exception:
        # Whatever it was, this page did not come.
        return None
    return time.perf_counter() - began
