"""An energy that somebody drew, as a formula that can be typed."""

from math import ceil, log10
from typing import Any

import numpy as np
from scipy.interpolate import make_smoothing_spline

from sgmcmc_lab.samplers.parameters import MAX_FORMULA, SpecError
from sgmcmc_lab.samplers.targets.base import Array

MOST_POINTS = 1000
"""The most points of a curve that is read."""
FEWEST = 5
"""Points apart from each other, of which a spline can be made."""
_CELLS = 100
"""Along the curve; of all points in a cell their mean is taken, so that a hand may go to and fro."""
_SMOOTH = 1e-7
"""The weight of the spline's curvature for each point, where the curve goes from −1 to 1: waves shorter than a
fifteenth of the curve are a hand's trembling."""
_BUMPS = range(2, 15)
"""How many may stand on the parabola."""
_GOOD = 0.01
"""No more of them are taken than come this near to the spline, as a share of its range."""
_OUTER = 1.12
"""Where the first and the last bump stand, in halves of the curve's width from its middle."""
_STEEP = 6.0
"""How steep the parabola is at least at both ends, in units of energy for half of the curve's width."""
_FLAT = 0.1
"""A curve of a smaller range than this is as good as level."""


def energy_through(points: Array) -> str:
    """A confining energy U(theta) through points (n, 2), θ and U, of a curve that somebody drew.

    A smoothing spline through the points is written as k(θ − m)² + c + Σ_j a_j e^{−b(θ − t_j)²}, with the a_j by least
    squares. The parabola has the curve's height at both ends, and is no less steep there than the curve and than 6 for
    half of its width. So beyond the ends U goes on as the curve did there and soon rises, and e^{−U} has a finite
    integral whatever was drawn. The text is within the bounds of what can be typed.

    Raises :class:`~samplers.parameters.SpecError` where that is no curve.
    """
    if points.ndim != 2 or points.shape[1] != 2 or not FEWEST <= len(points) <= MOST_POINTS:
        raise SpecError("curve", f"{len(points):,} points", f"allowed are {FEWEST} to {MOST_POINTS:,} points, θ and U")
    if not np.isfinite(points).all():
        raise SpecError("curve", "a point that is not finite", "allowed are finite numbers")
    theta, u = points.T
    low, width = theta.min(), np.ptp(theta)
    cells = np.unique(np.floor((theta - low) / max(width, 1e-300) * _CELLS), return_inverse=True)[1].ravel()
    counts = np.bincount(cells)
    if len(counts) < FEWEST:
        allowed = f"allowed is a curve from one side to the other, with {FEWEST} points or more apart"
        raise SpecError("curve", f"{len(counts)} points apart", allowed)
    theta, u = (np.bincount(cells, values) / counts for values in (theta, u))
    middle, half = (theta[0] + theta[-1]) / 2, (theta[-1] - theta[0]) / 2
    spline = make_smoothing_spline((theta - middle) / half, u, lam=_SMOOTH * len(u))
    return _written(spline, float(middle), float(half))


def _written(spline: Any, middle: float, half: float) -> str:
    """The formula for a spline of t from −1 to 1, where θ = middle + half t."""
    inside = np.linspace(-1, 1, 201)
    curve, (left, right) = spline(inside), spline.derivative()([-1.0, 1.0])
    scale = max(float(np.ptp(curve)), _FLAT)
    # The parabola is k t² + tilt t + …
    tilt = (curve[-1] - curve[0]) / 2
    k = max(max(right, _STEEP) - tilt, max(-left, _STEEP) + tilt) / 2
    bend, vertex = float(f"{k / half**2:.3g}"), _rounded(middle - half * tilt / (2 * k), half / 1000)
    ends = middle + half * np.array([-1.0, 1.0])
    height = _rounded(float((curve[[0, -1]] - bend * (ends - vertex) ** 2).mean()), scale / 1000)
    rest = curve - bend * (middle + half * inside - vertex) ** 2 - height
    turns = [left, right] - 2 * bend * half * (ends - vertex)
    out = np.linspace(0, 3, 21)[1:]
    best, least = "", np.inf
    for n in _BUMPS:
        # Beyond the ends what is left over the parabola goes on as it was, and is soon nothing.
        apart = 2 * _OUTER / (n - 1)
        beyond = apart * out * np.exp(-((out / 1.5) ** 2))
        t = np.concatenate([-1 - apart * out, inside, 1 + apart * out])
        wanted = np.concatenate([-turns[0] * beyond, rest, turns[1] * beyond])
        weights = np.where(np.abs(t) <= 1, 1.0, 0.1)
        narrow = float(f"{1 / (2 * (apart * half) ** 2):.3g}")
        centres = [_rounded(middle + half * x, apart * half / 50) for x in np.linspace(-_OUTER, _OUTER, n)]
        bumps = np.exp(-narrow * (middle + half * t[:, None] - centres) ** 2)
        # A little is taken off large heights that cancel each other.
        rows = np.vstack([weights[:, None] * bumps, 1e-3 * np.eye(n)])
        found = np.linalg.lstsq(rows, np.append(weights * wanted, np.zeros(n)), rcond=None)[0]
        heights = [_rounded(x, scale / 1000) for x in found]
        text = f"{_shown(bend)}*({_from(vertex)})^2" + (_signed(height) if height else "")
        text += "".join(
            f"{_signed(a)}*exp(-{_shown(narrow)}*({_from(c)})^2)" for a, c in zip(heights, centres, strict=True) if a
        )
        off = float(np.abs(bumps @ heights - wanted)[np.abs(t) <= 1].max()) / scale
        if off < least and len(text) <= MAX_FORMULA:
            best, least = text, off
        if least <= _GOOD:
            break
    return best


def _rounded(x: float, unit: float) -> float:
    """A number in whole tenths, hundredths, …, that are no larger than the unit."""
    return float(round(x, ceil(-log10(unit)))) + 0.0


def _shown(x: float) -> str:
    return repr(float(x)).removesuffix(".0")


def _signed(x: float) -> str:
    return f"{'-' if x < 0 else '+'}{_shown(abs(x))}"


def _from(x: float) -> str:
    """θ − x."""
    return f"theta{'-' if x > 0 else '+'}{_shown(abs(x))}" if x else "theta"
