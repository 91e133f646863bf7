"""The kinds of lanes of a live page: all samplers and gradients that fit, and what another target changes of them."""

from contextlib import suppress
from dataclasses import replace
from unittest import mock

import pytest

from sgmcmc_lab.app.live_page import free
from sgmcmc_lab.app.live_page.document import STOPS
from sgmcmc_lab.app.live_page.kinds import MOST_CHAINS, Kinds, Part, alone
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.live.variations import tried
from sgmcmc_lab.samplers.parameters import SpecError, declared
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each


def pair(one):
    (lane,) = one.lanes
    return lane.sampler.key, lane.gradient.key


def accepted(key):
    """Every sampler with every gradient that the reader of experiments accepts on this target."""
    out = set()
    for sampler in SAMPLERS:
        for gradient in GRADIENTS:
            with suppress(SpecError):
                Experiment.from_dict({"target": key, "lanes": [{"sampler": sampler, "gradient": gradient}]})
                out.add((sampler, gradient))
    return out


@for_each(
    ("key", "least"),
    [("gaussian", 57), ("logistic_regression", 182), ("logistic_table", 179), ("sparse_dirichlet", 10), ("fisher", 21)],
)
def test_a_menu_has_every_sampler_with_every_gradient_that_fits(key, least):
    """In a file of 100 chains, too, of which some samplers take fewer. Planted fault: a menu without one gradient."""
    found = [pair(one) for one in alone(replace(free.experiment(key), n_chains=100), True)]
    assert len(found) == len(set(found)) >= least
    listed = accepted(key) - (
        {pair for pair in accepted(key) if pair[0] == "exact"} if key == "logistic_table" else set()
    )
    assert set(found) == listed != {one for one in found if one[1] != "full"}


def test_a_kind_has_the_chains_that_its_lane_can_have():
    """A sampler that adapts across chains, one whose chains interact, and a file that begins with more than most."""

    def chains(sampler, n_chains=4):
        return Kinds(
            [Experiment.from_dict({"target": "gaussian", "lanes": [{"sampler": sampler}], "n_chains": n_chains})]
        ).listed[0]["chains"]

    assert (chains("sgld"), chains("chees"), chains("svgd", 150)) == ([1, MOST_CHAINS], [2, MOST_CHAINS], [1, 150])


def moves(base):
    """For each of its target's parameters, the experiment with another value."""
    key, values, target = base.target.key, base.target.values(), base.make_target()
    for name, parameter in declared(TARGETS[key]):
        for value in tried(parameter, values[name], STOPS)[::-1]:
            with suppress(SpecError):
                to = {"key": key, "params": {**values, name: value}}
                moved = Experiment.from_dict({**base.to_dict(), "target": to})
                if value != values[name] and moved.make_target().ready and moved.make_target().dim == target.dim:
                    yield moved
                    break


def covering(base):
    """Kinds of lanes with every sampler and every gradient of a menu."""
    seen = set()
    for one in alone(base, True):
        if not seen.issuperset(pair(one)):
            seen.update(pair(one))
            yield one


def missed(kinds, base, moved):
    """The samplers and gradients that a page at another target would describe as they were."""
    there = Kinds([replace(one, target=moved.target) for one in covering(base)])
    changed = kinds.at(moved)
    out = [
        one["key"]
        for place, one in enumerate(there.choices)
        if one != changed["choices"].get(place, kinds.choices[place])
    ]
    for place, (kind, then) in enumerate(zip(kinds.listed, there.listed, strict=True)):
        run = changed["runs"].get(kind["run"], kinds.runs[kind["run"]])
        out += ["run"] * (run != there.runs[then["run"]])
        now = kind | changed["kinds"].get(place, {})
        out += [name for name in ("views", "chains", "schedule", "equations") if now[name] != then[name]]
    return out


@pytest.mark.slow
@pytest.mark.parametrize("key", free.densities())
def test_what_another_target_changes_is_all_that_differs(key):
    """A sampler whose first values have the same description has it at all values, and so has a gradient."""
    base = free.experiment(key)
    kinds = Kinds(covering(base))
    for moved in moves(base):
        assert missed(kinds, base, moved) == [], moved.target


@pytest.mark.slow
def test_a_change_that_the_first_values_hide_is_seen():
    """The planted fault: a sampler that is described in the same way at its first values."""
    plain = Part.described

    def hidden(part, target, values):
        at_first = part.owner.key == "zigzag" and values == part.choice.values()
        return {"key": "zigzag"} if at_first else plain(part, target, values)

    base = free.experiment("gaussian")
    with mock.patch.object(Part, "described", hidden):
        assert missed(Kinds(covering(base)), base, list(moves(base))[-1]) == ["zigzag"]
