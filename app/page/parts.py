"""A page is made in parts: between two of them the event loop serves the open pages.

The browser has the HTML after the first part, and loads its scripts while the others are made. Its connection waits
until the page is whole: Panel drops what is changed while a browser loads a page.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import chain, pairwise
from typing import Any
from weakref import WeakKeyDictionary

import panel as pn
from bokeh.document import Document
from panel.io.state import set_curdoc

log = logging.getLogger("sgmcmc-lab")

Part = Callable[[], None]
MOST = 10
"""Objects of Panel in a part, if one has not more by itself: a widget takes 12 ms of a slow core."""
_ASKED: ContextVar["Parts | None"] = ContextVar("parts", default=None)
_MADE: WeakKeyDictionary[Document, asyncio.Event] = WeakKeyDictionary()
"""Whether the page of a document is whole, for those that are made in parts."""


class Parts:
    """The parts of one page that are still to be made."""

    def __init__(self) -> None:
        self.first: list[Part] = []
        """Those that make what the others put on the page."""
        self._document: Document | None = None
        self._parts: Iterable[Part] = ()
        self._failed: Part = lambda: None

    def keep(self, parts: Iterable[Part], failed: Part) -> None:
        """Leave these parts of the current page to :meth:`make`; ``failed`` is done if one cannot be made."""
        self._document, self._parts, self._failed = pn.state.curdoc, parts, failed
        _MADE[self._document] = asyncio.Event()

    async def make(self, between: Callable[[], Awaitable[None]]) -> None:
        """Make them, with ``between`` before each; then the page is whole."""
        if self._document is None:
            return
        with _kept(self._document):
            try:
                for part in chain(self.first, self._parts):
                    await between()
                    await self._make(part, self._document)
            finally:
                _MADE.pop(self._document).set()

    async def _make(self, part: Part, document: Document) -> None:
        with set_curdoc(document):
            try:
                part()
            except Exception:
                log.exception("A part of a page could not be made")
                self._failed()
        if document.session_context is not None:
            # Before a browser is there, Panel changes models in the next turn of the loop.
            done = asyncio.Event()
            document.add_next_tick_callback(done.set)
            await done.wait()

    def __bool__(self) -> bool:
        return self._document is not None


@contextmanager
def _kept(document: Document) -> Iterator[None]:
    """Its session, if it has one, does not end meanwhile: then nobody would make the part that is waited for."""
    context = document.session_context
    session: Any = None if context is None else context.session
    if session is None:
        yield
        return
    session.block_expiration()
    try:
        yield
    finally:
        session.unblock_expiration()


@contextmanager
def in_parts() -> Iterator[Parts]:
    """The page that is made here is made in parts, if it has a page's frame."""
    parts = Parts()
    token = _ASKED.set(parts)
    try:
        yield parts
    finally:
        _ASKED.reset(token)


def do(part: Part) -> None:
    """Do one part now, or, where :func:`in_parts` asks for it, before the others."""
    asked = _ASKED.get()
    if asked is None:
        part()
    else:
        asked.first.append(part)


def keep(take_out: Callable[[], Iterable[Part]], failed: Part) -> None:
    """Leave parts of the current page to later, where :func:`in_parts` asks for it; if one cannot be made, do
    ``failed``.
    """
    asked = _ASKED.get()
    if asked is not None:
        asked.keep(take_out(), failed)


async def whole(document: Document) -> None:
    """Wait until the page of a document is whole."""
    made = _MADE.get(document)
    if made is not None:
        await made.wait()


def taken_out(place: Any, name: str) -> list[Part]:
    """Take the children out of ``place``. Each part puts some of them back, unless somebody has put in others since."""
    children = list(getattr(place, name))
    setattr(place, name, [])

    def put(start: int, stop: int) -> None:
        now = list(getattr(place, name))
        if len(now) == start and all(one is child for one, child in zip(now, children, strict=False)):
            setattr(place, name, children[:stop])

    stops, weight = [0], 0
    for i, child in enumerate(children):
        weight += (own := _weight(child))
        if weight > MOST and i > stops[-1]:
            stops.append(i)
            weight = own
    return [partial(put, start, stop) for start, stop in pairwise([*stops, len(children)])] if children else []


def _weight(child: Any) -> int:
    """How many objects of Panel these are."""
    return 1 + sum(map(_weight, getattr(child, "objects", ())))
