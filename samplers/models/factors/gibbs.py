"""Sparse factor analysis with an Indian buffet process, by Gibbs sampling (Knowles & Ghahramani 2011)."""

from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from numba import types
from numpy.random import Generator
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.average import LaterAverage
from sgmcmc_lab.samplers.models.factors.method import FactorsMethod, Found
from sgmcmc_lab.samplers.models.factors.model import Factors
from sgmcmc_lab.samplers.parameters import Count
from sgmcmc_lab.samplers.targets.base import Array

SLOTS = 100
"""The most factors. The prior is the process given that there are no more: with many columns it has a few."""
CONCENTRATION_PRIOR = SLAB_PRIOR = 1.0, 1.0
"""Shape and rate of α and of λ, the precision of a loading that is not 0."""


@jit.helper
def _draw_factors(rng, y, loadings, precision, x, n_used):
    """x given all loadings: N(A⁻¹Gᵀy/σ², A⁻¹) of each row, A = I + GᵀG/σ² = LLᵀ."""
    n_columns, n_rows = y.shape
    lower = np.zeros((n_used, n_used))
    for i in range(n_used):
        for j in range(i + 1):
            total = 1.0 if i == j else 0.0
            for d in range(n_columns):
                total += precision * loadings[d, i] * loadings[d, j]
            for m in range(j):
                total -= lower[i, m] * lower[j, m]
            lower[i, j] = sqrt(total) if i == j else total / lower[j, j]
    # Forwards L v = Gᵀy/σ², then a standard normal to each, backwards Lᵀx = v.
    for i in range(n_used):
        row = x[i]
        row[:] = 0.0
        for d in range(n_columns):
            scale = precision * loadings[d, i]
            if scale != 0:
                for t in range(n_rows):
                    row[t] += scale * y[d, t]
        for m in range(i):
            scale = lower[i, m]
            for t in range(n_rows):
                row[t] -= scale * x[m, t]
        for t in range(n_rows):
            row[t] /= lower[i, i]
    for i in range(n_used):
        for t in range(n_rows):
            x[i, t] += rng.standard_normal()
    for i in range(n_used - 1, -1, -1):
        row = x[i]
        for m in range(i + 1, n_used):
            scale = lower[m, i]
            for t in range(n_rows):
                row[t] -= scale * x[m, t]
        for t in range(n_rows):
            row[t] /= lower[i, i]


