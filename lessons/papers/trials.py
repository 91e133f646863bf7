"""The common part of the commands about the batch size: trials of the sizes (Smolyakov, Liu & Fisher, Algorithm 1), and
their R̂.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.models.batch_size import choose_batch_size
from sgmcmc_lab.samplers.targets.base import Array


@dataclass(frozen=True)
class Trials:
    """The cost of an independent draw with each batch size."""

    sizes: NDArray[np.int64]
    """Falling, from all on."""
    taus: Array
    seconds: Array
    """The measured time of a sweep with each size."""

    @property
    def costs(self) -> Array:
        """f(m) over that of all."""
        costs = self.seconds * self.taus
        return np.asarray(costs / costs[0])

    @property
    def chosen(self) -> int:
        """The size with the smallest f(m)."""
        return choose_batch_size(self.sizes, self.seconds * self.taus)

    def seconds_of(self, size: int) -> float:
        """The time of a sweep with one of the sizes."""
        return float(self.seconds[list(self.sizes).index(size)])

    @property
    def weights(self) -> tuple[float, float]:
        """w_z and w_θ in seconds: a line through the seconds of all sizes, each counted by its relative error."""
        design = np.column_stack([self.sizes, np.ones(len(self.sizes))]) / self.seconds[:, None]
        local, overall = np.linalg.lstsq(design, np.ones(len(self.sizes)), rcond=None)[0]
        return float(local), float(overall)

    def __str__(self) -> str:
        lines = [f"  {'m':>5} {'τ':>8} {'µs a sweep':>11} {'f(m) over f of all':>19}"]
        for size, tau, each, cost in zip(self.sizes, self.taus, self.seconds, self.costs, strict=True):
            mark = "  chosen" if size == self.chosen else ""
            lines.append(f"  {size:5} {tau:8.4g} {1e6 * each:11.3g} {cost:19.3g}{mark}")
        return "\n".join(lines)


def rhat(draws: Array) -> float:
    """The largest R̂ of any column, eq (23), of draws (chains, n, columns). A column that varies nowhere does not count;
    one that varies between the chains only has an infinite one.
    """
    n = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    between = n * draws.mean(axis=1).var(axis=0, ddof=1)
    moves = within + between > 0
    with np.errstate(divide="ignore"):
        found = np.sqrt((n - 1) / n + between[moves] / (n * within[moves]))
    return float(found.max(initial=0.0))
