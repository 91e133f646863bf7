"""How the memory of pages is given back without a look at all of it.

A page is some 14,000 objects that hold each other in circles. Python's collector would find one that has ended, but it
looks at all pages for that, 13 ms for each, and everybody's frames wait. So the circles of a page that ends are cut,
and its objects go as the last reference to them does; and the collector is told to leave out what is on open pages.
"""

import gc
from collections.abc import Iterator
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

import param
from bokeh.document import Document
from bokeh.model import Model
from panel.io import document
from panel.io.state import state
from panel.reactive import Syncable

from app.lesson.place import Place
from app.state import AppState

REST_SECONDS = 2.0
"""How long after the end of a page its parts are kept whole, for work that is under way."""

WHOLE = 10
"""After so many pages the collector looks at all, as soon as nothing moves on any: everybody stands still for 13 ms for
each that is open, and for a quarter of a second for the libraries. What a page leaves behind when it is cut is some
hundred objects of its connection; and of an edit that replaces widgets or figures some thousand, where another page was
opened in between. A hundred pages under hostile edits left 1.4 million, which took 3.7 s at once."""
AT_LATEST = 60
"""After so many it looks although something moves, but not while people wait for their pages."""

_CONTAINERS = (list, tuple, set, frozenset)
_made: list[None] = []
"""One for each page since the last look at all."""
_library_destroy = Model.destroy


def install() -> None:
    """Must run before there is a page. A second call changes nothing."""
    Model.destroy = _destroy
    # What Panel would do some seconds after the end of each page.
    document._garbage_collect = lambda: None


def leave_out() -> None:
    """A page has just been made: let the collector leave out all that there is now."""
    _made.append(None)
    gc.collect()
    gc.freeze()


def look(quiet: bool) -> None:
    """Let the collector look at all, if enough pages were made; ``quiet`` says that nothing moves on any."""
    if len(_made) >= (WHOLE if quiet else AT_LATEST):
        _made.clear()
        gc.unfreeze()
        gc.collect()
        gc.freeze()


def cut(session: Any) -> None:
    """Cut the circles of a page that has ended, and on which nothing runs any more."""
    for part in [*parts(session), *roots(session._document)]:
        private = part._param__private
        for kept in (private.watchers, private.params, private.values, private.refs, part.__dict__):
            kept.clear()
    session.__dict__.clear()


def roots(document: Document) -> list[Any]:
    """What Panel keeps a document's roots by, and goes on keeping of all but the first: the page's messages."""
    found = [(ref, view) for ref, (view, _, of, _) in state._views.items() if of is document]
    for ref, _ in found:
        del state._views[ref]
    return [view for _, view in found]


def parts(session: Any) -> Iterator[param.Parameterized]:
    """What has parameters and is the page's own: state and widgets, those that are not shown now among them."""
    seen: set[int] = set()
    left = [session]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        # Targets and the library's designs have parameters, too, and are for all pages.
        if isinstance(one, Syncable | AppState | Place):
            private = one._param__private
            left += [one.__dict__, private.values, private.watchers]
            yield one
        elif isinstance(one, dict):
            left += one.values()
        elif isinstance(one, _CONTAINERS):
            left += one
        elif isinstance(one, MethodType):
            left.append(one.__self__)
        elif isinstance(one, FunctionType):
            left += one.__closure__ or ()
        elif isinstance(one, CellType):
            left.append(one.cell_contents)
        elif isinstance(one, partial):
            left += [one.func, one.args, one.keywords]
        elif type(one).__module__.startswith("app."):
            left.append(vars(one))


def _destroy(self: Model) -> None:
    """Bokeh's own leaves values that hold their model, to tell it when they change."""
    _library_destroy(self)
    for kept in (self._unstable_default_values, self._unstable_themed_values, self._callbacks, self._event_callbacks):
        kept.clear()
