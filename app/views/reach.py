"""Axes that grow where chains leave them for good."""

from collections.abc import Iterable

import numpy as np

from app.views.base import Array

SHARE = 0.05
"""Where more of a lane's latest places are outside, it has left the axis; a rare excursion moves nothing."""
GROWTH = 1.5
MOST = 30.0
"""An axis becomes at most so many times as long as it was: what blows up has left every axis."""


class Reach:
    """The ends of an axis. It grows about its middle, by some more than is needed, and never shrinks."""

    def __init__(self, low: float, high: float):
        self._middle, self._half = (low + high) / 2, (high - low) / 2
        self.times = 1.0
        """How many times as long it is as it was."""

    @property
    def ends(self) -> Array:
        """Where it begins and ends."""
        return self._middle + self.times * self._half * np.array([-1.0, 1.0])

    def hold(self, lanes: Iterable[Array]) -> bool:
        """Grow until the latest places of every lane (n,), or their ends (n, 2), are held. Whether it grew."""
        before = self.times
        for places in lanes:
            if not places.size:
                continue
            away = np.abs(places - self._middle).reshape(len(places), -1).max(axis=1) / self._half
            if np.mean(away > before) > SHARE:
                self.times = min(max(self.times, GROWTH * float(away.max())), MOST)
        return self.times > before
