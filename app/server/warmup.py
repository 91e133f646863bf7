"""Compiling and loading ahead: first what the opening page needs, then everything else.

The functions of the opening page are compiled here, because it waits for them. All else is compiled in another process,
by one server of this computer at a time, and only loaded here.
"""

import errno
import gc
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sgmcmc_lab.app.lesson.course import library, outlines
from sgmcmc_lab.app.state import DEFAULT
from sgmcmc_lab.samplers.compile import jit
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
LOCK = "compiling.lock"
"""A file of the cache, held by the server whose process compiles; the system releases it when that server ends."""
HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
"""The system's answers to the others; any other answer is that it locks no file there."""


def compile_all() -> None:
    """Compile or load every kernel; a first start on a machine says what it does."""
    step_back()
    began = time.perf_counter()
    first = [*(f for spec in DEFAULT.runs() for f in functions(spec)), *jit.readings()]
    new = bool(jit.missing(first))
    if new:
        _tell("the samplers are compiled, which takes a few minutes; the page opens meanwhile")
    # A page of a lesson lists the others.
    outlines()

    def progress(done: int, total: int, what: str) -> None:
        if what and time.perf_counter() - began > 2.0:
            _say(what)

    jit.prepare(first, progress)
    compile_apart()
    jit.prepare(jit.declared(), progress)
    if new:
        _tell("all samplers are compiled")
    # Every experiment of the course is made, which takes seconds that no page should have to wait for.
    library()
    # Objects loaded so far stay, and the collector need not visit them each time.
    gc.collect()
    gc.freeze()


def compile_apart() -> None:
    """Have what was never compiled on this machine compiled by a process, or wait until that of another server has.

    Nothing is done where no process could leave it to another. The caller compiles functions that are missing at the
    end.
    """
    if jit.FOLDER is None:
        return
    while jit.missing():
        try:
            with _alone(jit.FOLDER / LOCK) as mine:
                if mine:
                    _run()
                    return
        except OSError as error:
            log.warning("No process compiles ahead, so the server compiles all: %s", error)
            return
        time.sleep(LOOK_SECONDS)


def _run() -> None:
    """One process that compiles, to its end; it ends with this one, for it reads what this one never writes."""
    command = [sys.executable, "-m", "sgmcmc_lab.app.server.compiling"]
    environment = {**os.environ, "SGMCMC_LAB_CACHE": str(jit.FOLDER.parent)} if jit.FOLDER else None
    # In a session of its own it is not asked to stop by the terminal, and is quiet when the server is.
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, start_new_session=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            _say(line.decode(errors="replace").strip())
    if process.returncode:
        log.warning(
            "The process that compiles ahead ended with code %d; the server compiles the rest", process.returncode
        )


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


def _say(what: str) -> None:
    _tell(f"compiling {what}")


def _tell(what: str) -> None:
    print(f"First start on this machine: {what}", file=sys.stderr, flush=True)
