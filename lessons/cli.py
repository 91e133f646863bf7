"""The command line: ``python -m sgmcmc_lab.lessons`` lists the lessons; with the names of lessons it runs them.

Exit codes: 0 every claim passed; 1 a claim failed; 2 bad input, said in one sentence; 130 stopped by Ctrl-C (what a
sweep has done is kept, and the same command goes on from there).
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from sgmcmc_lab.lessons import record, results
from sgmcmc_lab.lessons import sweep as sweeps
from sgmcmc_lab.lessons.claims import Result
from sgmcmc_lab.lessons.handout import handout
from sgmcmc_lab.lessons.headless import Outcome, run_step
from sgmcmc_lab.lessons.lesson import Lesson
from sgmcmc_lab.lessons.library import VARIABLE, Library, load_all
from sgmcmc_lab.lessons.paths import paths
from sgmcmc_lab.samplers import SpecError
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.interrupts import interruptible
from sgmcmc_lab.samplers.live.makers import maker
from sgmcmc_lab.samplers.machine import machine
from sgmcmc_lab.samplers.models.run import needed

PASSED, FAILED, BAD_INPUT, STOPPED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        with interruptible():
            return _do(options)
    except SpecError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("stopped; the same command goes on with its sweeps from here", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:
        # The reader of a pipe, such as head, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PASSED


def _do(options: argparse.Namespace) -> int:
    library = load_all(options.folder)
    for problem in library.problems:
        print(f"error: {problem}", file=sys.stderr)
    if options.paths:
        _paths(library)
        return PASSED
    if options.contact_sheet is not None:
        _contact_sheet(_chosen(library, options.names or ["all"]), options.contact_sheet)
        return PASSED
    if options.teacher and options.html is None:
        raise SpecError("teacher", "…", "it goes with --html FILE")
    for option in ("html", "json", "table", "live"):
        if getattr(options, option) is not None and not options.names:
            raise SpecError(option, str(getattr(options, option)), "it needs the NAME of the lesson before it")
    if options.table == results.PAGE and (
        options.quick or options.seeds or {*options.names} - {"all", *results.course()}
    ):
        raise SpecError(
            "table", str(results.PAGE), "it holds lessons of the course at full length, with their own seeds"
        )
    if options.live is not None:
        return _live(_chosen(library, options.names), options.live)
    if not options.names:
        _list(library)
        return BAD_INPUT if library.problems else PASSED
    return _run(_chosen(library, options.names), options)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m sgmcmc_lab.lessons",
        description="Run lessons without a screen, and hold their claims against the runs.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a lesson, or all; without one they are listed")
    parser.add_argument("--seeds", type=_count, metavar="N", help="seeds of every run, in place of the lesson's own")
    parser.add_argument("--quick", action="store_true", help="the reduced lengths that the test suite runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    parser.add_argument(
        "--table",
        type=Path,
        nargs="?",
        const=results.PAGE,
        metavar="FILE",
        help="write the papers' numbers beside ours there, as Markdown; without FILE renew these lessons in lessons/RESULTS.md",
    )
    parser.add_argument("--plots", type=Path, metavar="DIR", help="write the figures there, as PNG")
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write a lesson there as one file, which opens without a server or a network",
    )
    parser.add_argument(
        "--live",
        type=Path,
        metavar="FILE",
        help="write a lesson there as one page whose experiments move, without a server or a network",
    )
    parser.add_argument(
        "--teacher", action="store_true", help="with --html: also the solutions and the notes for the teacher"
    )
    parser.add_argument(
        "--contact-sheet",
        type=Path,
        metavar="DIR",
        help="write a picture of every step there, as the page shows it, and a sheet of each lesson",
    )
    parser.add_argument(
        "--paths", action="store_true", help="list the teacher's paths through the course, step by step"
    )
    parser.add_argument(
        "--folder",
        action="append",
        default=[],
        metavar="DIR",
        help=f"a folder of own lessons, also named by {VARIABLE}",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--processes", type=_count, default=0, metavar="N", help="processes for sweeps; as many as cores if left out"
    )
    where.add_argument("--cluster", metavar="ADDRESS", help="run sweeps on this Dask scheduler, tcp://host:8786")
    parser.add_argument(
        "--results", type=Path, metavar="DIR", help="where results of sweeps are kept, to go on after a stop"
    )
    return parser


def _live(lessons: Sequence[Lesson], path: Path) -> int:
    if len(lessons) > 1:
        raise SpecError("live", str(path), f"a file holds one lesson, and these are {len(lessons)}")
    record.check(path)
    record.write(path, maker("lesson")(lessons[0]))
    return PASSED


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 to 1,000")
    return value


def _list(library: Library) -> None:
    width = max((len(key) for key in library.lessons), default=0)
    for lesson in library.lessons.values():
        claims = sum(len(step.claims) for step in lesson.steps)
        print(
            f"{lesson.key:<{width}}  {lesson.title} ({lesson.minutes} minutes, {len(lesson.steps)} steps, {claims} claims)"
        )
        if lesson.summary:
            print(f"{'':<{width}}  {lesson.summary}")


def _paths(library: Library) -> None:
    for path in paths():
        print(f"{path.title}\n  {path.says}")
        for lecture in path.lectures:
            print(f"  {lecture.title} ({lecture.minutes} minutes)")
            for stop in lecture.stops:
                step = library.lessons[stop.lesson].steps[stop.step - 1]
                print(f"    {stop.minutes:>2} min  {stop.lesson} {stop.step}: {step.title}")


def _chosen(library: Library, names: Sequence[str]) -> list[Lesson]:
    if "all" in names:
        return list(library.lessons.values())
    for name in names:
        if name not in library.lessons:
            raise SpecError("lesson", name, f"there is no such lesson; there are: {', '.join(library.lessons)}")
    return [library.lessons[name] for name in dict.fromkeys(names)]


def _run(lessons: Sequence[Lesson], options: argparse.Namespace) -> int:
    # Before the runs: they may take hours.
    for path in filter(None, (options.json, options.table, options.html)):
        record.check(path)
    if options.plots is not None:
        _make("plots", options.plots)
        _figures().prepare("matplotlib")
    if options.html is not None:
        if len(lessons) > 1:
            raise SpecError("html", str(options.html), f"a file holds one lesson, and these are {len(lessons)}")
        # A formula that cannot be drawn is told now.
        handout(lessons[0], {}, teacher=options.teacher)
    # Here, once: processes of a sweep load what is compiled now.
    compiled = [f for lesson in lessons for step in lesson.steps if step.spec is not None for f in needed(step.spec)]
    jit.prepare(compiled)
    report: dict[str, Any] = {}
    passed: list[bool] = []
    checked: list[bool] = []
    near = 0
    with ExitStack() as stack:
        do: sweeps.Work = sweeps.Processes(options.processes)
        if options.cluster:
            do = sweeps.Cluster(stack.enter_context(sweeps.connect(options.cluster)))
        cells = sweeps.Results(options.results or sweeps.results_folder())
        for lesson in lessons:
            print(f"{lesson.key}: {lesson.title}", flush=True)
            steps, began = [], time.monotonic()
            outcomes: dict[int, Outcome] = {}
            for step in lesson.steps:
                if not (step.claims or step.checks or ((options.plots or options.html) and step.new_spec)):
                    continue
                with _progress() as update:
                    outcome = run_step(
                        step, quick=options.quick, seeds=options.seeds, progress=update, do=do, results=cells
                    )
                print(f"  {step.number} {step.title}")
                for result, what in [(x, "") for x in outcome.results] + [(x, "check: ") for x in outcome.checks]:
                    print(as_text(result, what), flush=True)
                passed += [result.passed for result in outcome.results]
                near += sum(result.passed and bool(result.later) for result in outcome.results)
                checked += [result.passed for result in outcome.checks]
                pictures = _figures().write(outcome, lesson, options.plots) if options.plots else []
                if options.html is not None:
                    outcomes[step.number] = outcome
                steps.append(_step_data(outcome, pictures))
            report[lesson.key] = {"title": lesson.title, "file": lesson.file, "steps": steps}
            if options.html is not None:
                record.write(options.html, handout(lesson, outcomes, quick=options.quick, teacher=options.teacher))
            print(f"  {time.monotonic() - began:.1f} s", flush=True)
    also = f", {near} of them by the laxer goal of the reduced length" if near else ""
    also += f", {sum(checked)} of {len(checked)} checks" if checked else ""
    failed = [*passed, *checked].count(False)
    print(f"{sum(passed)} of {len(passed)} claims passed{also}" + (f", {failed} FAILED" if failed else ""))
    if options.json is not None:
        data = {"quick": options.quick, "seeds": options.seeds, "lessons": report}
        record.write(options.json, json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False))
    if options.table is not None:
        chosen = {lesson.key: lesson for lesson in lessons}
        when = record.conditions(machine())
        made = {key: results.of(lesson, report[key]["steps"], when) for key, lesson in chosen.items()}
        if options.table == results.PAGE:
            results.keep(made)
        else:
            length = "reduced" if options.quick else "full"
            record.put(options.table, f"Measured at {length} length.\n\n{results.page(chosen, made)}")
    return FAILED if failed else PASSED


def _make(field: str, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError(field, str(folder), f"it cannot be made: {(error.strerror or str(error)).lower()}") from None


def _figures() -> Any:
    """The module of the figures, which takes a second to load."""
    from sgmcmc_lab.lessons import figures

    return figures


def _contact_sheet(lessons: Sequence[Lesson], folder: Path) -> None:
    _make("contact-sheet", folder)
    for path, amiss in maker("contact_sheets")(lessons, folder):
        print("\n  ".join([str(path), *amiss]), flush=True)


def as_text(result: Result, what: str = "") -> str:
    """A claim's lines: what it says, then measured, expected, tolerance and pass; ``what`` stands before a check."""
    claim = result.claim
    of = "sweep" if claim.reduction is not None else f"lane {claim.lane}"
    of = f"{of} {claim.reduction}" if claim.reduction is not None else of
    measured = f"{result.measured:.6g}" + (f" ± {result.error:.2g}" if result.error else "")
    allowed = f", tolerance {result.allowed:.2g}" if result.allowed is not None else ""
    lines = [
        f"    {('near' if result.later else 'pass') if result.passed else 'FAIL'}  {what}{claim.says}",
        f"          {claim.measure.key} ({of}): measured {measured}, expected {result.expected}{allowed}",
    ]
    if len(result.by_seed) > 1:
        lines.append(f"          seeds: {', '.join(f'{x:.6g}' for x in result.by_seed)}")
    if claim.paper is not None:
        paper = claim.paper
        lines.append(f"          {paper.figure}: {paper.with_source}; {paper.reason or 'as here.'}")
    if result.later:
        lines.append(f"          at full length: {result.later}")
    if result.reason:
        lines.append(f"          {result.reason}")
    return "\n".join(lines)


