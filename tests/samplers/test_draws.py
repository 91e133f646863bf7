"""The draws are those of the commit before: ``python -m tests.draws`` keeps what they are, in ``tests/draws.json``.

With every save some sixty combinations are compared, and all in the slow tests. A change of draws that is meant is a
line of CHANGELOG.md, beside the new file.
"""

from collections.abc import Iterable

import numpy as np
import pytest

from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.long_run import LongRun
from tests import draws
from tests.helpers.cases import for_each

KEPT = draws.read()
MEND = f"where this is meant, run {draws.COMMAND}, commit {draws.KEPT.name}, and say in CHANGELOG.md that draws change"
FEW = 60
SLOW = ("logistic_large", "sphere_collapsed")
"""A target and a method whose steps take long."""


def parts(name: str) -> set[tuple[int, str]]:
    """The sampler, the target and the gradient of a combination, or the method and the model."""
    found = name.split(draws.BETWEEN)
    return {(place + 3 * (len(found) == 2), part) for place, part in enumerate(found)}


def covering(names: Iterable[str]) -> list[str]:
    """The first few combinations that have most parts which those before them have not; none that are slow."""
    waiting, seen, chosen = {name: parts(name) for name in names if cheap(name)}, set(), []
    while len(chosen) < FEW:
        best = max(waiting, key=lambda name: len(waiting[name] - seen))
        chosen.append(best)
        seen |= waiting.pop(best)
    return chosen


def cheap(name: str) -> bool:
    sampler, target = name.split(draws.BETWEEN)[:2]
    long = target in TARGETS and issubclass(TARGETS[target], LongRun)
    return not (long or target in SLOW or sampler in SLOW)


def changed(names: Iterable[str]) -> dict[str, str]:
    """The differences of these combinations from what was kept, by name."""
    found = {name: draws.drawn(name).differs(KEPT[name]) for name in names}
    return {name: how for name, how in found.items() if how}


SOME = covering(KEPT)


@for_each("name", SOME)
def test_few_draw_what_was_kept(name):
    assert not changed([name]), MEND


@pytest.mark.slow
@pytest.mark.parametrize("sampler", dict.fromkeys(name.split(draws.BETWEEN)[0] for name in KEPT))
def test_all_draw_what_was_kept(sampler):
    assert not changed(name for name in KEPT if name.split(draws.BETWEEN)[0] == sampler), MEND


def test_the_few_have_every_sampler_gradient_model_and_cheap_target():
    missing = set.union(*(parts(name) for name in KEPT if cheap(name))) - set.union(*map(parts, SOME))
    assert {place for place, _ in missing} <= {3}, "only methods, of which each model has one, may be missing"


def unlike(kept: Iterable[str]) -> list[str]:
    """The combinations that lack in a file, or that no longer fit, as sentences."""
    found, kept = draws.names(), set(kept)
    return [
        *(f"{name} is not in {draws.KEPT.name}" for name in found if name not in kept),
        *(f"{name} fits no longer" for name in sorted(kept.difference(found))),
    ]


def test_what_was_kept_is_of_all_that_fit():
    assert not unlike(KEPT), f"run {draws.COMMAND}, and commit {draws.KEPT.name}"


def test_a_combination_that_lacks_and_one_too_many_are_found():
    kept = [name for name in KEPT if name != "hmc × gaussian × full"] + ["hmc × gaussian × minibatch"]
    lacking, surplus = unlike(kept)
    assert lacking.startswith("hmc × gaussian × full is not") and surplus == "hmc × gaussian × minibatch fits no longer"


def test_most_are_compared_closely():
    """Fails where the command finds that the draws of many combinations depend on the processor."""
    entries = list(KEPT.values())
    assert all(np.isfinite(entry).all() for entry in entries if isinstance(entry, list))
    assert sum(isinstance(entry, str) for entry in entries) > len(entries) / 20
    assert sum(len(entry) > draws.CHAINS for entry in entries if isinstance(entry, list)) < len(entries) / 50


# Planted faults

EXACT = "sgld × gaussian × full"
BY_VALUE = "sgld × logistic_regression × minibatch"


@for_each("at", [(0, 0, 0), (1, 25, 0), (2, -1, 0)])
def test_another_last_bit_is_found(at):
    found = draws.of_sampler(*EXACT.split(draws.BETWEEN))
    assert isinstance(KEPT[EXACT], str) and not draws.Drawn.of(found).differs(KEPT[EXACT])
    found[at] = np.nextafter(found[at], np.inf)
    assert draws.Drawn.of(found).differs(KEPT[EXACT])


@for_each("at", [(0, 0), (1, 25), (2, -1)])
def test_a_draw_that_is_a_millionth_off_is_found(at):
    """Another last digit of all draws is not: that is libm's."""
    found = draws.of_sampler(*BY_VALUE.split(draws.BETWEEN))
    kept = KEPT[BY_VALUE]
    assert len(kept) == draws.CHAINS and not draws.Drawn.of(found).differs(kept)
    assert not draws.Drawn.of(found * (1 + 1e-14)).differs(kept)
    found[at] *= 1 + 1e-6
    assert draws.Drawn.of(found).differs(kept)


def test_two_draws_in_another_order_are_found():
    found = draws.of_sampler(*BY_VALUE.split(draws.BETWEEN))
    found[0, [10, 30]] = found[0, [30, 10]]
    assert draws.Drawn.of(found).differs(KEPT[BY_VALUE])


def test_a_chain_that_blows_up_is_compared():
    found = np.ones((draws.CHAINS, 5))
    found[1, 2:] = np.nan, np.inf, -np.inf
    kept = draws.Drawn.of(found).entry(draws.Drawn.of(found), exact=False)
    assert not draws.Drawn.of(found).differs(kept)
    assert draws.Drawn.of(np.ones((draws.CHAINS, 5))).differs(kept)


def test_numbers_that_two_processes_do_not_share_get_a_tolerance():
    here, near, far = (draws.Drawn.of(np.full((3, 5), 1 + off)) for off in (0, 1e-14, 1e-6))
    assert here.entry(here, exact=True) == here.digest != here.entry(near, exact=True)
    assert len(here.entry(near, exact=True)) == len(here.entry(here, exact=False)) == draws.CHAINS
    assert here.entry(far, exact=True)[draws.CHAINS] == pytest.approx(1e-4, rel=0.1)
    assert not far.differs(here.entry(far, exact=True)) and far.differs(here.entry(near, exact=True))
