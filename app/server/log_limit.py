"""A bound for lines of the log that clients cause, as many as they like: connections, and requests that are none."""

import logging
import time
from collections.abc import Callable

MOST = 10
"""Lines of one kind in a minute."""
MINUTE = 60.0
MOST_KINDS = 1000
"""Kinds that are counted apart; a text with a client's words in it would be a kind of its own each time."""
CAUSED = ("bokeh.server.views.ws", "tornado.general", "tornado.application")
"""The loggers of what clients cause."""


class LogLimit(logging.Filter):
    """Passes so many lines of one kind in a minute; the next one says how many there were beside them.

    A kind is a logger and a text before its values are put in.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        super().__init__()
        self._clock = clock
        self._kinds: dict[tuple[str, str], tuple[float, int]] = {}
        """Since when lines of each kind are counted, and how many there were."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written."""
        kind, now = (record.name, str(record.msg)[:200]), self._clock()
        began, count = self._kinds.pop(kind, (now, 0))
        if now - began >= MINUTE:
            if count > MOST:
                record.msg = f"{record.msg} (before it, {count - MOST} such lines were left out)"
            began, count = now, 0
        self._kinds[kind] = began, count + 1
        if len(self._kinds) > MOST_KINDS:
            del self._kinds[next(iter(self._kinds))]
        return count < MOST


def install() -> None:
    """Limit the lines of the loggers of what clients cause. A second call changes nothing."""
    for name in CAUSED:
        logger = logging.getLogger(name)
        if not any(isinstance(one, LogLimit) for one in logger.filters):
            logger.addFilter(LogLimit())
