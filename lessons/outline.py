"""The outline of a lesson: what a list shows of it. It needs no experiment, and none is made.

An experiment is checked when it is made, and for a typed posterior functions are compiled and a mode is searched. A
list of lessons must not wait for that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sgmcmc_lab.lessons.document import LessonError, Section, parse, text_of
from sgmcmc_lab.lessons.lesson import TOO_DEEP, front_matter, order_of
from sgmcmc_lab.lessons.measures import MEASURES
from sgmcmc_lab.lessons.measures.base import STATISTICS
from sgmcmc_lab.lessons.specs import choice_data
from sgmcmc_lab.samplers import SpecError


@dataclass(frozen=True)
class StepOutline:
    """A step as a list shows it."""

    title: str
    question: bool
    """Whether it has a question."""
    live_claims: int
    """Claims that are checked while the experiment runs."""


@dataclass(frozen=True)
class Outline:
    """A lesson as a list shows it."""

    key: str
    title: str
    minutes: int
    summary: str
    needs: tuple[str, ...]
    steps: tuple[StepOutline, ...]
    file: str
    order: tuple[int, str]


def outline(path: Path) -> Outline:
    """The outline of the lesson in a file. Raises :class:`LessonError`.

    Errors in a step's settings remain unseen here; :func:`lessons.lesson.read` reports them.
    """
    order = order_of(path)
    try:
        return _outline(text_of(path), path.name, order)
    except RecursionError:
        raise LessonError(path.name, 1, TOO_DEEP) from None


@lru_cache(maxsize=512)
def _outline(text: str, file: str, order: tuple[int, str]) -> Outline:
    document = parse(text, file)
    title, minutes, summary, needs = front_matter(document.front)
    return Outline(order[1], title, minutes, summary, needs, tuple(map(_step, document.sections)), file, order)


def _step(section: Section) -> StepOutline:
    data = section.settings.data
    claims = data.get("claim")
    listed = claims if isinstance(claims, list) else []
    return StepOutline(section.title, "question" in data, sum(_live(claim, "sweep" in data) for claim in listed))


def _live(claim: Any, swept: bool) -> bool:
    """Whether running statistics are enough for it; False where its measure cannot be read."""
    if not isinstance(claim, Mapping) or (swept and "measure" not in claim):
        return False
    try:
        key = choice_data("measure", claim.get("measure"))["key"]
    except SpecError:
        return False
    measure = MEASURES.get(key) if isinstance(key, str) else None
    return measure is not None and measure.requires == STATISTICS
