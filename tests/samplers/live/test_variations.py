"""The changes of a description by a parameter: positions and stops against descriptions made anew."""

import copy
import random

import pytest

from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.live import description
from sgmcmc_lab.samplers.live.variations import variations
from sgmcmc_lab.samplers.parameters import Count, SpecError, declared
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each

NAMES = ("quartic", "von_mises", "sparse_dirichlet", "linear_regression")


def fitting(key):
    """The first of a few targets that a sampler takes, or any."""
    cls = SAMPLERS[key]
    return next(name for name in (*NAMES, *TARGETS) if cls.fits(TARGETS[name]))


def replaced(base, places, value):
    """A description with a value at these places."""
    out = copy.deepcopy(base)
    for *path, last in places:
        node = out
        for key in path:
            node = node[key]
        node[last] = float(value)
    return out


def leaves(node):
    """Numbers as floats: a flag is 0 or 1."""
    if isinstance(node, dict):
        return {key: leaves(part) for key, part in node.items()}
    if isinstance(node, list):
        return [leaves(part) for part in node]
    return float(node) if isinstance(node, (int, float)) else node


def differing(owner, values, describe, found, seed=1):
    """The parameters whose places or stops give another description than one made with their values."""
    rng, out = random.Random(seed), []
    known = dict(declared(owner))
    for name, variation in found.items():
        if "stops" in variation:
            wrong = any(leaves(made) != leaves(describe({**values, name: value})) for value, made in variation["stops"])
        else:
            parameter, low, high = known[name], *(getattr(known[name], "bounds", None) or (0, 1))
            tried = [rng.uniform(low, high) for _ in range(5)]
            if isinstance(parameter, Count) or not hasattr(parameter, "bounds"):
                tried = [round(value) for value in tried]
            wrong = False
            for value in tried:
                try:
                    expected = describe({**values, name: type(values[name])(value)})
                except SpecError:
                    continue
                wrong |= leaves(replaced(describe(values), variation["places"], value)) != leaves(expected)
        if wrong:
            out.append(name)
    return out


def case(kind, key):
    if kind == "sampler":
        target_key, owner = fitting(key), SAMPLERS[key]
        gradient = sorted(owner.gradients_for(TARGETS[target_key]))[0]
        spec = RunSpec.of(target_key, key, gradient)
        values = spec.sampler.values()
    else:
        owner = GRADIENTS[key]
        target_key, sampler = next(
            (name, one)
            for name in (*NAMES, *TARGETS)
            for one in SAMPLERS
            if SAMPLERS[one].fits(TARGETS[name]) and key in SAMPLERS[one].gradients_for(TARGETS[name])
        )
        spec = RunSpec.of(target_key, sampler, key)
        values = spec.gradient.values()
    target = spec.make_target()

    def describe(changed):
        made = owner(**changed)
        made.check(target)
        return description.of_sampler(made, target) if kind == "sampler" else description.of_gradient(made, target)

    return owner, dict(values), describe


@for_each(("kind", "key"), [*(("sampler", key) for key in SAMPLERS), *(("gradient", key) for key in GRADIENTS)])
def test_places_and_stops_are_those_of_python(kind, key):
    owner, values, describe = case(kind, key)
    assert differing(owner, values, describe, variations(owner, values, describe)) == []


def test_a_place_that_is_missing_is_seen():
    """A planted fault: one of the places of a thermostat's friction is forgotten."""
    owner, values, describe = case("sampler", "gsgnht")
    found = variations(owner, values, describe)
    assert found["friction"]["places"] == [["params", "values", 1], ["auxiliary", "values", 2], ["friction"]]
    found["friction"]["places"].pop()
    assert differing(owner, values, describe, found) == ["friction"]


@pytest.mark.slow
def test_most_parameters_have_places():
    """A slider over 17 stops is the exception: every step size but the recipe's is free."""
    free = []
    for key in SAMPLERS:
        owner, values, describe = case("sampler", key)
        found = variations(owner, values, describe)
        if "step_size" in found and "places" in found["step_size"]:
            free.append(key)
    assert len(free) > 0.9 * sum("step_size" in dict(declared(owner)) for owner in SAMPLERS.values())