@jit.loop(
    types.void(jit.rng_type, jit.matrix, jit.matrix, jit.matrix, jit.integers, jit.vector, jit.matrix, types.boolean)
)
def sweep(rng, y, loadings, x, used, scales, priors, learned):
    """Draw everything once from its conditional, in place. y (D, N), loadings (D, SLOTS), x (SLOTS, N).

    ``used`` (1,) is how many slots are taken, the first ones; ``scales`` is (1/σ², λ, α), ``priors`` their shapes and
    rates (3, 2); 1/σ² moves where it is ``learned``.
    """
    n_columns, n_rows = y.shape
    n_slots = len(x)
    precision, slab, alpha = scales
    _draw_factors(rng, y, loadings, precision, x, used[0])
    squares, counts = np.zeros(n_slots), np.zeros(n_slots, np.int64)
    for k in range(used[0]):
        for t in range(n_rows):
            squares[k] += x[k, t] ** 2
        for d in range(n_columns):
            counts[k] += loadings[d, k] != 0
    left = np.empty(n_rows)
    fresh, fresh_x = np.empty(n_slots), np.empty((n_slots, n_rows))
    loss = 0.0
    for d in range(n_columns):
        g = loadings[d]
        left[:] = y[d]
        for k in range(used[0]):
            if g[k] != 0:
                for t in range(n_rows):
                    left[t] -= g[k] * x[k, t]
        # The factors that other columns have.
        for k in range(used[0]):
            others = counts[k] - (g[k] != 0)
            if others == 0:
                continue
            if g[k] != 0:
                for t in range(n_rows):
                    left[t] += g[k] * x[k, t]
            pull, stiff = 0.0, precision * squares[k] + slab
            for t in range(n_rows):
                pull += precision * x[k, t] * left[t]
            odds = log(others / (n_columns - others)) + 0.5 * log(slab / stiff) + 0.5 * pull * pull / stiff
            g[k] = 0.0
            # Beyond 700 e^odds is no number.
            if rng.random() * (1 + exp(-max(odds, -700.0))) < 1:
                g[k] = pull / stiff + rng.standard_normal() / sqrt(stiff)
                for t in range(n_rows):
                    left[t] -= g[k] * x[k, t]
            counts[k] = others + (g[k] != 0)
        # Those that this column has alone: other ones are proposed by the prior, and their x by its conditional, so
        # that the likelihood without x decides. It depends on Σg² alone.
        n_new = rng.poisson(alpha / n_columns)
        alone, before = 0, 0.0
        for k in range(used[0]):
            if counts[k] == 1 and g[k] != 0:
                alone += 1
                before += g[k] ** 2
                for t in range(n_rows):
                    left[t] += g[k] * x[k, t]
        if n_new + alone > 0:
            after = total = 0.0
            for j in range(min(n_new, n_slots)):
                fresh[j] = rng.standard_normal() / sqrt(slab)
                after += fresh[j] ** 2
            for t in range(n_rows):
                total += left[t] ** 2
            old, new = 1 / precision + before, 1 / precision + after
            gain = -0.5 * n_rows * log(new / old) - 0.5 * total * (1 / new - 1 / old)
            if used[0] - alone + n_new <= n_slots and log(1 - rng.random()) < gain:
                for j in range(n_new):
                    for t in range(n_rows):
                        fresh_x[j, t] = rng.standard_normal()
                for t in range(n_rows):
                    rest = left[t] + rng.standard_normal() / sqrt(precision)
                    for j in range(n_new):
                        rest -= fresh[j] * fresh_x[j, t]
                    for j in range(n_new):
                        fresh_x[j, t] += fresh[j] * rest / new
                # The slots of the old ones are taken by the last.
                k = 0
                while k < used[0]:
                    if counts[k] == 1 and g[k] != 0:
                        used[0] -= 1
                        last = used[0]
                        x[k], squares[k], counts[k] = x[last], squares[last], counts[last]
                        loadings[:, k] = loadings[:, last]
                        loadings[:, last] = 0.0
                        x[last] = 0.0
                    else:
                        k += 1
                for j in range(n_new):
                    k = used[0]
                    x[k], g[k], counts[k], squares[k] = fresh_x[j], fresh[j], 1, 0.0
                    for t in range(n_rows):
                        squares[k] += x[k, t] ** 2
                    used[0] += 1
            for k in range(used[0]):
                if counts[k] == 1 and g[k] != 0:
                    for t in range(n_rows):
                        left[t] -= g[k] * x[k, t]
        for t in range(n_rows):
            loss += left[t] ** 2
    total, active, harmonic = 0.0, 0, 0.0
    for d in range(n_columns):
        harmonic += 1 / (d + 1)
        for k in range(used[0]):
            active += loadings[d, k] != 0
            total += loadings[d, k] ** 2
    if learned:
        scales[0] = rng.standard_gamma(priors[0, 0] + 0.5 * n_rows * n_columns) / (priors[0, 1] + 0.5 * loss)
    scales[1] = rng.standard_gamma(priors[1, 0] + 0.5 * active) / (priors[1, 1] + 0.5 * total)
    scales[2] = rng.standard_gamma(priors[2, 0] + used[0]) / (priors[2, 1] + harmonic)


