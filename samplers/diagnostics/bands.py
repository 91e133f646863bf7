"""Bands that hold a share of the draws of a curve: quantiles at each place, and a smooth line between places."""

import numpy as np
from numba import types
from numpy.typing import ArrayLike

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.targets.base import Array


@jit.helper
def select(values, start, end, k):
    """Move the value that sorting would put at ``k`` there, with none larger before it and none smaller behind it."""
    left, right = start, end - 1
    while left < right:
        pivot, i, j = values[(left + right) // 2], left, right
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            right = j
        elif k >= i:
            left = i
        else:
            break


@jit.reading(types.void(jit.matrix, jit.vector, jit.vector, jit.matrix))
def quantiles_of_draws(values, levels, work, out):
    """Quantiles at ascending ``levels`` of each column of draws (n, columns), linear between draws, out (levels,
    columns). work (n,) is overwritten; nan where a draw is.
    """
    n = values.shape[0]
    for column in range(values.shape[1]):
        known = True
        for i in range(n):
            work[i] = values[i, column]
            known = known and not np.isnan(work[i])
        start = 0
        for level in range(levels.shape[0]):
            out[level, column] = np.nan
            if known:
                place = (n - 1) * levels[level]
                i = int(place)
                share = place - i
                select(work, start, n, i)
                low = high = work[i]
                if i + 1 < n:
                    high = work[i + 1]
                    for j in range(i + 2, n):
                        high = min(high, work[j])
                out[level, column] = high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share
                start = i


@jit.helper
def slope_at_end(near, far, rise, next_rise):
    """The slope at an end by the parabola of three points, held back so that the curve stays monotone."""
    slope = ((2 * near + far) * rise - near * next_rise) / (near + far)
    if slope * rise <= 0:
        return 0.0
    if rise * next_rise <= 0 and abs(slope) > 3 * abs(rise):
        return 3 * rise
    return slope


@jit.reading(types.void(jit.vector, jit.vector, jit.vector, jit.vector, jit.vector))
def monotone_cubic(x, y, at, slopes, out):
    """The piecewise cubic through y at ascending x (n ≥ 3,) that is monotone where y is (Fritsch & Butland 1984), at
    the places ``at``, level beyond the ends. slopes (n,) is overwritten.
    """
    n = x.shape[0]
    for i in range(1, n - 1):
        before, after = x[i] - x[i - 1], x[i + 1] - x[i]
        rise, next_rise = (y[i] - y[i - 1]) / before, (y[i + 1] - y[i]) / after
        slopes[i] = 0.0
        if rise * next_rise > 0:
            one, two = 2 * after + before, after + 2 * before
            slopes[i] = (one + two) / (one / rise + two / next_rise)
    first, second = x[1] - x[0], x[2] - x[1]
    slopes[0] = slope_at_end(first, second, (y[1] - y[0]) / first, (y[2] - y[1]) / second)
    first, second = x[n - 1] - x[n - 2], x[n - 2] - x[n - 3]
    slopes[n - 1] = slope_at_end(first, second, (y[n - 1] - y[n - 2]) / first, (y[n - 2] - y[n - 3]) / second)
    for k in range(at.shape[0]):
        place, i = min(max(at[k], x[0]), x[n - 1]), 0
        while i < n - 2 and place >= x[i + 1]:
            i += 1
        width = x[i + 1] - x[i]
        t, rise = (place - x[i]) / width, (y[i + 1] - y[i]) / width
        curve = slopes[i] + slopes[i + 1] - 2 * rise
        out[k] = y[i] + width * t * (slopes[i] + t * (rise - slopes[i] - curve + t * curve))


def quantiles(values: Array, levels: ArrayLike) -> Array:
    """Quantiles at ascending levels of each column of draws (n, columns), (levels, columns)."""
    jit.prepare([quantiles_of_draws])
    at = np.array(levels, dtype=np.float64)
    out = np.empty((len(at), values.shape[1]))
    quantiles_of_draws(np.ascontiguousarray(values), at, np.empty(len(values)), out)
    return out


def smooth(x: Array, y: Array, at: Array) -> Array:
    """The monotone piecewise cubic through each row of y (rows, n ≥ 3) at ascending x, at the places ``at``, level
    beyond the ends.
    """
    jit.prepare([monotone_cubic])
    out, slopes = np.empty((len(y), len(at))), np.empty(len(x))
    for row, line in zip(np.ascontiguousarray(y), out, strict=True):
        monotone_cubic(x, row, at, slopes, line)
    return out
