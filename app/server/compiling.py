"""Compiling ahead, in a process of its own: ``python -m sgmcmc_lab.app.server.compiling``.

The functions of the lessons come first, in the order of the course, then all others. A line for each goes to standard
output. Processes share what is compiled by the files of the cache.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from io import FileIO
from typing import Any

from sgmcmc_lab.app.server.life import when_done
from sgmcmc_lab.lessons.document import LessonError
from sgmcmc_lab.lessons.library import find, load_outlines
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.run import needed

NICENESS = 19
"""Other processes have priority."""
NOT_KEPT = 3
"""The exit code of a process whose work nobody finds in the cache."""


def in_order() -> Iterator[list[Any]]:
    """The functions of each step of each lesson, and then every function.

    A lesson is read when its turn comes: to read one with a typed posterior takes functions that come late.
    """
    importlib.import_module("sgmcmc_lab.samplers.models")
    for key in load_outlines()[0]:
        try:
            lesson = find(key)
        except LessonError:
            continue
        for step in lesson.steps if lesson is not None else ():
            if step.spec is not None:
                yield needed(step.spec)
    yield jit.declared()


def main() -> int:
    """Compile everything, and return the exit code; but not longer than standard input is open or than it is of use.

    It ends with the process that began this one, and where the cache does not keep what it compiles.
    """
    # Without a buffer, whose lock would be asked for when all is compiled and Python ends.
    when_done(FileIO(0, closefd=False), lambda: os._exit(0))
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    for functions in in_order():
        jit.prepare(functions, _say)
        if jit.missing(functions):
            return NOT_KEPT
    return 0


def _say(done: int, total: int, what: str) -> None:
    if what:
        print(what, flush=True)


if __name__ == "__main__":
    sys.exit(main())
