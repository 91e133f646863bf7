"""A step's experiment or study: from a link, from a table, or as a change of the last step's; and its addresses.

An *address* names one value of an experiment, in a change, a sweep and the list of controls alike:
``lane2.sampler.step_size``, ``sampler.step_size`` (of every lane that has it), ``lane1.gradient.batch_size``,
``target.variance``, ``n_steps``; of a study ``method1.step_size``, ``method.step_size``, ``model.corpus``.
"""

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

from samplers import Experiment, SpecError
from samplers.choices import parse_choice
from samplers.gradients import GRADIENTS
from samplers.kernels import SAMPLERS
from samplers.kernels.recipe import RecipeSampler, parameters_of
from samplers.models import METHODS, MODELS
from samplers.models.study import MAX_METHODS, Study
from samplers.parameters import declared
from samplers.recipe.presets import PRESETS
from samplers.registry import Registry
from samplers.spec import MAX_LANES
from samplers.targets import TARGETS

SETTINGS = ("seed", "n_chains", "n_steps", "burn_in", "thin")
WORDS = {
    Experiment: ("target", "sampler", "gradient", "lanes", "seed", "n_chains", "speed"),
    Study: ("model", "methods", "seed", "speed"),
}
"""Controls that are no single value: menus, adding and removing lanes or methods, the transport's."""
Spec = Experiment | Study


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
    whole = dict(data)
    target = choice_data("target", whole.get("target"))
    lanes = whole.get("lanes")
    if not isinstance(lanes, list) or not 1 <= len(lanes) <= MAX_LANES:
        raise SpecError("lanes", lanes, f"allowed is a list of 1 to {MAX_LANES} lanes")
    return Experiment.from_dict({**whole, "target": target, "lanes": [lane_data(lane, target) for lane in lanes]})


def lane_data(lane: Any, target: Mapping[str, Any]) -> dict[str, Any]:
    """A lane as plain data: ``"sampler(…)~gradient(…)"``, a table, or a table with a named ``preset`` of the recipe.

    Raises :class:`SpecError`.
    """
    if isinstance(lane, str):
        sampler, wave, gradient = lane.partition("~")
        return {
            "sampler": choice_data("sampler", sampler),
            **({"gradient": choice_data("gradient", gradient)} if wave else {}),
        }
    if not isinstance(lane, Mapping):
        raise SpecError("lane", lane, "allowed is sampler(…)~gradient(…), or a table")
    out = dict(lane)
    if "preset" in out:
        preset, own = choice_data("preset", out.pop("preset")), dict(out.pop("params", {}))
        made = Experiment.from_dict({"target": target, "lanes": [{"sampler": "exact"}]}).make_target()
        if not made.formula():
            raise SpecError("preset", preset["key"], f"the energy of {made.title} is no formula, which a recipe needs")
        named = PRESETS.find("preset", preset["key"])
        recipe = named.recipe(made.dim, made.formula(), **preset["params"])
        out.setdefault("gradient", named.gradient)
        out["sampler"] = {"key": RecipeSampler.key, "params": {**parameters_of(recipe), **own}}
    elif "sampler" in out:
        out["sampler"] = choice_data("sampler", out["sampler"])
    if "gradient" in out:
        out["gradient"] = choice_data("gradient", out["gradient"])
    return out


def study(data: Any) -> Study:
    """A study from a link's query or a table. Raises :class:`SpecError`."""
    if isinstance(data, str):
        made, messages = Study.from_query(data)
        if messages:
            raise SpecError("study", data, f"the link is not right: {messages[0].rstrip('.')}")
        return made
    if not isinstance(data, Mapping):
        raise SpecError("study", data, "allowed is the link of a study, or a table")
    whole = dict(data)
    for name, value in whole.items():
        if name not in ("version", "model", "methods", "seed"):
            raise SpecError(name, value, "a step's study has model, methods and seed")
    methods = whole.get("methods")
    if not isinstance(methods, list) or not 1 <= len(methods) <= MAX_METHODS:
        raise SpecError("methods", methods, f"allowed is a list of 1 to {MAX_METHODS} methods")
    listed = [choice_data("method", method) for method in methods]
    return Study.from_dict({**whole, "model": choice_data("model", whole.get("model")), "methods": listed})


def changed(last: Spec, change: Mapping[str, Any]) -> Spec:
    """The last experiment with some values changed. Raises :class:`SpecError`.

    A name is a setting (``n_steps = 500``), a whole part (``target = "gaussian"``, ``lanes = [...]``, ``lane2 = "…"``,
    which may be a lane more) or the beginning of an address (``lane1.sampler.step_size = 0.1``).
    """
    data = copy.deepcopy(last.to_dict())
    if isinstance(last, Study):
        return _changed_study(data, change)
    for name, value in change.items():
        number = re.fullmatch(r"lane([1-9])", name)
        if name in SETTINGS:
            data[name] = value
        elif name == "lanes":
            data["lanes"] = value
        elif name == "target" and (isinstance(value, str) or "key" in value):
            data["target"] = choice_data("target", value)
        elif number and (isinstance(value, str) or "preset" in value or _whole_lane(value)):
            _put(data["lanes"], int(number[1]), lane_data(value, data["target"]), "lane", MAX_LANES)
        else:
            for address, leaf in leaves(value, (name,)):
                put(data, ".".join(address), leaf)
    return experiment(data)


