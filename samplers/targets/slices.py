"""Draws of a density of any scale by slice sampling: from them other modes are looked for."""

from collections.abc import Callable

import numpy as np

from sgmcmc_lab.samplers.targets.base import Array

_DOUBLINGS = 80
"""Times that a slice is made twice as wide at most: to 10²⁴ of its first width."""
_SHRINKS = 200
"""Times that a slice is made narrower at most, until a point of it is above the height."""


def draws(log_density: Callable[[Array], Array], start: Array, n: int, sweeps: int, rng: np.random.Generator) -> Array:
    """Nearly draws of e^{log_density}, (n, dim), after so many sweeps of ``n`` chains from one place, (dim,).

    In a sweep each coordinate in turn is drawn uniformly from an interval that reaches out of the slice above a random
    height on both sides, and shrinks towards the old point (Neal 2003, section 4, without the test of figure 6: the
    draws are where to look, and no answers). A density that does not fall off is left at a width of 10²⁴.
    """
    theta = np.tile(np.asarray(start, dtype=float), (n, 1))
    chains = np.arange(n)

    def at(i: int, value: Array) -> Array:
        moved = theta.copy()
        moved[:, i] = value
        with np.errstate(all="ignore"):
            found = np.broadcast_to(log_density(moved), (n,))
        return np.where(np.isnan(found), -np.inf, found)

    for _ in range(sweeps):
        for i in range(theta.shape[1]):
            old = theta[:, i].copy()
            height = at(i, old) - rng.exponential(size=n)
            width = np.ones(n)
            low, high = old - width * rng.random(n), old + width
            for _ in range(_DOUBLINGS):
                below, above = at(i, low) > height, at(i, high) > height
                if not (below.any() or above.any()):
                    break
                low, high = np.where(below, old - 2 * (old - low), low), np.where(above, old + 2 * (high - old), high)
            value, waits = old.copy(), np.ones(n, dtype=bool)
            for _ in range(_SHRINKS):
                tried = low + (high - low) * rng.random(n)
                good = waits & (at(i, np.where(waits, tried, value)) > height)
                value, waits = np.where(good, tried, value), waits & ~good
                if not waits.any():
                    break
                low, high = np.where(waits & (tried < old), tried, low), np.where(waits & (tried >= old), tried, high)
            theta[chains, i] = value
    return theta
