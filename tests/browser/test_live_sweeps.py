"""A sweep on a live page is the lab's: the same numbers of each run, the same curves, and the same check marks."""

import json
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from sgmcmc_lab.app.lesson import headless_claims, marks
from sgmcmc_lab.app.live_page import sweeping
from sgmcmc_lab.app.live_page.document import aimed
from sgmcmc_lab.app.live_page.site import _is_live
from sgmcmc_lab.app.views.bundle import bundle
from sgmcmc_lab.lessons import figures
from sgmcmc_lab.lessons.headless import run_step
from sgmcmc_lab.lessons.lesson import Point
from sgmcmc_lab.lessons.library import find
from sgmcmc_lab.lessons.measures.base import Estimate
from sgmcmc_lab.lessons.sweep import Row, Table, reduced
from tests.browser.hosts import CHROMIUM, Host, module_of, open_page, serve
from tests.helpers.course import LESSONS

SHORT = 300
"""Steps of a run, in which two hosts' draws are alike."""
SWEPT = (
    "step-size 2",
    "minibatch-noise 2",
    "minibatch-noise 3",
    "boundary 2",
    "boundary 3",
    "bias-variance 3",
    "order 1",
    "order 3",
    "scir-figures 1",
    "scir-figures 2",
)
"""Lesson and step."""
LEFT = {"control-variates 3", "stein 3", "temperature 2", "temperature 3"}


@cache
def step_of(name):
    """A step, cut short."""
    key, number = name.split()
    return short(find(key, []).steps[int(number) - 1])


def short(step):
    """The step with few steps at reduced length."""
    return replace(step, quick_spec=replace(step.quick_spec, n_steps=SHORT, burn_in=10))


@pytest.fixture(scope="module")
def browser_page():
    with open_page(CHROMIUM) as page:
        yield page


def names_of(step):
    return [f"lane {i}" for i in range(len(step.spec.lanes))]


def looked_at(page, step, edits=None):
    """The page's results for a sweep."""
    target = aimed(step.spec.make_target(), step=step)
    job = {"given": sweeping.described(step, names_of(step))["given"], "target": target}
    with serve(module_of([*step.spec.runs(), *sweeping.specs(step)]), edits) as site:
        (found,) = Host(page, site).swept(step.spec.runs()[0], [job])
    return found


def estimates(row):
    return tuple(
        Estimate(np.nan if one["value"] is None else one["value"], one["error"], one["exact"]) for one in row["seeds"]
    )


@cache
def table_of(name):
    """The lab's table of a sweep, with which several pages are compared."""
    return run_step(step_of(name), quick=True).table


def differences(name, found):
    """The differences between the page and the lab on a sweep."""
    step, table = step_of(name), table_of(name)
    out = []
    for row, shown in zip(table.rows, found["rows"], strict=True):
        if dict(row.point.values) != shown["values"] or row.point.lane - 1 != shown["lane"]:
            out.append(f"{row.point.values}: {shown['values']}")
        for one, other in zip(row.seeds, estimates(shown), strict=True):
            a, b = (np.array([e.value, e.error, e.exact], dtype=float) for e in (one, other))
            if not np.allclose(a, b, rtol=1e-9, atol=1e-11, equal_nan=True):
                out.append(f"{row.point.values}: {a}, {b}")
    # From here on by the page's own numbers, which rounding moves.
    rows = tuple(Row(row.point, estimates(shown)) for row, shown in zip(table.rows, found["rows"], strict=True))
    for lane, shown in zip(figures.swept(step, rows, names_of(step)), found["drawn"], strict=True):
        if lane.label != shown["label"]:
            out.append(f"{lane.label}: {shown['label']}")
        wrong = [key for key in ("x", "y", "low", "high") if not np.allclose(getattr(lane, key), shown[key], rtol=1e-9)]
        out += [f"{lane.label}: {key}" for key in wrong]
    judged = judged_by(step, rows)
    for place, shown in zip(sweeping.claims_of(step), found["marks"], strict=True):
        mark = judged[place]
        if (mark.state, mark.detail) != (shown["state"], shown["detail"]):
            out.append(f"{shown} not {mark}")
    if {one["state"] for one in found["before"]} - {"running"}:
        out.append("a mark before the first run")
    return out


