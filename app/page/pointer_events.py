"""Clicks, taps and drags in figures: where chains are to begin and how they are thrown, and what is drawn or moved."""

from collections.abc import Callable, Mapping
from typing import Any

from panel.custom import JSComponent

from sgmcmc_lab.app.page.bundle import ASSETS
from sgmcmc_lab.app.views.base import MOST

FARTHEST = 1e9
"""No axis goes farther."""


class Touch(JSComponent):
    """The invisible component that tells the server what was done with the pointer, in which view, and where."""

    _esm = ASSETS / "touch.js"

    def __init__(self, take: Mapping[str, Callable[[str, list[float]], Any]]):
        """``take`` has for each of what may be done what is called with the view's key and the numbers."""
        super().__init__(width=0, height=0, margin=0, sizing_mode="fixed")
        self._take = take

    def _handle_msg(self, message: Any) -> None:
        if not isinstance(message, list) or len(message) < 3:
            return
        done, key, *given = message
        if not (isinstance(done, str) and isinstance(key, str) and len(given) <= MOST.get(done, 0)):
            return
        if all(isinstance(x, int | float) and not isinstance(x, bool) and abs(x) <= FARTHEST for x in given):
            self._take[done](key, [float(x) for x in given])
