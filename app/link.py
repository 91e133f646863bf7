"""The whole state in the link: the experiment's part, and what is on the page."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from app.lesson import place as places
from app.page_state import PageState
from app.state import DEFAULT, MAX_SPEED, AppState, default_views
from app.views import VIEWS
from app.views.base import AXIS_LABELS
from lessons.specs import WORDS, check_address
from samplers import Experiment
from samplers.choices import given_again, link_fields
from samplers.migrations import VERSION
from samplers.parameters import SpecError
from samplers.spec import LINK_FIELDS

HIDEABLE = (
    "controls", "transport", "equations", "export", "lessons", "present", "theme", "workbench", "pages",
    "play", "step", "reset", "new_seed", "axis", "views", "readout",
)  # fmt: skip
"""Parts of the page that a teacher's link may leave out with ``hide=``, beside views, and controls by their address or
the words of :data:`lessons.specs.WORDS`."""
MAX_PARTS = 60
"""Parts that ``hide=`` may name, and views; there are fewer of them."""
ALSO_HIDEABLE = {"AppState": ("coordinate",), "StudyState": ("show", "upload")}
"""Parts that only one kind of page has."""


def to_query(state: AppState) -> str:
    """The state as ``?target=…&lane=…&views=…``."""
    more = {"coordinate": str(state.coordinate + 1), "speed": str(state.speed)}
    step = state.place.step
    whole = step is None or state.experiment != step.spec
    return f"?{state.experiment.to_query() if whole else f'v={VERSION}'}&{page_query(state, more)}"


def page_query(state: PageState, more: Mapping[str, str]) -> str:
    """What is on the page, for laws and for studies, and ``more`` fields of the one."""
    parts = {
        **state.place.to_fields(),
        "views": ",".join(state.shown_views()),
        "axis": state.axis,
        **more,
        "theme": "dark" if state.dark else "light",
    }
    if not state.playing:
        parts["play"] = "0"
    if state.present:
        parts["present"] = "1"
    if state.hidden:
        parts["hide"] = ",".join(state.hidden)
    return "&".join(f"{name}={quote(value, safe=',')}" for name, value in parts.items())


def read_query(state: AppState, query: str) -> list[str]:
    """Set the state from a link. Returns a sentence for everything that is not as the link says."""
    fields, messages = read_fields(query, LINK_FIELDS, ("coordinate", "speed"))
    elsewhere = places.read(state.place, fields)
    messages += elsewhere
    step = state.place.step
    if step is not None:
        state.follow(step)
    experiment, problems = _experiment(query, fields, state.experiment if step is not None else DEFAULT)
    messages[:0] = problems
    state.refused = [*problems, *elsewhere]
    state.experiment = experiment
    simplex = experiment.make_target().support == "simplex"
    if step is None:
        state.views = default_views(type(experiment.make_target()), experiment)
    read_page(state, fields, VIEWS, tuple(AXIS_LABELS), experiment, messages)
    state.speed = whole(fields, "speed", 1, MAX_SPEED, state.speed, messages)
    n_values = experiment.make_target().n_values
    first = min(5, n_values) if simplex else 1
    if step is not None:
        first = min(state.coordinate + 1, n_values)
    state.coordinate = whole(fields, "coordinate", 1, n_values, first, messages) - 1
    return messages


def _experiment(query: str, fields: Mapping[str, str], default: Experiment) -> tuple[Experiment, list[str]]:
    """The link's experiment; what it leaves out is the default's, run lengths too."""
    experiment, messages = Experiment.from_query(query, default)
    if experiment.of_model:
        messages.append(f"target = {experiment.target.key!r}: this lesson cannot be shown with it; it is left out.")
        return default, messages
    if default is DEFAULT:
        return experiment, messages
    rest = {name: getattr(default, name) for name in LINK_FIELDS[2:] if name not in fields}
    return replace(experiment, **rest), messages


def read_fields(query: str, spec: Sequence[str], own: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The fields of a link, each once, and a sentence for each that there is not or that is given again.

    ``spec`` are those of the experiment, ``own`` those that the page has besides the common ones. A link that
    is too long has none; the reader of the experiment says so.
    """
    try:
        listed = link_fields(query)
    except SpecError:
        return {}, []
    fields = dict(listed)
    of_page = (*own, *places.FIELDS, "views", "axis", "theme", "play", "hide", "present")
    unknown = [name for name in fields if name not in ("v", *spec, *of_page)]
    return fields, [
        *(str(SpecError(name, fields[name], "the link has no such field; it is passed over")) for name in unknown),
        *given_again(listed, of_page),
    ]


def read_page(
    state: PageState,
    fields: dict[str, str],
    views: Container[str],
    axes: tuple[str, ...],
    spec: Experiment,
    messages: list[str],
) -> None:
    """Set what is on the page, for laws and for studies."""
    asked_to_hide = _parts(fields, "hide", messages)
    state.hidden = _hidden(type(state).__name__, asked_to_hide, views, spec, messages)
    # A lesson's question is answered before anything runs: its step left the page paused.
    waits = state.place.step is not None and not state.playing
    if "views" in fields:
        asked = _parts(fields, "views", messages)
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
    state.playing = state.playing and not waits and not state.refused
    state.present = one_of(fields, "present", ("0", "1"), "0", messages) == "1"


def _parts(fields: Mapping[str, str], name: str, messages: list[str]) -> list[str]:
    """What a field lists with commas, each once and not more than the page could have."""
    listed = fields.get(name, "").split(",")
    parts = list(dict.fromkeys(part for part in listed if part))
    if len(parts) > MAX_PARTS:
        messages.append(
            f"{name} = {len(parts):,} parts: allowed are at most {MAX_PARTS}; the first {MAX_PARTS} are read."
        )
    return parts[:MAX_PARTS]


def _hidden(kind: str, parts: Sequence[str], views: Container[str], spec: Experiment, messages: list[str]) -> list[str]:
    """What a link leaves out of the page, and a sentence for what it names that is not there."""
    words = (*HIDEABLE, *ALSO_HIDEABLE[kind], *WORDS)
    out = []
    for part in parts:
        try:
            if part not in words and part not in views:
                check_address(spec, part)
            out.append(part)
        except SpecError:
            messages.append(
                f"hide = {part[:40]!r}: allowed are views, addresses of controls such as sampler.step_size, and {', '.join(words)}."
            )
    return out


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
