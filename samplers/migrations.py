"""The versions of the format of links and saved files. Each carries its version, and older ones open for ever.

Where a field is renamed or removed, ``VERSION`` grows by one, and the table gets a function that turns the version
before into the new one; the examples of every version so far, in ``tests/formats``, say whether that holds. Data
without a version are of version 0: links and files made before there was a number, tables of lessons, and plain data
written by hand, which may be as new as the code. So a function leaves alone what is in the new form already.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from sgmcmc_lab.samplers.parameters import Count, SpecError, check

VERSION = 3


# Version 2: a model of data is a target like the others, and its methods are samplers in lanes.

_FIELDS = {"model": "target", "method": "lane", "seeds": "n_chains"}


def control(name: str) -> str:
    """A control of the page, or the address of a value, by its name in version 2."""
    head, dot, rest = name.partition(".")
    if method := re.fullmatch(r"method([1-9])?", head):
        return f"lane{method[1]}.sampler{dot}{rest}" if method[1] else f"sampler{dot}{rest}"
    return {"model": "target", "methods": "sampler,lanes", "seeds": "n_chains"}.get(head, head) + dot + rest


def _link_to_2(fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [
        (name, ",".join(map(control, text.split(",")))) if name == "hide" else (_FIELDS.get(name, name), text)
        for name, text in fields
    ]


def _study_to_2(data: dict[str, Any]) -> dict[str, Any]:
    """A former study: a model, methods, the seed, runs of each method, their lengths, and changes by method."""
    if "model" not in data and "methods" not in data:
        return data
    data = {_FIELDS.get(name, name): value for name, value in data.items()}
    methods, lengths, changes = data.pop("methods", None), data.pop("n_steps", None), data.pop("changes", ())
    if not isinstance(methods, list):
        return {**data, "lanes": methods}
    data["lanes"] = lanes = [{"sampler": method} for method in methods]
    if isinstance(lengths, list) and len(lengths) == len(lanes):
        for lane, length in zip(lanes, lengths, strict=True):
            lane["n_steps"] = length
    elif lengths is not None:
        data["n_steps"] = lengths
    for change in changes if isinstance(changes, list) else ():
        number = change.get("method") if isinstance(change, dict) else None
        if not isinstance(number, int) or not 1 <= number <= len(lanes):
            raise SpecError("changes.method", number, f"allowed is a method from 1 to {len(lanes)}")
        method = lanes[number - 1]["sampler"]
        key = method.get("key") if isinstance(method, dict) else method
        made = {"step": change.get("step"), "sampler": {"key": key, "params": change.get("params", {})}}
        lanes[number - 1].setdefault("changes", []).append(made)
    return data


def change_to_2(change: Mapping[str, Any]) -> dict[str, Any]:
    """The changes of a lesson's step to the one before, with the names of version 2."""
    out = {}
    for name, value in change.items():
        path, _, last = ("lanes" if name == "methods" else control(name)).partition(".")
        out[path] = {last: value} if last else value
    return out


# Version 3: samplers move in standardised coordinates of a typed posterior, where they moved in those that are typed.
# Data without a number that have one are by hand, for it is younger than the numbers: their coordinates are today's.

_POSTERIOR = "posterior"


def _link_with(coordinates: str) -> Callable[[list[tuple[str, str]]], list[tuple[str, str]]]:
    """Typed posteriors of a link that say no coordinates get these."""

    def migrate(fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return [(name, _of_link(text, coordinates) if name == "target" else text) for name, text in fields]

    return migrate


def _of_link(text: str, coordinates: str) -> str:
    key, _, inside = text.partition("(")
    if key != _POSTERIOR or re.search(r"(^|;)coordinates:", inside):
        return text
    given = inside.removesuffix(")")
    return f"{key}({given}{';' if given else ''}coordinates:{coordinates})"


def _experiment_with(coordinates: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Typed posteriors of an experiment that say no coordinates get these."""

    def migrate(data: dict[str, Any]) -> dict[str, Any]:
        out = dict(data)
        if "target" in data:
            out["target"] = _of_choice(data["target"], coordinates)
        if isinstance(data.get("lanes"), list):
            out["lanes"] = [_of_lane(lane, coordinates) for lane in data["lanes"]]
        return out

    return migrate


def _of_lane(lane: Any, coordinates: str) -> Any:
    if not isinstance(lane, dict) or not isinstance(lane.get("changes"), list):
        return lane
    changes = [
        {**change, "target": _of_choice(change["target"], coordinates)}
        if isinstance(change, dict) and "target" in change
        else change
        for change in lane["changes"]
    ]
    return {**lane, "changes": changes}


def _of_choice(choice: Any, coordinates: str) -> Any:
    choice = {"key": choice} if choice == _POSTERIOR else choice
    if not isinstance(choice, dict) or choice.get("key") != _POSTERIOR:
        return choice
    params = choice.get("params", {})
    return {**choice, "params": {"coordinates": coordinates, **params}} if isinstance(params, dict) else choice


MIGRATIONS: dict[str, Mapping[int, Callable[[Any], Any]]] = {
    "link": {0: _link_with("standardised"), 1: _link_to_2, 2: _link_with("typed")},
    "experiment": {0: _experiment_with("standardised"), 1: _study_to_2, 2: _experiment_with("typed")},
}
"""By what is migrated and the version that it has: the fields of a link, as pairs of texts; and plain data of an
experiment, as a dictionary, whose values are text where they come from a link.
"""


def version_of(given: Any) -> int:
    """The version that a link or a file names. Raises :class:`SpecError` where it is newer than this code."""
    try:
        return int(check(Count(0, bounds=(0, VERSION)), "version", given))  # type: ignore[arg-type]
    except SpecError:
        allowed = f"this lab reads the versions up to {VERSION}, and a newer lab is needed for a newer one"
        raise SpecError("version", given, allowed) from None


def migrated(kind: str, data: Any, version: int) -> Any:
    """The data in today's format."""
    for step in range(version, VERSION):
        data = MIGRATIONS[kind][step](data)
    return data
