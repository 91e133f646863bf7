"""The autocorrelation ρ(t) and the integrated autocorrelation time τ_int = 1 + 2 Σ_{t≥1} ρ(t).

Both come from the multi-level lag sums, pooled over the watched chains: level k looks at every 4ᵏ-th step, so that
lags up to 15·4¹¹ cost the same at step 10⁹ as at step 10³.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numba import types

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.running_statistics import LAG_RATIO, N_LAGS, N_LEVELS, Statistics
from sgmcmc_lab.samplers.targets.base import Array

WINDOW = 5.0
"""Sokal's window: the sum ends at the first lag M ≥ WINDOW·τ(M)."""
SHARE = 10
"""Lags up to this fraction of the steps are given."""

MOST_LAGS = N_LAGS + (N_LEVELS - 1) * (N_LAGS - N_LAGS // LAG_RATIO)


class IntegratedTime(NamedTuple):
    """τ_int with its uncertainty, in steps."""

    tau: float
    standard_error: float
    """τ·√(2(2M + 1)/n) for n steps of all watched chains (Sokal 1997, eq 3.19)."""
    window: float
    """M."""


@jit.reading(jit.int64(jit.cube, jit.cube, jit.cube, jit.cube, jit.int64, jit.int64, jit.matrix))
def correlations(lag_sums, lag_first, lag_recent, level_sums, steps, k, out):
    """The lags of :func:`autocorrelation` and ρ of column ``k`` there, out (2, MOST_LAGS). Returns how many."""
    n, watched = 0, lag_sums.shape[1]
    for level in range(N_LEVELS):
        stride = LAG_RATIO**level
        first = 0 if level == 0 else N_LAGS // LAG_RATIO
        last = min(N_LAGS - 1, steps // (SHARE * stride))
        if steps == 0 or last < first:
            break
        here = (steps + stride - 1) // stride
        total, left_out, variance = 0.0, 0.0, 0.0
        for c in range(watched):
            total += level_sums[k, c, level]
        mean = total / (watched * here)
        for lag in range(last + 1):
            at, product = level * N_LAGS, 0.0
            for c in range(watched):
                product += lag_sums[k, c, at + lag]
                if lag > 0:
                    left_out += lag_first[k, c, at + lag - 1] + lag_recent[k, c, at + N_LAGS - lag]
            covariance = mean**2 + (product - mean * (2 * total - left_out)) / (watched * (here - lag))
            if lag == 0:
                variance = covariance
                # If all values are equal, the difference is rounding.
                if not variance > 1e-12 * mean**2:
                    return 0
            if lag >= first:
                out[0, n], out[1, n] = lag * stride, covariance / variance
                n += 1
    return n


@jit.reading(types.void(jit.matrix, jit.int64, jit.int64, jit.vector))
def sokal(correlations, n, steps, out):
    """τ_int, its standard error and the window, out (3,), of ``n`` lags and ρ there, (2, ≥ n), and the steps of all
    watched chains; nan where no lag is as long as the window.
    """
    out[:] = np.nan
    area = 0.0
    for i in range(n if n > 1 else 0):
        lag, rho = correlations[0, i], correlations[1, i]
        if i > 0:
            area += (lag - correlations[0, i - 1]) * (rho + correlations[1, i - 1]) / 2
        tau = 2 * area + rho
        if lag >= WINDOW * tau:
            out[0], out[1], out[2] = tau, abs(tau) * sqrt(2 * (2 * lag + 1) / steps), lag
            break


@jit.reading(jit.float64(jit.float64, jit.float64, jit.int64))
def mean_error(variance, tau, n_draws):
    """The standard error of the mean of draws with this variance and τ, which counts as 1 at least; nan where τ is."""
    return sqrt((0.0 if variance < 0 else variance) * (1.0 if tau < 1.0 else tau) / n_draws)


def standard_error(statistics: Statistics, k: int) -> float:
    """The standard error of the mean of column ``k``, √(v·max(τ, 1)/n) of n > 0 draws; nan where τ is."""
    jit.prepare([mean_error])
    return mean_error(statistics.variance(k), tau_int(statistics, k), statistics.n_draws)


def autocorrelation(statistics: Statistics, k: int) -> tuple[Array, Array]:
    """Lags, ascending, and ρ of column ``k`` there: 0…15, then 4ᵏ·(4…15); empty where nothing varies.

    ρ(ℓ·4ᵏ) = C_ℓ/C_0, with C_ℓ the mean of the M_ℓ = ⌈n/4ᵏ⌉ − ℓ products (z_t − m)(z_{t−ℓ} − m) at level k, and m the
    mean of the level's values in all watched chains: chains stuck in different places show a ρ that does not fall. The
    sums are of z z′; those of the factors, which leave out the first ℓ values or the last, bring m into them, so that
    ρ does not depend on where zero is. Lags end at a tenth of the steps; a ρ that is zero there has a standard error of
    about √(τ/n).
    """
    return _both(statistics, k)[:2]


def _both(statistics: Statistics, k: int) -> tuple[Array, Array, Array]:
    """Lags, ρ there, and the numbers of :class:`IntegratedTime`; nothing where the draws have weights."""
    if statistics.weighted:
        return np.empty(0), np.empty(0), np.full(3, np.nan)
    jit.prepare([correlations, sokal])
    sums, out = statistics.sums, np.empty((2, MOST_LAGS))
    n = correlations(sums.lag_sums, sums.lag_first, sums.lag_recent, sums.level_sums, statistics.n_steps, k, out)
    found = np.empty(3)
    sokal(out, n, statistics.n_steps * sums.lag_sums.shape[1], found)
    return out[0, :n], out[1, :n], found


def integrated_time(statistics: Statistics, k: int) -> IntegratedTime:
    """τ_int of column ``k`` by Sokal's window; nan where the run is too short to hold it (about 50 τ).

    For a lane with a step-size schedule it is nan, too: its chains are not stationary, and so have no ρ.

    Between the lags that are known ρ is taken as linear, so that τ(M) = 1 + 2 Σ_{t=1}^M ρ(t) = 2T(M) + ρ(M) with T
    the trapezoidal rule. On an exponential ρ that is off by less than .3 %, far below the standard error.
    """
    return IntegratedTime(*_both(statistics, k)[2].tolist())


def tau_int(statistics: Statistics, k: int) -> float:
    """The τ of :func:`integrated_time`. Its standard error is τ·√(2(2M + 1)/n) with the window M of about 5τ."""
    return integrated_time(statistics, k).tau
