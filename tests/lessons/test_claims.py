"""The arithmetic of claims: which pass, and what a result says, to the letter."""

import math
from dataclasses import replace

import numpy as np
import pytest

from sgmcmc_lab.lessons.claims import judge, mean, quantity
from sgmcmc_lab.lessons.lesson import Choice, Claim, Goal, Paper
from sgmcmc_lab.lessons.measures.base import Estimate
from tests.helpers.cases import for_each

NAN = float("nan")
NEAR, NO_ERROR = Estimate(1.0, 0.1, 1.25), Estimate(1.0)


def claim(goal, paper=None):
    measure = Choice("mean", (("column", 1),))
    return Claim("x", measure, 1, None, "value", None, (), goal, goal, paper, 1)


@for_each(
    ("goal", "found", "passes"),
    [
        (Goal(equals=1.05, tolerance=0.06), NEAR, True),
        (Goal(equals=1.05, tolerance=0.04), NEAR, False),
        (Goal(equals=-1.05, relative=3.0), NEAR, True),  # relative to |expected|
        (Goal(equals=1.1, relative=0.1), NEAR, True),
        (Goal(equals=1.1, relative=0.05), NEAR, False),
        (Goal(equals=1.29, errors=3), NEAR, True),
        (Goal(equals=1.31, errors=3), NEAR, False),
        (Goal(equals=1.31, errors=3, tolerance=0.4), NEAR, True),  # the widest counts
        (Goal(equals=1.31, errors=3), NO_ERROR, False),
        (Goal(exact=True, errors=3), NEAR, True),
        (Goal(exact=True, errors=2), NEAR, False),
        (Goal(exact=True, tolerance=9), NO_ERROR, False),
        (Goal(above=0.9), NEAR, True),
        (Goal(above=1.0), NEAR, False),
        (Goal(above=0.9, errors=2), NEAR, False),
        (Goal(above=0.7, errors=2), NEAR, True),
        (Goal(below=1.1), NEAR, True),
        (Goal(below=1.0), NEAR, False),
        (Goal(below=1.1, errors=2), NEAR, False),
        (Goal(above=0.9, below=1.1), NEAR, True),
        (Goal(above=0.9, below=1.1), Estimate(float("nan")), False),
        (Goal(equals=0, tolerance=1e9), Estimate(float("nan")), False),
        (Goal(above=5), Estimate(float("inf")), True),
        (Goal(below=5), Estimate(float("inf")), False),
        (Goal(equals=0, tolerance=1e9), Estimate(float("inf")), False),
    ],
)
def test_a_claim_passes_or_fails(goal, found, passes):
    result = judge(claim(goal), goal, [found], full=True)
    assert result.passed == passes, result
    assert bool(result.reason) == (not passes)


@for_each(
    ("goal", "found", "chance"),
    [
        # Of a number the error may be a tenth of it; four standard errors where the claim names none.
        (Goal(equals=3.6, errors=4), Estimate(3.38, 0.53), 2.12),
        (Goal(equals=3.6, errors=4), Estimate(3.6, 0.0899), None),
        (Goal(equals=3.6, errors=4), Estimate(3.6, 0.0901), 0.3604),
        (Goal(equals=-3.6, errors=2), Estimate(3.6, 0.179), None),
        (Goal(equals=1.0, tolerance=0.02), Estimate(1.0, 0.026), 0.104),
        (Goal(equals=1.0, relative=0.2), Estimate(1.0, 0.049), None),
        (Goal(equals=0, errors=4), Estimate(1.0, 9.0), None),
        (Goal(equals=0, tolerance=0.1), Estimate(1.0, 0.1), None),
        # With bounds it may be the way to the nearest one.
        (Goal(above=1.0), Estimate(1.3, 0.07), None),
        (Goal(above=1.0, errors=5), Estimate(1.3, 0.07), 0.35),
        (Goal(above=0.0, below=1.4), Estimate(1.3, 0.07), 0.28),
        (Goal(equals=1, tolerance=0.1), NO_ERROR, None),
        (Goal(equals=1, errors=4), NO_ERROR, math.inf),
        (Goal(equals=1, errors=4), Estimate(math.nan, 1.0), None),
    ],
)
def test_a_number_that_chance_may_still_move_is_not_judged_yet(goal, found, chance):
    assert judge(claim(goal), goal, [found], full=False).chance == (chance if chance is None else pytest.approx(chance))