@dataclass
class GibbsState:
    """The last draw, and the average over draws."""

    loadings: Array
    """(D, SLOTS): 0 where a column does not have the factor."""
    x: Array
    """(SLOTS, N)."""
    used: NDArray[np.int64]
    """How many slots are taken, (1,)."""
    scales: Array
    """1/σ², λ and α, (3,)."""
    average: LaterAverage
    """The average of the covariance."""


class FactorsGibbs(FactorsMethod):
    """Nonparametric sparse factor analysis (Knowles & Ghahramani 2011), whose loadings have either sign.

    Y = G X + noise with G_dk ~ z_dk N(0, 1/λ) + (1 − z_dk) δ₀, z ~ IBP(α), x ~ N(0, I); α, λ ~ Gamma(1, 1); the noise
    is the model's. Update: X; then column by column z_dk with its loading integrated out, the loading, and a proposal
    of other factors that the column has alone, accepted by the likelihood without their x; then λ, α, 1/σ².
    Invariant distribution: the posterior of that model, exactly, given that there are at most 100 factors; it is
    another model than that of the variational methods, and has no K.
    """

    key = "factors_gibbs"
    title = "NSFA by Gibbs"
    update = (
        r"\begin{aligned}x_n &\sim \mathcal N\bigl(A^{-1}G^\top y_n/\sigma^2, A^{-1}\bigr),\quad A = I + G^\top G/\sigma^2\\"
        r"\frac{P(z_{dk}=1)}{P(z_{dk}=0)} &= \frac{m_{-d,k}}{D-m_{-d,k}}\sqrt{\frac{\lambda}{s}}\,e^{b^2/2s},\quad "
        r"s = \lambda + \frac{x_k^\top x_k}{\sigma^2},\quad b = \frac{x_k^\top e_d}{\sigma^2},\quad "
        r"g_{dk}\sim\mathcal N(b/s, 1/s)\\ \kappa_d &\sim \mathrm{Poisson}(\alpha/D)\text{ of its own, or not}\end{aligned}"
    )
    source = "Knowles & Ghahramani 2011"
    compiled = (sweep,)

    start_factors = Count(
        10,
        bounds=(0, 50),
        label="Factors at the start",
        doc="The number of random factors at the start; afterwards the posterior determines the number.",
    )

    def start(self, model: Factors, rng: Generator) -> GibbsState:
        """Random factors that explain half of the variance, each in half of the columns."""
        d, k = model.n_columns, int(self.start_factors)
        half = model.total_variance / d / 2
        loadings = np.zeros((d, SLOTS))
        loadings[:, :k] = rng.standard_normal((d, k)) * (rng.random((d, k)) < 0.5) * np.sqrt(2 * half / max(k, 1))
        filled = np.flatnonzero(loadings.any(axis=0))
        loadings[:, : len(filled)] = loadings[:, filled]
        loadings[:, len(filled) :] = 0.0
        precision = 1 / (model.known_noise or half)
        scales = np.array([precision, 1.0, 1.0])
        state = GibbsState(
            loadings, np.zeros((SLOTS, model.n_data)), np.array([len(filled)]), scales, LaterAverage(d * d)
        )
        state.average.next()[:] = self._covariance(state).ravel()
        return state

    def advance(self, model: Factors, state: GibbsState, rng: Generator) -> int:
        """One sweep."""
        priors = np.array([model.noise_prior, SLAB_PRIOR, CONCENTRATION_PRIOR])
        sweep(
            rng,
            model.columns_of_y,
            state.loadings,
            state.x,
            state.used,
            state.scales,
            priors,
            model.known_noise is None,
        )
        if not np.isfinite(state.scales).all():
            raise FloatingPointError("A scale is no longer finite.")
        state.average.next()[:] += self._covariance(state).ravel()
        return model.n_data

    @staticmethod
    def _covariance(state: GibbsState) -> Array:
        g = state.loadings[:, : state.used[0]]
        return g @ g.T + np.eye(len(g)) / state.scales[0]

    def covariance(self, model: Factors, state: GibbsState) -> Array:
        """The mean over the later draws."""
        return state.average.mean().reshape(model.n_columns, -1)

    def found(self, model: Factors, state: GibbsState) -> Found:
        """The last draw."""
        g = state.loadings[:, : state.used[0]]
        return Found(g, (g**2).sum(axis=0), float(1 / state.scales[0]), np.empty(0))

    tried_at = ({}, {"start_factors": 0})

    def textbook_step(self, rng, model, state):
        y, (precision, slab, alpha) = model.y.T, state.scales
        d, n = y.shape
        g, x = textbook_factors(rng, y, state.loadings[:, : state.used[0]].copy(), precision)
        for i in range(d):
            for k in range(g.shape[1]):
                m = np.count_nonzero(g[:, k]) - (g[i, k] != 0)
                if m == 0:
                    continue
                g[i, k] = 0.0
                s, b = precision * x[k] @ x[k] + slab, precision * x[k] @ (y[i] - g[i] @ x)
                odds = m / (d - m) * np.sqrt(slab / s) * np.exp(min(b * b / (2 * s), 700))
                if rng.random() * (1 + 1 / odds) < 1:
                    g[i, k] = b / s + rng.standard_normal() / np.sqrt(s)
            g, x = textbook_alone(rng, y[i], g, x, i, precision, slab, rng.poisson(alpha / d))
        k, active = g.shape[1], np.count_nonzero(g)
        if model.known_noise is None:
            shape, rate = model.noise_prior
            precision = rng.standard_gamma(shape + n * d / 2) / (rate + ((y - g @ x) ** 2).sum() / 2)
        slab = rng.standard_gamma(1 + active / 2) / (1 + (g**2).sum() / 2)
        alpha = rng.standard_gamma(1 + k) / (1 + (1 / np.arange(1, d + 1)).sum())
        state.scales[:], state.used[0] = (precision, slab, alpha), k
        state.loadings[:], state.x[:] = 0.0, 0.0
        state.loadings[:, :k], state.x[:k] = g, x
        state.average.next()[:] += (g @ g.T + np.eye(d) / precision).ravel()
        return n

    def textbook_unknowns(self, model, state):
        return state.loadings[:, : state.used[0]]


