"""The experiment in a link: its fields as text, of this version and of all older ones."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, quote

from sgmcmc_lab.samplers.choices import Choice
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.lanes import CONSTANT, Lane
from sgmcmc_lab.samplers.migrations import VERSION, migrated, version_of
from sgmcmc_lab.samplers.parameters import SpecError, Value, declared
from sgmcmc_lab.samplers.registry import Named
from sgmcmc_lab.samplers.schedules import SCHEDULES
from sgmcmc_lab.samplers.settings import ANY_SAMPLER, ANY_TARGET, SETTINGS, settings_of

MAX_QUERY = 8_000
"""Servers and chat programs pass on at most that many characters."""
MAX_FIELDS = 64
"""The most fields of a link; the page writes fewer than half of that."""
LINK_FIELDS = ("target", "lane", *SETTINGS)
"""The fields of a link that belong to the experiment; beside them it has its version, ``v``."""
_SELDOM = ("temperature", "n_steps", "burn_in", "thin", "start", "momentum")
"""The settings that a link has only where they are not the usual ones."""


def link_fields(query: str) -> list[tuple[str, str]]:
    """The fields of a link of any version, in order.

    Raises :class:`SpecError` where it is too long, before it is taken apart.
    """
    query = query.lstrip("?")
    if len(query) > MAX_QUERY:
        raise SpecError("link", f"{len(query):,} characters", f"allowed are at most {MAX_QUERY:,}")
    if (fields := query.count("&") + 1) > MAX_FIELDS:
        raise SpecError("link", f"{fields:,} fields", f"allowed are at most {MAX_FIELDS}")
    listed = parse_qsl(query, keep_blank_values=True)
    # The reader of the experiment reports a wrong version.
    with suppress(SpecError):
        listed = migrated("link", listed, version_of(dict(listed).get("v", 0)))
    return listed


def given_again(fields: Sequence[tuple[str, str]], names: Container[str]) -> list[str]:
    """A sentence for each of these fields that a link gives more than once."""
    counts = Counter(name for name, _ in fields)
    last = dict(fields)
    return [
        f"{SpecError(name, last[name], 'the link holds it more than once; the last one is used')}"
        for name, count in counts.items()
        if count > 1 and name in names
    ]


def choice_text(registry: Named[Any], choice: Choice) -> str:
    """A part of a link: ``key(name:value;name:value)``, without the lists that are empty as they are at first."""
    first = {name: parameter.default for name, parameter in declared(registry[choice.key])}
    written = [f"{name}:{value_text(value)}" for name, value in choice.params if value != () or first[name] != ()]
    return f"{choice.key}({';'.join(written)})" if written else choice.key


def value_text(value: Value) -> str:
    """A parameter's value in a link."""
    if isinstance(value, tuple):
        # One empty formula is not the same as none.
        return ",".join(map(str, value)) or " " * len(value)
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)


def parse_choice(field: str, text: str, messages: list[str]) -> dict[str, Any]:
    """The inverse of :func:`choice_text`, for untrusted text; what is wrong with its form is told in ``messages``."""
    key, bracket, inside = text.partition("(")
    params: dict[str, str] = {}
    if bracket:
        if not inside.endswith(")"):
            messages.append(str(SpecError(field, text, "its closing bracket is missing; what is there is read")))
        for part in inside.removesuffix(")").split(";"):
            name, colon, value = part.partition(":")
            if not colon and part:
                messages.append(str(SpecError(field, part, "allowed is name:value; it is ignored")))
            elif part:
                if name in params:
                    messages.append(
                        str(SpecError(f"{field}.{name}", value, "it is given more than once; the last value is used"))
                    )
                params[name] = value
    return {"key": key, "params": params}


def write_query(target: Choice, lanes: Sequence[Lane], settings: Mapping[str, Any]) -> str:
    """The query of a link, ``v=3&target=gamma(shape:0.5)&lane=cir(step_size:0.1)~full&seed=1``."""
    parts = [("v", str(VERSION)), ("target", choice_text(ANY_TARGET, target))]
    for lane in lanes:
        gradient = f"~{choice_text(GRADIENTS, lane.gradient)}" if lane.gradient.key else ""
        schedule = f"~{choice_text(SCHEDULES, lane.schedule)}" if lane.schedule != CONSTANT else ""
        parts.append(("lane", choice_text(ANY_SAMPLER, lane.sampler) + gradient + schedule))
    parts += [(name, str(settings[name])) for name in ("seed", "n_chains")]
    known = settings_of(target.key)
    seldom = {name: settings[name] for name in _SELDOM if name in known}
    parts += [(name, value_text(value)) for name, value in seldom.items() if value != known[name].default]
    return "&".join(f"{name}={quote(value, safe='(),:;~')}" for name, value in parts)


def read_query(query: str) -> tuple[dict[str, Any], list[str]]:
    """The fields of a link as plain data, and a sentence for each that is not in order. Raises :class:`SpecError`."""
    fields = link_fields(query)
    messages = given_again(fields, ("v", "target", *SETTINGS))
    data: dict[str, Any] = {"lanes": []}
    for name, text in fields:
        if name == "v":
            data["version"] = text
        elif name == "target":
            data["target"] = parse_choice("target", text, messages)
        elif name == "lane":
            named = zip(("sampler", "gradient", "schedule"), text.split("~", 2), strict=False)
            lane = {part: parse_choice(part, one, messages) for part, one in named if one or part == "sampler"}
            data["lanes"].append(lane)
        elif name in SETTINGS:
            data[name] = text
    return data, messages
