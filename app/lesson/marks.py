"""The check marks of a step's claims, from what its live run has measured so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from app.lesson import proof
from app.theme import Theme
from lessons import Claim, Step
from lessons.claims import Result, judge, quantity
from lessons.headless import measured
from lessons.measures import Lane
from samplers import Experiment, Run
from samplers.models.study import Study, StudyRun

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


def marks(step: Step, spec: Any, runs: Sequence[Any], command: str) -> list[Mark]:
    """A mark for each claim. ``spec`` is what runs now, and ``runs`` are its :class:`Run` or :class:`StudyRun`.

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
    numbers = [claim.lane] if claim.against is None else [claim.lane, claim.against]
    if max(numbers) > len(runs):
        return Mark("other")
    parts = [runs[number - 1] for number in numbers]
    counted = min(_counted(run) for run in parts)
    first, full = _lengths(step, numbers)
    if counted == 0 and all(run.divergence is None for run in parts):
        return Mark("pending", f"0 of {first:,} steps")
    lanes = [run if isinstance(run, StudyRun) else Lane(run.trace()) for run in parts]
    measure = claim.make_measure()
    estimates = [measured(measure, lane) for lane in lanes]
    found = quantity(claim.quantity, estimates[0], estimates[1] if len(estimates) > 1 else None)
    trouble = next((run.divergence.message for run in parts if run.divergence is not None), "")
    goal = claim.goal if counted >= full else claim.quick_goal
    result = judge(claim, goal, [found], full=False, trouble=trouble)
    detail = _detail(result)
    if not same:
        return Mark("other", f"measured {result.measured:.5g}", result)
    if counted < first and not trouble:
        return Mark("pending", f"{counted:,} of {first:,} steps · {detail}", result)
    if result.passed:
        return Mark("holds", detail, result)
    return Mark("fails", f"{detail}. {result.reason}", result)


def _detail(result: Result) -> str:
    error = f" ± {result.error:.2g}" if result.error is not None else ""
    tolerance = f", tolerance {result.allowed:.2g}" if result.allowed is not None else ""
    return f"measured {result.measured:.5g}{error}, expected {result.expected}{tolerance}"


def _counted(run: Run | StudyRun) -> int:
    """The steps that the numbers of a run are of."""
    return run.steps if isinstance(run, StudyRun) else max(run.steps - run.counted_from, 0)


def _lengths(step: Step, numbers: Sequence[int]) -> tuple[int, int]:
    """The reduced and the full length of a step's lanes."""
    if isinstance(step.spec, Study):
        return max(step.quick_n_steps[n - 1] for n in numbers), max(step.n_steps[n - 1] for n in numbers)
    assert isinstance(step.spec, Experiment) and isinstance(step.quick_spec, Experiment)
    return step.quick_spec.n_steps, step.spec.n_steps


def _same(claimed: Any, running: Any) -> bool:
    """Whether what runs is what the claims are about; the seed may be another one."""
    if isinstance(claimed, Experiment) and isinstance(running, Experiment):
        return (claimed.target, claimed.lanes) == (running.target, running.lanes)
    if isinstance(claimed, Study) and isinstance(running, Study):
        return (claimed.model, claimed.methods) == (running.model, running.methods)
    return False
