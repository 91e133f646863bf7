"""Claims on a live page are what they are in the lab: the same numbers of the same statistics, and the same words."""

import math
import re
from dataclasses import replace
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest

from sgmcmc_lab.app.lesson.marks import marks
from sgmcmc_lab.app.live_page.claims import (
    MEASURED,
    SEPARATE,
    described_claim,
    follows,
    is_measured,
    is_separate,
    poisson,
)
from sgmcmc_lab.app.live_page.document import aimed
from sgmcmc_lab.app.live_page.site import _is_live
from sgmcmc_lab.lessons import headless
from sgmcmc_lab.lessons.headless import live_result
from sgmcmc_lab.lessons.lesson import Claim, Goal
from sgmcmc_lab.lessons.library import find
from sgmcmc_lab.lessons.measures import MEASURES
from sgmcmc_lab.lessons.measures.base import MOMENTA, Evidence
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.live import description
from sgmcmc_lab.samplers.running_statistics import Statistics, Sums
from sgmcmc_lab.samplers.trace import Divergence, Trace
from tests.browser.hosts import CHROMIUM, Held, Host, module_of, open_page, serve, unpacked
from tests.helpers.course import LESSONS

ALLOWED = 1e-9
EARLY = 30
"""Counted steps that are too few for anything."""
WHOLE = 700_000
"""Steps of all chains of all lanes up to which a step is followed to its full length, as it is, if no draws go over."""
CHAINS, MOST, BURN_IN = 8, 31_000, 300
"""For a step that is cut short: its chains, the fewest with a standard error, its steps at the reduced length, in which
slow chains have a τ, and its burn-in.
"""
NUMBERLESS, SLOWEST = "no number", "recipe-q"
"""Among the states: a claim without a number when it is judged, and the lesson with a chain that has no τ by then."""
IN_PYTHON = ("predictive", "gap", "ksd", "swaps", "held_out")
"""Measures that need NumPy's generator, a spectrum, a sum over pairs of draws, counts of rungs, or held-out data."""


def steps_of(lesson):
    """The steps whose claims the page measures, cut short."""
    found = (step for step in lesson.steps if _is_live(step) and any(is_measured(step, one) for one in step.claims))
    return [cut(step) for step in found]