@for_each(
    ("goal", "quick", "later"),
    [
        (Goal(below=1700), Goal(below=1850), "below 1700"),
        (Goal(equals=1.1, tolerance=0.02), Goal(equals=1.2, tolerance=0.02), "1.1"),
        (Goal(equals=1.1, tolerance=0.02), Goal(equals=1.1, tolerance=0.2), "within 0.02 of 1.1"),
        (Goal(exact=True, relative=0.1), Goal(exact=True, relative=0.4), "within 0.12 of 1.25"),
        (Goal(exact=True, relative=0.1, tolerance=0.3), Goal(exact=True, relative=0.4), "within 0.3 of 1.25"),
        (Goal(above=0.5, errors=3), Goal(above=0.5), "above 0.5"),
        (Goal(above=0.5), Goal(above=0.5), ""),
    ],
)
def test_an_early_result_says_what_its_sentence_expects_later(goal, quick, later):
    assert judge(replace(claim(goal), quick_goal=quick), quick, [NEAR], full=False).later == later
    assert judge(replace(claim(goal), quick_goal=quick), goal, [NEAR], full=True).later == ""


def test_means_over_seeds():
    both = mean([Estimate(1.0, 0.3), Estimate(3.0, 0.4)])
    assert both.value == 2
    assert both.error == pytest.approx(0.25)
    assert mean([Estimate(1.0), Estimate(3.0, 0.4)]).error == pytest.approx(1.0)  # from their spread, √2/√2
    assert mean([NO_ERROR]).error is None
    assert np.isnan(mean([Estimate(1.0), Estimate(float("nan"))]).value)


def test_quantities():
    """Fails where a ratio's or a difference's error is not that of two independent numbers, by simulation."""
    a, b = Estimate(2.0, 0.02, 1.6), Estimate(4.0, 0.03, 3.2)
    assert quantity("bias", a, None) == Estimate(pytest.approx(0.4), 0.02, 0.0)
    assert quantity("relative_bias", a, None) == Estimate(pytest.approx(0.25), pytest.approx(0.0125), 0.0)
    rng = np.random.default_rng(1)
    x, y = rng.normal(2, 0.02, 200_000), rng.normal(4, 0.03, 200_000)
    for name, values, exact in (("ratio", x / y, 0.5), ("difference", x - y, -1.6)):
        found = quantity(name, a, b)
        assert found.value == pytest.approx(values.mean(), abs=1e-3)
        assert found.error == pytest.approx(values.std(), rel=0.02)
        assert found.exact == pytest.approx(exact)
    assert np.isnan(quantity("ratio", a, Estimate(0.0)).value)
    assert np.isnan(quantity("bias", NO_ERROR, None).value)


TOO_SHORT = "The run does not determine this number: it is too short, or its chains never moved."
NO_STANDARD_ERROR = "The run is too short for a standard error."


@for_each(
    ("goal", "found", "expected", "allowed", "reason"),
    [
        (Goal(equals=1.5, tolerance=0.2), NEAR, "1.5", 0.2, "It is 0.5 away from 1.5; the tolerance is 0.2."),
        (Goal(equals=1.5, tolerance=0.5), NEAR, "1.5", 0.5, ""),
        (Goal(equals=-2.0, relative=0.25), NEAR, "-2", 0.5, "It is 3 away from -2; the tolerance is 0.5."),
        (Goal(equals=0.0, relative=0.25, tolerance=1.0), NEAR, "0", 1.0, ""),
        (Goal(exact=True, errors=2), NEAR, "1.25", 0.2, "It is 0.25 away from 1.25; the tolerance is 0.2."),
        (
            Goal(exact=True, errors=2),
            Estimate(1.0, 0.1),
            "exact",
            0.2,
            "The target's value of this number is not known; give the number instead of “exact”.",
        ),
        (Goal(equals=1.0, errors=2, tolerance=0.5), NO_ERROR, "1", 0.5, NO_STANDARD_ERROR),
        (Goal(equals=1.0, errors=0), NEAR, "1", 0.0, ""),
        (Goal(above=1.0), NEAR, "above 1", None, "It is not above 1."),
        (Goal(below=1.0), NEAR, "below 1", None, "It is not below 1."),
        (Goal(above=0.95, errors=2), NEAR, "above 0.95", 0.2, "It is not above 0.95 by 2 standard errors."),
        (Goal(below=1.05, errors=2), NEAR, "below 1.05", 0.2, "It is not below 1.05 by 2 standard errors."),
        (Goal(above=0.75, errors=2), NEAR, "above 0.75", 0.2, ""),
        (Goal(below=1.25, errors=2), NEAR, "below 1.25", 0.2, ""),
        (Goal(above=0.5, below=0.75), NEAR, "0.5 to 0.75", None, "It is not below 0.75."),
        (Goal(above=1.0, below=2.0), Estimate(2.0), "1 to 2", None, "It is not below 2."),
        (Goal(above=0.5), Estimate(NAN, 0.1), "above 0.5", None, TOO_SHORT),
        (Goal(equals=0.0, tolerance=1.0, above=-0.5), Estimate(-1.0, 0.1), "0", 1.0, "It is not above -0.5."),
        (Goal(equals=0.0, errors=20, above=1.0), Estimate(1.0, 0.1), "0", 2.0, "It is not above 1."),
    ],
)
def test_what_a_result_says(goal, found, expected, allowed, reason):
    result = judge(claim(goal), goal, [found], full=False)
    assert (result.expected, result.reason, result.passed) == (expected, reason, not reason)
    assert result.allowed == (None if allowed is None else pytest.approx(allowed))
    assert result.error == found.error
    assert result.measured == pytest.approx(found.value, nan_ok=True)


