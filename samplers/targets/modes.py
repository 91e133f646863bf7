"""The modes of a density, looked for from many places, from the likely twins of each, and in a scan of its range."""

import itertools
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.ndimage import minimum_filter

from sgmcmc_lab.samplers.targets import newton
from sgmcmc_lab.samplers.targets.base import Array, Tell
from sgmcmc_lab.samplers.targets.bfgs import bfgs

HIGH = 25.0
"""A mode whose energy is higher than the lowest by more has next to no mass: e⁻²⁵ of it, were it as wide."""
MAX_WORK = 2 * 10**9
"""Instructions of all climbs, some 4 seconds in the background, and as many of a scan."""
MAX_CLIMBS, MAX_MODES = 2_000, 1_000
_CALL = 10_000
"""The further cost of an energy and its gradient besides their own, in the same unit."""
MAX_SCANNED = {1: 200_000, 2: 250_000}
"""The most points of a scan, by dimension. In more dimensions their distances would be too large to see anything."""
_FROM_SCAN = 500
"""The most points of a scan from which climbs begin: the lowest of those that are lower than their neighbours."""
_ON_LINE = 401
"""Points along each coordinate at which a mode's neighbours are looked for."""
_AROUND = 30.0
"""Standard deviations on both sides of the first mode which a scan has points in, however wide the prior is."""
_SIGNS = 4
"""The most coordinates of which all changes of signs are tried; of more those of one, of two, and of all."""
_SAME = 0.1
"""The largest distance of two climbs' ends that are one mode, in standard deviations of either."""
_NEAR = 0.5
"""A start that is so near to a mode, in its standard deviations, and not higher than the highest, leads there."""
_HOPELESS = 1e4
"""The end of a climb whose energy is higher than the lowest by more is far from any mode that counts."""
_BESIDE = 1e-2
"""Where a climb ends without a curvature, points so far beside it are looked at, in standard deviations of the first
mode."""
_MAX_EDGES = 16
"""The most ends of climbs without a curvature that are kept."""


class Mode(NamedTuple):
    """A highest point of the density."""

    place: Array
    energy: float
    curvature: Array
    """U″ there, or where U has none what stands for it, (dim, dim)."""


class Search(NamedTuple):
    """The result of a search for modes."""

    modes: list[Mode]
    """The highest first."""
    edges: list[Mode]
    """Ends of climbs where U has no minimum with a curvature, as at an edge of the density."""
    climbs: int
    scanned: int
    low: Array
    """The range in which modes were looked for, (dim,)."""
    high: Array
    ended: bool
    """Whether every place was climbed from."""


class Landscape(NamedTuple):
    """A density, as a search sees it."""

    energies: Callable[[Array], Array]
    """U at θ (n, dim), (n,); inf where the density is 0."""
    at: newton.At
    """U and its gradient at θ (dim,)."""
    curvature: Callable[[Array], Array]
    work: int
    """Instructions of an energy and its gradient."""
    known: list[Array]
    """Modes that are known, the highest first."""
    factor: Array
    """A triangular L with LLᵀ the inverse curvature at the first of them."""


def images(place: Array) -> Array:
    """Places where a mode is likely to have a twin: with other signs, or with two coordinates exchanged, (n, dim)."""
    dim = len(place)
    sizes = range(1, dim + 1) if dim <= _SIGNS else (1, 2, dim)
    found = []
    for size in sizes:
        for flipped in itertools.combinations(range(dim), size):
            found.append(place.copy())
            found[-1][list(flipped)] *= -1
    for i, j in itertools.combinations(range(dim), 2):
        found.append(place.copy())
        found[-1][[i, j]] = place[[j, i]]
    return np.array(found)


def _along(energies: Callable[[Array], Array], place: Array, low: Array, high: Array) -> Array:
    """Points on lines through a mode along each coordinate that are lower than both neighbours, (n, dim)."""
    found = [np.empty((0, len(place)))]
    for i in range(len(place)):
        line = np.tile(place, (_ON_LINE, 1))
        line[:, i] = np.linspace(low[i], high[i], _ON_LINE)
        energy = energies(line)
        found.append(
            line[1:-1][(energy[1:-1] < energy[:-2]) & (energy[1:-1] <= energy[2:]) & np.isfinite(energy[1:-1])]
        )
    return np.concatenate(found)


