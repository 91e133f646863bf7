"""Directions, which are points on a sphere: made up with known clusters, of wines, or rows of a file scaled to 1."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import vonmises_fisher

from sgmcmc_lab.samplers.file_format import GUESSED, Format
from sgmcmc_lab.samplers.files import FileError
from sgmcmc_lab.samplers.models.clusters import points
from sgmcmc_lab.samplers.models.clusters.points import Points
from sgmcmc_lab.samplers.targets.own import one_file

MADE_SHARES = (0.3, 0.2, 0.2, 0.15, 0.1, 0.05)
"""The share of the points in each made-up cluster."""
MADE_KAPPA = 40.0
"""The concentration of each."""
MADE_APART = 50.0
"""Degrees that any two of their mean directions are apart, at least."""
SHORTEST = 1e-9
"""A row's length, over that of the longest, below which it has no direction."""


@dataclass(frozen=True, eq=False)
class Directions(Points):
    """Points of length 1."""

    lengths: tuple[float, float] = (1.0, 1.0)
    """The shortest and the longest row before all were scaled to 1."""


def made(n_points: int, seed: int) -> Directions:
    """Points of six clusters on S², whose mean directions, sizes and points are drawn with the seed."""
    rng = np.random.default_rng(seed)
    means: list[np.ndarray] = []
    while len(means) < len(MADE_SHARES):
        mean = rng.standard_normal(3)
        mean /= np.linalg.norm(mean)
        if all(mean @ other < np.cos(np.deg2rad(MADE_APART)) for other in means):
            means.append(mean)
    groups = np.sort(rng.choice(len(means), n_points, p=MADE_SHARES))
    sizes = np.bincount(groups, minlength=len(means))
    drawn = [
        vonmises_fisher(mean, MADE_KAPPA).rvs(n, random_state=rng)
        for mean, n in zip(means, sizes, strict=True)
        if n > 0
    ]
    x = np.concatenate(drawn)
    names = tuple(f"cluster {k + 1}" for k in range(len(means)))
    return Directions(("x", "y", "z"), x / np.linalg.norm(x, axis=1, keepdims=True), groups, names)


def wine() -> Directions:
    """178 wines of three growers: the directions in which they differ from the mean wine, in thirteen standardised
    measurements (Forina et al. 1988).
    """
    found = points.wine()
    x = (found.x - found.x.mean(axis=0)) / found.x.std(axis=0)
    return Directions(found.names, x / np.linalg.norm(x, axis=1, keepdims=True), found.groups, found.group_names)


def read(files: Mapping[str, bytes], form: Format = GUESSED) -> Directions:
    """Directions from one table of numbers, of which one column may hold the known groups.

    Each row is scaled to length 1; a row without a length is refused. Raises :class:`~samplers.files.FileError`.
    """
    found = points.read(files, form)
    name, _ = one_file(files, "The points")
    lengths = np.linalg.norm(found.x, axis=1)
    for row in np.flatnonzero(lengths <= SHORTEST * lengths.max()):
        raise FileError(
            name,
            f"has the length {lengths[row]:.3g} in row {row + 1} of its data, where the longest row has {lengths.max():.3g}",
            "a row of numbers is a direction only if it is not 0",
        )
    return Directions(
        found.names,
        found.x / lengths[:, None],
        found.groups,
        found.group_names,
        found.taken,
        (float(lengths.min()), float(lengths.max())),
    )
