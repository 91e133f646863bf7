"""Clusters on a sphere in plain Python, by SciPy's Bessel function, which the tests of their methods compare with."""

import numpy as np
from scipy import special


def log_c(dim, r):
    """log of the normaliser of vMF on the unit vectors of ``dim`` numbers."""
    order = dim / 2 - 1
    return order * np.log(r) - dim / 2 * np.log(2 * np.pi) - np.log(special.ive(order, r)) - r


def resultant(model, points):
    """R = κ₀m + κ Σx."""
    return model.kappa0 * model.prior_mean + model.kappa * points.sum(axis=0)


def next_density(model, points, x):
    """C(κ) C(‖R‖)/C(‖R + κx‖)."""
    found = resultant(model, points)
    lengths = np.linalg.norm(found), np.linalg.norm(found + model.kappa * x)
    return np.exp(log_c(len(x), model.kappa) + log_c(len(x), lengths[0]) - log_c(len(x), lengths[1]))


def density(model, x, mu):
    """C(κ) e^{κ μ·x}."""
    return np.exp(log_c(len(x), model.kappa) + model.kappa * mu @ x)


def draw(rng, model, points):
    """μ ~ vMF(R/‖R‖, ‖R‖) by Wood (1994): its part w along R, then a tangent direction."""
    found = resultant(model, points)
    n, r = len(found) - 1, np.linalg.norm(found)
    b = (np.sqrt(4 * r**2 + n**2) - 2 * r) / n
    x0 = (1 - b) / (1 + b)
    while True:
        one, two = rng.standard_gamma(n / 2), rng.standard_gamma(n / 2)
        z = one / (one + two)
        w = (1 - (1 + b) * z) / (1 - (1 - b) * z)
        bound = r * x0 + n * np.log(1 - x0**2)
        if r * w + n * np.log(1 - x0 * w) - bound >= -rng.standard_exponential():
            break
    across = rng.standard_normal(n + 1)
    across -= across @ found / r**2 * found
    return w * found / r + np.sqrt(1 - w**2) * across / np.linalg.norm(across)
