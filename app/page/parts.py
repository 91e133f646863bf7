"""A page is made in parts: between two of them the event loop serves the open pages.

The browser has the HTML after the first part, and loads its scripts while the others are made. Its connection waits
until the page is whole: Panel drops what is changed while a browser loads a page.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import panel as pn
from bokeh.document import Document
from panel.io.state import set_curdoc

log = logging.getLogger("sgmcmc-lab")

Part = Callable[[], None]
_ASKED: ContextVar["Parts | None"] = ContextVar("parts", default=None)
_MADE: WeakKeyDictionary[Document, asyncio.Event] = WeakKeyDictionary()
"""Whether the page of a document is whole, for those that are made in parts."""


class Parts:
    """The parts of one page that are still to be made."""

    def __init__(self) -> None:
        self._document: Document | None = None
        self._parts: Sequence[Part] = ()

    def keep(self, parts: Sequence[Part]) -> None:
        """Leave these parts of the current page to :meth:`make`."""
        self._document, self._parts = pn.state.curdoc, parts
        _MADE[self._document] = asyncio.Event()

    async def make(self, between: Callable[[], Awaitable[None]]) -> None:
        """Make them, with ``between`` before each; then the page is whole."""
        if self._document is None:
            return
        try:
            for part in self._parts:
                await between()
                with set_curdoc(self._document):
                    try:
                        part()
                    except Exception:
                        log.exception("A part of a page could not be made")
        finally:
            _MADE.pop(self._document).set()

    def __bool__(self) -> bool:
        return self._document is not None


@contextmanager
def in_parts() -> Iterator[Parts]:
    """The page that is made here is made in parts, if it has a page's frame."""
    parts = Parts()
    token = _ASKED.set(parts)
    try:
        yield parts
    finally:
        _ASKED.reset(token)


def keep(make: Callable[[], Sequence[Part]]) -> None:
    """Leave parts of the current page to later, where :func:`in_parts` asks for it; ``make`` takes them out."""
    asked = _ASKED.get()
    if asked is not None:
        asked.keep(make())


async def whole(document: Document) -> None:
    """Wait until the page of a document is whole."""
    made = _MADE.get(document)
    if made is not None:
        await made.wait()


def taken_out(place: Any, name: str, at_a_time: int = 1) -> list[Part]:
    """Take the children out of ``place``. Each part puts so many back, if nobody has put others there meanwhile."""
    children = list(getattr(place, name))

    def put(n: int) -> None:
        now = list(getattr(place, name))
        if len(now) == n and all(one is child for one, child in zip(now, children, strict=False)):
            setattr(place, name, children[: n + at_a_time])

    setattr(place, name, [])
    return [partial(put, n) for n in range(0, len(children), at_a_time)]
