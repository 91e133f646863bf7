"""Lessons without a screen: every run of a step, and its claims held against what was measured.

A run's numbers do not depend on what else is run, nor on where: lanes and seeds go to a small pool of threads (the
compiled loops release the interpreter's lock), sweeps to what they are given.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sgmcmc_lab.lessons import sweep as sweeps
from sgmcmc_lab.lessons.claims import Result, judge, quantity
from sgmcmc_lab.lessons.evidence import Report, evidence, measured
from sgmcmc_lab.lessons.lesson import Claim, Step
from sgmcmc_lab.lessons.measures.base import Estimate, Evidence
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.models.run import ModelRun, start

Progress = Callable[[str, int, int], None]
"""``progress(what, done, total)``."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a step."""

    step: Step
    quick: bool
    results: tuple[Result, ...]
    """The results of the claims."""
    checks: tuple[Result, ...]
    lanes: tuple[tuple[Any, ...], ...]
    """The lanes of every seed: :class:`~lessons.measures.base.Evidence`, or :class:`~samplers.models.run.ModelRun`."""
    table: sweeps.Table | None


def run_step(
    step: Step,
    *,
    quick: bool = False,
    seeds: int | None = None,
    progress: Progress | None = None,
    do: sweeps.Work = sweeps.in_threads,
    results: sweeps.Results | None = None,
    each: sweeps.Each | None = None,
) -> Outcome:
    """Run a step at full or reduced length, and judge its claims and checks. Without ``seeds`` it takes as many as it
    says.

    ``each`` is told of every run of a sweep as it is done.
    """
    n_seeds = seeds or (step.quick_seeds if quick else step.seeds)
    spec = step.quick_spec if quick else step.spec
    name = step.title
    judged = (*step.claims, *step.checks)
    lanes: dict[Experiment, tuple[tuple[Any, ...], ...]] = {}
    needs = {} if spec is None else _needs_of_runs(spec, judged, quick)
    for made, wanted in needs.items():
        if made != spec or wanted or step.sweep is None:
            run = _model_runs if made.of_model else _runs
            lanes[made] = run(made, wanted, n_seeds, lambda done, total: progress and progress(name, done, total))
    table = None
    if step.sweep is not None:
        report = (lambda done, total: progress(f"{name}: sweep", done, total)) if progress is not None else None
        table = sweeps.of_step(step, quick=quick, seeds=n_seeds, do=do, results=results, progress=report, each=each)
    own = lanes.get(spec, ()) if spec is not None else ()
    found = tuple(_judge(claim, _lanes_of(claim, spec, lanes, quick), table, quick) for claim in judged)
    n = len(step.claims)
    return Outcome(step, quick, found[:n], found[n:], own, table)


@dataclass(frozen=True)
class LiveResult:
    """The outcome so far of a claim in runs that continue."""

    counted: int
    """The steps that its number is of, in the shortest of its lanes."""
    first: int
    """The reduced length: from here on the claim is judged."""
    full: int
    """The full length: what is measured then stands."""
    settled: bool
    """Whether it can be judged: there are enough steps and chance is small beside the effect, or no more will come."""
    result: Result | None
    """Held against the claim's goal and, where that does not pass before the full length, against that of the reduced
    one; None without steps."""


def live_result(step: Step, claim: Claim, runs: Sequence[Run | ModelRun]) -> LiveResult:
    """A live claim against the runs of the step's own experiment, for a check mark that moves with them."""
    assert step.spec is not None and step.quick_spec is not None
    first, full = (max(spec.runs()[n - 1].n_steps for n in claim.lanes) for spec in (step.quick_spec, step.spec))
    parts = [runs[n - 1] for n in claim.lanes]
    counted = min(run.counted for run in parts)
    stopped = any(run.divergence is not None for run in parts)
    result = None
    if counted > 0 or stopped:
        lanes = tuple(run if isinstance(run, ModelRun) else Evidence(run.trace()) for run in runs)
        # The number that the lesson records is that of its own seeds and length.
        claim = replace(claim, paper=None)
        seeds, trouble = _numbers(claim, (lanes,), None)
        result = judge(claim, claim.goal, seeds, full=True, trouble=trouble)
        if counted < full and not (result.passed and result.chance is None):
            result = judge(claim, claim.quick_goal, seeds, full=False, trouble=trouble)
    settled = stopped or counted >= full or (counted >= first and result is not None and result.chance is None)
    return LiveResult(counted, first, full, settled, result)


