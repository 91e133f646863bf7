"""What is meant for a page is sent to it, also while something else is being sent.

Panel keeps changes that cannot be sent at once and a task sends them. If one is kept just before the task before it is
done, that one takes away the sign that something waits, and the change stays on the server until the next one: the
figures of a new energy, while the old ones went on moving.
"""

from bokeh.document import Document
from panel.io import document

_library_dispatch = document._dispatch_msgs


def keep() -> None:
    """Must run before there is a page. A second call changes nothing."""
    document._dispatch_msgs = _dispatch


async def _dispatch(doc: Document) -> None:
    """Panel's own, but not only with the sign: also where something waits, under its name before or since 1.10."""
    if any(doc in getattr(document, waiting, ()) for waiting in ("_WRITE_MSGS", "_WRITE_EVENTS")):
        document._WRITE_BLOCK[doc] = True
    await _library_dispatch(doc)
