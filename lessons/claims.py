"""A claim held against what was measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sgmcmc_lab.lessons.lesson import BIAS, DIFFERENCE, RATIO, RELATIVE_BIAS, Claim, Goal
from sgmcmc_lab.lessons.measures.base import NAN, Estimate

EXACT = "exact"
"""The expectation of a goal about the target's own value, where that is not known."""
SHARE = 0.1
"""The largest error of a check mark, as a share of the effect."""
ERRORS = 4.0
"""Standard errors that chance may be off, where a claim names none."""
STALE = 0.1
"""How far, in relation to itself, the recorded number of a claim with bounds alone may be from the measured one."""


@dataclass(frozen=True)
class Result:
    """The outcome of a claim."""

    claim: Claim
    measured: float
    error: float | None
    """Its standard error, where it is known."""
    expected: str
    """``1.025641``, ``below 0.001``, ``0.9 to 1.1``."""
    allowed: float | None
    """The tolerance, in the measured number's own unit."""
    passed: bool
    reason: str
    """Why it did not pass, in a sentence; empty where it did."""
    by_seed: tuple[float, ...]
    chance: float | None = None
    """How far chance may have moved it, where that is too far to judge it; else None."""
    later: str = ""
    """The number that the claim's sentence expects at full length, where this is held against another goal, that of the
    reduced length."""


def quantity(name: str, lane: Estimate, other: Estimate | None) -> Estimate:
    """A lane's number as the claim wants it; errors of two lanes are added as if they were independent.

    Lanes of one experiment share a seed. Where that makes their errors alike, the error here is too large, not too
    small.
    """
    exact = lane.exact
    if name == BIAS:
        return Estimate(lane.value - exact if exact is not None else NAN, lane.error, 0.0)
    if name == RELATIVE_BIAS:
        if not exact:
            return Estimate(NAN, None, 0.0)
        return Estimate(lane.value / exact - 1, lane.error and lane.error / abs(exact), 0.0)
    if other is None:
        return lane
    both = lane.error is not None and other.error is not None
    assert name in (RATIO, DIFFERENCE)
    if name == DIFFERENCE:
        error = math.hypot(lane.error, other.error) if both else None  # type: ignore[arg-type]
        known = None if exact is None or other.exact is None else exact - other.exact
        return Estimate(lane.value - other.value, error, known)
    if other.value == 0:
        return Estimate(NAN)
    ratio = lane.value / other.value
    error = math.hypot(lane.error, ratio * other.error) / abs(other.value) if both else None  # type: ignore[arg-type, operator]
    known = exact / other.exact if exact is not None and other.exact else None
    return Estimate(ratio, error, known)


def mean(seeds: Sequence[Estimate]) -> Estimate:
    """The mean over seeds. Its error comes from the seeds' own errors, or else from their spread."""
    n = len(seeds)
    values = [seed.value for seed in seeds]
    value = math.fsum(values) / n if all(map(math.isfinite, values)) else sum(values)
    errors = [seed.error for seed in seeds if seed.error is not None]
    if len(errors) == n:
        error: float | None = math.sqrt(math.fsum(e * e for e in errors)) / n
    elif n > 1 and math.isfinite(value):
        error = math.sqrt(math.fsum((x - value) ** 2 for x in values) / (n - 1) / n)
    else:
        error = None
    return Estimate(value, error, seeds[0].exact)


def judge(claim: Claim, goal: Goal, seeds: Sequence[Estimate], *, full: bool, trouble: str = "") -> Result:
    """Hold a claim against its number of every seed. ``trouble`` says what went wrong in the run, if anything did."""
    found = mean(seeds)
    expected = found.exact if goal.exact else goal.equals
    margins = [goal.tolerance]
    if goal.relative is not None and expected is not None:
        margins.append(goal.relative * abs(expected))
    if goal.errors is not None:
        margins.append(goal.errors * found.error if found.error is not None else None)
    given = [margin for margin in margins if margin is not None]
    allowed = max(given) if given else None
    text = in_words(goal, expected)

    def result(reason: str) -> Result:
        values, chance = tuple(seed.value for seed in seeds), _chance(goal, found, expected)
        later = _later(claim.goal, goal, text) if goal != claim.goal else ""
        return Result(claim, found.value, found.error, text, allowed, not reason, reason, values, chance, later)

    if math.isnan(found.value):
        return result(trouble or "The run does not determine this number: it is too short, or its chains never moved.")
    if goal.errors is not None and found.error is None:
        return result("The run is too short for a standard error.")
    if goal.exact and expected is None:
        return result("The target's value of this number is not known; give the number instead of “exact”.")
    if expected is not None:
        assert allowed is not None
        off = abs(found.value - expected)
        if not off <= allowed:
            return result(f"It is {off:.3g} away from {expected:.6g}; the tolerance is {allowed:.3g}.")
    slack = allowed if expected is None and allowed is not None else 0.0
    by = f" by {goal.errors:g} standard errors" if goal.errors and expected is None else ""
    if goal.above is not None and not found.value - slack > goal.above:
        return result(f"It is not above {goal.above:g}{by}.")
    if goal.below is not None and not found.value + slack < goal.below:
        return result(f"It is not below {goal.below:g}{by}.")
    paper = claim.paper
    if full and paper is not None and paper.ours is not None:
        margin = allowed if expected is not None and allowed is not None else STALE * abs(paper.ours)
        if not abs(found.value - paper.ours) <= margin:
            return result(
                f"The lesson records {paper.ours:g}, which is {abs(found.value - paper.ours):.3g} away; the tolerance is {margin:.3g}."
            )
    return result("")


def _chance(goal: Goal, found: Estimate, expected: float | None) -> float | None:
    """The error of a number that is not yet known well enough to be held against its goal.

    For a claim about a number, the error may be a tenth of the number, or the tolerance of the claim; of one with
    bounds it may be the way to the nearest one. For the number 0, the claim's own margin decides alone.
    """
    bounds = [bound for bound in (goal.above, goal.below) if bound is not None]
    if not math.isfinite(found.value) or not (expected or bounds):
        return None
    if found.error is None:
        return math.inf if goal.errors is not None else None
    chance = (goal.errors or ERRORS) * found.error
    if expected:
        enough = max(SHARE * abs(expected), goal.tolerance or 0.0, (goal.relative or 0.0) * abs(expected))
    else:
        enough = min(abs(found.value - bound) for bound in bounds)
    return chance if chance > enough else None


def in_words(goal: Goal, expected: float | None) -> str:
    """The number that a goal expects; ``expected`` is the number that it is about, where that is known."""
    if expected is not None:
        return f"{expected:.6g}"
    if goal.exact:
        return EXACT
    if goal.above is not None and goal.below is not None:
        return f"{goal.above:g} to {goal.below:g}"
    return f"above {goal.above:g}" if goal.above is not None else f"below {goal.below:g}"


def _later(goal: Goal, quick: Goal, expected: str) -> str:
    """The number that a goal expects, or how closely, where a quick one expects the same; ``expected`` is the number
    that it is about.
    """
    words = in_words(goal, goal.equals)
    if words != in_words(quick, quick.equals):
        return words
    margin = goal.tolerance or 0.0
    if goal.relative is not None and expected != EXACT:
        margin = max(margin, goal.relative * abs(float(expected)))
    return f"within {margin:.2g} of {expected}" if margin else words
