"""How often a page may press a button of its room."""

import time

PRESSES, PRESSES_AT_ONCE = 5.0, 30.0
"""In a second, and at once; others are passed over. For a page of the lab to follow takes the server 6 ms."""


class Presses:
    """The presses that one page has left."""

    def __init__(self) -> None:
        self._left, self._last = PRESSES_AT_ONCE, time.monotonic()

    def take(self) -> bool:
        """Count one more press; whether it is within the bound."""
        now = time.monotonic()
        self._left = min(PRESSES_AT_ONCE, self._left + PRESSES * (now - self._last))
        self._last = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
