"""The sentence of a claim and what is tested are one: the sentence names the expected number and the tolerance."""

import re
from dataclasses import replace

import pytest

from sgmcmc_lab.app.live_page.claims import exact
from sgmcmc_lab.lessons.lesson import Choice, Claim, Goal
from tests.helpers.cases import for_each
from tests.helpers.course import LESSONS
from tests.helpers.sentence_numbers import numbers

MORE = re.compile(r"\b(larger|higher|ahead|lower|smaller)\b")
"""Words for a difference above 0 or a ratio on one side of 1."""
BELOW = re.compile(r"too (small|low) by")
ABOUT = re.compile(r"\b(?:up to|within(?: a factor of)?) (?=[\d.]|a )")
"""Words before the tolerance of a sentence."""
ALL_BUT = 1e-4
"""A share this near to 1 is all, and a number this small is 0."""

CLAIM = Claim("", Choice("mean", (("column", 1),)), 1, None, "value", None, (), Goal(), Goal(), None, 1)


def claims():
    return {
        f"{key}-{step.number}-{i}": (step, claim)
        for key, lesson in LESSONS.items()
        for step in lesson.steps
        for i, claim in enumerate(step.claims)
    }


def exact_value(step, claim):
    """The target's own value, which an exact claim is about; None where it takes a long run."""
    if not claim.goal.exact or step.spec is None or step.spec.of_model or claim.quantity != "value":
        return None
    return exact(claim.make_measure(), step.spec.runs()[claim.lane - 1])


def unnamed(claim, expected=None):
    """The numbers of the goal that the sentence does not name."""
    goal, says = claim.goal, claim.says
    found = numbers(says)
    values = [one.value for one in found]
    about = ABOUT.search(says) is not None

    def named(value):
        ends = [a + sign * b for a in values for b in values for sign in (-1, 1)] if about else []
        ends += [a * b.value for a in values for b in found if b.share]
        if about:
            ends += [-a for a in values] + [1 / a for a in values if a]
        return (
            any(one.means(value) for one in found)
            or any(abs(value - end) <= 1e-3 * abs(end) for end in ends)
            or (BELOW.search(says) is not None and any(one.means(-value) for one in found))
            or (abs(value) < ALL_BUT and 0.0 in values)
            or (value >= 1 - ALL_BUT and "all" in says.split())
        )

    plain = {("difference", 0.0), ("ratio", 1.0)}
    out = []
    for name in ("equals", "above", "below"):
        value = getattr(goal, name)
        if value is None or named(value):
            continue
        if name != "equals" and (claim.quantity, value) in plain and MORE.search(says):
            continue
        if name == "equals" and (claim.quantity, value) in plain and (about or "the same" in says):
            continue
        out.append(f"{name} {value:g}")
    if expected is not None and found and not about and not named(expected):
        out.append(f"exact {expected:g}")
    return out


def loose(claim):
    """The tolerance that the sentence names, where the test allows more."""
    goal, match = claim.goal, ABOUT.search(claim.says)
    if match is None:
        return None
    (named, *_) = numbers(claim.says[match.end() :])
    kept = [one for one in (goal.tolerance, goal.relative) if one is not None]
    if goal.errors is not None or (kept and max(kept) > named.value * (1 + 1e-9)):
        return named.value
    return None


def test_a_sentence_names_the_number_and_the_tolerance_that_are_tested(subtests):
    for name, (_, claim) in claims().items():
        with subtests.test(name):
            assert (unnamed(claim), loose(claim)) == ([], None), claim.says


@pytest.mark.slow
def test_a_sentence_names_the_exact_value_that_is_tested(subtests):
    for name, (step, claim) in claims().items():
        if claim.goal.exact:
            with subtests.test(name):
                assert unnamed(claim, exact_value(step, claim)) == [], claim.says


@for_each(
    ("says", "goal", "missed"),
    [
        ("At ε = 0.8 it is 1.6667.", Goal(equals=1.6666667), []),
        ("At ε = 0.8 it is 1.6667.", Goal(equals=1.6676), ["equals 1.6676"]),
        ("The mean is still 0.", Goal(below=1e-6), []),
        ("It falls below 1700.", Goal(below=1900), ["below 1900"]),
        ("It falls below 1700.", Goal(above=1400, below=1700), ["above 1400"]),
        ("It takes 5.5 % to 7.5 % of them.", Goal(above=0.055, below=0.075), []),
        ("It is 3 % to 12 % below.", Goal(above=0.88, below=0.97), []),
        ("It is about a tenth larger.", Goal(above=1.05), ["above 1.05"]),
        ("It is larger by a tenth or more.", Goal(above=1.1), []),
        ("At 3 one in 200 is, … 10⁻⁸.", Goal(above=1e-8, below=0.005), []),
        ("It is less than a third of its probability, 0.075.", Goal(below=0.025), []),
        ("It is within 0.4 of 1.", Goal(above=0.6, below=1.4), []),
        ("It is 1.5 times that.", Goal(equals=0.5), ["equals 0.5"]),
        ("It is better.", Goal(above=1.0), ["above 1"]),
    ],
)
def test_a_sentence_with_another_number_is_seen(says, goal, missed):
    assert unnamed(replace(CLAIM, says=says, goal=goal)) == missed


@for_each(
    ("says", "goal", "named"),
    [
        ("It is right, up to 0.015.", Goal(exact=True, tolerance=0.015), None),
        ("It is right, up to 0.015.", Goal(exact=True, tolerance=0.025), 0.015),
        ("It is right, up to 0.015.", Goal(exact=True, tolerance=0.015, errors=4), 0.015),
        ("It is within 3 % of that.", Goal(equals=1.0, relative=0.04), 0.03),
        ("It is right, up to the bias of the step.", Goal(exact=True, errors=4), None),
    ],
)
def test_a_looser_tolerance_than_the_sentence_says_is_seen(says, goal, named):
    assert loose(replace(CLAIM, says=says, goal=goal)) == named
