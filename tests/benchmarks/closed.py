"""The memory that pages leave behind: the server's memory after some were opened and closed, and after many more.

Each page is a raw connection that opens it, takes a few frames and leaves. Needs the extra ``bench``.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from sgmcmc_lab.app.server.light_page import LightPage
from sgmcmc_lab.app.server.serving import Served, needs, served, warm
from sgmcmc_lab.samplers.parameters import SpecError

FIRST = 20
"""Pages after which memory is first looked at: the libraries and the caches have what they keep."""
MOST = 2000
FRAMES = 10
"""That each page takes before it leaves."""
ENDED = 25.0
"""So many seconds after the last of them has left, the server has ended their sessions: Bokeh waits for 15."""
GROWTH = 1.05
"""The bound on the memory after all pages, relative to that after the first."""


@dataclass(frozen=True)
class ClosedReport:
    """The measurements, in megabytes."""

    pages: int
    first: float
    last: float
    seconds: float
    """The server's time for each page."""

    @property
    def growth(self) -> float:
        """The memory after all for that after the first."""
        return self.last / self.first

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "growth": self.growth}


def as_text(report: ClosedReport) -> str:
    """The report as lines to read."""
    each = 1000 * (report.last - report.first) / (report.pages - FIRST)
    return "\n".join(
        (
            f"memory after {FIRST:4d} pages   {report.first:8.1f} MB",
            f"memory after {report.pages:4d} pages   {report.last:8.1f} MB   {report.growth:.3f} of it  (asked: at most {GROWTH})",
            f"left by each page         {each:8.0f} kB",
            f"server time for each      {report.seconds:8.3f} s",
        )
    )


def measure(pages: int, say: Callable[[str], None]) -> ClosedReport:
    """Serve the app, open and close so many pages. Raises :class:`SpecError`."""
    if not FIRST < pages <= MOST:
        raise SpecError("--closed", pages, f"allowed are from {FIRST + 1} to {MOST} pages")
    needs("--closed", "psutil", "tornado")
    warm(say)
    with served("--closed") as server:
        return asyncio.run(_open_and_close(server, pages, say))


async def _open_and_close(server: Served, pages: int, say: Callable[[str], None]) -> ClosedReport:
    used, found = server.cpu(), []
    for n in (FIRST, pages - FIRST):
        say(f"{n} pages, one after the other")
        for _ in range(n):
            await _one(server.url)
        await asyncio.sleep(ENDED)
        found.append(server.megabytes())
    return ClosedReport(pages, found[0], found[1], (server.cpu() - used) / pages)


async def _one(url: str) -> None:
    page = LightPage()
    await page.open(url)
    taking = asyncio.create_task(page.take())
    until = time.perf_counter() + 60
    while page.frames < FRAMES and time.perf_counter() < until:
        await asyncio.sleep(0.02)
    taking.cancel()
    page.close()
