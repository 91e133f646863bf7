"""Low-priority threads."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

NICENESS = 5
"""How much nicer these threads are than the process. A thread that is five steps nicer gets a third of the time where
it and another one want one core.
"""


def step_back() -> None:
    """Give this thread a lower priority than the process's own, where the system knows priorities of threads."""
    if sys.platform == "linux":
        own = os.getpriority(os.PRIO_PROCESS, os.getpid())
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(own + NICENESS, 19))


def workers(n: int, name: str) -> ThreadPoolExecutor:
    """A pool of ``n`` of them, for what holds an event loop up if the loop does it itself."""
    return ThreadPoolExecutor(max_workers=n, thread_name_prefix=name, initializer=step_back)
