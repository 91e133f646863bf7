"""The whole state in the link: the experiment's part, and what is on the page."""

from collections.abc import Container, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote

from app.state import DEFAULT, MAX_SPEED, AppState, default_views
from app.views import VIEWS
from app.views.base import AXIS_LABELS
from samplers import Experiment
from samplers.spec import LINK_FIELDS

HIDEABLE = ("controls", "transport", "equations", "export")
"""Parts of the page that a teacher's link may leave out with ``hide=``."""


def to_query(state: AppState) -> str:
    """The state as ``?target=…&lane=…&views=…``."""
    more = {"coordinate": str(state.coordinate + 1), "speed": str(state.speed)}
    return f"?{state.experiment.to_query()}&{page_query(state, more)}"


def page_query(state: Any, more: Mapping[str, str]) -> str:
    """What is on the page, for laws and for studies, and ``more`` fields of the one."""
    parts = {
        "views": ",".join(state.shown_views()),
        "axis": state.axis,
        **more,
        "theme": "dark" if state.dark else "light",
    }
    if not state.playing:
        parts["play"] = "0"
    if state.hidden:
        parts["hide"] = ",".join(state.hidden)
    return "&".join(f"{name}={quote(value, safe=',')}" for name, value in parts.items())


def read_query(state: AppState, query: str) -> list[str]:
    """Set the state from a link. Returns a sentence for everything that is not as the link says."""
    experiment, messages = Experiment.from_query(query, DEFAULT)
    state.experiment = experiment
    fields = read_fields(query, (*LINK_FIELDS, "coordinate", "speed"), messages)
    simplex = experiment.make_target().support == "simplex"
    state.views = default_views(type(experiment.make_target()), experiment)
    read_page(state, fields, VIEWS, tuple(AXIS_LABELS), messages)
    state.speed = whole(fields, "speed", 1, MAX_SPEED, state.speed, messages)
    n_values = experiment.make_target().n_values
    first = min(5, n_values) if simplex else 1
    state.coordinate = whole(fields, "coordinate", 1, n_values, first, messages) - 1
    return messages


def read_fields(query: str, own: Sequence[str], messages: list[str]) -> dict[str, str]:
    """The fields of a link, each once; ``own`` are those that the page has besides the common ones."""
    fields = dict(parse_qsl(query.lstrip("?"), keep_blank_values=True)) if len(query) < 10_000 else {}
    known = (*own, "views", "axis", "theme", "play", "hide")
    messages += [
        f"{name} = {fields[name][:40]!r}: the link has no such field; it is passed over."
        for name in fields
        if name not in known
    ]
    return fields


def read_page(
    state: Any, fields: dict[str, str], views: Container[str], axes: tuple[str, ...], messages: list[str]
) -> None:
    """Set what is on the page, for laws and for studies."""
    if "views" in fields:
        asked = [key for key in fields["views"].split(",") if key]
        fitting = state.fitting_views()
        for key in asked:
            if key not in fitting:
                what = f"does not fit the {state.subject}" if key in views else "is no view"
                messages.append(f"views = {key[:40]!r}: it {what}; there are: {', '.join(fitting)}.")
        known = [key for key in asked if key in fitting]
        state.views = known if known or not asked else state.views

    state.axis = one_of(fields, "axis", axes, state.axis, messages)
    state.dark = one_of(fields, "theme", ("light", "dark"), "light", messages) == "dark"
    state.playing = one_of(fields, "play", ("1", "0"), "1", messages) == "1"
    state.hidden = []
    for part in filter(None, fields.get("hide", "").split(",")):
        if part in HIDEABLE:
            state.hidden = [*state.hidden, part]
        else:
            messages.append(f"hide = {part[:40]!r}: allowed are {', '.join(HIDEABLE)}.")


def one_of(fields: dict[str, str], name: str, options: tuple[str, ...], default: str, messages: list[str]) -> str:
    value = fields.get(name, default)
    if value in options:
        return value
    messages.append(f"{name} = {value[:40]!r}: allowed is one of {', '.join(options)}; {default} is used instead.")
    return default


def whole(fields: dict[str, str], name: str, low: int, high: int, default: int, messages: list[str]) -> int:
    if name not in fields:
        return default
    text = fields[name]
    try:
        value = int(text)
    except ValueError:
        messages.append(
            f"{name} = {text[:40]!r}: allowed is a whole number from {low} to {high:,}; {default} is used instead."
        )
        return default
    used = min(max(value, low), high)
    if used != value:
        messages.append(
            f"{name} = {text[:40]!r}: allowed is a whole number from {low} to {high:,}; {used} is used instead."
        )
    return used
