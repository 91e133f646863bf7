"""Ctrl-C in the middle of compiled functions, and in the processes of a pool."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess
from types import FrameType


@contextmanager
def interruptible() -> Iterator[None]:
    """An interrupt ends this block with KeyboardInterrupt, whichever error reports it.

    Numba reads the functions among a call's arguments through Python objects. An interrupt at that moment is lost, and
    a TypeError of the call takes its place. Nothing changes where the process ignores interrupts, or in another thread.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception as error:
        if interrupted:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def begin_worker() -> None:
    """Prepare a process of a pool: it ignores Ctrl-C, which reaches its parent, too, and ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(parent: BaseProcess | None) -> None:
    if parent is not None:
        parent.join()
        os._exit(1)
