"""The checks of ``sgmcmc-lab --check`` on an installation: its versions, its patches, and whether a page opens."""

import asyncio
import importlib.metadata
import time
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

from sgmcmc_lab.app.server.light_page import LightPage

FRAME_SECONDS = 120.0
"""The first frame may wait for functions that are still to be compiled."""

CLOSING_SECONDS = 0.2


def untested(name: str = "sgmcmc-lab") -> Iterator[str]:
    """A sentence for each library that is missing, or whose version no test has run with."""
    for text in importlib.metadata.requires(name) or ():
        need = Requirement(text)
        if need.marker is not None and not need.marker.evaluate({"extra": ""}):
            continue
        try:
            version = importlib.metadata.version(need.name)
        except importlib.metadata.PackageNotFoundError:
            yield f"{need.name} is not installed: tested are {need.specifier}"
            continue
        if not need.specifier.contains(version, prereleases=True):
            yield f"{need.name} {version} lies outside the tested versions, {need.specifier}"


def patches_off() -> Iterator[str]:
    """A sentence for each patch whose function in a library is another than it was written for."""
    from sgmcmc_lab.app.server.patches import PATCHES

    for patch in PATCHES:
        if not patch.fits:
            yield f"{patch.without}: {patch.function} is unknown"


def first_frame() -> float:
    """Open the page as a browser does, in this process, and return the seconds until its first frame.

    Raises the error of whatever keeps the page from opening, or TimeoutError.
    """
    from bokeh.server.server import Server
    from panel.io.application import build_single_handler_application
    from tornado.ioloop import IOLoop

    from sgmcmc_lab.app.page import shell  # noqa: F401 - the seconds are those of a page, without its import
    from sgmcmc_lab.app.server import handlers, patches

    handlers.install()
    patches.install()

    async def opened() -> float:
        application = build_single_handler_application(str(Path(__file__).parent.parent / "main.py"))
        server = Server({"/app": application}, port=0, address="127.0.0.1", io_loop=IOLoop.current())
        server.start()
        began, page, came = time.perf_counter(), LightPage(), asyncio.Event()
        page.on_frame = came.set
        try:
            await page.open(f"http://localhost:{server.port}/app")
            taking = asyncio.create_task(page.take())
            await asyncio.wait_for(came.wait(), FRAME_SECONDS)
            seconds = time.perf_counter() - began
            # A frame that is on its way would be answered after the end.
            taking.cancel()
            page.close()
            # The server has its end of the connection to close.
            await asyncio.sleep(CLOSING_SECONDS)
            return seconds
        finally:
            server.stop()

    return asyncio.run(opened())
