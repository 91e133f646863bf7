"""Parts of the steps of the methods for clusters in plain Python, which their tests compare with."""

from math import lgamma

import numpy as np
from scipy import stats

from sgmcmc_lab.samplers.models.clusters import sphere_textbook


def posterior(model, points):
    """κ, ν, m, S of a cluster with these points (n, 2), from its sums of squares about the mean."""
    kappa0, nu0, scale = model.prior
    n = len(points)
    mean = points.mean(axis=0) if n else np.zeros(2)
    apart = points - mean
    spread = scale * np.eye(2) + apart.T @ apart + kappa0 * n / (kappa0 + n) * np.outer(mean, mean)
    return kappa0 + n, nu0 + n, n * mean / (kappa0 + n), spread


def next_density(model, points, x):
    """The density of the next point of a cluster with these points."""
    if model.prior.ndim == 2:
        return sphere_textbook.next_density(model, points, x)
    kappa, nu, mean, spread = posterior(model, points)
    return stats.multivariate_t(mean, spread * (kappa + 1) / (kappa * (nu - 1)), df=nu - 1).pdf(x)


def draw(rng, model, points):
    """μ, and the Cholesky factor of Σ⁻¹; on a sphere μ alone."""
    if model.prior.ndim == 2:
        return sphere_textbook.draw(rng, model, points)
    kappa, nu, mean, spread = posterior(model, points)
    a = np.zeros((2, 2))
    a[0, 0] = np.sqrt(2 * rng.standard_gamma(nu / 2))
    a[1, 0] = rng.standard_normal()
    a[1, 1] = np.sqrt(2 * rng.standard_gamma((nu - 1) / 2))
    factor = np.linalg.cholesky(np.linalg.inv(spread)) @ a
    noise = np.array([rng.standard_normal(), rng.standard_normal()])
    mu = mean + np.linalg.solve(factor.T, noise / np.sqrt(kappa))
    return np.array([*mu, factor[0, 0], factor[1, 0], factor[1, 1]])


def density(model, x, cluster):
    """N(x; μ, Σ), or vMF(x; μ, κ)."""
    if model.prior.ndim == 2:
        return sphere_textbook.density(model, x, cluster)
    factor = np.array([[cluster[2], 0.0], [cluster[3], cluster[4]]])
    return stats.multivariate_normal(cluster[:2], np.linalg.inv(factor @ factor.T)).pdf(x)


def pick(rng, weights):
    """A key in proportion to its weight; the weights are summed in their order."""
    left = rng.random() * sum(weights.values())
    for key in weights:
        left -= weights[key]
        if left < 0:
            return key
    return key


def draw_concentration(rng, alpha, n_clusters, n_points):
    """α by the auxiliary η ~ Beta(α + 1, N)."""
    one = rng.standard_gamma(alpha + 1)
    eta = one / (one + rng.standard_gamma(n_points))
    odds = n_clusters / (n_points * (1 - np.log(eta)))
    more = rng.random() < odds / (1 + odds)
    return rng.standard_gamma(n_clusters + more) / (1 - np.log(eta))


def log_evidence(model, points):
    """log p(points), one after another."""
    return sum(np.log(next_density(model, points[:i], points[i])) for i in range(len(points)))


def proposals(mean, rng):
    """A whole number next to this mean, with this mean."""
    below = int(mean)
    return below + (rng.random() >= 1 - (mean - below))


def split_or_merge(rng, model, state):
    """One proposal, of which the accepted ones change z."""
    x, z, alpha = model.x, state.z, state.alpha[0]
    i, j = int(rng.random() * len(x)), int(rng.random() * (len(x) - 1))
    j += j >= i
    split = z[i] == z[j]
    free = int(np.flatnonzero(np.bincount(z, minlength=len(state.known)) == 0)[0]) if split else z[j]
    rest = [int(k) for k in np.flatnonzero((z == z[i]) | (z == z[j])) if k not in (i, j)]
    sides, chance = ([i], [j]), 1.0
    for t in range(len(rest)):
        at = t + int(rng.random() * (len(rest) - t))
        rest[t], rest[at] = rest[at], rest[t]
        k = rest[t]
        left, right = (len(side) * next_density(model, x[side], x[k]) for side in sides)
        goes_right = 1 - rng.random() < right / (left + right) if split else z[k] == z[j]
        chance *= (right if goes_right else left) / (left + right)
        sides[bool(goes_right)].append(k)
    parts = [lgamma(len(side)) + log_evidence(model, x[side]) for side in (*sides, sides[0] + sides[1])]
    gain = np.log(alpha) + parts[0] + parts[1] - parts[2] - np.log(chance)
    if rng.standard_exponential() >= (-gain if split else gain):
        z[sides[1]] = free if split else z[i]


def known(model, z, n_slots):
    """The statistics of each slot: n, Σx, and of Gaussians Σx₁², Σx₁x₂, Σx₂²."""
    if model.prior.ndim == 2:
        return np.array([[(z == k).sum(), *model.x[z == k].sum(axis=0)] for k in range(n_slots)])
    out = np.zeros((n_slots, 6))
    for k in range(n_slots):
        x = model.x[z == k]
        out[k] = len(x), *x.sum(axis=0), (x[:, 0] ** 2).sum(), (x[:, 0] * x[:, 1]).sum(), (x[:, 1] ** 2).sum()
    return out


def finish(model, state):
    """The end of every step."""
    state.known[:] = known(model, state.z, len(state.known))
    z = state.z[model.shown]
    state.together += z[:, None] == z
    state.steps += 1
