"""Newton's method for the highest point of a density whose coordinates may be in any units.

U and its gradient are all that is known. The curvature is found by differences of the gradient along the columns of L,
where LLᵀ is the inverse curvature so far: in z with θ = x + Lz it is near the unit matrix, so that one difference suits
all coordinates, whatever their units are and however closely they depend on each other.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
At = Callable[[Array], tuple[float, Array]]
"""U and ∂U/∂θ at θ (dim,)."""

_STEP = 1e-3
"""Differences of the gradient are taken this far on both sides, in z."""
ARRIVED, _ROUNDING = 1e-8, 1e-4
"""U may be so far above its minimum, by its gradient and curvature; where its rounding hides what is lower, so far."""
_STEPS, _HALVINGS, _ROUNDS = 120, 40, 8
"""Steps of a climb, halvings of a step, and rounds for the size of a coordinate or the curvature at one place."""
_LEAST, _LONGEST = 1e-14, 1e7
"""The smallest curvature, in units of the largest one, that is told from 0; and its root's inverse."""
_NEAR_ONE = 0.5, 2.0
"""Curvatures in z that need no better L."""
FAR = 3.0, 1e2, 1e4, 1e6
"""Places, in z, at which the density has to fall off."""
_BEYOND = 3
"""From the second of them to the third, and on, every density falls off that has an integral: by 100 at least."""
_FALLS, _GONE = 1.0, 50.0
"""How much U has to rise there, of log 100 = 4.6; and above what the density counts no more."""


class End(NamedTuple):
    """The end of a climb."""

    place: Array
    """(dim,)."""
    height: float
    """U there."""
    factor: Array
    """L with LLᵀ the inverse of U″ there, (dim, dim), where it has arrived; else the last one that was looked for."""
    move: Array
    """Its last move (dim,)."""
    arrived: bool
    """Whether it is a minimum of U, perhaps with directions in which U is flat."""
    steps: int
    """Newton steps that led there."""


def balance(curvature: Array) -> Array:
    """Powers of two (dim,) that give the coordinates units in which they have about the same curvature.

    They are 1 where the curvatures are close enough for rounding to do no harm.
    """
    size = np.diag(curvature)
    if not (np.isfinite(size).all() and size.min() > 0):
        return np.ones(len(curvature))
    unit = 2.0 ** np.round(-np.log2(size) / 2)
    return unit if unit.max() / unit.min() > 1e4 else np.ones(len(curvature))


def triangular(factor: Array) -> Array:
    """The lower triangular L with the same LLᵀ, its diagonal positive."""
    upper = np.linalg.qr(factor.T)[1]
    return np.ascontiguousarray((np.sign(np.diag(upper))[:, None] * upper).T)


def inverse_factor(curvature: Array) -> Array:
    """L, lower triangular, with LLᵀ the inverse of the curvature. Raises ``LinAlgError``."""
    unit = balance(curvature)
    return np.ascontiguousarray(unit[:, None] * np.linalg.cholesky(np.linalg.inv(curvature * np.outer(unit, unit))))


def positive(curvature: Array) -> bool:
    """Whether it is finite, and it and its inverse are positive definite beyond their rounding."""
    if not np.isfinite(curvature).all():
        return False
    unit = balance(curvature)
    if not np.linalg.eigvalsh(curvature * np.outer(unit, unit))[0] > 0:
        return False
    try:
        inverse_factor(curvature)
    except np.linalg.LinAlgError:
        return False
    return True


@np.errstate(all="ignore")
def climb(at: At, start: Array, factor: Array | None = None) -> End:
    """The end point of damped Newton steps on U from ``start``; ``factor`` is L there, where something is known of
    it.
    """
    x = np.array(start, dtype=float)
    height, slope = at(x)
    move = np.zeros_like(x)
    if not (np.isfinite(height) and np.isfinite(slope).all()):
        return End(x, np.inf, np.eye(len(x)), move, False, 0)
    factor = np.diag(_sizes(at, x)) if factor is None else factor
    for step in range(_STEPS):
        factor, signs = _whitened(at, x, factor)
        # The curvatures are ±1 in these coordinates: where U bends down its slope is followed all the same.
        towards = -factor.T @ slope
        decrement, bowl = float(towards @ towards) / 2, signs.min() >= 0
        if decrement < ARRIVED and bowl:
            return End(x, height, factor, move, True, step)
        move, share = factor @ towards, 1.0
        for _ in range(_HALVINGS):
            tried, slope_there = at(x + share * move)
            if np.isfinite(tried) and np.isfinite(slope_there).all() and tried < height - 1e-4 * share * decrement:
                break
            share /= 2
        else:
            # Nothing is lower, beyond rounding.
            return End(x, height, factor, move, decrement < _ROUNDING and bowl, step)
        x, height, slope = x + share * move, tried, slope_there
    return End(x, height, factor, move, False, _STEPS)


