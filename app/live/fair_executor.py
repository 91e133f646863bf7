"""Threads that all pages share, by the processor time that each has had.

The order is that of start-time fair queueing (Goyal, Vin & Cheng 1996), on two levels: the address that has had least,
and of its pages the one that has. A page that was idle begins where the others are, so nobody saves up. A piece of work
cannot be taken from its thread, and may be a single step of many seconds: after a moment it no longer counts, and
another thread goes on with those who wait; between the two the system decides, which gives each the same time. So an
address has few at a time.
"""

import math
import threading
import time
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from sgmcmc_lab.samplers.low_priority import step_back

P = ParamSpec("P")
T = TypeVar("T")

LONG_SECONDS = 0.1
"""Seconds after which running work no longer blocks others: two frames' steps, which end after .04 s each."""
MOST_LONG = 30
"""The most long pieces of work that run beside the short ones; further ones wait for one to end."""
MOST_OF_ADDRESS = 10
"""The most pieces of work of one address that run at a time: two addresses leave places for a third."""


class FullError(Exception):
    """So much waits for an address that one more would come too late."""


class Share:
    """The processor time that somebody has had of a queue's threads."""

    had = 0.0
    """Seconds of processor, on the queue's clock: of one who came later, what the others had before is in it."""
    asked = 0
    """Pieces of work that wait or run."""


class AddressShare(Share):
    """The time that all pages of an address have had."""

    running = 0
    """Pieces of work that run."""
    least = 0.0
    """The time that its page had had which was served last: one that was idle begins there."""


class ProcessorShare(Share):
    """The time that one page has had; without an address it is the only one of its own."""

    def __init__(self, address: AddressShare | None = None):
        self.address = address or AddressShare()


@dataclass(eq=False)
class Work:
    """A piece of work of a page."""

    share: ProcessorShare
    call: Callable[[], Any]
    number: int
    done: Future[Any] = field(default_factory=Future)
    began: float = 0.0


class Queue:
    """The scheduling policy, without threads; the caller supplies the time."""

    def __init__(self, places: int, most_of_address: int = MOST_OF_ADDRESS, most_waiting: float = math.inf):
        self.places, self._most_of_address, self._most_waiting = places, most_of_address, most_waiting
        self.waiting: list[Work] = []
        self.running: list[Work] = []
        self._least = 0.0
        self._numbers = count()

    def put(self, share: ProcessorShare, call: Callable[[], Any]) -> Work:
        """Let a page's work wait for its turn. Raises :class:`FullError`."""
        address = share.address
        for work in [work for work in self.waiting if work.done.cancelled()]:
            self.waiting.remove(work)
            self._forget(work)
        if address.asked - address.running >= self._most_waiting:
            raise FullError
        for one, least in ((address, self._least), (share, address.least)):
            if not one.asked:
                one.had = max(one.had, least)
            one.asked += 1
        work = Work(share, call, next(self._numbers))
        self.waiting.append(work)
        return work

    def take(self, now: float) -> Work | None:
        """The work that begins now; None where nothing may begin or no place is free."""
        able = [one for one in self.waiting if one.share.address.running < self._most_of_address]
        if not able or self._short(now) >= self.places:
            return None
        # Running work is charged at its end, and counts here already: it may take minutes.
        had = {one.share.address: one.share.address.had for one in able}
        for one in self.running:
            if one.share.address in had:
                had[one.share.address] += now - one.began
        work = min(able, key=lambda one: (had[one.share.address], one.share.had, one.number))
        share, address = work.share, work.share.address
        self.waiting.remove(work)
        self.running.append(work)
        self._least, address.least = max(self._least, address.had), max(address.least, share.had)
        address.running += 1
        work.began = now
        return work

    def end(self, work: Work, cost: float) -> None:
        """It has ended, after so many seconds of processor."""
        self.running.remove(work)
        work.share.address.running -= 1
        self._forget(work, cost)

    def _forget(self, work: Work, cost: float = 0.0) -> None:
        for one in (work.share.address, work.share):
            one.had += cost
            one.asked -= 1

    def due(self, now: float) -> float | None:
        """Seconds until a place becomes free by itself; None where nobody waits for one."""
        if not self.waiting:
            return None
        return min((left for one in self.running if (left := one.began + LONG_SECONDS - now) > 0), default=None)

    def _short(self, now: float) -> int:
        long = sum(now - one.began >= LONG_SECONDS for one in self.running)
        return len(self.running) - min(long, MOST_LONG)


class Pool:
    """The threads of a queue, as many as have work at a time and one more. They end with the process."""

    def __init__(self, places: int, name: str, **bounds: int):
        """``bounds`` are those of :class:`Queue`."""
        self._queue, self._name = Queue(places, **bounds), name
        self._addresses: WeakValueDictionary[str, AddressShare] = WeakValueDictionary()
        """They live as long as a page of theirs."""
        self._changed = threading.Condition()
        self._idle = 0

    def share(self, address: str) -> ProcessorShare:
        """The share of a new page of an address."""
        return ProcessorShare(self._addresses.setdefault(address, AddressShare()))

    def of(self, share: ProcessorShare) -> "Executor":
        """The pool as an executor of an event loop, for the work of one page."""
        return Executor(self, share)

    def submit(self, share: ProcessorShare, call: Callable[[], T]) -> Future[T]:
        """Let work wait for its turn. Raises :class:`FullError`."""
        with self._changed:
            work = self._queue.put(share, call)
            if not self._idle:
                self._begin_thread()
            self._changed.notify()
        return work.done

    def _begin_thread(self) -> None:
        self._idle += 1
        threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _work(self) -> None:
        step_back()
        while True:
            with self._changed:
                while (work := self._queue.take(time.perf_counter())) is None:
                    self._changed.wait(self._queue.due(time.perf_counter()))
                self._idle -= 1
                if not self._idle:
                    # One is always there to see that a piece of work has become long.
                    self._begin_thread()
            before = time.thread_time()
            _carry_out(work)
            with self._changed:
                self._queue.end(work, time.thread_time() - before)
                del work
                self._changed.notify()
                if self._idle > self._queue.places:
                    return
                self._idle += 1


class Executor(futures.Executor):
    """A pool for the work of one page.

    A page keeps its share, never this: from here a way leads to the work of others, and what can be reached from a page
    ends with it.
    """

    def __init__(self, pool: Pool, share: ProcessorShare):
        self._pool, self._share = pool, share

    def submit(self, call: Callable[P, T], /, *args: P.args, **named: P.kwargs) -> Future[T]:
        """Let it be called when it is this page's turn."""
        return self._pool.submit(self._share, lambda: call(*args, **named))


def _carry_out(work: Work) -> None:
    if not work.done.set_running_or_notify_cancel():
        return
    try:
        result = work.call()
    except BaseException as error:
        work.done.set_exception(error)
    else:
        work.done.set_result(result)
