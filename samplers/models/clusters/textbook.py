"""Parts of the steps of the methods for clusters in plain Python, which their tests compare with."""

import numpy as np
from scipy import stats


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
    kappa, nu, mean, spread = posterior(model, points)
    return stats.multivariate_t(mean, spread * (kappa + 1) / (kappa * (nu - 1)), df=nu - 1).pdf(x)


def draw(rng, model, points):
    """μ, and the Cholesky factor of Σ⁻¹."""
    kappa, nu, mean, spread = posterior(model, points)
    a = np.zeros((2, 2))
    a[0, 0] = np.sqrt(2 * rng.standard_gamma(nu / 2))
    a[1, 0] = rng.standard_normal()
    a[1, 1] = np.sqrt(2 * rng.standard_gamma((nu - 1) / 2))
    factor = np.linalg.cholesky(np.linalg.inv(spread)) @ a
    noise = np.array([rng.standard_normal(), rng.standard_normal()])
    mu = mean + np.linalg.solve(factor.T, noise / np.sqrt(kappa))
    return np.array([*mu, factor[0, 0], factor[1, 0], factor[1, 1]])


def density(x, cluster):
    """N(x; μ, Σ)."""
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


def log_gamma(rng, shape):
    """The log of a gamma draw: that of a larger shape times U^{1/shape}."""
    return np.log(rng.standard_gamma(shape + 1)) + np.log(1 - rng.random()) / shape


def known(model, z, n_slots):
    """What is known of each slot: n, Σx, Σx₁², Σx₁x₂, Σx₂²."""
    out = np.zeros((n_slots, 6))
    for k in range(n_slots):
        x = model.x[z == k]
        out[k] = len(x), *x.sum(axis=0), (x[:, 0] ** 2).sum(), (x[:, 0] * x[:, 1]).sum(), (x[:, 1] ** 2).sum()
    return out


def finish(model, state):
    """What every step ends with."""
    state.known[:] = known(model, state.z, len(state.known))
    z = state.z[model.shown]
    state.together += z[:, None] == z
    state.steps += 1
