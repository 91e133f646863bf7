"""The lessons that the server has: read once, and again where a file has changed."""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.threads import workers
from app.views import AXES, VIEWS, axes_of, coordinates, fitting
from lessons import Lesson, Library, Step, load_all
from lessons.lesson import read
from lessons.library import folders, paths_of

NOWHERE = ("n_steps", "burn_in", "thin")
"""Addresses for which the page has no widget: how long something runs is up to the person."""
_LOCK = threading.Lock()
_READ: dict[str, tuple[Any, Library]] = {}
_FILES: dict[Path, tuple[Any, Lesson]] = {}
"""Of each file how it was and the lesson in it: where one of thirty has changed, one is read."""
_READER = workers(1, "lessons")


def library() -> Library:
    """Every lesson, and what is wrong with those that did not load or that name what the page has not.

    The first time it takes seconds, for every experiment is made: whoever comes from the event loop awaits
    :func:`read_apart` before.
    """
    with _LOCK:
        now = tuple(_stamp(folder) for folder in folders())
        if "all" not in _READ or _READ["all"][0] != now:
            before = dict(_FILES)
            _FILES.clear()
            found = load_all(read=lambda path: _lesson(path, before))
            more = [problem for lesson in found.lessons.values() for problem in problems(lesson)]
            _READ["all"] = (now, Library(found.lessons, (*found.problems, *more)))
        return _READ["all"][1]


async def read_apart() -> Library:
    """The same, read in a thread: the loop is for the open pages meanwhile, and the next call finds it read."""
    return await asyncio.get_running_loop().run_in_executor(_READER, library)


def _lesson(path: Path, before: Mapping[Path, tuple[Any, Lesson]]) -> Lesson:
    state = _state(path)
    known = before.get(path)
    found = known if known is not None and known[0] == state else (state, read(path))
    _FILES[path] = found
    return found[1]


def _stamp(folder: Path) -> tuple[Any, ...]:
    try:
        return (str(folder), *((path.name, _state(path)) for path in paths_of(folder)))
    except OSError:
        return (str(folder),)


def _state(path: Path) -> tuple[int, int] | None:
    """What differs when a file has changed; None of one that is gone, or of a link to nowhere."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size


def problems(lesson: Lesson) -> list[str]:
    """What a lesson asks of the page that the page has not: views that do not fit, axes and coordinates."""
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
