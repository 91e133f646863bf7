"""A step's experiment: from a link, from a table, or as a change of the last step's; and its addresses.

An *address* names one value of an experiment, in a change, a sweep and the list of controls alike:
``lane2.sampler.step_size``, ``sampler.step_size`` (of every lane that has it), ``lane1.gradient.batch_size``,
``lane1.schedule.exponent``, ``target.variance``, ``n_steps``.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sgmcmc_lab.samplers import Experiment, SpecError
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels.recipe import RecipeSampler, parameters_of
from sgmcmc_lab.samplers.lanes import max_lanes
from sgmcmc_lab.samplers.link import parse_choice
from sgmcmc_lab.samplers.migrations import change_to_2, migrated
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.recipe.presets import PRESETS
from sgmcmc_lab.samplers.registry import Named
from sgmcmc_lab.samplers.schedules import SCHEDULES
from sgmcmc_lab.samplers.settings import ANY_SAMPLER, ANY_TARGET, SETTINGS, settings_of

WORDS = ("target", "sampler", "gradient", "schedule", "lanes", "seed", "n_chains", "speed")
"""Controls that are no single value: menus, adding and removing lanes, the transport's."""
PARTS = ("sampler", "gradient", "schedule")
"""The choices that make a lane, in the order in which a link has them."""


def choice_data(field: str, value: Any) -> dict[str, Any]:
    """A choice as plain data, from ``"key(name:value;…)"`` or ``{key, params}``. Raises :class:`SpecError`."""
    if isinstance(value, str):
        messages: list[str] = []
        data = parse_choice(field, value, messages)
        if messages:
            raise SpecError(field, value, "allowed is key(name:value;name:value)")
        return data
    if not isinstance(value, Mapping) or "key" not in value:
        raise SpecError(field, value, "allowed is key(name:value;name:value), or a table with key and params")
    return {**value, "params": dict(value.get("params") or {})}


def experiment(data: Any) -> Experiment:
    """An experiment from a link's query or a table. Raises :class:`SpecError`."""
    if isinstance(data, str):
        made, messages = Experiment.from_query(data, _NOWHERE)
        if messages:
            raise SpecError("experiment", data, f"the link is not right: {messages[0].rstrip('.')}")
        return made
    if not isinstance(data, Mapping):
        raise SpecError("experiment", data, "allowed is the link of an experiment, or a table")
    whole = migrated("experiment", dict(data), 0)
    target = choice_data("target", whole.get("target"))
    lanes, most = whole.get("lanes"), max_lanes(target["key"])
    if not isinstance(lanes, list) or not 1 <= len(lanes) <= most:
        raise SpecError("lanes", lanes, f"allowed is a list of 1 to {most} lanes")
    return Experiment.from_dict({**whole, "target": target, "lanes": [lane_data(lane, target) for lane in lanes]})


def lane_data(lane: Any, target: Mapping[str, Any]) -> dict[str, Any]:
    """A lane as plain data: ``"sampler(…)~gradient(…)~schedule(…)"``, a table, or a table with a named ``preset`` of
    the recipe.

    Raises :class:`SpecError`.
    """
    if isinstance(lane, str):
        texts = zip(PARTS, lane.split("~", 2), strict=False)
        return {part: choice_data(part, text) for part, text in texts if text or part == "sampler"}
    if not isinstance(lane, Mapping):
        raise SpecError("lane", lane, "allowed is sampler(…)~gradient(…)~schedule(…), or a table")
    out = dict(lane)
    if "preset" in out:
        preset, own = choice_data("preset", out.pop("preset")), dict(out.pop("params", {}))
        made = Experiment.from_dict({"target": target, "lanes": [{"sampler": "exact"}]}).make_target()
        named = PRESETS.find("preset", preset["key"])
        recipe = named.recipe(made.dim, made.formula(), **preset["params"])
        out.setdefault("gradient", named.gradient)
        out["sampler"] = {"key": RecipeSampler.key, "params": {**parameters_of(recipe), **own}}
    elif "sampler" in out:
        out["sampler"] = choice_data("sampler", out["sampler"])
    for part in ("gradient", "schedule"):
        if part in out:
            out[part] = choice_data(part, out[part])
    return out