def _step_data(outcome: Outcome, pictures: Sequence[Path]) -> dict[str, Any]:
    return {
        "number": outcome.step.number,
        "title": outcome.step.title,
        "claims": [_claim_data(result) for result in outcome.results],
        "checks": [{**_claim_data(result), "supports": list(result.claim.supports)} for result in outcome.checks],
        "sweep": _sweep_data(outcome),
        "figures": [path.name for path in pictures],
    }


def _claim_data(result: Result) -> dict[str, Any]:
    claim = result.claim
    paper = claim.paper
    return {
        "says": claim.says,
        "measure": claim.measure.key,
        "params": claim.measure.values(),
        "lane": claim.lane,
        "against": claim.against,
        "quantity": claim.quantity,
        "sweep": claim.reduction,
        "where": dict(claim.where),
        "measured": record.plain(result.measured),
        "error": record.plain(result.error),
        "expected": result.expected,
        "tolerance": record.plain(result.allowed),
        "passed": result.passed,
        "early": bool(result.later),
        "reason": result.reason,
        "by_seed": [record.plain(x) for x in result.by_seed],
        "paper": paper and asdict(paper),
    }


def _sweep_data(outcome: Outcome) -> list[dict[str, Any]]:
    if outcome.table is None:
        return []
    return [
        {
            "lane": row.point.lane,
            "values": dict(row.point.values),
            "by_seed": [record.plain(seed.value) for seed in row.seeds],
        }
        for row in outcome.table.rows
    ]


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal, nothing elsewhere, where every step has its lines anyway."""
    with tqdm(file=sys.stderr, unit_scale=True, leave=False, disable=None) as bar:

        def update(what: str, done: int, total: int) -> None:
            if bar.total != total or bar.desc != f"{what}: ":
                bar.reset(total)
                bar.set_description(what, refresh=False)
            bar.update(done - bar.n)

        yield update
