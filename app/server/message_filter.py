"""The messages that a browser may send: the events of a PATCH-DOC message that are passed on. All others have no
effect.

Bokeh lets a client set every property of every model, add models and send events to any of them. The page needs the
few below. They are looked up in the message as it came, before Bokeh builds anything of it.
"""

from collections.abc import Callable, Collection, Mapping
from math import isfinite
from typing import Any

from bokeh.document import Document
from bokeh.model import DataModel, Model

Allowed = Callable[[Any, Any], bool]
"""Whether a property of this model may be set to this value."""


def _text(model: Any, value: Any) -> bool:
    return isinstance(value, str)


def _after(sign: str) -> Allowed:
    return lambda model, value: _text(model, value) and value[:1] in ("", sign)


def _flag(model: Any, value: Any) -> bool:
    return isinstance(value, bool)


def _whole(model: Any, value: Any) -> bool:
    return type(value) is int


def _number(model: Any, value: Any) -> bool:
    return _whole(model, value) or isinstance(value, float)


def _empty_or(allowed: Allowed) -> Allowed:
    return lambda model, value: value is None or allowed(model, value)


def _option(model: Any, value: Any) -> bool:
    if isinstance(model.options, dict):  # by groups: pairs of a value's text and its label, which is what is sent
        return isinstance(value, str) and any(value == label for group in model.options.values() for _, label in group)
    return isinstance(value, str) and value in model.options


def _options(model: Any, value: Any) -> bool:
    return isinstance(value, list) and all(_option(model, each) for each in value)


def _option_number(model: Any, value: Any) -> bool:
    return _whole(model, value) and 0 <= value < len(model.options)


def _path(model: Any, value: Any) -> bool:
    """The name of the part of a component; a list for the parts of a part."""
    return _whole(model, value) or _paths(model, value)


def _paths(model: Any, value: Any) -> bool:
    return isinstance(value, list) and all(_path(model, each) for each in value)


def _same(allowed: Allowed, *names: str) -> Mapping[str, Allowed]:
    return dict.fromkeys(names, allowed)


WRITABLE: Mapping[str, Mapping[str, Allowed]] = {
    "Accordion": {"active": _paths},
    "CheckButtonGroup": {"value": _options},
    "Dialog": {"open": _flag},
    "DiscreteSlider": _same(_option_number, "value", "value_throttled"),
    "FloatSlider": _same(_number, "value", "value_throttled"),
    "IntSlider": _same(_whole, "value", "value_throttled"),
    "Location": {"hash": _after("#"), "href": _text, "search": _after("?")},
    "Page": {"dark_theme": _flag, "sidebar_open": _flag, "sidebar_width": _whole},
    "Select": {"value": _option},
    "Switch": {"value": _flag},
    "TextInput": _same(_text, "value", "value_input"),
}
"""Properties, by the component's class. A new control that does nothing in the browser is missing here."""
CLICKS: Mapping[str, frozenset[str]] = {
    "Button": frozenset({"click"}),
    "IconButton": frozenset({"click"}),
    "TextInput": frozenset({"enter"}),
}
"""Events on the page's elements, by the component's class."""
MAX_NAME = 255
"""Characters of the name of a file that is sent."""
MAX_WORD = 100
"""Characters of any other text in a message of a component."""
MAX_NUMBERS = 400
"""The most numbers in a component's message: the points of a drawn curve."""


