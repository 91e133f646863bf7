"""Full runs of the course: the record of each lesson, and the tables of RESULTS.md that come from them.

``results.json`` has for each lesson when and where it ran, a digest of the settings that its numbers depend on, and
the numbers. The words beside them are the course's. ``python -m sgmcmc_lab.lessons NAME --table`` makes both files.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sgmcmc_lab.lessons import record
from sgmcmc_lab.lessons.lesson import FIGURE, FORMULA, KINDS, PRINTED, SIMULATED, Claim, Lesson, Step, order_of, read
from sgmcmc_lab.lessons.library import COURSE, paths_of

RECORDS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).with_name("RESULTS.md")
HEAD = ("figure", "claim", "compared with", "source", "ours", "the claim allows", "step", "why they differ")
SHORT = {
    PRINTED: "printed in the paper",
    FORMULA: "computed from a formula of the paper",
    FIGURE: "read off a figure of the paper",
    SIMULATED: "simulated by this project with the paper's settings",
}

NUMBERS = ("measured", "error", "expected", "tolerance", "passed")
"""The fields of a report's claim that a record keeps."""
Record = dict[str, Any]
"""A lesson's ``when``, ``settings``, numbers of its ``claims``, and which of its ``checks`` passed."""


def settings(lesson: Lesson) -> str:
    """A digest of what the numbers of a full run depend on: experiments, seeds, sweeps, and what claims measure."""
    parts = []
    for step in lesson.steps:
        if step.claims or step.checks:
            parts.append([step.spec and step.spec.to_dict(), step.seeds, step.sweep and asdict(step.sweep)])
            parts += [_measured_by(claim) for claim in (*step.claims, *step.checks)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _measured_by(claim: Claim) -> list[Any]:
    number = [claim.measure.key, claim.measure.values(), claim.lane, claim.against, claim.quantity]
    return [*number, claim.reduction, claim.where, claim.change, asdict(claim.goal)]


def of(lesson: Lesson, steps: Sequence[Mapping[str, Any]], when: Mapping[str, Any]) -> Record:
    """The record of a lesson's run, of which ``steps`` are those of a report; ``when`` is one of
    :func:`lessons.record.conditions`.
    """
    claims = [{name: claim[name] for name in NUMBERS} for step in steps for claim in step["claims"]]
    checks = [check["passed"] for step in steps for check in step["checks"]]
    return {"when": record.in_words(when), "settings": settings(lesson), "claims": claims, "checks": checks}


def kept() -> dict[str, Record]:
    """The records of full runs, by lesson."""
    found: dict[str, Record] = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.is_file() else {}
    return found


def course() -> dict[str, Lesson]:
    """The lessons of the course. A teacher's own lessons have no record."""
    return {order_of(path)[1]: read(path) for path in paths_of(COURSE)}


def keep(new: Mapping[str, Record]) -> None:
    """Renew records of the course's full runs, and the page. Raises :class:`SpecError`."""
    lessons, records = course(), {**kept(), **new}
    records = {key: records[key] for key in lessons if key in records}
    lines = [f"{json.dumps(key)}: {json.dumps(one, ensure_ascii=False)}" for key, one in records.items()]
    record.write(RECORDS, "{\n" + ",\n".join(lines) + "\n}\n")
    record.put(PAGE, page(lessons, records))


def page(lessons: Mapping[str, Lesson], records: Mapping[str, Record]) -> str:
    """The tables: numbers beside the papers', and the claims and checks of each lesson that passed."""
    rows = [
        (claim, found, f"{key} {step.number}")
        for key, one in records.items()
        for (step, claim), found in zip(_claims(lessons[key]), one["claims"], strict=True)
        if claim.paper is not None
    ]
    lines = [*_counted([claim for claim, _, _ in rows]), "", _row(HEAD), "|" + len(HEAD) * "---|"] if rows else []
    lines += [_row(_cells(claim, found, where)) for claim, found, where in rows]
    passed = [result["passed"] for one in records.values() for result in one["claims"]]
    checked = [result for one in records.values() for result in one["checks"]]
    held = f"{sum(passed)} of {len(passed)} claims and {sum(checked)} of {len(checked)} checks in {len(records)} lessons passed."
    lines += ["", held, "", _row(("lesson", "claims that passed", "checks that passed", "settings", "measured"))]
    lines.append("|" + 5 * "---|")
    for key, one in records.items():
        of_claims = [result["passed"] for result in one["claims"]]
        numbers = [f"{sum(some)} of {len(some)}" for some in (of_claims, one["checks"])]
        lines.append(_row((key, *numbers, f"`{one['settings']}`", one["when"])))
    return "\n".join([*lines, ""])


def _claims(lesson: Lesson) -> list[tuple[Step, Claim]]:
    return [(step, claim) for step in lesson.steps for claim in step.claims]


def _counted(claims: Sequence[Claim]) -> list[str]:
    """How many rows there are of each kind, with a number and with words."""
    kinds = Counter((claim.paper.kind, isinstance(claim.paper.number, str)) for claim in claims if claim.paper)
    lines = [_row(("source of what the lab's number is compared with", "numbers", "words")), "|---|---|---|"]
    return [*lines, *(_row((SHORT[kind], str(kinds[kind, False]), str(kinds[kind, True]))) for kind in KINDS)]


def _cells(claim: Claim, found: Mapping[str, Any], where: str) -> tuple[str, ...]:
    paper, expected, tolerance = claim.paper, found["expected"], found["tolerance"]
    assert paper is not None
    error = f" ± {found['error']:.1g}" if isinstance(found["error"], float) else ""
    ours = f"{found['measured']:.3g}{error}" if isinstance(found["measured"], float) else found["measured"]
    around = isinstance(tolerance, float) and not expected.startswith(("above", "below")) and " to " not in expected
    allowed = f"{expected} ± {tolerance:.2g}" if around else expected
    return paper.figure, claim.says, paper.written, paper.proof, ours, allowed, where, paper.reason


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '¦') for cell in cells)} |"