def judged_by(step, rows):
    """The lab's marks of a step whose sweep gave this."""
    given = [[one.value, one.error, one.exact] for row in rows for one in row.seeds]
    results = run_step(step, quick=True, do=lambda tasks: enumerate(given)).results
    with mock.patch.object(headless_claims, "of", return_value=SimpleNamespace(problem="", results=results)):
        return marks.marks(step, None, [])


@pytest.mark.parametrize("name", SWEPT)
def test_a_sweep_is_that_of_the_lab(browser_page, name):
    """Each run of the course's sweeps, cut short."""
    assert differences(name, looked_at(browser_page, step_of(name))) == []


def test_the_sweeps_that_a_page_leaves_out():
    """Those on other targets or at other temperatures, and those whose measure is Python's alone."""
    course = LESSONS
    every = {f"{key} {step.number}": step for key, lesson in course.items() for step in lesson.steps if step.sweep}
    here = {name for name, step in every.items() if _is_live(step) and sweeping.is_possible(step)}
    assert here == set(SWEPT)
    assert every.keys() - here == LEFT


FAULTS = [
    ("order 3", "sweeps.js", ("(point.run.seed + i)", "(point.run.seed + i + 1)")),
    ("step-size 2", "sweeps.js", ("target, seed:", "target, burn_in: 0, seed:")),
    ("order 3", "followed.js", ("steps + this.every -", "steps + 1 + this.every -")),
    ("order 3", "sweeps.js", ("at[i] * log[i])", "at[i])")),
    ("order 3", "sweeps.js", ("? Math.abs :", "? (y) => 2 * y :")),
]


@pytest.mark.parametrize(
    ("name", "source", "fault"),
    FAULTS,
)
def test_another_sweep_is_seen(browser_page, name, source, fault):
    """Planted faults: other seeds, no burn-in, other snapshots, another slope, another figure."""

    def edit(text):
        assert fault[0] in text
        return text.replace(*fault)

    assert differences(name, looked_at(browser_page, step_of(name), {source: edit}))


RANDOM = np.random.default_rng(1)
ROWS = [
    (lane, {"a": a, "b": b}, [(x, 0.1 * x) for x in RANDOM.random(2) + 0.5])
    for lane in (1, 2)
    for a in (1.0, 2.0, 4.0)
    for b in (5, 10)
]


@pytest.mark.parametrize(
    ("reduction", "where"),
    [("at", {"a": 2.0, "b": 10}), ("best", {}), ("best", {"a": 4.0}), ("best_at", {"b": 5}), ("slope", {"b": 10})],
)
@pytest.mark.parametrize("errors", [True, False])
def test_a_sweep_becomes_the_same_number(browser_page, reduction, where, errors):
    """Each way from rows to a number; a planted fault, the other lane, is seen."""
    rows = [(lane, at, [(x, error if errors else None) for x, error in seeds]) for lane, at, seeds in ROWS]
    made = [
        Row(Point(lane, tuple(at.items()), None), tuple(Estimate(*one) for one in seeds)) for lane, at, seeds in rows
    ]
    claim = SimpleNamespace(where=tuple(where.items()), reduction=reduction)
    given = [
        {"lane": lane - 1, "values": at, "seeds": [{"value": x, "error": error, "exact": None} for x, error in seeds]}
        for lane, at, seeds in rows
    ]
    claim_there = json.dumps({"where": where, "reduction": reduction})
    call = f"[0, 1].map((lane) => module_live_sweeps.reduced({claim_there}, {json.dumps(given)}, lane))"
    browser_page.goto("about:blank")
    shown = browser_page.evaluate(f"(() => {{ {bundle('live/sweeps.js')}\nreturn {call} }})()")
    found = [[(one["value"], one["error"]) for one in lane] for lane in shown]
    wanted = [[(one.value, one.error) for one in reduced(claim, Table(None, tuple(made), 0), lane)] for lane in (1, 2)]
    assert [[len(one) for one in lane] for lane in found] == [[len(one) for one in lane] for lane in wanted]
    assert np.allclose(np.array(found, dtype=float), np.array(wanted, dtype=float), rtol=1e-12, equal_nan=True)
    if reduction != "best_at":
        assert not np.allclose(
            np.array(found, dtype=float), np.array(wanted[::-1], dtype=float), rtol=1e-12, equal_nan=True
        )
