"""R-hat and effective sample sizes, as ArviZ has them (Vehtari et al. 2021)."""

from typing import NamedTuple

import numpy as np

from samplers.targets.base import Array

FEWEST = 4
"""Draws of a chain."""
STILL = 1e-6
"""Chains stand still where the later half of their draws varies by no more than this share of all of them."""
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


def refusal(history: Array, column: int) -> str:
    """Why one column of draws (chains, draws, columns) has no diagnostics, in a few words; empty where it has them.

    Gradient descent ends in chains that stand still, and until then all its chains are one: nothing in them is random.
    """
    draws = history[..., column]
    if draws.shape[1] < FEWEST:
        return "too few draws yet" if draws.shape[1] else "no draws yet"
    if not np.isfinite(draws).all():
        return "draws are not finite"
    later = draws[:, draws.shape[1] // 2 :]
    if np.ptp(later, axis=1).max() <= STILL * np.ptp(draws, axis=1).max():
        return "the chains stand still"
    return "all chains are the same" if len(draws) > 1 and (draws == draws[:1]).all() else ""


def summary(history: Array, column: int) -> Convergence:
    """R-hat, bulk and tail ESS of one column of draws (chains, draws, columns), by arviz-stats.

    nan where :func:`refusal` has a reason.
    """
    from arviz_stats.base import array_stats

    draws = history[..., column]
    nan = float("nan")
    if refusal(history, column):
        return Convergence(nan, nan, nan)
    return Convergence(
        rhat=float(array_stats.rhat(draws)) if len(draws) > 1 else nan,
        ess_bulk=float(array_stats.ess(draws, method="bulk")),
        ess_tail=float(array_stats.ess(draws, method="tail", prob=TAIL_PROBABILITY)),
    )
