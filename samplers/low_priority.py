"""Low-priority threads."""

import os
import sys
import threading

NICENESS = 5
"""How much nicer workers are than the process. A thread that is five steps nicer gets a third of the time where it and
another one want one core.
"""


def step_back() -> None:
    """Let the process's own thread go before this one, where the system knows priorities of threads."""
    if sys.platform == "linux":
        own = os.getpriority(os.PRIO_PROCESS, os.getpid())
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(own + NICENESS, 19))
