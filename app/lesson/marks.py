"""The check marks of a step's claims, from what its live run has measured so far."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

from app.lesson import proof
from app.theme import Theme
from lessons import Claim, Step
from lessons.claims import Result
from lessons.headless import live_result
from samplers import Experiment, Lane

State = Literal["pending", "holds", "fails", "other", "elsewhere", "running"]
SIGNS: dict[State, str] = {"pending": "…", "holds": "✓", "fails": "✗", "other": "~", "elsewhere": "–", "running": "…"}
WORDS: dict[State, str] = {
    "pending": "measuring", "holds": "holds", "fails": "not yet", "other": "other settings than the claim's",
    "elsewhere": "needs runs of its own", "running": "running",
}  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """What a claim's check mark says."""

    state: State
    detail: str = ""
    """Measured, expected and tolerance, in words."""
    result: Result | None = None

    def html(self, colours: Theme) -> str:
        """A line below the claim."""
        colour = {"holds": colours.good, "fails": colours.bad}.get(self.state, colours.faint)
        rest = f" <span style='color:{colours.faint}'>{escape(self.detail)}</span>" if self.detail else ""
        return f"<b style='color:{colour}'>{SIGNS[self.state]} {WORDS[self.state]}</b>{rest}"


def marks(step: Step, spec: Experiment | None, runs: Sequence[Any], command: str) -> list[Mark]:
    """A mark for each claim. ``spec`` is what runs now, and ``runs`` are its :class:`Run` or :class:`ModelRun`.

    A claim is first judged at the step's reduced length, with that length's tolerance, and again at the full one.
    """
    same = _same(step.spec, spec)
    return [
        _mark(claim, step, same, runs) if claim.live else _proved(step, i, command)
        for i, claim in enumerate(step.claims)
    ]


def _proved(step: Step, place: int, command: str) -> Mark:
    """The mark of a claim that no live run shows."""
    found = proof.of(step)
    if found is None:
        return Mark("elsewhere", f"here, with the button below, or in a terminal: {command}")
    if found.problem:
        return Mark("fails", found.problem)
    if found.results is None:
        return Mark("running", f"{found.share:.0%} of the step's own runs")
    result = found.results[place]
    detail = f"{_detail(result)}, in a short run of its own"
    return Mark("holds", detail, result) if result.passed else Mark("fails", f"{detail}. {result.reason}", result)


def _mark(claim: Claim, step: Step, same: bool, runs: Sequence[Any]) -> Mark:
    if max(claim.lanes) > len(runs):
        return Mark("other")
    found = live_result(step, claim, runs)
    result = found.result
    if result is None:
        return Mark("pending", f"0 of {found.first:,} steps")
    if not same:
        return Mark("other", f"measured {result.measured:.5g}", result)
    detail = _detail(result)
    if not found.settled:
        return Mark("pending", f"{found.counted:,} of {found.first:,} steps · {detail}", result)
    if result.passed:
        return Mark("holds", detail, result)
    return Mark("fails", f"{detail}. {result.reason}", result)


def _detail(result: Result) -> str:
    error = f" ± {result.error:.2g}" if result.error is not None else ""
    tolerance = f", tolerance {result.allowed:.2g}" if result.allowed is not None else ""
    return f"measured {result.measured:.5g}{error}, expected {result.expected}{tolerance}"


def _same(claimed: Experiment | None, running: Experiment | None) -> bool:
    """Whether what runs is what the claims are about; the seed and the lengths may be others."""
    return (
        claimed is not None
        and running is not None
        and (claimed.target, _lanes(claimed)) == (running.target, _lanes(running))
    )


def _lanes(experiment: Experiment) -> tuple[Lane, ...]:
    return tuple(replace(lane, n_steps=None) for lane in experiment.lanes)
