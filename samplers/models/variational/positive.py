"""The common part of the variational methods and MAP: positive parameters, and the trace of the ELBO."""

from array import array

import numpy as np

from sgmcmc_lab.samplers.models.base import Snapshot
from sgmcmc_lab.samplers.targets.base import Array

MAX_TRACE = 400


def softplus(theta: Array) -> Array:
    """log(1 + e^θ), which is positive; its slope is 1 − e^{−softplus}."""
    return np.logaddexp(0.0, theta)


def softplus_inverse(x: Array) -> Array:
    """The θ whose softplus is x > 0."""
    return x + np.log(-np.expm1(-x))


def log_softplus(theta: Array) -> Array:
    """The logarithm of softplus, which far below zero is θ itself."""
    return np.where(theta < -30, theta, np.log(softplus(np.maximum(theta, -30))))


def trace(values: array, name: str = "elbo") -> Snapshot:
    """One value a step as a curve: means over at most MAX_TRACE ranges of steps, and the step at which each ends."""
    every = np.array(values)
    ends = np.unique(np.linspace(0, len(every), min(MAX_TRACE, len(every)) + 1).astype(np.int64))
    if len(every) == 0:
        return {f"{name}_steps": ends[1:], name: every}
    return {f"{name}_steps": ends[1:], name: np.add.reduceat(every, ends[:-1]) / np.diff(ends)}
