"""The page of results: its numbers come from the course as it is, and each quotation from the paper."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from sgmcmc_lab.lessons import record, results
from sgmcmc_lab.lessons.claims import STALE
from sgmcmc_lab.lessons.lesson import KINDS, PRINTED, SIMULATED
from tests.helpers.cases import for_each
from tests.helpers.course import LESSONS

ROOT = Path(__file__).parents[2]
PAPERS = ROOT.parent / "shared" / "seeds"
TEXT = results.PAGE.read_text(encoding="utf-8")
MEASURED = (ROOT / "tests" / "benchmarks" / "README.md").read_text(encoding="utf-8")


def claims():
    return [
        (f"{key} {step.number}", claim, found)
        for key, one in results.kept().items()
        for (step, claim), found in zip(results._claims(LESSONS[key]), one["claims"], strict=True)
    ]


def test_each_lesson_has_a_record_with_its_settings():
    """Fails where a lesson was changed, and the numbers beside it are those of before: run it with --table."""
    assert {key: one["settings"] for key, one in results.kept().items()} == {
        key: results.settings(lesson) for key, lesson in LESSONS.items()
    }


def test_other_settings_have_another_digest():
    """Faults: another seed, another number of seeds, another lane, another goal, another point of a sweep."""
    lesson = LESSONS["step-size"]
    first, second = lesson.steps[:2]
    claim = first.claims[0]
    axis = second.sweep.axes[0]
    faults = [
        (0, replace(first, spec=replace(first.spec, seed=first.spec.seed + 1))),
        (0, replace(first, seeds=first.seeds + 1)),
        (0, replace(first, claims=(replace(claim, lane=2), *first.claims[1:]))),
        (0, replace(first, claims=(replace(claim, goal=replace(claim.goal, equals=1.0)), *first.claims[1:]))),
        (1, replace(second, sweep=replace(second.sweep, axes=(replace(axis, values=axis.values[:-1]),)))),
    ]
    digests = {results.settings(lesson)}
    for place, step in faults:
        steps = list(lesson.steps)
        steps[place] = step
        digests.add(results.settings(replace(lesson, steps=tuple(steps))))
    assert len(digests) == 1 + len(faults)
    words = replace(first, text="Other words.", claims=tuple(replace(one, says="So.") for one in first.claims))
    assert results.settings(replace(lesson, steps=(words, *lesson.steps[1:]))) in digests


def test_the_page_is_that_of_the_records():
    _, _, made = TEXT.partition(record.BEGIN)
    made, _, _ = made.partition(record.END)
    assert made.strip() == results.page(dict(LESSONS), results.kept()).strip()


def test_all_claims_passed_and_the_lessons_record_their_numbers(subtests):
    for where, claim, found in claims():
        with subtests.test(f"{where}: {claim.says}"):
            assert found["passed"]
            paper = claim.paper
            if paper is not None and paper.ours is not None:
                allowed = max(STALE * abs(paper.ours), found["tolerance"] or 0.0, 2 * (found["error"] or 0.0))
                assert abs(found["measured"] - paper.ours) <= allowed


def test_what_stands_beside_a_number_has_a_kind(subtests):
    for where, claim, _ in claims():
        if (paper := claim.paper) is not None:
            with subtests.test(f"{where}: {paper.figure}"):
                assert paper.kind in KINDS
                assert bool(paper.by) == (paper.kind == SIMULATED)


@cache
def papers():
    """The five texts, without line ends and signs of formulas."""
    if not PAPERS.is_dir():
        pytest.skip("the papers are not here")
    return [
        " ".join(path.read_text(encoding="utf-8").replace("\\n", " ").replace("$", "").split())
        for path in sorted(PAPERS.glob("0*.txt"))
    ]


def quoted(text):
    """The quotations of a text that no paper has, letter for letter."""
    return [one for one in re.findall("“(.*?)”", text) if not any(one in paper for paper in papers())]


def test_quotations_are_the_papers():
    """Fails where a paper did not say so, or what is called printed has no quotation. Fault: another word."""
    for where, claim, _ in claims():
        paper = claim.paper
        if paper is not None and paper.kind == PRINTED:
            assert quoted(paper.written) == [], where
            assert "“" in paper.written or any(f"{paper.number:.2f}" in text for text in papers()), where
    section = TEXT.partition(record.BEGIN)[0]
    assert quoted(section) == []
    assert quoted(section.replace("still improves over", "improves over")) == ["gammaSGVB improves over the IRM"]


def unmeasured(section):
    """The numbers of the first section's third column that do not stand in the measurement that its row names."""
    out = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if line.startswith("| ") and (link := re.search(r"\[(.*?)\]\(\.\./tests", line)):
            _, _, text = MEASURED.partition(f"\n## {link[1]}\n")
            text, _, _ = text.partition("\n## ")
            numbers = re.findall(r"\d*\.?\d+(?: ± \d*\.?\d+)?", cells[-2].replace(",", ""))
            out += [one for one in numbers if one not in text.replace(",", "")]
    return out


@for_each(("right", "planted"), [("", ""), (".904 ± .024", ".94 ± .024"), ("11.822 ± .012", "11.282 ± .012")])
def test_the_numbers_of_what_is_not_reproduced_are_measured(right, planted):
    section = TEXT.partition(record.BEGIN)[0]
    assert right in section
    assert unmeasured(section.replace(right, planted, 1)) == ([planted] if planted else [])
