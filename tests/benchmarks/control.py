"""The control: a bare page of five plots of plain Bokeh, fed the same arrays in the same run.

Absolute figures do not travel from machine to machine; how the page does beside this one does.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.app.server.light_page import LightPage
from sgmcmc_lab.app.server.serving import APP, Served, free_port, serving

RATE = 30.0
"""Frames a second of the bare page: what the lab's loop sends at most."""
RECORDED = 60
"""Frames that the bare page is fed over and over."""


@dataclass(frozen=True)
class Control:
    """The page beside the bare one."""

    frames: float
    """The page's frames for one of the bare page's."""
    server: float
    """Its server time a frame for one millisecond of that one's."""
    opening: float
    """Its time to the first frame for one second of that one's."""
    own: str
    """The numbers of the bare page itself."""

    def lines(self) -> tuple[str, ...]:
        """Lines to read."""
        return (
            f"beside a bare page ({self.own}):",
            f"  frames                   {self.frames:6.2f}     (asked: at least .9)",
            f"  server time              {self.server:6.2f}     (asked: at most 2)",
            f"  opening                  {self.opening:6.2f}     (asked: at most 3)",
        )


@dataclass(frozen=True)
class Fed:
    """The arrays that a page was fed, for the bare page."""

    feeds: list[Any]
    """Columns, operation and rollover of each."""
    frames: list[NDArray[np.float64]]

    @classmethod
    async def taken(cls, page: LightPage) -> "Fed":
        """The frames with which the page is fed from now on. Somebody else takes its messages."""
        frames: list[NDArray[np.float64]] = []
        page.on_numbers = frames.append
        while len(frames) < RECORDED:
            await asyncio.sleep(0.05)
        page.on_numbers = None
        return cls([feed[1:4] for feed in page.feeds], frames)

    def save(self, path: Path) -> None:
        """Write a file for ``app/live/bare.py``."""
        np.savez(
            path, feeds=json.dumps(self.feeds), numbers=np.concatenate(self.frames), lengths=list(map(len, self.frames))
        )


LAST_MESSAGE = '"data":{"type":"map","entries":[["frame"'
"""Is in the last of those that are a frame of the bare page."""


class BarePage(LightPage):
    """A connection to the bare page."""

    async def open(self, url: str, host: str = "") -> None:
        """Connect, and say that the page is there."""
        await self.connect(url, host)
        self.event("document_ready", {})

    async def take(self) -> None:
        """Count its frames, until it is cancelled."""
        while (message := await self._socket.read_message()) is not None:
            if isinstance(message, str) and LAST_MESSAGE in message:
                self.frames += 1
                if self.on_frame is not None:
                    self.on_frame()


@contextmanager
def bare(option: str, fed: Fed, rate: float) -> Iterator[Served]:
    """The bare page, served; so many frames a second."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "fed.npz"
        fed.save(path)
        arguments = ["bokeh", "serve", str(APP / "live" / "bare.py"), "--args", str(path), str(rate)]
        with serving(option, arguments, "bare", free_port()) as server:
            yield server
