"""How well clusters agree with known groups."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]


def table(found: Labels, known: Labels, n_known: int | None = None) -> NDArray[np.float64]:
    """How many points each cluster shares with each group, (clusters, groups); ``n_known`` where there may be more."""
    out = np.zeros((int(found.max()) + 1, int(known.max()) + 1 if n_known is None else n_known))
    np.add.at(out, (found, known), 1.0)
    return out


def purity(found: Labels, known: Labels) -> float:
    """The share of the points that belong to the commonest group of their cluster. Many small clusters are pure."""
    return float(table(found, known).max(axis=1).sum() / len(found))


def adjusted_rand(found: Labels, known: Labels) -> float:
    """The Rand index, adjusted for chance (Hubert & Arabie 1985): 1 where the partitions are the same, 0 on average
    where they are independent. Pairs that are together in both are counted against what chance would give.
    """

    def pairs(counts: Any) -> float:
        return float((counts * (counts - 1)).sum() / 2)

    shared = table(found, known)
    both, rows, columns = pairs(shared), pairs(shared.sum(axis=1)), pairs(shared.sum(axis=0))
    chance = rows * columns / max(pairs(shared.sum()), 1.0)
    most = (rows + columns) / 2
    return 1.0 if most == chance else (both - chance) / (most - chance)