def test_trouble_in_the_run_is_the_reason_where_there_is_no_number():
    goal = Goal(above=0.5)
    assert judge(claim(goal), goal, [Estimate(NAN)], full=True, trouble="It diverged.").reason == "It diverged."
    assert judge(claim(goal), goal, [NEAR], full=True, trouble="It diverged.").passed


def test_every_seed_is_in_the_result():
    goal = Goal(equals=2.0, tolerance=0.1)
    result = judge(claim(goal), goal, [Estimate(1.0, 0.3), Estimate(3.0, 0.4)], full=False)
    assert (result.by_seed, result.measured, result.error) == ((1.0, 3.0), 2.0, pytest.approx(0.25))


@for_each(
    ("goal", "ours", "reason"),
    [
        (Goal(equals=1.1, tolerance=0.25), 1.25, ""),
        (Goal(equals=1.1, tolerance=0.25), 1.5, "The lesson records 1.5, which is 0.5 away; the tolerance is 0.25."),
        # Bounds alone have no tolerance of their own: a tenth of the recorded number.
        (Goal(above=0.5), 1.0625, ""),
        (Goal(above=0.5), 1.25, "The lesson records 1.25, which is 0.25 away; the tolerance is 0.125."),
        (Goal(above=0.5, errors=3), 1.25, "The lesson records 1.25, which is 0.25 away; the tolerance is 0.125."),
        (Goal(above=0.5), -1.0, "The lesson records -1, which is 2 away; the tolerance is 0.1."),
        (Goal(above=0.5), None, ""),
    ],
)
def test_the_recorded_number(goal, ours, reason):
    recorded = claim(goal, Paper("1", "printed", "", 1.0, ours, "r"))
    assert judge(recorded, goal, [NEAR], full=True).reason == reason
    assert judge(recorded, goal, [NEAR], full=False).passed
    assert judge(claim(goal), goal, [NEAR], full=True).passed


def test_means_of_one_of_several_and_of_none_that_is_finite():
    assert mean([Estimate(3.0, 0.5, 2.0)]) == Estimate(3.0, 0.5, 2.0)
    assert mean([Estimate(3.0)]) == Estimate(3.0)
    assert mean([Estimate(1.0), Estimate(2.0), Estimate(6.0)]) == Estimate(3.0, pytest.approx(math.sqrt(14 / 2 / 3)))
    assert mean([Estimate(1.0, 0.1), Estimate(3.0)]).error == pytest.approx(1.0)
    infinite = mean([Estimate(math.inf), Estimate(1.0)])
    assert (infinite.value, infinite.error) == (math.inf, None)


def test_what_a_quantity_leaves_unknown():
    a, b, plain = Estimate(2.0, 0.02, 1.6), Estimate(4.0, 0.03, 3.2), Estimate(4.0)
    assert quantity("value", a, None) == a
    assert quantity("bias", a, None) == Estimate(pytest.approx(0.4), 0.02, 0.0)
    assert quantity("bias", plain, None) == Estimate(pytest.approx(NAN, nan_ok=True), None, 0.0)
    for exact in (0.0, None):
        nothing = quantity("relative_bias", Estimate(2.0, 0.02, exact), None)
        assert (math.isnan(nothing.value), nothing.error, nothing.exact) == (True, None, 0.0)
    assert quantity("relative_bias", Estimate(2.0, None, -4.0), None) == Estimate(-1.5, None, 0.0)
    assert quantity("relative_bias", Estimate(2.0, 0.5, -4.0), None) == Estimate(-1.5, 0.125, 0.0)
    assert quantity("difference", a, b) == Estimate(-2.0, pytest.approx(math.hypot(0.02, 0.03)), pytest.approx(-1.6))
    assert quantity("ratio", a, Estimate(-4.0, 0.03, 3.2)).error == pytest.approx(math.hypot(0.02, 0.015) / 4)
    assert quantity("ratio", a, b).exact == pytest.approx(0.5)
    for name, value in (("difference", -2.0), ("ratio", 0.5)):
        assert quantity(name, a, plain) == Estimate(value)
        assert quantity(name, plain, a) == Estimate(-value if name == "difference" else 2.0)
        assert quantity(name, Estimate(2.0, 0.02), b).exact is None
    # The other's exact value is 0, or this one's: a ratio to nothing is not known, a ratio of nothing is.
    assert quantity("ratio", a, Estimate(4.0, 0.03, 0.0)).exact is None
    assert quantity("ratio", Estimate(2.0, 0.02, 0.0), b).exact == 0.0
    nothing = quantity("ratio", a, Estimate(0.0, 0.1, 1.0))
    assert (math.isnan(nothing.value), nothing.error, nothing.exact) == (True, None, None)
