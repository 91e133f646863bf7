"""The whole state in the link: the experiment's part, and what is on the page."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

import param

from sgmcmc_lab.app.lesson.position import FIELDS, find_step, follow_link
from sgmcmc_lab.app.state import DEFAULT, LEFT_OUT, MAX_SPEED, SLOWEST, AppState, MissingTable, default_views
from sgmcmc_lab.app.state.upload import KINDS
from sgmcmc_lab.app.views import VIEWS, axes_of, coordinates
from sgmcmc_lab.lessons.specs import WORDS, check_address
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.link import LINK_FIELDS, given_again, link_fields
from sgmcmc_lab.samplers.migrations import VERSION
from sgmcmc_lab.samplers.parameters import OWN as OWN_TABLE
from sgmcmc_lab.samplers.parameters import SpecError, declared
from sgmcmc_lab.samplers.targets.own import OfTable

HIDEABLE = (
    "controls", "transport", "equations", "export", "share", "lessons", "present", "theme", "workbench", "pages",
    "play", "step", "reset", "new_seed", "axis", "views", "readout", "coordinate", "show", "upload",
)  # fmt: skip
"""Parts of the page that a teacher's link may leave out with ``hide=``, beside views, and controls by their address or
the words of :data:`lessons.specs.WORDS`."""
ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""The signs of a code, without those that are taken for each other."""
LETTERS = 8
"""The length of a code. There are 8·10¹¹ codes: guessing one of a thousand takes some 10⁹ requests."""
CODE = re.compile(f"[{ALPHABET}]{{{LETTERS}}}")
"""The code of a room or of a short link."""
MAX_PARTS = 60
"""Parts that ``hide=`` may name, and views; there are fewer of them."""


def to_query(state: AppState) -> str:
    """The state as ``?target=…&lane=…&views=…``."""
    own = {"show": state.shown + 1} if state.experiment.of_model else {}
    parts = {
        **state.position.to_fields(),
        "views": ",".join(state.shown_views()),
        "axis": state.axis,
        "coordinate": state.coordinate + 1,
        "speed": state.speed,
        **own,
    }
    if not state.follows_device:
        parts["theme"] = "dark" if state.dark else "light"
    if state.slow:
        parts["slow"] = str(state.slow)
    if not state.playing:
        parts["play"] = "0"
    if state.present:
        parts["present"] = "1"
    if state.teacher:
        parts["teacher"] = "1"
    if state.room:
        parts["room"] = state.room
    if state.hidden:
        parts["hide"] = ",".join(state.hidden)
    page = "&".join(f"{name}={quote(str(value), safe=',')}" for name, value in parts.items())
    step = state.position.step
    whole = step is None or state.experiment != step.spec
    return f"?{state.experiment.to_query() if whole else f'v={VERSION}'}&{page}"


def read_query(state: AppState, query: str) -> list[str]:
    """Set the state from a link. Returns a sentence for everything that is not as the link says."""
    fields, messages = read_fields(query)
    elsewhere = follow_link(state.position, fields)
    messages += elsewhere
    step = state.position.step
    if step is not None:
        state.follow(step)
    experiment, problems = _experiment(query, fields, state.experiment if step is not None else opens_with(fields))
    state.missing_table = _missing_table(query, fields, experiment)
    messages[:0] = problems
    state.refused = [*problems, *elsewhere]
    if step is None:
        state.open(experiment)
        state.views = default_views(experiment)
    else:
        state.experiment = experiment
    state.follows_device = "theme" not in fields
    _read_page(state, fields, messages)
    state.room = fields.get("room", "")
    if state.room and not CODE.fullmatch(state.room):
        messages.append(
            f"room = {state.room[:40]!r}: allowed is a code of eight letters and digits, as a room shows it."
        )
        state.room = ""
    return messages


OWN = ("theme", "present", "teacher", "hide", "room", "answer", "answers")
"""The settings of a link that belong to one person and that nobody follows."""


