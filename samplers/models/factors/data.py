"""Rows of numbers whose covariance is looked for: made up, those of scikit-learn, or from a file."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers.file_format import GUESSED, Format, Taken
from sgmcmc_lab.samplers.models.clusters import points
from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.targets.tables import table

MADE_COLUMNS, MADE_FACTORS, MADE_NOISE = 50, 10, 0.1
"""D, K and σ² of the made-up data (Knowles 2015, section 4.2)."""
MADE_HELD = 1000
"""Made-up rows that are held out, beside those that the methods see."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of numbers with columns."""

    names: tuple[str, ...]
    """The names of the columns."""
    y: Array
    """(N, columns)."""
    alike: bool = False
    """Whether all columns have one unit, and are scaled by one number."""
    taken: Taken | None = None
    """The format of the file, if they are read from one."""


@dataclass(frozen=True, eq=False)
class Made:
    """Rows whose loadings are known."""

    loadings: Array
    """(D, K): of each number a fifth is uniform on [0, 1], the others are 0."""
    y: Array
    """(N, D)."""
    held: Array
    """(MADE_HELD, D)."""


@lru_cache(8)
def made(n: int, seed: int) -> Made:
    """y = W x + noise with x ~ N(0, I), W from .8 δ₀ + .2 U[0, 1], σ² = .1. Fewer rows are the first of more."""
    of_loadings, of_held, of_rows = (Generator(SFC64([seed, part])) for part in range(3))
    shape = MADE_COLUMNS, MADE_FACTORS
    loadings = of_loadings.random(shape) * (of_loadings.random(shape) < 0.2)

    def rows(rng: Generator, count: int) -> Array:
        both = rng.standard_normal((count, MADE_FACTORS + MADE_COLUMNS))
        return both[:, :MADE_FACTORS] @ loadings.T + MADE_NOISE**0.5 * both[:, MADE_FACTORS:]

    return Made(loadings, rows(of_rows, n), rows(of_held, MADE_HELD))


@lru_cache(1)
def wine() -> Rows:
    """178 wines, by thirteen measurements (Forina et al. 1988)."""
    found = points.wine()
    return Rows(found.names, found.x)


@lru_cache(1)
def digits() -> Rows:
    """1,797 written digits of 8 × 8 pixels, without those that are the same in all (Alpaydin & Kaynak 1998)."""
    pixels = table("factors", "digits.csv.gz", ",", skip=0)[:, :64]
    varies = np.flatnonzero(np.ptp(pixels, axis=0) > 0)
    names = tuple(f"row {k // 8 + 1}, column {k % 8 + 1}" for k in varies)
    return Rows(names, np.ascontiguousarray(pixels[:, varies]), alike=True)


BUILT_IN = {"wine": wine, "digits": digits}


def read(files: Mapping[str, bytes], form: Format = GUESSED) -> Rows:
    """Rows from one table of numbers; a column of known groups is left out.

    Raises :class:`~samplers.files.FileError` with the line and the column.
    """
    found = points.read(files, form)
    return Rows(found.names, found.x, taken=found.taken)
