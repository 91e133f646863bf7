"""Posterior predictive p-values of a typed model: simulated data against the data (Gelman, Meng & Stern 1996)."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior

STATISTICS: Mapping[str, Callable[..., Any]] = {"mean": np.mean, "sd": np.std, "min": np.min, "max": np.max}
"""The statistics by which data sets are compared."""


def named(target: TypedPosterior, theta: Array) -> dict[str, Array]:
    """The model's parameters (n,) of θ (n, dim), by their names."""
    return {each.name: x for each, x in zip(target.bounded, target.constrained(theta), strict=True)}


def p_value(made: Array, data: Array, statistic: str) -> float:
    """The share of data sets (n, rows) whose statistic is that of the data (rows,) or more."""
    of = STATISTICS[statistic]
    return float(np.mean(of(made, axis=1) >= of(data)))
