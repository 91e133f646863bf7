"""Axes that grow where chains leave them."""

from collections.abc import Iterable

import numpy as np

from app.views.base import Array

SHARE = 0.05
"""Where more of a lane's latest places are outside, it has left the axis; a rare excursion moves nothing."""
GROWTH = 1.5
LENGTHS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.4, 8.0, 10.0, 13.0, 16.0, 20.0, 25.0)
"""The first that holds all: an axis that follows what is seen moves rarely."""
MOST = 30.0
"""An axis becomes at most so many times as long as it was: what blows up has left every axis."""


class Reach:
    """The ends of an axis, which grows about its middle."""

    def __init__(self, low: float, high: float):
        self._middle, self._half = (low + high) / 2, (high - low) / 2
        self.times = 1.0
        """How many times as long it is as it was."""

    @property
    def ends(self) -> Array:
        """Where it begins and ends."""
        return self._middle + self.times * self._half * np.array([-1.0, 1.0])

    def hold(self, lanes: Iterable[Array]) -> bool:
        """Grow, by some more than is needed and for good, until the latest places of every lane (n,) are held. Whether
        it grew.
        """
        before = self.times
        for places in lanes:
            if not places.size:
                continue
            away = self._away(places)
            if np.mean(away > before) > SHARE:
                self.times = min(max(self.times, GROWTH * float(away.max())), MOST)
        return self.times > before

    def follow(self, lanes: Iterable[Array]) -> bool:
        """Be as long as all of the latest places need, their ends (n, 2) of every lane. Whether it changed."""
        before = self.times
        farthest = max((float(self._away(places).max()) for places in lanes if places.size), default=0.0)
        self.times = next((times for times in LENGTHS if times >= farthest), MOST)
        return self.times != before

    def _away(self, places: Array) -> Array:
        """How far they are from the middle, in halves of the axis as it was."""
        return np.asarray(np.abs(places - self._middle) / self._half)