def cut(step):
    """The step with fewer chains and steps: where it is judged, and a third later for good."""
    spec, quick = step.spec, step.quick_spec
    size = len(spec.lanes) * spec.n_chains * (spec.burn_in + spec.n_steps)
    measured = [(claim.make_measure(), claim.lane) for claim in step.claims if is_measured(step, claim)]
    runs = spec.runs()
    if size <= WHOLE and not any(follows(measure, runs[n - 1], runs[n - 1]) for measure, n in measured):
        return step
    first = min(quick.n_steps, MOST)
    full = min(spec.n_steps, first + first // 3)
    less = {"n_chains": min(spec.n_chains, CHAINS), "burn_in": min(spec.burn_in, BURN_IN)}
    return replace(
        step,
        quick_spec=replace(quick, n_steps=first, lanes=shorter(quick.lanes, first), **less),
        spec=replace(spec, n_steps=full, lanes=shorter(spec.lanes, full), **less),
    )


def shorter(lanes, most):
    """Lanes of which those with a length of their own have at most so many steps."""
    return tuple(replace(lane, n_steps=lane.n_steps and min(lane.n_steps, most)) for lane in lanes)


def job_of(step, edit=None):
    """A step as the page has it, and after how many steps its claims are looked at."""
    places = [i for i, claim in enumerate(step.claims) if is_measured(step, claim)]
    claims = [described_claim(step, place) for place in places]
    followed = followed_by(step, claims)
    if edit is not None:
        edit(claims)
    burn_in = step.spec.burn_in
    first, full = min(claim["first"] for claim in claims), max(claim["full"] for claim in claims)
    target = aimed(step.spec.make_target(), step=step)
    if any(lane and lane["held"] for lane in followed):
        full = min(full, *(lane["held"] for lane in followed if lane and lane["held"]))
    lengths = sorted({burn_in + n for n in (EARLY, first, full)})
    return {
        "lanes": [description.of_run(spec) | {"keep": 0, "target": target} for spec in step.spec.runs()],
        "claims": claims,
        "poisson": poisson(),
        "lengths": lengths,
        "followed": followed,
    }


def followed_by(step, claims):
    """For each lane the steps between two of its snapshots, whether its draws are needed, and how many of them the page
    holds; None without either.
    """
    out = [None] * len(step.spec.runs())
    for claim in claims:
        for lane, needed in zip(claim["lanes"], claim["follows"], strict=True):
            if needed is not None:
                before = out[lane] or {"every": 0, "draws": False, "held": 0}
                held = (needed["gaps"] or {"most": 0})["most"]
                out[lane] = {
                    "every": max(before["every"], needed["every"]),
                    "draws": before["draws"] or bool(needed["moments"] or held),
                    "held": max(before["held"], held),
                }
    return out


class Recorded(Trace):
    """A trace with snapshots of the momenta, where the page has recorded them."""

    momenta = None


class Whole(NamedTuple):
    """The draws of a lane up to the last length, and snapshots every so many steps, as the page has recorded them."""

    draws: np.ndarray
    momenta: np.ndarray
    every: int


def whole(job, answer):
    """The record of each lane; None where nothing is recorded."""
    return [
        one and Whole(unpacked(one["kept"]), unpacked(one["momenta"]), lane["every"])
        for one, lane in zip(answer["recorded"], job["followed"], strict=True)
    ]


def runs_of(step, found, recorded, length):
    """The runs of a step after so many steps."""
    lanes = zip(step.spec.runs(), found["runs"], recorded, strict=True)
    return [SameRun(spec, *one, length - spec.burn_in) for spec, *one in lanes]


class SameRun:
    """A run of Python that holds what the page's run holds; of what is recorded, that of its counted steps."""

    def __init__(self, spec, found, recorded, counted):
        held, target = Held.of(found), spec.make_target()
        arrays, fields = held.arrays, held.fields
        self.steps, self.counted_from = fields["steps"], fields["counted_from"]
        self.counted = max(self.steps - self.counted_from, 0)
        stopped = fields["divergence"]
        self.divergence = stopped and Divergence(stopped["step"], stopped["message"], stopped["refused"])
        sums = Sums(*(np.ascontiguousarray(arrays[name]) for name in Sums._fields))
        counts = arrays["counts"]
        draws = None if recorded is None else np.ascontiguousarray(recorded.draws[:, : counted // spec.thin])
        self._trace = Recorded(
            spec,
            target,
            Statistics(target.columns, sums),
            draws,
            self.steps,
            self.counted_from,
            fields["gradients"],
            fields["data_seen"],
            0.0,
            int(counts[jit.ACCEPTED]),
            int(counts[jit.CLIPPED]),
            int(counts[jit.TURNED]),
            self.divergence,
        )
        if recorded is not None:
            snapshots = counted // recorded.every if recorded.every else 0
            object.__setattr__(self._trace, "momenta", np.ascontiguousarray(recorded.momenta[:snapshots]))

    def trace(self):
        return self._trace


def apart(found, wanted):
    """Whether two numbers differ, where either may be none or no number."""
    if found is None or wanted is None:
        return found is not wanted
    found = float(found.replace("Infinity", "inf"))
    if math.isfinite(wanted):
        return not math.isclose(found, wanted, rel_tol=ALLOWED, abs_tol=1e-12)
    return not (found == wanted or (math.isnan(found) and math.isnan(wanted)))


def rounded(text):
    """A text without numbers that are rounding alone."""
    return re.sub(r"-?[0-9.]+e-1[3-9]", "0", text)


def by_the_labs_rule():
    """All claims that the page measures are live ones, of all draws and snapshots where they need them."""
    live = property(lambda claim: claim.reduction is None and claim.measure.key in MEASURED)
    measured = lambda trace: Evidence(trace, trace.momenta)  # noqa: E731
    return mock.patch.multiple(Claim, live=live), mock.patch.object(headless, "Evidence", measured)


def differences(step, job, answer):
    """The differences between the page and the lab on a step's claims."""
    live, evidence = by_the_labs_rule()
    with live, evidence:
        return _differences(step, job, answer)


def measured_once():
    """The lab's result of a claim, which its check mark takes from here, too."""
    kept = {}

    def result(step, claim, runs):
        if claim.line not in kept:
            kept[claim.line] = live_result(step, claim, runs)
        return kept[claim.line]

    return mock.patch("sgmcmc_lab.app.lesson.marks.live_result", result), result


def _differences(step, job, answer):
    out, states = [], set()
    recorded = whole(job, answer)
    for length, answer_then in zip(job["lengths"], answer["found"], strict=True):
        runs = runs_of(step, answer_then, recorded, length)
        by_the_mark, result_of = measured_once()
        with by_the_mark:
            listed = marks(step, step.spec, runs)
        for given, found in zip(job["claims"], answer_then["results"], strict=True):
            claim = step.claims[given["place"]]
            wanted, mark = result_of(step, claim, runs), listed[given["place"]]
            result, name = wanted.result, f"{claim.measure.key}, line {claim.line}, after {length} steps"
            if (found["counted"], found["settled"]) != (wanted.counted, wanted.settled):
                out.append(f"{name}: {found['counted']} {found['settled']}, not {wanted.counted} {wanted.settled}")
            numbers = (None,) * 4 if result is None else (result.measured, result.error, result.allowed, result.chance)
            if length >= step.spec.burn_in + given["first"] and not math.isfinite(result.measured):
                states.add(NUMBERLESS)
            for what, a, b in zip(("measured", "error", "allowed", "chance"), found["numbers"], numbers, strict=True):
                if apart(a, b):
                    out.append(f"{name}: {what} {a}, not {b}")
            if (found["mark"]["state"], rounded(found["mark"]["detail"])) != (mark.state, rounded(mark.detail)):
                out.append(f"{name}: {found['mark']}, not {mark.state} {mark.detail}")
            states.add(mark.state)
    return out, states


@pytest.fixture(scope="module")
def browser_page():
    with open_page(CHROMIUM) as page:
        yield page


def looked_at(page, steps, *, edit=None, edits=None):
    """The page's results for these steps."""
    jobs = [job_of(step, edit) for step in steps]
    with serve(module_of(spec for step in steps for spec in step.spec.runs()), edits) as site:
        answers = Host(page, site).claimed(steps[0].spec.runs()[0], jobs)
    found = [differences(step, job, answer) for step, job, answer in zip(steps, jobs, answers, strict=True)]
    return [problem for problems, _ in found for problem in problems], set().union(*(states for _, states in found))


def strict(steps):
    """The steps with claims whose goals are the laxer ones of the reduced length, and more than the run can meet."""

    def of(claim):
        exactly = claim.goal.exact or claim.goal.equals is not None
        goal = replace(claim.goal, tolerance=1e-9, relative=None, errors=None) if exactly else Goal(below=-1e9)
        return replace(claim, goal=goal, quick_goal=claim.goal)

    return [replace(step, claims=tuple(map(of, step.claims))) for step in steps]


@pytest.mark.parametrize("key", LESSONS)
def test_claims_of_the_course_are_those_of_the_lab(browser_page, key):
    """Each live claim early, at its reduced length, and later: numbers to 1e-9, state and words.

    Both hosts look at the same draws, so that eight chains show what more of them would.
    """
    steps = steps_of(find(key, []))
    if not steps:
        pytest.skip("no claim of it is measured on its runs")
    found, states = looked_at(browser_page, steps)
    assert found == []
    assert (NUMBERLESS in states) == (key == SLOWEST)


def test_most_claims_on_densities_are_measured():
    """All but those of measures that are listed here."""
    live = [
        (step, claim)
        for lesson in LESSONS.values()
        for step in lesson.steps
        for claim in step.claims
        if claim.reduction is None and _is_live(step)
    ]
    left = {claim.measure.key for step, claim in live if not (is_measured(step, claim) or is_separate(claim))}
    assert left <= set(IN_PYTHON)
    assert sum(is_measured(step, claim) for step, claim in live) > 110
    assert {key for key, measure in MEASURES.items() if measure.of_density} == {*MEASURED, *SEPARATE, *IN_PYTHON}


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("claims.js", ("counted >= claim.first && result", "counted >= 0 && result")),
        ("claims.js", ("chance > enough", "chance > 100 * enough")),
        (
            "measures.js",
            ("total(values.map((x) => (x - value) ** 2)) / (n - 1)", "total(values.map((x) => (x - value) ** 2)) / n"),
        ),
        ("measures.js", ("1 / perUnit }", "1.001 / perUnit }")),
        ("claims.js", ("over all", "over")),
        ("claims.js", ('later ? "near" : "holds"', '"holds"')),
    ],
)
def test_another_rule_is_seen(browser_page, source, fault):
    """Planted faults in the page's scripts: judged too early, another error, another unit, other words."""

    def edit(text):
        assert fault[0] in text
        return text.replace(*fault)

    assert looked_at(browser_page, strict(steps_of(find("langevin", []))), edits={source: edit})[0]


def test_another_exact_value_is_seen(browser_page):
    """A planted fault: the file has wrong exact values."""

    def edit(claims):
        for claim in claims:
            claim["exact"] = [None if x is None else 1.01 * x + 0.01 for x in claim["exact"]]

    found, _ = looked_at(browser_page, steps_of(find("boundary", [])), edit=edit)
    assert found


def test_every_state_is_met(browser_page):
    """With a reduced length that is too short: too few steps, too early, holds, and fails."""
    states = set()
    for key in ("langevin", "step-size", "dw"):
        steps = steps_of(find(key, []))
        short = [replace(step, quick_spec=replace(step.quick_spec, n_steps=EARLY)) for step in steps]
        found, seen = looked_at(browser_page, [*steps, *short, *strict(steps)])
        assert found == []
        states |= seen
    assert {"pending", "early", "near", "holds", "fails"} <= states


def circle_thermostats():
    """A step with all measures of draws and of snapshots, of two lanes."""
    return cut(find("circle", []).steps[2])


@pytest.mark.parametrize(
    "fault",
    [
        ("c * width + component - 1", "c * width + component % width"),
        ("this.powers[order - 1]", "this.powers[2 - order]"),
        ("BigInt(description.thin), 1n", "BigInt(description.thin), 2n"),
        ("values, n, constants", "values, n: n - 1, constants"),
        ("engine.view(out).map", "engine.view(out).slice(1).map"),
        (" / m)", " / dim)"),
    ],
)
def test_another_sum_is_seen(browser_page, fault):
    """Planted faults: another component, another power, other draws, a draw less, a chain less, another dimension."""

    def edit(text):
        assert fault[0] in text
        return text.replace(*fault)

    assert looked_at(browser_page, [circle_thermostats()], edits={"followed.js": edit})[0]


@pytest.mark.parametrize("fault", ["lane", "every", "constants"])
def test_another_description_of_sums_is_seen(browser_page, fault):
    """Planted faults: the other lane, other snapshots, another function."""

    def edit(claims):
        for claim in claims:
            if fault == "lane":
                claim["lanes"] = [1 - lane for lane in claim["lanes"]]
            for needed in claim["follows"]:
                if fault == "every" and needed["every"]:
                    needed["every"] += 1
                for moment in needed["moments"].values() if fault == "constants" else ():
                    moment["constants"][0] += 1

    assert looked_at(browser_page, [circle_thermostats()], edit=edit)[0]


def chains_own():
    """A step with the distance of a chain."""
    return find("bias-variance", []).steps[3]


def test_the_distance_of_a_chain_stays_after_its_length(browser_page):
    """The page holds the draws of the full length, and no more. Planted fault: it holds a draw fewer."""
    step = chains_own()
    for held, same in ((0, True), (-1, False)):
        job = job_of(step)
        for claim in job["claims"]:
            for needed in claim["follows"]:
                if needed is not None:
                    needed["gaps"]["most"] += held
        job["lengths"] = [step.spec.burn_in + n for n in (step.spec.n_steps, 2 * step.spec.n_steps)]
        with serve(module_of(step.spec.runs())) as site:
            (answer,) = Host(browser_page, site).claimed(step.spec.runs()[0], [job])
        numbers = [
            [
                one["numbers"][0]
                for one, claim in zip(found["results"], job["claims"], strict=True)
                if claim["measure"]["key"] == "chain_ks"
            ]
            for found in answer["found"]
        ]
        expected = expected_of(step, job, answer)
        assert numbers[0] == numbers[1] and len(numbers[0]) == 2
        assert all(not apart(a, b) for a, b in zip(numbers[0], expected, strict=True)) == same


def expected_of(step, job, answer):
    """Python's distances of a chain, of the draws that the page's run made up to the first length."""
    live, evidence = by_the_labs_rule()
    with live, evidence:
        runs = runs_of(step, answer["found"][0], whole(job, answer), job["lengths"][0])
        return [
            live_result(step, step.claims[claim["place"]], runs).result.measured
            for claim in job["claims"]
            if claim["measure"]["key"] == "chain_ks"
        ]


@pytest.mark.parametrize(
    "fault",
    [
        ("this.mostHeld + this.held + t]", "this.mostHeld + t]"),
        ("fresh[(k *", "fresh[((k - 1) *"),
        ("this.held += added", "this.held += Math.max(added - 1, 0)"),
        ("sum + gap, 0)", "Math.max(sum, gap), 0)"),
        (".sort()", ""),
    ],
)
def test_another_distance_of_a_chain_is_seen(browser_page, fault):
    """Planted faults: other places, another column, lost draws, the largest in place of the mean, no order."""

    def edit(text):
        assert fault[0] in text
        return text.replace(*fault)

    assert looked_at(browser_page, [chains_own()], edits={"followed.js": edit})[0]


def test_snapshots_are_those_of_the_labs_short_run():
    """The snapshots of every claim of the course on momenta. Planted fault: those of the full length."""
    found = [
        [
            follows(claim.make_measure(), spec.runs()[claim.lane - 1], spec.runs()[claim.lane - 1])["every"]
            for spec in (step.quick_spec, step.spec)
        ]
        for lesson in LESSONS.values()
        for step in lesson.steps
        if _is_live(step)
        for claim in step.claims
        if claim.reduction is None and claim.make_measure().requires == MOMENTA
    ]
    lesson = find("circle", [])
    described = described_claim(lesson.steps[0], 4)
    assert described["first"] == 12_000 and described["follows"] == [{"every": 30, "moments": {}, "gaps": None}]
    assert len(found) > 10 and sum(short != full for short, full in found) > 10
