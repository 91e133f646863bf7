"""The lessons that the server has: read once, and again where a file has changed."""

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from sgmcmc_lab.app.views import AXES, VIEWS, axes_of, coordinates, fitting
from sgmcmc_lab.lessons import Lesson, LessonError, Library, Step, load_all
from sgmcmc_lab.lessons.lesson import read
from sgmcmc_lab.lessons.library import MAX_FILES, find, folders, load_outlines, paths_of, read_file
from sgmcmc_lab.lessons.outline import Outline, outline
from sgmcmc_lab.samplers.low_priority import workers

NOWHERE = ("n_steps", "burn_in", "thin")
"""Addresses for which the page has no widget, since the user decides how long an experiment runs."""
_LOCK = threading.Lock()
_READ: dict[str, tuple[Any, Library]] = {}
_OUTLINES: dict[str, tuple[Any, tuple[dict[str, Outline], tuple[str, ...]]]] = {}
_FILES: dict[Path, tuple[Any, Lesson | LessonError]] = {}
"""The state of each file when it was read, with its lesson or its error: only changed files are read again."""
_READER = workers(1, "lessons")
_READER_OF_ONE = workers(2, "lesson")
"""Apart from the reader of all, which at the first start is done when functions of the last lesson are compiled."""


def library() -> Library:
    """Every lesson, and what is wrong with those that did not load or that name what the page has not.

    The first time it takes seconds, for every experiment is made, and at a first start minutes, for functions are
    compiled: whoever comes from the event loop awaits :func:`read_apart` before. A page of one lesson asks
    :func:`lesson_of`, and a list :func:`outlines`.
    """
    with _LOCK:
        now = _now()
        if "all" not in _READ or _READ["all"][0] != now:
            paths: set[Path] = set()

            def read_one(path: Path) -> Lesson:
                paths.add(path)
                return _lesson(path)

            found = load_all(read=read_one)
            for path in set(_FILES) - paths:
                _FILES.pop(path, None)
            more = [problem for lesson in found.lessons.values() for problem in problems(lesson)]
            _READ["all"] = (now, Library(found.lessons, (*found.problems, *more)))
        return _READ["all"][1]


def already_read() -> Library | None:
    """The same where it has been read and no file has changed since."""
    before = _READ.get("all")
    return before[1] if before is not None and before[0] == _now() else None


async def read_apart() -> Library:
    """The same, read in a thread: the loop is for the open pages meanwhile, and the next call finds it read."""
    return await asyncio.get_running_loop().run_in_executor(_READER, library)


def lesson_of(key: str) -> Lesson | None:
    """The lesson with this key; None where there is none. Raises :class:`LessonError` where its file is broken.

    It makes no other lesson's experiments. A caller in the event loop awaits :func:`lesson_apart` before.
    """
    return find(key, read=_lesson)


async def lesson_apart(key: str) -> None:
    """Read a lesson and all outlines in a thread, if there is such a lesson: the next calls find them read."""

    def read_both() -> None:
        outlines()
        with suppress(LessonError):
            lesson_of(key)

    await asyncio.get_running_loop().run_in_executor(_READER_OF_ONE, read_both)


def outlines() -> dict[str, Outline]:
    """The outline of each lesson, by key, without those known to be broken. No experiment is made."""
    return _outlines()[0]


def known_problems() -> tuple[str, ...]:
    """The faults of the lessons' files, as far as they have been read."""
    found = already_read()
    return _outlines()[1] if found is None else found.problems


def _outlines() -> tuple[dict[str, Outline], tuple[str, ...]]:
    errors = _errors()

    def read_one(path: Path) -> Outline:
        if path in errors:
            raise _again(errors[path])
        return outline(path)

    state = (_now(), errors)
    before = _OUTLINES.get("all")
    if before is None or before[0] != state:
        before = _OUTLINES["all"] = (state, load_outlines(read=read_one))
    return before[1]


def _errors() -> dict[Path, LessonError]:
    """The fault of each file that has been read and has not changed since."""
    return {
        path: found
        for path, (state, found) in list(_FILES.items())
        if isinstance(found, LessonError) and state == _state(path)
    }


async def outlines_apart() -> None:
    """Read them in a thread; the next call finds them read."""
    await asyncio.get_running_loop().run_in_executor(_READER_OF_ONE, outlines)


async def own_lessons_apart() -> None:
    """Read a teacher's own lessons in a thread: their author waits for their errors, and the course is longer."""

    def read_own() -> None:
        for folder in folders()[1:]:
            with suppress(OSError):
                for path in paths_of(folder)[:MAX_FILES]:
                    with suppress(LessonError):
                        _lesson(path)

    await asyncio.get_running_loop().run_in_executor(_READER_OF_ONE, read_own)


def _now() -> tuple[Any, ...]:
    return tuple(_stamp(folder) for folder in folders())


def _lesson(path: Path) -> Lesson:
    """The lesson in a file, which is read where it has changed. Raises :class:`LessonError`."""
    state = _state(path)
    known = _FILES.get(path)
    if known is None or known[0] != state:
        known = _FILES[path] = (state, _read_once(path))
    found = known[1]
    if isinstance(found, LessonError):
        raise _again(found)
    return found


def _again(error: LessonError) -> LessonError:
    """The same error, without the frames of where it was raised before."""
    return LessonError(error.file, error.line, error.message)


def _read_once(path: Path) -> Lesson | LessonError:
    try:
        return read_file(path, read)
    except LessonError as error:
        return error


def _stamp(folder: Path) -> tuple[Any, ...]:
    try:
        return (str(folder), *((path.name, _state(path)) for path in paths_of(folder)))
    except OSError:
        return (str(folder),)


def _state(path: Path) -> tuple[int, int] | None:
    """A value that differs when a file has changed; None of one that is gone, or of a link to nowhere."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size


def problems(lesson: Lesson) -> list[str]:
    """Requests of a lesson that the page cannot fulfil: views that do not fit, axes and coordinates."""
    return [f"{lesson.file}:{step.line}: {sentence}" for step in lesson.steps for sentence in _step_problems(step)]


def _step_problems(step: Step) -> list[str]:
    spec, out = step.spec, []
    fitting_views = fitting(spec) if spec is not None else list(VIEWS)
    for key in step.views:
        if key not in VIEWS:
            out.append(f"views = {key!r}: there is no such view; there are: {', '.join(VIEWS)}.")
        elif key not in fitting_views:
            allowed = ", ".join(fitting_views)
            out.append(f"views = {key!r}: it does not fit the step's experiment; allowed are {allowed}.")
    out += [
        f"controls = {name!r}: the page has no widget for it in a lesson." for name in step.controls if name in NOWHERE
    ]
    axes = axes_of(spec) if spec is not None else AXES
    if step.page.get("axis", axes[0]) not in axes:
        out.append(f"page.axis = {step.page['axis']!r}: allowed is one of {', '.join(axes)}.")
    if spec is not None:
        n = len(coordinates(spec))
        if step.page.get("coordinate", 1) > n:
            out.append(f"page.coordinate = {step.page['coordinate']}: allowed is a whole number from 1 to {n}.")
    return out