def scan(land: Landscape, places: Array) -> tuple[Array, int]:
    """Points (n, dim) of a grid over the range of ``places`` that are lower than all neighbours, the lowest first, and
    how many points the grid has.

    Along each coordinate a third of the lines is evenly spread over the range, a third lies evenly between neighbouring
    places, and a third around the first mode, so that neither a far place nor a narrow mode hides what else there is.
    """
    dim = places.shape[1]
    points = min(MAX_SCANNED[dim], MAX_WORK // land.work)
    third = max(int(points ** (1 / dim)) // 3, 3)
    spreads = np.sqrt((land.factor**2).sum(axis=1))
    lines = []
    for i in range(dim):
        among = np.unique(places[:, i])
        centre, reach = land.known[0][i], _AROUND * spreads[i]
        parts = (
            np.linspace(among[0], among[-1], third),
            np.interp(np.linspace(0, len(among) - 1, third), np.arange(len(among)), among),
            np.linspace(centre - reach, centre + reach, third),
        )
        lines.append(np.unique(np.concatenate(parts)))
    grid = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1)
    energy = land.energies(grid.reshape(-1, dim)).reshape(grid.shape[:-1])
    lower = np.flatnonzero((minimum_filter(energy, size=3, mode="nearest") == energy) & np.isfinite(energy))
    order = np.argsort(energy.ravel()[lower], kind="stable")[:_FROM_SCAN]
    return grid.reshape(-1, dim)[lower[order]], energy.size


def search(land: Landscape, afar: Array, tell: Tell) -> Search:
    """Climb from the known modes, from ``afar`` (n, dim), from points of a scan in one or two dimensions, and from the
    likely twins of each mode that is found, each time in coordinates in which the first mode is like that of N(0, I).
    """
    spent, climbs, ended = 0, 0, True
    places = np.vstack([afar, *land.known])
    low, high = places.min(axis=0), places.max(axis=0)
    tell("The exact answer: looking for modes", None)
    scanned, points = scan(land, places) if len(low) in MAX_SCANNED and len(afar) else (np.empty((0, len(low))), 0)
    inverse = np.linalg.inv(land.factor)
    origin = land.known[0]
    rough = np.diag((_ON_LINE / np.maximum(high - low, np.sqrt((land.factor**2).sum(axis=1)))) ** 2)
    modes, edges = list[Mode](), list[Mode]()

    def at(theta: Array) -> tuple[float, Array]:
        nonlocal spent
        spent += land.work + _CALL
        return land.at(theta)

    def whitened(z: Array) -> tuple[float, Array]:
        height, slope = at(origin + land.factor @ z)
        return height, land.factor.T @ slope

    waiting = deque([*land.known, *afar, *scanned])
    while waiting:
        if spent > MAX_WORK or climbs >= MAX_CLIMBS or len(modes) >= MAX_MODES:
            ended = False
            break
        start = waiting.popleft()
        if among(start, modes, _NEAR) and land.energies(start[None])[0] >= modes[0].energy:
            continue
        if climbs % 16 == 0:
            tell("The exact answer: looking for modes", None)
        climbs += 1
        with np.errstate(all="ignore"):
            end = bfgs(whitened, inverse @ (start - origin), jac=True, gtol=1e-6, maxiter=100)
            place, energy = origin + land.factor @ end.x, float(end.fun)
        if not (np.isfinite(energy) and np.isfinite(place).all()) or among(place, modes):
            continue
        if modes and energy > modes[0].energy + _HOPELESS:
            continue
        curvature = land.curvature(place)
        factor = newton.inverse_factor(curvature) if newton.positive(curvature) else None
        if factor is None and len(edges) >= _MAX_EDGES:
            ended = False
            continue
        polished = newton.climb(at, place, factor)
        if polished.arrived:
            place, energy = polished.place, polished.height
            curvature = land.curvature(place)
        if among(place, modes):
            continue
        if polished.arrived and newton.positive(curvature):
            modes = sorted([*modes, Mode(place, energy, curvature)], key=lambda mode: mode.energy)
            waiting.extend(images(place))
            waiting.extend(_along(land.energies, place, low, high))
            spent += len(place) * _ON_LINE * land.work
            continue
        # A climb that began where the slope is 0 has not moved: on from the lowest point beside it.
        step = _BESIDE * np.sqrt((land.factor**2).sum(axis=1))
        beside = place + np.concatenate([np.diag(step), -np.diag(step)])
        height = land.energies(beside)
        if height.min() < energy:
            waiting.append(beside[height.argmin()])
        elif len(edges) < _MAX_EDGES and not among(place, edges):
            edges.append(Mode(place, energy, rough))
    heights = [mode.energy for mode in (*modes, *edges)]
    modes, edges = ([mode for mode in some if mode.energy < min(heights) + HIGH] for some in (modes, edges))
    return Search(modes, edges, climbs, points, low, high, ended)


def among(place: Array, modes: list[Mode], distance: float = _SAME) -> bool:
    """Whether a place is at one of these modes, in standard deviations of it."""
    if not modes:
        return False
    away = place - np.array([mode.place for mode in modes])
    squares = np.einsum("ni,nij,nj->n", away, np.array([mode.curvature for mode in modes]), away)
    return bool((squares < distance**2).any())