def changed(last: Experiment, change: Mapping[str, Any]) -> Experiment:
    """The last experiment with some values changed. Raises :class:`SpecError`.

    A name is a setting (``n_steps = 500``), a whole part (``target = "gaussian"``, ``lanes = [...]``, ``lane2 = "…"``,
    which may be a lane more) or the beginning of an address (``lane1.sampler.step_size = 0.1``).
    """
    data = copy.deepcopy(last.to_dict())
    if isinstance(change.get("target"), str) or "key" in (change.get("target") or {}):
        # The start was a point of the target before, and the momentum one there.
        data.pop("start", None)
        data.pop("momentum", None)
    for lane in data["lanes"] if "n_steps" in change else ():
        lane.pop("n_steps", None)
    for name, value in change_to_2(change).items():
        number = re.fullmatch(r"lane([1-9])", name)
        if name in SETTINGS:
            data[name] = value
        elif name == "lanes":
            data["lanes"] = value
        elif name == "target" and (isinstance(value, str) or "key" in value):
            data["target"] = choice_data("target", value)
        elif number and (isinstance(value, str) or "preset" in value or _whole_lane(value)):
            _put(data["lanes"], int(number[1]), lane_data(value, data["target"]), max_lanes(data["target"]["key"]))
        else:
            for address, leaf in leaves(value, (name,)):
                put(data, ".".join(address), leaf)
    return experiment(data)


def _whole_lane(value: Any) -> bool:
    sampler = value.get("sampler") if isinstance(value, Mapping) else None
    return isinstance(sampler, str) or (isinstance(sampler, Mapping) and "key" in sampler)


def _put(listed: list[Any], number: int, value: Any, most: int) -> None:
    if number > min(len(listed) + 1, most):
        raise SpecError(
            f"lane{number}",
            value,
            f"there are {len(listed)}, so the next is lane{len(listed) + 1}, and there are at most {most}",
        )
    listed[number - 1 : number] = [value]


def leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The addresses in a nested table, with their values."""
    if not isinstance(value, Mapping):
        yield path, value
        return
    for name, inner in value.items():
        yield from leaves(inner, (*path, name))


def put(data: dict[str, Any], address: str, value: Any) -> None:
    """Set what an address names, in an experiment as plain data. Raises :class:`SpecError`."""
    if address in settings_of(data["target"]["key"]):
        data[address] = value
        return
    places = _places(data, address)
    name = address.rpartition(".")[2]
    for place in places:
        place[name] = value


def check_address(spec: Experiment, address: str) -> None:
    """Raise :class:`SpecError` where nothing has that address."""
    if address in settings_of(spec.target.key):
        return
    _places(spec.to_dict(), address)


def _places(data: dict[str, Any], address: str) -> list[dict[str, Any]]:
    """The parameters of every part that an address means, as plain data."""
    parts = address.split(".")
    name = parts[-1]
    found: list[tuple[Named[Any], dict[str, Any]]] = []
    lane = re.fullmatch(r"lane([1-9])", parts[0])
    kinds: dict[str, Named[Any]] = {"sampler": ANY_SAMPLER, "gradient": GRADIENTS, "schedule": SCHEDULES}
    lanes = data["lanes"]
    if parts[0] == "target" and len(parts) == 2:
        found = [(ANY_TARGET, data["target"])]
    elif parts[0] in kinds and len(parts) == 2:
        found = [(kinds[parts[0]], each[parts[0]]) for each in lanes if parts[0] in each]
    elif lane and len(parts) == 3 and parts[1] in kinds and int(lane[1]) <= len(lanes):
        each = lanes[int(lane[1]) - 1]
        found = [(kinds[parts[1]], each[parts[1]])] if parts[1] in each else []
    having = [choice["params"] for registry, choice in found if name in dict(declared(registry[choice["key"]]))]
    if not having:
        raise SpecError(address, "…", f"there is no such value; there are: {', '.join(addresses(data))}")
    return having


def addresses(data: Mapping[str, Any]) -> list[str]:
    """Every address of an experiment, given as plain data."""
    out = list(settings_of(data["target"]["key"]))
    out += [f"target.{name}" for name in data["target"]["params"]]
    out += [
        f"lane{i}.{part}.{name}"
        for i, lane in enumerate(data["lanes"], 1)
        for part in PARTS
        if part in lane
        for name in lane[part]["params"]
    ]
    return out


_NOWHERE = Experiment.from_dict({"target": "gaussian", "lanes": [{"sampler": "sgld"}]})
"""The experiment against which a link is read; a lesson's link names all that it needs."""
