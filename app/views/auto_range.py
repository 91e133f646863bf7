"""Axes that grow where chains leave them."""

from collections.abc import Iterable

import numpy as np

from sgmcmc_lab.app.views.base import Array

SHARE = 0.05
"""The share of a lane's latest positions outside, above which it has left the axis; rare excursions move nothing."""
GROWTH = 1.5
LENGTHS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.4, 8.0, 10.0, 13.0, 16.0, 20.0, 25.0)
"""The first that holds all: an axis that follows what is seen moves rarely."""
MOST = 30.0
"""The largest factor by which an axis grows: diverging chains leave every axis."""


class Reach:
    """The ends of an axis, each of which goes away from its middle."""

    def __init__(self, low: float, high: float):
        self._middle, self._half = (low + high) / 2, (high - low) / 2
        self.times = np.ones(2)
        """How many times as far from the middle each is as it was."""

    @property
    def ends(self) -> Array:
        """Its beginning and its end."""
        return self._middle + self.times * self._half * np.array([-1.0, 1.0])

    def hold(self, lanes: Iterable[Array]) -> bool:
        """Grow at both ends, by some more than is needed and for good, until the latest places of every lane (n,) are
        held. Whether it grew.
        """
        before = self.times[0]
        for places in lanes:
            if not places.size:
                continue
            away = np.abs(places - self._middle) / self._half
            if np.mean(away > before) > SHARE:
                self.times[:] = min(max(self.times[0], GROWTH * float(away.max())), MOST)
        return bool(self.times[0] > before)

    def follow(self, lanes: Iterable[Array]) -> bool:
        """Be as long at each end as all of the latest places need, their ends (n, 2) of every lane. Whether it changed.

        Where chains go far down a log axis it does not rise by as many powers of ten, to values that there are none of.
        """
        before, farthest = self.times, np.zeros(2)
        for places in lanes:
            if places.size:
                away = (self._middle - places.min()) / self._half, (places.max() - self._middle) / self._half
                farthest = np.maximum(farthest, away)
        self.times = np.array([next((times for times in LENGTHS if times >= far), MOST) for far in farthest])
        return not np.array_equal(self.times, before)
