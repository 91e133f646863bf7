"""What is meant for a page is sent to it, also while something else is being sent, or while it is being drawn.

Panel keeps changes that cannot be sent at once and a task sends them. If one is kept just before the task before it is
done, that one takes away the sign that something waits, and the change stays on the server until the next one: the
figures of a new energy, while the old ones went on moving.

What is changed under :func:`panel.io.hold` before a page says that it is drawn Panel drops, as part of the document
that is still to be written out. But the browser has taken the document a second earlier: a student's page that came
back into its room said *Pause* for as long as it was open, and was paused.
"""

import threading
from typing import Any

from bokeh.document import Document
from bokeh.document.events import DocumentPatchedEvent, MessageSentEvent
from panel.io import document

_library_dispatch, _library_drain = document._dispatch_msgs, document._drain_unconnected_events


def keep() -> None:
    """Must run before there is a page. A second call changes nothing."""
    document._dispatch_msgs = _dispatch
    document._drain_unconnected_events = _drain


async def _dispatch(doc: Document) -> None:
    """Panel's own, but not only with the sign: also where something waits, under its name before or since 1.10."""
    if any(doc in getattr(document, waiting, ()) for waiting in ("_WRITE_MSGS", "_WRITE_EVENTS")):
        document._WRITE_BLOCK[doc] = True
    await _library_dispatch(doc)


def _drain(doc: Document, lock: threading.Lock) -> list[Any]:
    """What is to be sent of the changes that were held: Panel's own, and where a browser listens, all. Messages wait
    until there is a component that hears them.
    """
    held = list(doc.callbacks._held_events)
    kept = list(_library_drain(doc, lock))
    session = getattr(doc.session_context, "session", None)
    if session is not None and session._subscribed_connections:
        kept += [one for one in held if isinstance(one, DocumentPatchedEvent) and not isinstance(one, MessageSentEvent)]
    return kept
