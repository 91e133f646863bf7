"""How benchmarks are measured: works in turns within one process, so that a busy machine slows all of them alike."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

CHAINS = (1, 4)
UNCOUNTED = 10**9
"""A burn-in longer than any benchmark: no statistics are kept."""


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    seconds: float
    """The seconds of one measurement."""
    rounds: int


FULL, QUICK = Effort(0.2, 7), Effort(0.02, 3)


@dataclass(frozen=True)
class Requirement:
    """A ratio that the engine must reach, or a time that it must not exceed."""

    name: str
    measured: float | None
    needed: float
    at_most: bool = False

    @property
    def met(self) -> bool | None:
        """None where the peer is not installed."""
        if self.measured is None:
            return None
        return self.measured <= self.needed if self.at_most else self.measured >= self.needed


Work = Callable[[int], None]
"""work(n) makes n steps."""


Clock = Callable[[], float]
"""Seconds of the wall; or, where all is done in this thread, its own of the processor, whatever else runs."""


def in_turns(
    works: dict[str, tuple[Work, int]], effort: Effort, clock: Clock = time.perf_counter
) -> dict[str, list[float]]:
    """Chain-steps a second in each round, of each (work, chains), measured in turns."""
    steps = {name: (work, _calibrate(work, effort.seconds), n) for name, (work, n) in works.items()}
    return rounds(steps, effort.rounds, clock)


def rounds(works: dict[str, tuple[Work, int, int]], n: int, clock: Clock = time.perf_counter) -> dict[str, list[float]]:
    """The rate of each (work, steps, made in a step) per second, in each of ``n`` rounds; in turns."""
    rates: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(n):
        for name, (work, steps, made) in works.items():
            began = clock()
            work(steps)
            rates[name].append(steps * made / (clock() - began))
    return rates


def _calibrate(work: Work, seconds: float) -> int:
    n = 64
    while True:
        work(n)  # what compiles for this n does so here
        began = time.perf_counter()
        work(n)
        took = time.perf_counter() - began
        if took >= seconds / 2:
            return n
        n = int(n * min(16.0, max(2.0, seconds / max(took, 1e-9))))


def ratio_of(rates: dict[str, list[float]], above: str, below: str) -> float:
    """The median over rounds of the ratio of two rates."""
    return statistics.median(a / b for a, b in zip(rates[above], rates[below], strict=True))