def to_share(state: AppState) -> str:
    """The link without what is the person's own: experiment, lesson's step, views and settings of the page."""
    parts = to_query(state).removeprefix("?").split("&")
    return "?" + "&".join(part for part in parts if part.partition("=")[0] not in OWN)


def to_lead(state: AppState) -> str:
    """The same with the number of resets, which pages that follow repeat."""
    return f"{to_share(state)}&resets={state.resets}" if state.resets else to_share(state)


def follow(state: AppState, query: str) -> list[str]:
    """Set the state as :func:`read_query` does, but leave what is the person's own as it is.

    A run that the link leaves unchanged continues: another step size does not begin the run anew.
    """
    fields, messages = read_fields(query)
    position = state.position
    with param.parameterized.batch_call_watchers(state), param.parameterized.batch_call_watchers(position):
        found = find_step(fields, messages)
        if found is None:
            position.leave()
        elif found != (position.lesson, position.number):
            position.open(*found)
            state.follow(found[0].steps[found[1] - 1])
        step = position.step
        experiment, problems = _experiment(
            query, fields, (step.spec if step is not None else None) or opens_with(fields)
        )
        state.missing_table = _missing_table(query, fields, experiment)
        if step is None or step.spec is not None or "target" in fields:
            state.open(experiment)
        position.free, position.everything = fields.get("try") in ("1", "2"), fields.get("try") == "2"
        own = {
            "theme": "dark" if state.dark else "light",
            "present": str(int(state.present)),
            "teacher": str(int(state.teacher)),
            "hide": ",".join(state.hidden),
        }
        _read_page(state, {"slow": "0", **fields, **own}, messages)
        state.playing = fields.get("play", "1") == "1" and not position.waiting and not problems
        resets = fields.get("resets", "0")
        if state.led_resets not in (None, resets):
            state.reset()
        state.led_resets = resets
    return [*problems, *messages]


def opens_with(fields: Mapping[str, str]) -> Experiment:
    """The experiment of what a link outside a lesson leaves out: the first page's, where it gives nothing of one."""
    return LEFT_OUT if any(name in fields for name in LINK_FIELDS) else DEFAULT


def _experiment(query: str, fields: Mapping[str, str], default: Experiment) -> tuple[Experiment, list[str]]:
    """The link's experiment; what it leaves out is the default's, run lengths too."""
    experiment, messages = Experiment.from_query(query, default)
    if default not in (DEFAULT, LEFT_OUT) and experiment.of_model == default.of_model:
        # The start is one of the target's, and so is the momentum: where the link has a target, it has them, too, or
        # means the usual ones.
        left_out = [name for name in LINK_FIELDS[2:] if name not in (*fields, "start", "momentum")]
        rest = {name: getattr(default, name) for name in left_out}
        experiment = replace(experiment, **rest)
    return _without_upload(experiment, messages), messages


def _missing_table(query: str, fields: Mapping[str, str], shown: Experiment) -> MissingTable | None:
    """The request for the link's file, if its table was uploaded and is not there."""
    table = re.search(rf"\b{OfTable.data_parameter}:({OWN_TABLE}[0-9a-f]+)", fields.get("target", ""))
    return None if table is None or shown.of_own_data else MissingTable(query, table[1], shown)


def _without_upload(experiment: Experiment, messages: list[str]) -> Experiment:
    """The same experiment on the built-in data, where the link was made of somebody's own file."""
    if not experiment.of_own_data:
        return experiment
    key = experiment.target.key
    kind = KINDS[key]
    name = kind.model.data_parameter
    built_in = dict(declared(kind.model))[name].default
    messages.append(
        f"This link was made with somebody's own file, which no link holds: the {name} {built_in} is shown instead. Upload the file with the button {kind.label}."
    )
    data = experiment.to_dict()
    data["target"]["params"][name] = built_in
    try:
        return Experiment.from_dict(data)
    except SpecError:
        # Formulas name the columns of the file, which another page of this server may still have.
        data["target"]["params"] = {name: built_in}
        return Experiment.from_dict(data | {"start": [], "momentum": []})