def _units(factor: Array) -> Array:
    """A unit for each coordinate (dim,), in which U has the curvature 1 along it."""
    return np.asarray((np.linalg.inv(factor) ** 2).sum(axis=0) ** -0.5)


def _sizes(at: At, x: Array) -> Array:
    """A distance in each coordinate over which U bends by about 1, (dim,)."""
    size = np.ones(len(x))
    for i in range(len(x)):
        bend = np.nan
        for _ in range(_ROUNDS):
            step = np.zeros(len(x))
            step[i] = 0.1 * size[i]
            bend, before = abs(at(x + step)[1][i] - at(x - step)[1][i]) / (2 * step[i]), size[i]
            if not np.isfinite(bend):
                # So far out U is no number.
                size[i] = before / 1e4
                break
            size[i] = np.clip(bend**-0.5 if bend > 0 else np.inf, before / 1e4, before * 1e4)
            if 0.5 < size[i] / before < 2:
                break
        if bend == 0:
            # Flat as far as it is seen.
            size[i] = 1.0
    return size


def _whitened(at: At, x: Array, factor: Array) -> tuple[Array, Array]:
    """L at x, found from ``factor``, and the signs of the curvatures along its columns: 0 where U is flat."""
    signs = np.ones(len(x))
    for _ in range(_ROUNDS):
        bend = np.empty_like(factor)
        for i, direction in enumerate(factor.T):
            bend[i] = (at(x + _STEP * direction)[1] - at(x - _STEP * direction)[1]) @ factor / (2 * _STEP)
        if not np.isfinite(bend).all():
            factor = factor / 10
            continue
        values, vectors = np.linalg.eigh((bend + bend.T) / 2)
        size = np.abs(values)
        flat = size <= _LEAST * size.max()
        signs = np.where(flat, 0.0, np.sign(values))
        close = size.min() > _NEAR_ONE[0] and size.max() < _NEAR_ONE[1]
        factor = factor @ vectors / np.sqrt(np.where(flat, 1.0, size))
        # In units of the curvature along each coordinate no column is longer than rounding lets it be.
        length = np.abs(factor / _units(factor)[:, None]).max(axis=0)
        signs[length > _LONGEST] = 0.0
        factor = factor * np.minimum(_LONGEST / length, 1.0)
        if close or (signs == 0).any():
            break
    return factor, signs


def open_direction(energies: Callable[[Array], Array], end: End, others: Sequence[Array] = ()) -> Array | None:
    """A direction (dim,) in which the density does not fall off, with its parts in units of U's curvature along each
    coordinate; None where none is found.

    Of a minimum it is a column of ±L, or the last move: where U falls ever more slowly, as with separable data, a climb
    arrives. It is also the way to one of the ``others``, the places where other climbs ended: along a flat valley that
    is narrow in the units of L, rounding turns the columns out of it. Of an end that has not arrived it is the last
    move, where U falls on for good.
    """
    directions = [end.move]
    if end.arrived:
        lengths = [
            (way, np.linalg.norm(np.linalg.solve(end.factor, way)))
            for way in (end.move, *(other - end.place for other in others))
        ]
        directions = [*end.factor.T, *-end.factor.T, *(way / length for way, length in lengths if length > 0)]
    for direction in directions:
        with np.errstate(all="ignore"):
            above = energies(end.place + np.array(FAR)[:, None] * direction) - end.height
        # Behind a place where U is infinite or no number there is no density.
        gone = np.flatnonzero(~np.isfinite(above))
        above = np.append(0.0, above[: gone[0]] if len(gone) else above)
        if end.arrived:
            # Of the last rise rounding may be more than that.
            if len(above) > _BEYOND and above.max() < _GONE and np.diff(above)[_BEYOND - 1 :].min() < _FALLS:
                return np.asarray(direction / _units(end.factor))
        elif len(above) == 1 + len(FAR) and (np.diff(above) < 0).all():
            return np.asarray(direction)
    return None
