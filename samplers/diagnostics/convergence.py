"""R-hat and effective sample sizes, as ArviZ has them (Vehtari et al. 2021)."""

from typing import NamedTuple

import numpy as np

from samplers.targets.base import Array

TAIL_PROBABILITY = 0.05
"""The tail ESS is the smaller one of the 5 % and the 95 % quantile's."""


class Convergence(NamedTuple):
    """How well the chains agree. A value that the draws cannot give is nan."""

    rhat: float
    """Rank-normalised split R-hat, the larger one of bulk and folded; needs two chains."""
    ess_bulk: float
    """Effective draws for the centre, of those in the history."""
    ess_tail: float
    """Effective draws for the tails, of those in the history."""


def summary(history: Array, column: int) -> Convergence:
    """R-hat, bulk and tail ESS of one column of draws (chains, draws, columns), by arviz-stats.

    nan for fewer than four draws, for draws that are not finite and for chains in which nothing ever moved.
    """
    from arviz_stats.base import array_stats

    draws = history[..., column]
    nan = float("nan")
    if draws.shape[1] < 4 or not np.isfinite(draws).all() or (draws == draws[:, :1]).all():
        return Convergence(nan, nan, nan)
    return Convergence(
        rhat=float(array_stats.rhat(draws)) if len(draws) > 1 else nan,
        ess_bulk=float(array_stats.ess(draws, method="bulk")),
        ess_tail=float(array_stats.ess(draws, method="tail", prob=TAIL_PROBABILITY)),
    )
