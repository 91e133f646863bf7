"""The spy on the server's event loop: ``python -m tests.helpers.loop_spy FILE serve app …`` is ``panel serve app …``
with it.

Each handle of the loop that takes :data:`NOTED` or longer is a line of FILE: its time by the clock, the processor time
of the loop's thread, what was called, and where a second thread saw it. The clock has what else the machine does in
it. So a handle is held to the processor time of its own thread, beside that of a known piece of work in the same run,
and to the lines that wait for another thread: a busy machine stops a handle anywhere, but not at the same such line.
"""

import asyncio
import gc
import json
import linecache
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 0.1
"""The longest time of a handle, in seconds."""
NOTED = 0.03
"""A handle of so many seconds is written down."""
LOOK = 0.01
"""The time between two looks of the second thread."""
DEEP = 60
"""So many calls of a stack are kept, the innermost first."""
WAITS = re.compile(r"\bwith [\w.]+:|\.(acquire|communicate|join|recv|result|wait)\(|\bsleep\(|\bgetaddrinfo\(")
"""The lines that may wait for another thread, a process, a name server or the clock."""
WARM_UP, WARM = "warm-up", "all functions are loaded"
"""The server's thread that loads the compiled functions, and the name of its end."""
CONTROL, CONTROL_SECONDS = "control", 0.5
"""The name of the known piece of work, and the time between two of them."""
STANDARD = 0.011
"""The processor time of the known piece of work on an idle core of the machine for which the limit is meant."""


class Handle(NamedTuple):
    """A call of the loop that took long."""

    began: float
    """By the clock of the day, which the test has, too."""
    wall: float
    cpu: float
    """Seconds of processor of the loop's thread."""
    collected: float
    """Seconds of processor in which Python collected garbage, which are not in ``cpu``: how long that takes depends on
    all open pages, and it comes in whichever handle makes one object too many."""
    what: str
    stacks: list[list[str]]
    """The calls at each look of the second thread, as ``file:line:instruction function``, the innermost first."""

    @property
    def waited(self) -> float:
        """Seconds in which it stood at one line that waits for another thread."""
        at = Counter(stack[0] for stack in self.stacks if stack and WAITS.search(_source(stack[0])))
        return min(max(at.values(), default=0) * LOOK, self.wall - self.cpu - self.collected)

    @property
    def where(self) -> str:
        """The calls of the lab in which it was seen most often, the innermost first."""
        own = [
            " < ".join([one for one in stack if one.startswith(("app", "less", "samp"))][:5]) for stack in self.stacks
        ]
        return Counter(own).most_common(1)[0][0] if own else ""

    def saw(self, part: str) -> bool:
        """Whether a call with this text in it was seen."""
        return any(part in call for stack in self.stacks for call in stack)


class SpiedLoop(asyncio.SelectorEventLoop):
    """An event loop that times what it calls."""

    def __init__(self, path: Path) -> None:
        self._file, self._writing = path.open("a", encoding="utf-8"), threading.Lock()
        self._thread = threading.get_ident()
        self._since: float | None = None
        self.stacks: list[list[str]] = []
        """The calls at each look so far, of the handle that runs."""
        super().__init__()
        threading.Thread(target=self._look, name="spy", daemon=True).start()
        self._collects, self._collected = 0.0, 0.0
        gc.callbacks.append(self._collect)
        self.call_later(CONTROL_SECONDS, self._control)

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        """Asyncio's, with a timed callback; so are the others."""
        return super().call_soon(self._timed(callback), *args, context=context)

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:
        return super().call_soon_threadsafe(self._timed(callback), *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        return super().call_at(when, self._timed(callback), *args, context=context)

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:
        return super().add_reader(fd, self._timed(callback), *args)

    def add_writer(self, fd: Any, callback: Any, *args: Any) -> None:
        return super().add_writer(fd, self._timed(callback), *args)

    def _timed(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            day, busy = time.time(), time.thread_time()
            self.stacks, self._collected = [], 0.0
            self._since = began = time.perf_counter()
            try:
                return callback(*args)
            finally:
                wall, self._since = time.perf_counter() - began, None
                if wall > NOTED:
                    cpu = time.thread_time() - busy - self._collected
                    self._note(Handle(day, wall, cpu, self._collected, _name(callback), self.stacks))

        return timed

    def _collect(self, phase: str, info: Any) -> None:
        if threading.get_ident() == self._thread:
            if phase == "start":
                self._collects = time.thread_time()
            else:
                self._collected += time.thread_time() - self._collects

    def close(self) -> None:
        """Asyncio's; the collector is left."""
        gc.callbacks.remove(self._collect)
        super().close()

    def _control(self) -> None:
        cpu = control()
        self._note(Handle(time.time(), cpu, cpu, 0.0, CONTROL, []))
        self.call_later(CONTROL_SECONDS, self._control)

    def _note(self, handle: Handle) -> None:
        with self._writing:
            self._file.write(json.dumps(handle) + "\n")
            self._file.flush()

    def _look(self) -> None:
        warming = False
        while True:
            time.sleep(LOOK)
            before, warming = warming, any(one.name == WARM_UP for one in threading.enumerate())
            if before and not warming:
                self._note(Handle(time.time(), 0.0, 0.0, 0.0, WARM, []))
            since = self._since
            if since is not None and time.perf_counter() - since > LOOK:
                self.stacks.append(_calls(sys._current_frames().get(self._thread)))


def control() -> float:
    """The processor time of a known piece of work."""
    before, total = time.thread_time(), 0
    for i in range(100_000):
        total += i * i % 7
    return time.thread_time() - before


def _calls(frame: Any) -> list[str]:
    calls: list[str] = []
    while frame is not None and len(calls) < DEEP:
        file = frame.f_code.co_filename.removeprefix(f"{ROOT}{os.sep}")
        calls.append(f"{file}:{frame.f_lineno or 0}:{frame.f_lasti} {frame.f_code.co_name}")
        frame = frame.f_back
    return calls


def _source(call: str) -> str:
    file, line, _ = call.rsplit(" ", 1)[0].rsplit(":", 2)
    # An absolute path stays as it is.
    return linecache.getline(str(ROOT / file), int(line))


def _name(callback: Any) -> str:
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return str(getattr(owner.get_coro(), "__qualname__", owner.get_coro()))
    return str(getattr(callback, "__qualname__", callback))


def read(path: Path) -> list[Handle]:
    """The handles that were written so far."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Handle(*json.loads(line)) for line in lines]


def slowness(handles: Sequence[Handle]) -> float:
    """The processor time of work in this run, in units of that on an idle core of the standard machine."""
    return max(1.0, median([one.cpu for one in handles if one.what == CONTROL] or [STANDARD]) / STANDARD)


def faults(handles: Sequence[Handle], limit: Callable[[Handle], float] = lambda _: LIMIT) -> list[Handle]:
    """The handles that compute for longer than their limit, or wait for another thread for longer than any may."""
    slow = slowness(handles)
    return [one for one in handles if one.cpu > limit(one) * slow or one.waited > LIMIT]


def main(arguments: Sequence[str]) -> None:
    """Serve as Panel does, on a spied loop."""
    asyncio.set_event_loop(SpiedLoop(Path(arguments[0])))
    from panel.command import main as panel

    sys.argv = ["panel", *arguments[1:]]
    panel(sys.argv)


if __name__ == "__main__":
    main(sys.argv[1:])
