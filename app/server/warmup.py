"""Compiling and loading ahead: first what the opening page needs, then everything else.

As many processes as there are cores compile, begun by one server of this computer at a time; here functions are only
loaded. A page that needs a function that none of them has begun compiles it in the server.
"""

import errno
import gc
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

from sgmcmc_lab.app.lesson.course import library, outlines
from sgmcmc_lab.app.live.readings import of_figures
from sgmcmc_lab.app.server.compiling import tell
from sgmcmc_lab.app.state import DEFAULT, DEFAULT_VIEWS
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.cache import CLAIMS, LOCK, tidy
from sgmcmc_lab.samplers.engine import functions
from sgmcmc_lab.samplers.low_priority import step_back
from sgmcmc_lab.samplers.stored_files import make_folder, make_way

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

log = logging.getLogger("sgmcmc-lab")

LOOK_SECONDS = 1.0
"""How often a server looks whether another one has done with compiling."""
HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
"""The system's answers to the others; any other answer is that it locks no file there."""


def first_functions() -> list[Any]:
    """The functions of the opening page, the longest first: the loop takes as long as all others of the engine.

    The page moves before the readings of its captions are there.
    """
    before = [*(f for spec in DEFAULT.runs() for f in reversed(functions(spec))), *of_figures(DEFAULT_VIEWS)]
    return list(dict.fromkeys([*before, *jit.readings()]))


@cache
def begin() -> Callable[[], bool]:
    """Have processes compile, where something that the opening page needs was never compiled.

    Returns a function that waits for their end, and is true if there were any.
    """
    first, began = first_functions(), threading.Event()

    def compile_missing() -> None:
        # Of what the page needs later not all is declared yet.
        if jit.missing(first):
            began.set()
            compile_apart(first)

    early = threading.Thread(target=compile_missing, name="compiling first", daemon=True)
    early.start()

    def wait() -> bool:
        early.join()
        return began.is_set()

    return wait


def compile_all() -> None:
    """Compile or load every kernel; a first start on a machine says what it does."""
    step_back()
    first = first_functions()
    new = bool(jit.missing(first))
    if new:
        tell("the samplers are compiled, which takes a few minutes; the page opens meanwhile")
    apart = threading.Thread(target=_compile_rest, args=(first,), name="compiling apart", daemon=True)
    apart.start()
    # A page of a lesson lists the others.
    outlines()
    # One who waits begins with what is compiled last.
    for function in reversed(first):
        while apart.is_alive() and jit.missing([function]):
            time.sleep(jit.LOOK_SECONDS)
        jit.prepare([function], _say)
    apart.join()
    jit.prepare(jit.declared(), _say)
    if new:
        tell("all samplers are compiled")
    # Every experiment of the course is made, which takes seconds that no page should have to wait for.
    library()
    # Objects loaded so far stay, and the collector need not visit them each time.
    gc.collect()
    gc.freeze()
    if jit.FOLDER is not None:
        tidy(jit.FOLDER)


def _compile_rest(first: Sequence[Any]) -> None:
    if not begin()():
        compile_apart(first)


def compile_apart(first: Sequence[Any]) -> None:
    """Have what was never compiled on this machine compiled by processes, or wait until those of another server have.

    Nothing is done where no process could leave it to another. The caller compiles functions that are missing at the
    end.
    """
    if jit.FOLDER is None:
        return
    while jit.missing(first) or jit.missing():
        try:
            with _alone(jit.FOLDER / LOCK) as mine:
                if mine:
                    _run(jit.FOLDER, first)
                    return
        except OSError as error:
            log.warning("No process compiles ahead, so the server compiles all: %s", error)
            return
        time.sleep(LOOK_SECONDS)


def _run(folder: Path, first: Sequence[Any]) -> None:
    """Processes that compile, to their end; they end with this one, for they read what this one never writes."""
    names = [jit.name_of(function) for function in first]
    command = [sys.executable, "-m", "sgmcmc_lab.app.server.compiling", *names]
    environment = {**os.environ, "SGMCMC_LAB_CACHE": str(folder.parent)}
    shutil.rmtree(folder / CLAIMS, ignore_errors=True)
    make_folder(folder / CLAIMS)
    with ExitStack() as stack:
        # In a session of its own it is not asked to stop by the terminal, and is quiet when the server is.
        begun = [
            stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, start_new_session=True)
            )
            for _ in range(os.cpu_count() or 1)
        ]
        with jit.shared(lambda: any(process.poll() is None for process in begun)):
            codes = {process.wait() for process in begun} - {0}
    shutil.rmtree(folder / CLAIMS, ignore_errors=True)
    for code in codes:
        log.warning("A process that compiles ahead ended with code %d; the server compiles the rest", code)


@contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Whether no other process is within this for the same file. Raises OSError where no file can be locked there."""
    make_folder(path.parent)
    make_way(path)
    with path.open("ab") as file:
        try:
            _lock(file)
        except OSError as error:
            if error.errno not in HELD:
                raise
            yield False
        else:
            yield True


def _lock(file: IO[bytes]) -> None:
    """Raises OSError, with one of :data:`HELD`, where another process has it. Closing the file releases it."""
    if sys.platform == "win32":
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _say(done: int, total: int, what: str) -> None:
    if what:
        tell(f"compiling {what}")
