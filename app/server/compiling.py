"""Compiling ahead, in processes of its own: ``python -m sgmcmc_lab.app.server.compiling NAME …``.

The functions of these names come first, then those of the lessons, in the order of the course, then all others. Each is
compiled by the process that claims it first, and told on standard error. Others find it in the cache.
"""

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from io import FileIO
from typing import Any

from sgmcmc_lab.app.server.life import when_done
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.run import needed

NICENESS = 19
"""Other processes have priority."""
NOT_KEPT = 3
"""The exit code of a process whose work nobody finds in the cache."""


def declare_all() -> None:
    """Import the models and the diagnostics: they declare compiled functions, and the engine does not import them."""
    for package in ("models", "diagnostics"):
        importlib.import_module(f"sgmcmc_lab.samplers.{package}")


def in_order(first: Sequence[str] = ()) -> Iterator[list[Any]]:
    """The functions of these names, those of each step of each lesson, and then every function.

    A lesson is read when its turn comes: to read one with a typed posterior takes functions that come late.
    """
    declare_all()
    named = {jit.name_of(function): function for function in jit.declared()}
    yield [named[name] for name in first if name in named]
    # The first ones do not wait for these.
    from sgmcmc_lab.lessons.document import LessonError
    from sgmcmc_lab.lessons.library import find, load_outlines

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
    """Compile what no other process has begun, and return the exit code.

    It ends with the process that began this one, and where the cache does not keep what it compiles.
    """
    # Without a buffer, whose lock would be asked for when all is compiled and Python ends.
    when_done(FileIO(0, closefd=False), lambda: os._exit(0))
    for functions in in_order(sys.argv[1:]):
        for function in jit.missing(functions):
            if jit.claim(function):
                jit.prepare([function], _say)
                if jit.missing([function]):
                    return NOT_KEPT
        # A page waits for the first ones.
        if hasattr(os, "nice"):
            os.nice(NICENESS)
    return 0


def _say(done: int, total: int, what: str) -> None:
    if what:
        tell(f"compiling {what}")


def tell(what: str) -> None:
    """Say it to a person who starts the server."""
    print(f"First start on this machine: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
