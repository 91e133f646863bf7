"""The family of the clusters, by the dimensions of the prior's array: a vector for Gaussians, a matrix for directions.

Numba compiles a sampler once for each and leaves the other family out of it.
"""

from math import log

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.clusters import normal, von_mises


@jit.helper
def n_known(prior):
    """How many statistics a cluster has."""
    if prior.ndim == 1:
        return normal.KNOWN
    return prior.shape[1] - von_mises.FIRST + 1


@jit.helper
def n_next(prior):
    """How many numbers :func:`predict` writes."""
    if prior.ndim == 1:
        return normal.NEXT
    return prior.shape[1] - von_mises.FIRST + von_mises.MORE


@jit.helper
def add(known, x, sign, prior):
    """Add a point to a cluster's statistics, or take it away."""
    if prior.ndim == 1:
        normal.add(known, x, sign)
    else:
        von_mises.add(known, x, sign)


@jit.helper
def predict(known, prior, out):
    """Write the distribution of a cluster's next point."""
    if prior.ndim == 1:
        normal.predict(known, prior, out)
    else:
        von_mises.predict(known, prior, out)


@jit.helper
def predict_new(prior):
    """The distribution of a new cluster's first point."""
    out = np.empty(n_next(prior))
    predict(np.zeros(n_known(prior)), prior, out)
    return out


@jit.helper
def next_log_density(x, fit, prior):
    """The log density of the next point at x, by what :func:`predict` wrote."""
    if prior.ndim == 1:
        return normal.next_log_density(x, fit)
    return von_mises.next_log_density(x, fit)


@jit.helper
def log_evidence(known, prior):
    """log p(the points of a cluster), with its parameters integrated out, but for what is the same of every cluster."""
    if prior.ndim == 1:
        return normal.log_evidence(known, prior)
    return von_mises.log_evidence(known, prior)


@jit.helper
def draw(rng, known, prior, out):
    """Draw a cluster's parameters given its points."""
    if prior.ndim == 1:
        normal.draw(rng, known, prior, out)
    else:
        von_mises.draw(rng, known, prior, out)


@jit.helper
def log_density(x, cluster, prior):
    """The log density of a drawn cluster."""
    if prior.ndim == 1:
        return normal.log_density(x, cluster)
    return von_mises.log_density(x, cluster, prior)


@jit.helper
def spread(known, cluster, prior):
    """How far a drawn cluster's points are spread, times their number: N tr Σ, or of directions Σ (1 − μ·x)."""
    if prior.ndim == 1:
        return known[0] * normal.squared_size(cluster)
    return von_mises.spread(known, cluster)


@jit.helper
def add_new(x, prior, share, out):
    """Add, in logs, the density of each point of x (M, d) in a new cluster, times its share."""
    fit = predict_new(prior)
    for i in range(len(x)):
        out[i] = np.logaddexp(out[i], log(share) + next_log_density(x[i], fit, prior))
