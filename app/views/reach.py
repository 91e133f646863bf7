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
        self._middle, self._first = (low + high) / 2, (high - low) / 2
        self._half = self._first

    @property
    def ends(self) -> Array:
        """Where it begins and ends."""
        return np.array([self._middle - self._half, self._middle + self._half])

    def hold(self, lanes: Iterable[Array]) -> bool:
        """Grow until the latest places of every lane (n,), or their ends (n, 2), are held. Whether it grew."""
        grown = self._half
        for places in lanes:
            if not places.size:
                continue
            away = np.abs(places - self._middle).reshape(len(places), -1).max(axis=1)
            if np.mean(away > self._half) > SHARE:
                grown = max(grown, GROWTH * float(away.max()))
        before, self._half = self._half, min(grown, MOST * self._first)
        return self._half > before
