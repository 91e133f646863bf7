"""A page's document, written out before its browser asks for it: in pieces, or while nobody waits."""

from typing import Any
from weakref import WeakKeyDictionary

from bokeh.protocol.message import Message
from bokeh.protocol.messages.pull_doc_reply import pull_doc_reply
from bokeh.server.session import ServerSession

from app.guard.pieces import in_pieces

_WRITTEN: "WeakKeyDictionary[ServerSession, _Written]" = WeakKeyDictionary()


class _Written:
    """What a browser is told, until the document is another."""

    message: Message[Any] | None = None
    changed = False

    def note(self, _: Any) -> None:
        self.message, self.changed = None, True


async def write(session: ServerSession) -> None:
    """Write out the document of a session that nobody has connected to yet."""
    document = session.document
    written = _WRITTEN[session] = _Written()
    document.on_change(written.note)
    message = await in_pieces(lambda: _whole(pull_doc_reply.create("", document)))
    if not written.changed:
        written.message = message


def reply(session: ServerSession, request_id: str) -> Message[Any] | None:
    """The answer to a browser that asks for its document; None where it has changed since, or was asked for before."""
    written = _WRITTEN.pop(session, None)
    if written is None:
        return None
    session.document.remove_on_change(written.note)
    if written.message is None:
        return None
    written.message.header["reqid"] = request_id
    return written.message


def _whole(message: Message[Any]) -> Message[Any]:
    """The message as text; its header is still to come."""
    text = message.content_json
    # What the text was made of is as large again.
    message.content = {}
    message._content_json = text
    message._header_json = None
    return message
