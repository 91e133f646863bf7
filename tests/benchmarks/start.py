"""The first start on a machine: how long until the page moves, and until everything is compiled, with an empty cache.

The page is a raw connection, as in ``page``. Needs the extra ``bench``.
"""

import asyncio
import importlib
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from sgmcmc_lab.app.server.light_page import LightPage
from sgmcmc_lab.app.server.serving import served
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import SpecError
from tests.benchmarks.page import FIVE_VIEWS

PATIENCE = 600.0
"""Seconds until everything is compiled, at most."""
LOOK_SECONDS = 0.2
"""How often it is looked for functions that have come."""
SAY_SECONDS = 15.0
"""How often it is said how many."""
CACHE = "SGMCMC_LAB_CACHE"


@dataclass(frozen=True)
class StartReport:
    """The measurements, counted from the command that starts the server."""

    page_seconds: float
    """Until the page is there."""
    moving_seconds: float
    """Until the first frame."""
    compiled_seconds: float
    """Until all functions that the engine declares are compiled, or nobody waited any more."""
    functions: int
    """That were compiled by then."""
    declared: int
    frames_per_second: float
    """The frames of the page, while the rest is compiled."""
    longest_standstill: float
    """The longest standstill of the page meanwhile, in seconds."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def as_text(report: StartReport) -> str:
    """The report as lines to read."""
    return "\n".join(
        (
            f"the page is there after    {report.page_seconds:6.1f} s   (nothing compiled)",
            f"it moves after             {report.moving_seconds:6.1f} s",
            f"after                      {report.compiled_seconds:6.1f} s   {report.functions} of {report.declared} functions are compiled"
            + ("" if report.functions == report.declared else ", and nobody waited for the rest"),
            f"frames meanwhile           {report.frames_per_second:6.1f} /s",
            f"its longest standstill     {report.longest_standstill:6.2f} s",
        )
    )


def measure(quick: bool, say: Callable[[str], None]) -> StartReport:
    """Serve the app with an empty cache; ``quick`` does not wait until all is compiled."""
    importlib.import_module("sgmcmc_lab.samplers.models")
    before = os.environ.get(CACHE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE] = folder
        try:
            say("the first start")
            began = time.perf_counter()
            with served("--start") as server:
                watching = _watch(f"{server.url}?{FIVE_VIEWS}", files(), began, 5.0 if quick else PATIENCE, say)
                return asyncio.run(watching)
        finally:
            if before is None:
                del os.environ[CACHE]
            else:
                os.environ[CACHE] = before


def files() -> list[Path]:
    """The cache files of each of the engine's compiled functions.

    Benches have functions of their own, which no server compiles.
    """
    assert jit.FOLDER is not None, "nothing can be written to"
    found = [jit.kept_in(f) for f in jit.declared() if not f.py_func.__module__.startswith(str(__package__))]
    return [path.relative_to(jit.FOLDER) for path in found if path is not None]


def kept(folder: Path, wanted: Sequence[Path]) -> int:
    """How many of these files are there."""
    return sum((folder / file).exists() for file in wanted)


async def _watch(
    url: str, wanted: Sequence[Path], began: float, patience: float, say: Callable[[str], None]
) -> StartReport:
    folder, page, times = jit.cache_folder(), LightPage(), list[float]()
    moves = asyncio.Event()

    def framed() -> None:
        times.append(time.perf_counter())
        moves.set()

    page.on_frame = framed
    await page.open(url)
    there = time.perf_counter()
    taking = asyncio.create_task(page.take())
    try:
        await asyncio.wait_for(moves.wait(), PATIENCE)
    except TimeoutError:
        raise SpecError("--start", url, "the page did not move") from None
    say("it moves; the rest is compiled")
    newest = said = time.perf_counter()
    while (there_are := kept(folder, wanted)) < len(wanted) and newest - times[0] < patience:
        if newest - said > SAY_SECONDS:
            say(f"{there_are} of {len(wanted)} functions are compiled")
            said = newest
        await asyncio.sleep(LOOK_SECONDS)
        newest = time.perf_counter()
    taking.cancel()
    page.close()
    during = [t for t in times if t <= newest] or times[:1]
    return StartReport(
        page_seconds=there - began,
        moving_seconds=times[0] - began,
        compiled_seconds=newest - began,
        functions=there_are,
        declared=len(wanted),
        frames_per_second=(len(during) - 1) / max(newest - times[0], 1e-9),
        longest_standstill=max((b - a for a, b in pairwise(during)), default=float("nan")),
    )
