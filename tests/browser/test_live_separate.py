"""Claims on separate runs of a live page are those of the lab's short runs: ensembles, and Gibbs of known τ."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from numpy.random import SFC64, Generator, SeedSequence

from sgmcmc_lab.app.lesson import headless_claims, marks
from sgmcmc_lab.app.live_page.claims import described_separately, is_separate
from sgmcmc_lab.app.live_page.document import aimed
from sgmcmc_lab.app.live_page.site import _is_live
from sgmcmc_lab.lessons.headless import run_step
from sgmcmc_lab.lessons.library import find
from tests.browser.hosts import CHROMIUM, Host, module_of, open_page, serve
from tests.helpers.course import LESSONS

STEPS = ("bias-variance 1", "bias-variance 2", "scan 3", "bias-variance-figures 1", "bias-variance-figures 2")
"""Lesson and step."""
LONGEST = 20_000
"""Steps of a chain whose τ is measured."""


@cache
def step_of(name):
    """A step, cut short, with the claims on separate runs alone."""
    key, number = name.split()
    step = find(key, []).steps[int(number) - 1]
    short = replace(step.quick_spec, n_steps=min(step.quick_spec.n_steps, LONGEST))
    return replace(step, quick_spec=short, claims=tuple(filter(is_separate, step.claims)), checks=())


@pytest.fixture(scope="module")
def browser_page():
    with open_page(CHROMIUM) as page:
        yield page


def looked_at(page, step, edits=None):
    """The page's results for the claims."""
    claims = [described_separately(step, place) for place in range(len(step.claims))]
    with serve(module_of(step.spec.runs()), edits) as site:
        job = {"claims": claims, "target": aimed(step.spec.make_target(), step=step)}
        (found,) = Host(page, site).separate(step.spec.runs()[0], [job])
    return found


@cache
def results_of(name):
    """The lab's results of a step, with which several pages are compared."""
    return run_step(step_of(name), quick=True).results


def differences(of, found):
    """The differences between the page and the lab on the claims of a step."""
    step, results = step_of(of), results_of(of)
    with mock.patch.object(headless_claims, "of", return_value=SimpleNamespace(problem="", results=results)):
        wanted = marks.marks(step, None, [])
    out = []
    for claim, result, mark, numbers, shown in zip(
        step.claims, results, wanted, found["numbers"], found["marks"], strict=True
    ):
        name = f"{claim.measure.key}, line {claim.line}"
        a, b = (np.array(one, dtype=float) for one in (numbers, [result.measured, result.error]))
        if not np.allclose(a, b, rtol=1e-9, equal_nan=True):
            out.append(f"{name}: {a}, not {b}")
        if (shown["state"], shown["detail"]) != (mark.state, mark.detail):
            out.append(f"{name}: {shown}, not {mark}")
    if {one["state"] for one in found["before"]} - {"running"}:
        out.append("a mark before the first run")
    return out


def test_the_steps_of_the_course_with_claims_on_separate_runs():
    course = LESSONS
    here = {
        f"{key} {step.number}"
        for key, lesson in course.items()
        for step in lesson.steps
        if any(map(is_separate, step.claims)) and _is_live(step)
    }
    assert here == set(STEPS)


@pytest.mark.parametrize("name", STEPS)
def test_claims_on_separate_runs_are_those_of_the_lab(browser_page, name):
    """Each with its seeds: numbers to 1e-9, state and words."""
    found = looked_at(browser_page, step_of(name))
    assert differences(name, found) == []
    assert all(np.isfinite(float(number)) for numbers in found["numbers"] for number in numbers)


FAULTS = [
    ("bias-variance 2", ("(run.seed + i)", "(run.seed + i + 1)")),
    ("bias-variance 2", ("=== component - 1", "=== component % 2")),
    ("bias-variance 2", ("run.steps < steps", "run.steps < steps - 1")),
    ("bias-variance 2", ("found[k].push", "found[lanes.length - 1 - k].push")),
    ("bias-variance 2", ("fill(start)", "fill(2 * start)")),
    ("scan 3", ("spawned(seed, c)", "spawned(seed, c + 1)")),
    ("scan 3", ("values.local + values.overall", "values.overall + values.local")),
    ("scan 3", ("sd ** 2", "2 * sd")),
]


@pytest.mark.parametrize(
    ("name", "fault"),
    FAULTS,
)
def test_another_run_is_seen(browser_page, name, fault):
    """Planted faults: other seeds, another component, a step less, the other lane, another start, other costs, another
    variance.
    """

    def edit(text):
        assert fault[0] in text
        return text.replace(*fault)

    assert differences(name, looked_at(browser_page, step_of(name), {"separate.js": edit}))


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**40 + 7])
def test_children_of_a_seed_have_numpys_streams(browser_page, seed):
    """Planted fault: the stream of the seed itself."""
    spec = step_of("scan 3").spec.runs()[0]
    with serve(module_of([spec])) as site:
        found = Host(browser_page, site).children(spec, seed, 3)
    wanted = [Generator(SFC64(child)).bit_generator.random_raw(4).tolist() for child in SeedSequence(seed).spawn(3)]
    assert [[int(x) for x in one] for one in found] == wanted
    assert wanted[0] != SFC64(SeedSequence(seed)).random_raw(4).tolist()
