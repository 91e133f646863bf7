"""Splits and merges of clusters, whose points are allocated one after another (Dahl 2003), compiled.

A move of many points at once, with w and the clusters' parameters integrated out: single points part a cluster, or join
two, only by way of states that are far less likely. It leaves p(z | α, x) invariant, so that what it
integrates out is drawn after it.
"""

from math import exp, lgamma, log, log1p

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.clusters.family import add, log_evidence, n_known, n_next, next_log_density, predict


@jit.helper
def log_sigmoid(odds):
    """log 1/(1 + e^{−odds})."""
    return min(odds, 0.0) - log1p(exp(-abs(odds)))


@jit.helper
def split_or_merge(rng, x, z, known, prior, alpha):
    """Propose to split the cluster that two random points share, or to merge the two that they are in; in place.

    All other points of these clusters, in random order, join one of the two points with probability ∝ N p(x_i | those
    there so far); of a merge that is how it would be undone. Accepted by Metropolis and Hastings with p(z | α, x).
    """
    n = len(x)
    i, j = int(rng.random() * n), int(rng.random() * (n - 1))
    j += j >= i
    one, other = z[i], z[j]
    split = one == other
    if split:
        other = 0
        while other < len(known) and known[other, 0] > 0:
            other += 1
        if other == len(known):
            return
    whole = known[one] + known[other]
    rest, n_rest = np.empty(int(whole[0]), np.int64), 0
    for k in range(n):
        if (z[k] == one or z[k] == other) and k not in (i, j):
            rest[n_rest] = k
            n_rest += 1
    left, right = np.zeros(n_known(prior)), np.zeros(n_known(prior))
    fit_left, fit_right = np.empty(n_next(prior)), np.empty(n_next(prior))
    add(left, x[i], 1.0, prior)
    predict(left, prior, fit_left)
    add(right, x[j], 1.0, prior)
    predict(right, prior, fit_right)
    goes_right = np.empty(n_rest, np.bool_)
    log_chance = 0.0
    for t in range(n_rest):
        at = t + int(rng.random() * (n_rest - t))
        k = rest[at]
        rest[at] = rest[t]
        rest[t] = k
        odds = log(right[0] / left[0])
        odds += next_log_density(x[k], fit_right, prior) - next_log_density(x[k], fit_left, prior)
        goes_right[t] = log(1 - rng.random()) < log_sigmoid(odds) if split else z[k] == other
        if goes_right[t]:
            log_chance += log_sigmoid(odds)
            add(right, x[k], 1.0, prior)
            predict(right, prior, fit_right)
        else:
            log_chance += log_sigmoid(-odds)
            add(left, x[k], 1.0, prior)
            predict(left, prior, fit_left)
    gain = log(alpha) + lgamma(left[0]) + lgamma(right[0]) - lgamma(whole[0]) - log_chance
    gain += log_evidence(left, prior) + log_evidence(right, prior) - log_evidence(whole, prior)
    if rng.standard_exponential() < (-gain if split else gain):
        return
    known[one] = left if split else whole
    known[other] = right
    if not split:
        known[other] = 0.0
    z[j] = other if split else one
    for t in range(n_rest):
        z[rest[t]] = other if split and goes_right[t] else one
