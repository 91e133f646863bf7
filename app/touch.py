"""Clicks and taps in figures: where chains are to begin."""

from collections.abc import Callable
from typing import Any

from panel.custom import JSComponent

from app.bus import ASSETS

MOST = 3
"""Coordinates of a point; those on a globe are three."""
FARTHEST = 1e9
"""No axis goes farther."""


class Touch(JSComponent):
    """The invisible component that tells the server which view was clicked, and where."""

    _esm = ASSETS / "touch.js"

    def __init__(self, take: Callable[[str, list[float]], Any]):
        """``take`` is called with the view's key and the point."""
        super().__init__(width=0, height=0, margin=0, sizing_mode="fixed")
        self._take = take

    def _handle_msg(self, message: Any) -> None:
        if not isinstance(message, list) or not 2 <= len(message) <= 1 + MOST:
            return
        key, *point = message
        numbers = all(isinstance(x, int | float) and not isinstance(x, bool) and abs(x) <= FARTHEST for x in point)
        if isinstance(key, str) and numbers:
            self._take(key, [float(x) for x in point])