def _whole_lane(value: Any) -> bool:
    sampler = value.get("sampler") if isinstance(value, Mapping) else None
    return isinstance(sampler, str) or (isinstance(sampler, Mapping) and "key" in sampler)


def _changed_study(data: dict[str, Any], change: Mapping[str, Any]) -> Study:
    for name, value in change.items():
        number = re.fullmatch(r"method([1-9])", name)
        if name in ("seed", "methods"):
            data[name] = value
        elif name == "model" and (isinstance(value, str) or "key" in value):
            data["model"] = choice_data("model", value)
        elif number and (isinstance(value, str) or "key" in value):
            _put(data["methods"], int(number[1]), choice_data("method", value), "method", MAX_METHODS)
        else:
            for address, leaf in leaves(value, (name,)):
                put(data, ".".join(address), leaf)
    return study(data)


def _put(listed: list[Any], number: int, value: Any, what: str, most: int) -> None:
    if number > min(len(listed) + 1, most):
        raise SpecError(f"{what}{number}", value, f"there are {len(listed)}, so the next is {what}{len(listed) + 1}, and there are at most {most}")  # fmt: skip
    listed[number - 1 : number] = [value]


def leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The addresses in a nested table, with their values."""
    if not isinstance(value, Mapping):
        yield path, value
        return
    for name, inner in value.items():
        yield from leaves(inner, (*path, name))


def put(data: dict[str, Any], address: str, value: Any) -> None:
    """Set what an address names, in an experiment or a study as plain data. Raises :class:`SpecError`."""
    if address in data and address in SETTINGS:
        data[address] = value
        return
    places = _places(data, address)
    name = address.rpartition(".")[2]
    for place in places:
        place[name] = value


def check_address(spec: Spec, address: str) -> None:
    """Raise :class:`SpecError` where nothing has that address."""
    if address in SETTINGS and isinstance(spec, Experiment):
        return
    _places(spec.to_dict(), address)


def _places(data: dict[str, Any], address: str) -> list[dict[str, Any]]:
    """The parameters of every part that an address means, as plain data."""
    parts = address.split(".")
    name = parts[-1]
    found: list[tuple[Registry[Any], dict[str, Any]]] = []
    lane = re.fullmatch(r"lane([1-9])", parts[0])
    method = re.fullmatch(r"method([1-9])?", parts[0])
    kinds: dict[str, Registry[Any]] = {"sampler": SAMPLERS, "gradient": GRADIENTS}
    if "lanes" in data:
        lanes = data["lanes"]
        if parts[0] == "target" and len(parts) == 2:
            found = [(TARGETS, data["target"])]
        elif parts[0] in kinds and len(parts) == 2:
            found = [(kinds[parts[0]], each[parts[0]]) for each in lanes]
        elif lane and len(parts) == 3 and parts[1] in kinds and int(lane[1]) <= len(lanes):
            found = [(kinds[parts[1]], lanes[int(lane[1]) - 1][parts[1]])]
    elif parts[0] == "model" and len(parts) == 2:
        found = [(MODELS, data["model"])]
    elif method and len(parts) == 2 and int(method[1] or 1) <= len(data["methods"]):
        listed = data["methods"] if method[1] is None else [data["methods"][int(method[1]) - 1]]
        found = [(METHODS, each) for each in listed]
    having = [choice["params"] for registry, choice in found if name in dict(declared(registry[choice["key"]]))]
    if not having:
        raise SpecError(address, "…", f"there is no such value; there are: {', '.join(addresses(data))}")
    return having


def addresses(data: Mapping[str, Any]) -> list[str]:
    """Every address of an experiment or a study, given as plain data."""
    out = [name for name in SETTINGS if name in data]
    if "lanes" in data:
        out += [f"target.{name}" for name in data["target"]["params"]]
        out += [f"lane{i}.{part}.{name}" for i, lane in enumerate(data["lanes"], 1) for part in ("sampler", "gradient") for name in lane[part]["params"]]  # fmt: skip
    else:
        out += [f"model.{name}" for name in data["model"]["params"]]
        out += [f"method{i}.{name}" for i, method in enumerate(data["methods"], 1) for name in method["params"]]
    return out


_NOWHERE = Experiment.from_dict({"target": "gaussian", "lanes": [{"sampler": "sgld"}]})
"""What a link is read against; a lesson's link names all that it needs."""
