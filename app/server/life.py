"""How the server's processes end: in order when they are asked to, and each with the one that began it."""

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import cache
from io import FileIO
from types import FrameType
from typing import IO

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop

PATIENCE = 5.0
"""Seconds in which a process that was asked to end does so; after them it is ended."""
ASKS = (signal.SIGINT, signal.SIGTERM)
"""The signals of Ctrl-C in a terminal and of the server's operator."""


def when_done(stream: IO[bytes], end: Callable[[], None]) -> None:
    """Call ``end`` when the stream has come to its end, as a pipe does with the last process that may write to it."""

    def wait() -> None:
        stream.read()
        end()

    threading.Thread(target=wait, name="end", daemon=True).start()


def end_soon() -> None:
    """End this process, whatever it is doing, once it has had the time to end in order."""
    timer = threading.Timer(PATIENCE, os._exit, (0,))
    timer.daemon = True
    timer.start()


_asked = threading.Event()
"""Whether this process was asked to end."""


@cache
def begin() -> None:
    """Must run before the server is made: until it has an event loop, a process that is asked to end does so at once.

    Exit handlers of others, registered later, run before those registered here; then Python would take seconds to free
    one by one what the libraries hold. Panel runs the hooks twice: registered again, these would run before the others.
    """
    atexit.register(_end)
    _leave_when_asked()


def _leave_when_asked() -> None:
    def leave(number: int, frame: FrameType | None) -> None:
        _asked.set()
        sys.exit(0)

    for number in ASKS:
        signal.signal(number, leave)


def _end() -> None:
    if _asked.is_set():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def stop_on_signals(loop: IOLoop) -> None:
    """From now on this process, asked to end, stops its event loop, and with that its server."""

    def stop() -> None:
        _asked.set()
        end_soon()
        loop.stop()

    for number in ASKS:
        if sys.platform == "win32":
            signal.signal(number, lambda *_: loop.asyncio_loop.call_soon_threadsafe(stop))
        else:
            loop.asyncio_loop.add_signal_handler(number, stop)


class Serving(HTTPServer):
    """Tornado's server, whose processes end with the one that began them."""

    def start(self, num_processes: int | None = 1, max_restarts: int | None = None) -> None:
        """With several processes, this one only starts the others, and restarts those that fail.

        It holds the one end of a pipe, of which they read the other. Asked to end, it releases it, and waits for them
        as :func:`tornado.process.fork_processes` does; ended in another way, the system releases it.
        """
        if num_processes == 1:
            super().start(1)
            return
        reading, writing = os.pipe()
        held = [writing]

        def let_go(number: int, frame: FrameType | None) -> None:
            _asked.set()
            while held:
                os.close(held.pop())

        for number in ASKS:
            signal.signal(number, let_go)
        super().start(num_processes, max_restarts)
        # From here on it is one of the others.
        _leave_when_asked()
        os.close(writing)
        when_done(FileIO(reading), _ask_itself)


def _ask_itself() -> None:
    end_soon()
    os.kill(os.getpid(), signal.SIGTERM)
