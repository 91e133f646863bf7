"""Paths through the course for a teacher, as data: ``paths.toml`` has them."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("paths.toml")


@dataclass(frozen=True)
class Stop:
    """A step of a lesson, and the minutes that it takes before a class."""

    lesson: str
    step: int
    """Counted from 1."""
    minutes: int


@dataclass(frozen=True)
class Lecture:
    """The steps that are shown in one lecture."""

    title: str
    minutes: int
    """In all, as the teacher has them; its steps take just as many."""
    stops: tuple[Stop, ...]


@dataclass(frozen=True)
class CoursePath:
    """Some steps of the course, in one lecture or several."""

    title: str
    says: str
    """For whom it is."""
    lectures: tuple[Lecture, ...]


@cache
def paths() -> tuple[CoursePath, ...]:
    """All paths, in the order of the file."""
    return tuple(
        CoursePath(path["title"], path["says"], tuple(_lecture(entry) for entry in path["lecture"]))
        for path in tomllib.loads(FILE.read_text(encoding="utf-8"))["path"]
    )


def _lecture(entry: dict[str, Any]) -> Lecture:
    return Lecture(entry["title"], entry["minutes"], tuple(Stop(**stop) for stop in entry["steps"]))
