"""Threads of workers, which let the event loop go first."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

NICENESS = 5
"""How much nicer workers are than the process. A thread that is five steps nicer gets a third of the time where it and
the loop want one core.
"""


def workers(n: int, name: str) -> ThreadPoolExecutor:
    """A pool of ``n`` threads for what holds the loop up if it does it itself."""
    return ThreadPoolExecutor(max_workers=n, thread_name_prefix=name, initializer=step_back)


def step_back() -> None:
    """Let the loop's thread go before this one, where the system knows priorities of threads."""
    if sys.platform == "linux":
        own = os.getpriority(os.PRIO_PROCESS, os.getpid())
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(own + NICENESS, 19))
