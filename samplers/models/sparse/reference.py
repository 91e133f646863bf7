"""The posterior means, variances and draws of a sparse regression, for what methods find to be held against."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.random import SFC64, Generator
from scipy import special, stats

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.sparse.conditionals import sweeps
from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.targets.probit_lasso import potential

PILOT, POINTS = 3000, 2**14
"""Sweeps whose mean and covariance the proposals take, and how many proposals there are."""
MOST_COLUMNS = 8
"""Up to so many importance sampling answers for a probit lasso, whose sweeps are dear."""
SWEEPS, MOST_NUMBERS = 200_000, 2 * 10**8
"""The sweeps of the long run otherwise, and the most numbers that it reads, in some seconds."""
FREEDOM = 8.0
KEPT = 20_000
"""Draws that stay."""


class Regression(Protocol):
    """The regression: a lasso, or a probit lasso."""

    x: Array
    y: Array
    gram: Array
    n_data: int
    shrinkage: float
    probit: bool
    noise_prior: Array


class Reference(NamedTuple):
    """The reference posterior of w."""

    mean: Array
    """(d,)."""
    variance: Array
    """(d,)."""
    draws: Array
    """(draws, d)."""
    how: str
    """In words."""


def reference_of(model: Regression) -> Reference:
    """By importance sampling, or by a long run of blocked Gibbs sampling; both are the same whenever they are made."""
    return _weighted(model) if model.probit and model.x.shape[1] <= MOST_COLUMNS else _long_run(model)


def first_latents(model: Regression) -> tuple[Array, Array, Array, Array, Array]:
    """z, Xᵀz, w, 1/τ² and (σ², zᵀz) before the first sweep: w = 0, and z what it is then on average."""
    d = model.x.shape[1]
    z = np.full(len(model.x), np.sqrt(2 / np.pi)) if model.probit else model.y.copy()
    return z, model.x.T @ z, np.zeros(d), np.ones(d), np.array([1.0, z @ z])


def _blocked(model: Regression, n: int, burn_in: int) -> Array:
    """``n`` draws of w, (n, d), after a burn-in."""
    jit.prepare([sweeps])
    rng = Generator(SFC64(1))
    z, linear, w, precisions, scales = first_latents(model)
    out = np.empty((burn_in + n, len(w)))
    order = np.arange(model.n_data)
    sweeps(
        rng, model.x, model.gram, model.shrinkage, model.probit, True, model.noise_prior, z, order, linear, w,
        precisions, scales, model.n_data, out,
    )  # fmt: skip
    return out[burn_in:]


def _long_run(model: Regression) -> Reference:
    n, d = model.x.shape
    each = n * d if model.probit else d**3 / 3 + 20 * d
    draws = _blocked(model, int(min(SWEEPS, MOST_NUMBERS / each)), 500)
    kept = draws[:: max(len(draws) // KEPT, 1)]
    return Reference(draws.mean(axis=0), draws.var(axis=0), kept, f"{len(draws):,} sweeps of blocked Gibbs")


def _weighted(model: Regression) -> Reference:
    """Student's t with the mean and covariance of a short run, at quasi-random points (Owen's scrambled Sobol)."""
    pilot = _blocked(model, PILOT, 300)
    mean, d = pilot.mean(axis=0), model.x.shape[1]
    root = np.linalg.cholesky(np.atleast_2d(np.cov(pilot.T)))
    points = stats.qmc.Sobol(d + 1, seed=1).random(POINTS)
    normals = special.ndtri(np.clip(points[:, :d], 1e-12, 1 - 1e-12))
    t = normals / np.sqrt(special.chdtri(FREEDOM, points[:, [d]]) / FREEDOM)
    w = mean + t @ root.T
    jit.prepare([potential])
    energy = np.empty(POINTS)
    potential(w, energy, np.concatenate([[model.shrinkage, len(model.x)], model.x.ravel()]))
    weights = special.softmax((FREEDOM + d) / 2 * np.log1p((t**2).sum(axis=1) / FREEDOM) - energy)
    mean = weights @ w
    # Draws that all count alike: each proposal as often as its weight says, in systematic order.
    chosen = np.searchsorted(np.cumsum(weights), (np.arange(KEPT) + 0.5) / KEPT)
    how = f"importance sampling, worth {1 / (weights**2).sum():,.0f} draws"
    return Reference(mean, weights @ (w - mean) ** 2, w[np.minimum(chosen, POINTS - 1)], how)