def _needs_of_runs(spec: Experiment, claims: Iterable[Claim], quick: bool) -> dict[Experiment, dict[int, set[str]]]:
    """Every experiment that claims are measured on, the step's own first, with what the measures of its lanes need."""
    of_run: dict[Experiment, list[Claim]] = {spec: []}
    for claim in claims:
        if claim.reduction is None:
            of_run.setdefault(claim.experiment(spec, quick), []).append(claim)
    out: dict[Experiment, dict[int, set[str]]] = {made: {} for made in of_run}
    for made, some in of_run.items():
        n = len(made.lanes)
        for lane, needs in _needs(some).items():
            where, number = (made, lane) if lane <= n else (spec, lane - n)
            out[where].setdefault(number, set()).update(needs)
    return out


def _lanes_of(
    claim: Claim, spec: Experiment | None, lanes: Mapping[Experiment, tuple[tuple[Any, ...], ...]], quick: bool
) -> tuple[tuple[Any, ...], ...]:
    """The lanes that a claim counts: those of its run, and behind them the unchanged ones where it compares them."""
    if spec is None or claim.reduction is not None:
        return ()
    made = claim.experiment(spec, quick)
    if max(claim.lanes) <= len(made.lanes):
        return lanes[made]
    return tuple((*new, *old) for new, old in zip(lanes[made], lanes[spec], strict=True))


def _needs(claims: Iterable[Claim]) -> dict[int, set[str]]:
    """The data that the measures of each lane require."""
    out: dict[int, set[str]] = {}
    for claim in claims:
        for lane in claim.lanes:
            out.setdefault(lane, set()).add(claim.make_measure().requires)
    return out


def _of_seeds(spec: Experiment, seeds: int) -> list[Experiment]:
    return [replace(spec, seed=(spec.seed + i) % 2**32) for i in range(seeds)]


def _runs(
    spec: Experiment, needs: dict[int, set[str]], seeds: int, progress: Callable[[int, int], Any]
) -> tuple[tuple[Evidence, ...], ...]:
    runs = [run for one in _of_seeds(spec, seeds) for run in one.runs()]
    n = len(spec.lanes)
    total = sum((run.burn_in + run.n_steps) * run.n_chains for run in runs)
    lanes = _at_once(
        [lambda report, i=i: evidence(runs[i], needs.get(i % n + 1, ()), report) for i in range(len(runs))],  # type: ignore[misc]
        lambda done: progress(done, total),
    )
    return tuple(tuple(lanes[k : k + n]) for k in range(0, len(lanes), n))


def _model_runs(
    spec: Experiment, needs: dict[int, set[str]], seeds: int, progress: Callable[[int, int], Any]
) -> tuple[tuple[ModelRun, ...], ...]:
    model = spec.make_model()
    runs = [run for one in _of_seeds(spec, seeds) for run in start(one, model)]
    n, total = len(spec.lanes), sum(run.spec.n_steps for run in runs)

    def one(run: ModelRun, report: Report) -> ModelRun:
        while run.next is not None and run.steps < run.spec.n_steps:
            run.advance(1)
            report(run.steps)
        return run

    done = _at_once([partial(one, run) for run in runs], lambda done: progress(done, total))
    return tuple(tuple(done[k : k + n]) for k in range(0, len(done), n))


def _at_once(works: Sequence[Callable[[Report], Any]], progress: Callable[[int], Any]) -> list[Any]:
    """The return values of the works, two at a time; each tells how far it is, and ends there after an interrupt."""
    done = [0] * len(works)
    stopped = False

    def run(i: int) -> Any:
        def report(far: int) -> None:
            if stopped:
                raise CancelledError
            done[i] = far
            progress(sum(done))

        return works[i](report)

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(run, i) for i in range(len(works))]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stopped = True
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _judge(claim: Claim, lanes: tuple[tuple[Any, ...], ...], table: sweeps.Table | None, quick: bool) -> Result:
    seeds, trouble = _numbers(claim, lanes, table)
    return judge(claim, claim.quick_goal if quick else claim.goal, seeds, full=not quick, trouble=trouble)


def _numbers(
    claim: Claim, lanes: tuple[tuple[Any, ...], ...], table: sweeps.Table | None
) -> tuple[list[Estimate], str]:
    """The claim's number of every seed, and what went wrong where it has none."""
    if claim.reduction is not None:
        assert table is not None
        of_lanes = [sweeps.reduced(claim, table, number) for number in claim.lanes]
        trouble = "Some of the sweep's runs do not determine this number: they blew up, or are too short."
    else:
        measure = claim.make_measure()
        of_lanes = [[measured(measure, seed[number - 1]) for seed in lanes] for number in claim.lanes]
        trouble = _trouble([seed[number - 1] for seed in lanes for number in claim.lanes])
    others: list[Any] = of_lanes[1] if len(of_lanes) > 1 else [None] * len(of_lanes[0])
    return [quantity(claim.quantity, lane, other) for lane, other in zip(of_lanes[0], others, strict=True)], trouble


def _trouble(lanes: Iterable[Any]) -> str:
    return next((str(lane.divergence.message) for lane in lanes if lane.divergence is not None), "")