def _word(model: Any, value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_WORD


def _count(model: Any, value: Any) -> bool:
    return _whole(model, value) and value >= 0


def _item(model: Any, value: Any) -> bool:
    return _whole(model, value) and 0 <= value < len(model.items)


def _one_of(*words: str) -> Allowed:
    return lambda model, value: isinstance(value, str) and value in words


def _record(**allowed: Allowed) -> Allowed:
    """A mapping of no other keys, whose values are allowed; a key that is missing has the value None."""

    def holds(model: Any, value: Any) -> bool:
        found = _entries(value)
        return (
            found is not None
            and found.keys() <= allowed.keys()
            and all(may(model, found.get(key)) for key, may in allowed.items())
        )

    return holds


def _answer(model: Any, value: Any) -> bool:
    return isinstance(value, list) and len(value) == 6 and all(isinstance(x, int) for x in value)


def _action(model: Any, value: Any) -> bool:
    if not isinstance(value, list) or not 1 <= len(value) <= 4 or not _word(model, value[0]):
        return False
    return all(_word(model, x) or _whole(model, x) for x in value[1:])


def _touch(model: Any, value: Any) -> bool:
    if not isinstance(value, list) or not 3 <= len(value) <= 2 + MAX_NUMBERS:
        return False
    return all(_word(model, x) for x in value[:2]) and all(_number(model, x) for x in value[2:])


def _bytes(model: Any, value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == "bytes"


def _file_name(model: Any, value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_NAME


_CHUNK = _record(
    type=_empty_or(_word),
    status=_one_of("upload_event"),
    name=_file_name,
    chunk=_count,
    total_chunks=_count,
    mime_type=_empty_or(_file_name),
    data=_bytes,
)
_UPLOAD = _record(type=_empty_or(_word), status=_one_of("initializing", "finished", "error"), error=_empty_or(_text))
SENDS: Mapping[str, Allowed] = {
    "Bus": _answer,
    "Connection": _one_of("listening"),
    "Contents": _count,
    "FileBox": lambda model, value: _CHUNK(model, value) or _UPLOAD(model, value),
    "MenuButton": _record(type=_one_of("click"), item=_item),
    "NotificationArea": _record(type=_one_of("destroy"), uuid=_word),
    "Option": _one_of("chosen"),
    "Presenter": _word,
    "RoomBar": _action,
    "Touch": _touch,
}
"""The messages that a component's script may send, by the component's class. The library's own handlers look at
nothing: an item that a menu does not have, or a text in place of a mapping, is an error in them."""
DOCUMENT_EVENTS = frozenset({"document_ready"})

MAX_EVENTS = 100
"""The most events of a message that are passed on. A page that opens sends one or two that it needs."""
MAX_DEPTH = 8
MAX_CHARACTERS = 65_536
"""The most characters of one event's texts together, where a number counts as eight. A link may have half of that."""
MAX_WHOLE = 2**53
"""The largest whole number that a browser can have."""


def passed_on(document: Document, content: Any, buffers: Collection[str]) -> list[Any]:
    """The events of a PATCH-DOC message that may be applied to the document, in their order.

    ``buffers`` are the identifiers of the binary parts that came with the message.
    """
    events = content.get("events") if isinstance(content, dict) else None
    if not isinstance(events, list):
        return []
    found = []
    for event in map(_by_id, events):
        if isinstance(event, dict) and (_is_write(document, event) or _is_event(document, event, buffers)):
            found.append(event)
            if len(found) == MAX_EVENTS:
                break
    return found


def answered(document: Document, events: list[Any]) -> Any:
    """The answer of the page's bus, where a message holds nothing else, of the events that are passed on."""
    if len(events) != 1 or events[0].get("kind") != "MessageSent":
        return None
    sent = events[0]["msg_data"]
    values = _entries(sent["values"]) or {}
    model = _model(document, values.get("model"))
    if sent["name"] != "data_event" or model is None or _name(getattr(model, "data", model)) != "Bus":
        return None
    return values["data"]


def _by_id(event: Any) -> Any:
    """The event with its model named as in all others: the first message about a model that a page was sent while
    nothing else was going on has all of it (Bokeh 3.9, ``Document._new_models``). Nothing of that is read.
    """
    if not isinstance(event, dict):
        return event
    if event.get("kind") == "ModelChanged":
        return {**event, "model": _reference(event.get("model"))}
    sent = event.get("msg_data")
    values = sent.get("values") if isinstance(sent, dict) else None
    entries = values.get("entries") if isinstance(values, dict) else None
    if sent is None or values is None or not isinstance(entries, list):
        return event
    named = [
        ["model", _reference(one[1])] if isinstance(one, list) and len(one) == 2 and one[0] == "model" else one
        for one in entries
    ]
    return {**event, "msg_data": {**sent, "values": {**values, "entries": named}}}


def _reference(model: Any) -> Any:
    whole = isinstance(model, dict) and model.get("type") == "object" and isinstance(model.get("id"), str)
    return {"id": model["id"]} if whole else model


def _is_write(document: Document, event: dict[str, Any]) -> bool:
    if event.get("kind") != "ModelChanged" or event.keys() != {"kind", "model", "attr", "new"}:
        return False
    model, attr = _model(document, event["model"]), event["attr"]
    if model is None or not isinstance(attr, str):
        return False
    allowed = _writable(model).get(attr)
    return allowed is not None and _Plain(()).holds(event["new"]) and allowed(model, event["new"])


def _writable(model: Model) -> Mapping[str, Allowed]:
    # A component of Panel shares a DataModel of its own with its script; Location is a model of Panel's.
    name = _name(model) if isinstance(model, DataModel) or type(model).__name__ == "Location" else ""
    return WRITABLE.get(name, {})


def _is_event(document: Document, event: dict[str, Any], buffers: Collection[str]) -> bool:
    if event.keys() != {"kind", "msg_type", "msg_data"} or (event["kind"], event["msg_type"]) != (
        "MessageSent",
        "bokeh_event",
    ):
        return False
    sent = event["msg_data"]
    if not isinstance(sent, dict) or sent.keys() != {"type", "name", "values"} or sent["type"] != "event":
        return False
    name, values = sent["name"], _entries(sent["values"])
    if not isinstance(name, str) or values is None:
        return False
    if name in DOCUMENT_EVENTS:
        return not values
    model = _model(document, values.pop("model", None))
    data = getattr(model, "data", None)
    component = _name(data) if isinstance(data, DataModel) else ""
    if name == "dom_event":
        node = values.get("node")
        allowed = values.keys() == {"node", "data"} and isinstance(node, str) and node in CLICKS.get(component, ())
    else:
        allowed = name == "data_event" and values.keys() == {"data"} and component in SENDS
        allowed = allowed and SENDS[component](data, values["data"])
    return allowed and _Plain(buffers if component == "FileBox" else ()).holds(values["data"])


def _model(document: Document, reference: Any) -> Model | None:
    if not isinstance(reference, dict) or reference.keys() != {"id"} or not isinstance(reference["id"], str):
        return None
    return document.models.get_by_id(reference["id"])


def _name(model: Model) -> str:
    """The component's class. Panel numbers its data models: Select1 is that of Select."""
    return type(model).__name__.rstrip("0123456789")


def _entries(value: Any) -> dict[str, Any] | None:
    """A mapping as Bokeh writes it, with texts as keys."""
    if not isinstance(value, dict) or value.get("type") != "map" or not value.keys() <= {"type", "entries"}:
        return None
    entries = value.get("entries", [])
    if not isinstance(entries, list):
        return None
    found = {}
    for entry in entries:
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str):
            return None
        found[entry[0]] = entry[1]
    return found


class _Plain:
    """Whether a value is numbers, texts, lists and mappings of them: no model, no array, nothing packed."""

    def __init__(self, buffers: Collection[str]):
        self._buffers = buffers
        self._left = MAX_CHARACTERS

    def holds(self, value: Any, depth: int = 0) -> bool:
        self._left -= len(value) if isinstance(value, str) else 8
        if self._left < 0 or depth > MAX_DEPTH:
            return False
        if value is None or isinstance(value, bool | str):
            return True
        if isinstance(value, int):
            return abs(value) <= MAX_WHOLE
        if isinstance(value, float):
            return isfinite(value)
        if isinstance(value, list):
            return all(self.holds(item, depth + 1) for item in value)
        if not isinstance(value, dict):
            return False
        if value.get("type") == "bytes":
            # Bytes that are written as text would be unpacked, however large they become.
            data = value.get("data")
            if not isinstance(data, dict) or data.keys() != {"id"}:
                return False
            return isinstance(data["id"], str) and data["id"] in self._buffers
        entries = _entries(value)
        if entries is None:
            return False
        return all(self.holds(key) and self.holds(item, depth + 1) for key, item in entries.items())
