"""The check marks of a step's claims, from what its live run has measured so far."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

from sgmcmc_lab.app.lesson import headless_claims
from sgmcmc_lab.app.views.theme import Theme
from sgmcmc_lab.lessons import Claim, Step
from sgmcmc_lab.lessons.claims import Result
from sgmcmc_lab.lessons.headless import LiveResult, live_result
from sgmcmc_lab.samplers import Experiment, Lane

State = Literal["pending", "early", "near", "holds", "fails", "other", "elsewhere", "running"]
SIGNS: dict[State, str] = {
    "pending": "…",
    "early": "…",
    "near": "→",
    "holds": "✓",
    "fails": "✗",
    "other": "~",
    "elsewhere": "–",
    "running": "…",
}
ROUNDING = 1e-9
"""Chains that are all the same have no error but that of their sums, below this share of the number."""
WORDS: dict[State, str] = {
    "pending": "measuring",
    "early": "too early",
    "near": "on the way",
    "holds": "holds",
    "fails": "not yet",
    "other": "not the claim's settings",
    "elsewhere": "not measured yet",
    "running": "running",
}


@dataclass(frozen=True)
class Mark:
    """The check mark of a claim."""

    state: State
    detail: str = ""
    """Measured, expected and tolerance, in words."""
    result: Result | None = None

    def html(self, colours: Theme) -> str:
        """A line below the claim."""
        colour = {"holds": colours.good, "fails": colours.bad}.get(self.state, colours.faint)
        rest = f" <span style='color:{colours.faint}'>{escape(self.detail)}</span>" if self.detail else ""
        return f"<b style='color:{colour}'>{SIGNS[self.state]} {WORDS[self.state]}</b>{rest}"


def marks(step: Step, spec: Experiment | None, runs: Sequence[Any]) -> list[Mark]:
    """A mark for each claim. ``spec`` is what runs now, and ``runs`` are its :class:`Run` or :class:`ModelRun`.

    A claim holds where its own goal is met. Before the full length it is on the way where only the laxer goal of the
    reduced length is.
    """
    same = _same(step.spec, spec)
    return [_mark(claim, step, same, runs) if claim.live else _proved(step, i) for i, claim in enumerate(step.claims)]


def _proved(step: Step, place: int) -> Mark:
    """The mark of a claim that no live run shows."""
    found = headless_claims.of(step)
    if found is None:
        return Mark("elsewhere")
    if found.problem:
        return Mark("fails", found.problem)
    if found.results is None:
        return Mark("running", f"{found.share:.0%} of the step's own runs")
    result = found.results[place]
    detail = f"{_detail(result)}, in a separate short run"
    later = f"; {result.later} at full length" if result.later else ""
    return _judged(f"{detail}{later}", result)


def _judged(detail: str, result: Result) -> Mark:
    if not result.passed:
        return Mark("fails", f"{detail}. {result.reason}", result)
    return Mark("near" if result.later else "holds", detail, result)


def summary(found: Sequence[Mark]) -> str:
    """How the claims of a step stand, in a sentence."""
    counts = {
        "met": sum(mark.state == "holds" for mark in found),
        "on the way": sum(mark.state == "near" for mark in found),
        "still running": sum(mark.state in ("pending", "early", "running") for mark in found),
        "not met": sum(mark.state == "fails" for mark in found),
        "with other settings": sum(mark.state == "other" for mark in found),
        "not measured yet": sum(mark.state == "elsewhere" for mark in found),
    }
    said = [f"{n} {what}" for what, n in counts.items() if n or what == "met"]
    return f"Of {len(found)} claim{'s' if len(found) > 1 else ''} {', '.join(said)}." if found else ""


def _mark(claim: Claim, step: Step, same: bool, runs: Sequence[Any]) -> Mark:
    if max(claim.lanes) > len(runs):
        return Mark("other")
    found = live_result(step, claim, runs)
    result = found.result
    if result is None:
        return Mark("pending", f"0 of {found.first:,} steps")
    if not same:
        known = not math.isnan(result.measured)
        return Mark("other", f"measured {result.measured:.5g}" if known else "", result)
    detail = _detail(result) + _length(found, result)
    if not found.settled and found.counted < found.first:
        # Some numbers are there only once something has been found.
        so_far = f" · {detail}" if math.isfinite(result.measured) else ""
        return Mark("pending", f"{found.counted:,} of {found.first:,} steps{so_far}", result)
    if not found.settled:
        known = result.chance is not None and math.isfinite(result.chance)
        why = f"; chance may still move it by {result.chance:.2g}" if known else ""
        return Mark("early", f"{detail}{why}", result)
    return _judged(detail, result)


def _length(found: LiveResult, result: Result) -> str:
    """The number of steps of a final number; before that the number expected at the end, if it differs."""
    if found.counted == found.full:
        return f", over all {found.full:,} steps"
    if found.counted > found.full:
        return f", over {found.counted:,} steps ({found.full:,} asked)"
    return f"; {result.later} after all {found.full:,} steps" if result.later else ""


def _detail(result: Result) -> str:
    error = f" ± {result.error:.2g}" if result.error and result.error > ROUNDING * abs(result.measured) else ""
    tolerance = f", tolerance {result.allowed:.2g}" if result.allowed is not None else ""
    measured = "no number" if math.isnan(result.measured) else f"measured {result.measured:.5g}{error}"
    return f"{measured}, expected {result.expected}{tolerance}"


def _same(claimed: Experiment | None, running: Experiment | None) -> bool:
    """Whether what runs is what the claims are about; the seed and the lengths may be others."""
    return (
        claimed is not None
        and running is not None
        and (claimed.target, _lanes(claimed)) == (running.target, _lanes(running))
    )


def _lanes(experiment: Experiment) -> tuple[Lane, ...]:
    return tuple(replace(lane, n_steps=None) for lane in experiment.lanes)
