"""The lessons that there are: the course, and a teacher's own folder beside it."""

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sgmcmc_lab.lessons.document import LessonError
from sgmcmc_lab.lessons.lesson import Lesson, order_of, read
from sgmcmc_lab.lessons.outline import Outline, outline

log = logging.getLogger(__name__)

COURSE = Path(__file__).parent / "course"
"""The built-in lessons."""
VARIABLE = "SGMCMC_LESSONS"
"""The environment variable that names a teacher's own folders, separated as in PATH."""
MAX_FILES = 200
"""The most files of one folder."""


Known = TypeVar("Known", Lesson, Outline)
"""The result of reading a lesson's file."""


@dataclass(frozen=True)
class Library:
    """Lessons by key, in the order of the course, and what is wrong with those that did not load."""

    lessons: dict[str, Lesson]
    problems: tuple[str, ...]


def folders(own: Iterable[str | Path] = ()) -> list[Path]:
    """The course's folder, the folders of the environment variable, and those that are given."""
    named = [part for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    return [COURSE, *map(Path, named), *map(Path, own)]


def paths_of(folder: Path) -> list[Path]:
    """The files of a folder that are to be lessons, in order. Raises :class:`OSError`.

    Names that begin with a point are an editor's own: a lock, or a copy of what is being written.
    """
    names = (path.name for path in folder.iterdir())
    wanted = (name for name in names if name.endswith(".md") and name[0] != "." and name.lower() != "readme.md")
    return [folder / name for name in sorted(wanted)]


def load_all(own: Iterable[str | Path] = (), read: Callable[[Path], Lesson] = read) -> Library:
    """Every lesson of every folder. A file that cannot be read is a problem of its own and stops no other.

    ``read`` may know a file's lesson from before.
    """
    lessons, problems = _gather(own, read)
    known = {lesson.key: lesson for lesson in lessons}
    for lesson in lessons:
        problems += [
            f"{lesson.file}:1: it needs the lesson {key}, which is not there."
            for key in lesson.needs
            if key not in known
        ]
    return Library(known, tuple(problems))


def load_outlines(
    own: Iterable[str | Path] = (), read: Callable[[Path], Outline] = outline
) -> tuple[dict[str, Outline], tuple[str, ...]]:
    """The outline of every lesson by key, in the order of the course, and what is wrong with the other files.

    ``read`` may know that a file is broken.
    """
    found, problems = _gather(own, read)
    return {one.key: one for one in found}, tuple(problems)


def find(key: str, own: Iterable[str | Path] = (), read: Callable[[Path], Lesson] = read) -> Lesson | None:
    """The lesson with this key; None where no file has its name. No other lesson's experiments are made.

    If several files have this key, the first readable one counts, as in :func:`load_all`. Raises
    :class:`LessonError`, of the first file, where none of them can be read.
    """
    first: LessonError | None = None
    for folder in folders(own):
        for path in _files(folder, key):
            try:
                return read_file(path, read)
            except LessonError as error:
                first = first or error
    if first is not None:
        raise first
    return None


def read_file(path: Path, read: Callable[[Path], Known]) -> Known:
    """The result of ``read`` for a file. Raises :class:`LessonError`, also for what ``read`` did not expect."""
    try:
        return read(path)
    except LessonError:
        raise
    except Exception:
        log.exception("An unexpected error while %s was read", path)
        raise LessonError(
            path.name, 1, "it cannot be read; its contents are not as the reader expects; the log has the details."
        ) from None


def _files(folder: Path, key: str) -> list[Path]:
    """The files of a folder that are named after a key; none of a folder that cannot be read."""
    try:
        paths = paths_of(folder)[:MAX_FILES]
    except OSError:
        return []
    return [path for path in paths if _key(path) == key]


def _key(path: Path) -> str | None:
    try:
        return order_of(path)[1]
    except LessonError:
        return None


def _gather(own: Iterable[str | Path], read: Callable[[Path], Known]) -> tuple[list[Known], list[str]]:
    """The results of ``read`` for every file of every folder, in the order of the course, and the faults."""
    lessons: list[Known] = []
    problems: list[str] = []
    for folder in folders(own):
        try:
            paths = paths_of(folder)
        except OSError as error:
            why = (
                "there is no such folder of lessons"
                if isinstance(error, (FileNotFoundError, NotADirectoryError))
                else f"it cannot be read: {(error.strerror or str(error)).lower()}"
            )
            problems.append(f"{folder}: {why}.")
            continue
        if len(paths) > MAX_FILES:
            problems.append(f"{folder}: it has {len(paths):,} files; the first {MAX_FILES} are read.")
        found: list[Known] = []
        for path in paths[:MAX_FILES]:
            try:
                lesson = read_file(path, read)
                if any(lesson.key == other.key for other in (*lessons, *found)):
                    raise LessonError(path.name, 1, f"there is another lesson called {lesson.key}.")
                found.append(lesson)
            except LessonError as error:
                problems.append(str(error))
        lessons += sorted(found, key=lambda lesson: lesson.order)
    return lessons, problems
