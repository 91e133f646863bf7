"""The changes of a description with a parameter, found by trial: the WebAssembly host has no Python to pack it again.

Most parameters appear unchanged in the description, once or several times: these *places* take a new value. Any other
parameter moves over *stops*, each with its own description.
"""

from collections.abc import Callable, Mapping
from math import exp, log
from typing import Any

import param

from sgmcmc_lab.samplers.parameters import Count, Flag, Option, Real, SpecError, Value, declared

STOPS = 17
"""Stops on the slider of a parameter that the description does not contain; its present value is one more."""

Described = Callable[[Mapping[str, Value]], dict[str, Any]]


def variations(
    owner: type[param.Parameterized], values: Mapping[str, Value], describe: Described
) -> dict[str, dict[str, Any]]:
    """The places or the stops of each parameter that can change, by its name.

    ``describe(values)`` makes the description, and raises :class:`SpecError` for values that do not fit. A parameter
    with a single valid value, or that is not a number, flag or option, is left out.
    """
    base, out = describe(values), {}
    for name, parameter in declared(owner):
        found = _described(parameter, name, values, describe)
        if len(found) < 2:
            continue
        places = _places(base, values[name], [(value, made) for value, made in found if value != values[name]])
        if places != []:
            out[name] = {"places": places} if places else {"stops": [[value, made] for value, made in found]}
    return out


def _described(
    parameter: param.Parameter, name: str, values: Mapping[str, Value], describe: Described
) -> list[tuple[Value, Any]]:
    """The description at each tried value, in order."""
    out = []
    for value in tried(parameter, values[name], STOPS):
        try:
            out.append((value, describe({**values, name: value})))
        except SpecError:
            continue
    return out


def tried(parameter: param.Parameter, now: Value, stops: int) -> list[Value]:
    """The values of a parameter on a slider: ``stops`` of them from bound to bound, and its value ``now``."""
    if isinstance(parameter, Flag):
        return [False, True]
    if isinstance(parameter, Option):
        return list(parameter.objects)
    if not isinstance(parameter, (Real, Count)):
        return []
    assert isinstance(now, (int, float))
    low, high = parameter.bounds
    forward, back = (log, exp) if parameter.log and low > 0 else (float, float)
    ends = forward(low), forward(high)
    between = [back(ends[0] + (ends[1] - ends[0]) * k / (stops - 1)) for k in range(stops)]
    if isinstance(parameter, Count):
        return sorted({now, *(round(value) for value in between)})
    return sorted({now, low, high, *(min(max(float(f"{value:.3g}"), low), high) for value in between)})


def _places(base: Any, now: Value, others: list[tuple[Value, Any]]) -> list[list[str | int]] | None:
    """The places in the base that hold a parameter's value; None where the parameter changes more than these."""
    if not isinstance(now, (int, float)):
        return None
    leaves = dict(_leaves(base))
    moved = [(float(value), dict(_leaves(made))) for value, made in others if isinstance(value, (int, float))]
    kept = [
        path
        for path, leaf in leaves.items()
        if leaf == float(now) and all(found.get(path) == value for value, found in moved)
    ]
    if any(found != leaves | dict.fromkeys(kept, value) for value, found in moved):
        return None
    return [list(path) for path in kept]


def _leaves(node: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    """Every number and text of a description, by its path; numbers as floats."""
    if isinstance(node, (dict, list)):
        pairs = node.items() if isinstance(node, dict) else enumerate(node)
        return [leaf for key, part in pairs for leaf in _leaves(part, (*path, key))]
    return [(path, float(node) if isinstance(node, (int, float)) else node)]
