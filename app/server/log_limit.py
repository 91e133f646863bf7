"""A bound for lines of the log that clients cause, as many as they like: connections, and requests that are none.

Each address has its own, so that nobody who fills the log keeps lines about another one out of it.
"""

import logging
import time
from collections.abc import Callable

from sgmcmc_lab.app.room.network import CALLER

MOST = 10
"""Lines of one kind that an address causes in a minute."""
MOST_OF_ADDRESS = 60
"""Its lines of all kinds: a text with a client's words in it is a kind of its own each time."""
MINUTE = 60.0
MOST_KINDS = 1000
"""Kinds that are counted apart; of more, the one is forgotten that had no line for longest."""
CAUSED = ("sgmcmc-lab.caused", "bokeh.server.views.ws", "tornado.general", "tornado.application")
"""The loggers of what clients cause."""


class LogLimit(logging.Filter):
    """Passes so many lines of one kind and address in a minute; the next one says how many there were beside them.

    A kind is a logger and a text before its values are put in.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        super().__init__()
        self._clock = clock
        self._kinds: dict[tuple[str, ...], tuple[float, int]] = {}
        """Since when lines of each kind and of each address are counted, and how many there were."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written."""
        address = CALLER.get()
        passes, left_out = self._count(MOST, address, record.name, str(record.msg)[:200])
        if passes:
            passes, others = self._count(MOST_OF_ADDRESS, address)
            left_out = max(left_out, others)
        if left_out:
            record.msg = f"{record.msg} (before it, {left_out} such lines were left out)"
        return passes

    def _count(self, most: int, *kind: str) -> tuple[bool, int]:
        """Count a line; whether it is one of the first, and how many the minute before it had beside its own."""
        now, left_out = self._clock(), 0
        began, count = self._kinds.pop(kind, (now, 0))
        if now - began >= MINUTE:
            began, count, left_out = now, 0, max(0, count - most)
        self._kinds[kind] = began, count + 1
        if len(self._kinds) > MOST_KINDS:
            del self._kinds[next(iter(self._kinds))]
        return count < most, left_out


def install() -> None:
    """Limit the lines of the loggers of what clients cause. A second call changes nothing."""
    for name in CAUSED:
        logger = logging.getLogger(name)
        if not any(isinstance(one, LogLimit) for one in logger.filters):
            logger.addFilter(LogLimit())