def read_fields(query: str) -> tuple[dict[str, str], list[str]]:
    """The fields of a link, each once, and a sentence for each that there is not or that is given again.

    A link that is too long has none; the reader of the experiment says so.
    """
    try:
        listed = link_fields(query)
    except SpecError:
        return {}, []
    fields = dict(listed)
    of_page = (
        *FIELDS,
        "views",
        "axis",
        "coordinate",
        "speed",
        "slow",
        "show",
        "theme",
        "play",
        "hide",
        "present",
        "teacher",
        "room",
        "resets",
    )
    # Jupyter's proxy, on Binder, leaves its own token in the address.
    unknown = [name for name in fields if name not in ("v", "token", *LINK_FIELDS, *of_page)]
    return fields, [
        *(str(SpecError(name, fields[name], "the link has no such field; it is ignored")) for name in unknown),
        *given_again(listed, of_page),
    ]


def _read_page(state: AppState, fields: dict[str, str], messages: list[str]) -> None:
    """Set what is on the page."""
    experiment, step = state.experiment, state.position.step
    state.hidden = _hidden(_parts(fields, "hide", messages), experiment, messages)
    # A lesson's question is answered before anything runs: its step left the page paused.
    waits = step is not None and not state.playing
    if "views" in fields:
        asked = _parts(fields, "views", messages)
        fitting = state.fitting_views()
        for key in asked:
            if key not in fitting:
                what = f"does not fit the target {experiment.target.key}" if key in VIEWS else "is no view"
                messages.append(f"views = {key[:40]!r}: it {what}; there are: {', '.join(fitting)}.")
        known = [key for key in asked if key in fitting]
        state.views = known if known or not asked else state.views

    state.axis = one_of(fields, "axis", axes_of(experiment), state.axis, messages)
    state.dark = one_of(fields, "theme", ("light", "dark"), "light", messages) == "dark"
    state.playing = one_of(fields, "play", ("1", "0"), "1", messages) == "1"
    state.playing = state.playing and not waits and not state.refused
    state.present = one_of(fields, "present", ("0", "1"), "0", messages) == "1"
    state.teacher = one_of(fields, "teacher", ("0", "1"), "0", messages) == "1"
    state.speed = whole(fields, "speed", 1, MAX_SPEED, state.speed, messages)
    state.slow = whole(fields, "slow", 0, 0 if experiment.of_model else SLOWEST, state.slow, messages)
    state.shown = whole(fields, "show", 1, len(experiment.lanes), 1, messages) - 1
    last = len(coordinates(experiment))
    state.coordinate = whole(fields, "coordinate", 1, last, min(state.coordinate + 1, last), messages) - 1


def _parts(fields: Mapping[str, str], name: str, messages: list[str]) -> list[str]:
    """The comma-separated values of a field, each once and no more than the page could have."""
    listed = fields.get(name, "").split(",")
    parts = list(dict.fromkeys(part for part in listed if part))
    if len(parts) > MAX_PARTS:
        messages.append(
            f"{name} = {len(parts):,} parts: allowed are at most {MAX_PARTS}; the first {MAX_PARTS} are read."
        )
    return parts[:MAX_PARTS]


def _hidden(parts: Sequence[str], experiment: Experiment, messages: list[str]) -> list[str]:
    """The parts that a link leaves out of the page, and a sentence for each unknown name."""
    words = (*HIDEABLE, *WORDS)
    out = []
    for part in parts:
        try:
            if part not in words and part not in VIEWS:
                check_address(experiment, part)
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
    if not re.fullmatch(r"[+-]?[0-9]{1,4000}", text):
        messages.append(
            f"{name} = {text[:40]!r}: allowed is a whole number from {low} to {high:,}; {default} is used instead."
        )
        return default
    value = int(text)
    used = min(max(value, low), high)
    if used != value:
        messages.append(
            f"{name} = {text[:40]!r}: allowed is a whole number from {low} to {high:,}; {used} is used instead."
        )
    return used
