"""A page is made in pieces, and between two of them the loop is for the pages that are there.

What makes a page is one long call into the libraries. It runs in a stack of its own (a greenlet, in the same thread),
which it leaves wherever a model or a component has just been made, if it has had the loop for long enough.
"""

import asyncio
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import bokeh.io.doc
import panel as pn
from bokeh.application.application import Application, SessionContext
from bokeh.core.property.bases import Property
from bokeh.document import Document
from bokeh.model import Model
from greenlet import getcurrent, greenlet
from panel.reactive import Syncable

PIECE = 0.012
"""Seconds of the loop after which the others have their turn; a piece ends with the model that is being made."""
MOMENT = 0.001
"""A loop that answers within so many seconds has nothing else to do."""
REST = 1.0
"""While the loop has something else to do, it is left to it for up to this multiple of the time that a piece took."""
IN_PLACE: list[tuple[type, str]] = [(Syncable, "__init__"), (Model, "__init__"), (Model, "to_serializable")]
"""After each of these a page may be left as it is for a moment."""


class _Work(greenlet):
    """What is done in pieces."""

    began = 0.0
    documents = 0
    """How many documents were current when it was begun."""


async def rest(taken: float) -> None:
    """Let the others have the loop, until they want nothing of it or have had it for as long as it was ``taken``."""
    until = time.perf_counter() + taken
    busy = True
    while busy:
        asked = time.perf_counter()
        await asyncio.sleep(0)
        now = time.perf_counter()
        busy = now - asked > MOMENT and now < until


async def in_pieces(work: Callable[[], Any], share: float = REST) -> Any:
    """Do work that holds the loop for long, in pieces; return what it returns, or raise what it raises.

    The others may have the loop for up to ``share`` of the time that a piece took.
    """
    doing = _Work(work)
    doing.gr_context = copy_context()
    doing.documents = len(bokeh.io.doc._PATCHED_CURDOCS)
    while True:
        doing.began = time.perf_counter()
        result = doing.switch()
        if doing.dead:
            return result
        await rest(share * (time.perf_counter() - doing.began))


def breathe() -> None:
    """Within work that is done in pieces: let the others have their turn, if this piece was long enough."""
    here = getcurrent()
    if not isinstance(here, _Work) or time.perf_counter() - here.began < PIECE:
        return
    # Switches of the libraries that are for all documents: others must not find them on.
    if pn.layout.base.Panel._batch_update or not Property._should_validate:
        return
    # Bokeh's stack of current documents is for all, too: somebody else's event would be taken for this page's.
    current = bokeh.io.doc._PATCHED_CURDOCS
    mine = current[here.documents :]
    del current[here.documents :]
    here.parent.switch()
    here.documents = len(current)
    current += mine


def install() -> None:
    """Let the libraries breathe. Must run before there is a page; a second call changes nothing."""
    for owner, name in IN_PLACE:
        original = getattr(owner, name)
        if not hasattr(original, "breathes"):
            setattr(owner, name, _breathing(original))


def _breathing(original: Callable[..., Any]) -> Callable[..., Any]:
    def then_breathe(*args: Any, **named: Any) -> Any:
        made = original(*args, **named)
        breathe()
        return made

    then_breathe.__dict__.update(breathes=True, __wrapped__=original)
    return then_breathe


def keep(application: Application) -> None:
    """Let an application fill its new documents in pieces: there, where it may wait."""
    created, fill = application.on_session_created, application.initialize_document

    async def on_session_created(context: SessionContext) -> None:
        await created(context)
        await in_pieces(lambda: fill(context._document))

    def filled(document: Document) -> None:
        """Bokeh asks for it right after that."""

    application.on_session_created = on_session_created  # type: ignore[method-assign]
    application.initialize_document = filled  # type: ignore[method-assign]
