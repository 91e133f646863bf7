"""Compiling and loading ahead: first what the opening page needs, then everything else."""

import gc
import logging
import sys
import time

from app.state import DEFAULT
from samplers import jit
from samplers.engine import functions
from samplers.threads import step_back

log = logging.getLogger("sgmcmc-lab")


def compile_all() -> None:
    """Compile or load every kernel; a first start on a machine says what it does."""
    step_back()
    began = time.perf_counter()
    first = [f for spec in DEFAULT.runs() for f in functions(spec)]

    def progress(done: int, total: int, what: str) -> None:
        if what and time.perf_counter() - began > 2.0:
            print(f"First start on this machine: compiling {what} ({done + 1} of {total})", file=sys.stderr, flush=True)

    jit.prepare(first, progress)
    jit.prepare(jit.declared(), progress)
    # What is loaded now stays, and need not be looked at each time.
    gc.collect()
    gc.freeze()