def textbook_factors(rng, y, g, precision):
    """The loadings, and the factors given them."""
    a = np.eye(g.shape[1]) + precision * g.T @ g
    noise = np.array([[rng.standard_normal() for _ in y[0]] for _ in g[0]]).reshape(len(a), y.shape[1])
    return g, np.linalg.solve(a, precision * g.T @ y) + np.linalg.inv(np.linalg.cholesky(a)).T @ noise


def textbook_alone(rng, y, g, x, i, precision, slab, n_new):
    """The factors that column i has alone are others, or stay."""
    alone = (g[i] != 0) & (np.count_nonzero(g, axis=0) == 1)
    if n_new + alone.sum() == 0:
        return g, x
    new = np.array([rng.standard_normal() for _ in range(n_new)]) / np.sqrt(slab)
    rest = y - g[i, ~alone] @ x[~alone]
    before, after = (1 / precision + (some**2).sum() for some in (g[i, alone], new))
    gain = -len(y) / 2 * np.log(after / before) - (rest**2).sum() / 2 * (1 / after - 1 / before)
    if np.log(1 - rng.random()) >= gain:
        return g, x
    drawn = np.array([[rng.standard_normal() for _ in y] for _ in new]).reshape(n_new, len(y))
    noise = np.array([rng.standard_normal() for _ in y]) / np.sqrt(precision)
    drawn += np.outer(new, rest + noise - new @ drawn) / after
    order, k = list(range(g.shape[1])), 0
    while k < len(order):
        if alone[order[k]]:
            order[k] = order[-1]
            order.pop()
        else:
            k += 1
    columns = np.zeros((len(g), n_new))
    columns[i] = new
    return np.hstack([g[:, order], columns]), np.vstack([x[order], drawn])
