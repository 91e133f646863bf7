"""The memory of pages, and Python's collector.

A page is some 14,000 objects that hold each other in cycles. The collector looks at all open pages to find one that has
ended, 13 ms for each, and every frame waits. So it leaves out the objects of open pages, and looks at all of them only
after some pages, while nothing moves.
"""

import gc

from bokeh.document import Document
from panel.io.state import state

from app.patches import reads

WHOLE = 10
"""After so many pages the collector looks at all, as soon as nothing moves on any."""
AT_LATEST = 60
"""After so many it looks although something moves, but not while people wait for their pages."""

_made: list[None] = []
"""One for each page since the last look at all."""


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


def forget_roots(document: Document) -> None:
    """Panel forgets the first root of a document that ends, and keeps the others: the page's messages, and the page."""
    if reads("panel.viewable:Viewable._server_destroy"):
        for ref in [ref for ref, (_, _, of, _) in state._views.items() if of is document]:
            del state._views[ref]
