"""The autocorrelation ρ(t) and the integrated autocorrelation time τ_int = 1 + 2 Σ_{t≥1} ρ(t).

Both come from the multi-level lag sums, pooled over the watched chains: level k looks at every 4ᵏ-th step, so that
lags up to 15·4¹¹ cost the same at step 10⁹ as at step 10³.
"""

from typing import NamedTuple

import numpy as np

from samplers.accumulate import LAG_RATIO, N_LAGS, N_LEVELS, Statistics
from samplers.targets.base import Array

WINDOW = 5.0
"""Sokal's window: the sum ends at the first lag M ≥ WINDOW·τ(M)."""
SHARE = 10
"""Lags up to this fraction of the steps are given."""


class IntegratedTime(NamedTuple):
    """τ_int with its uncertainty, in steps."""

    tau: float
    standard_error: float
    """τ·√(2(2M + 1)/n) for n steps of all watched chains (Sokal 1997, eq 3.19)."""
    window: float
    """M."""


def autocorrelation(statistics: Statistics, k: int) -> tuple[Array, Array]:
    """Lags, ascending, and ρ of column ``k`` there: 0…15, then 4ᵏ·(4…15); empty where nothing varies.

    ρ(ℓ·4ᵏ) = C_ℓ/C_0, with C_ℓ the mean of the M_ℓ = ⌈n/4ᵏ⌉ − ℓ products (z_t − m)(z_{t−ℓ} − m) at level k, and m the
    mean of the level's values in all watched chains: chains stuck in different places show a ρ that does not fall. The
    sums are of z z′; those of the factors, which leave out the first ℓ values or the last, bring m into them, so that
    ρ does not depend on where zero is. Lags end at a tenth of the steps; a ρ that is zero there has a standard error of
    about √(τ/n).
    """
    sums = statistics.sums
    n = statistics.n_steps
    watched = sums.lag_sums.shape[1]
    if n == 0:
        return np.empty(0), np.empty(0)
    products, first_values, last_values = (
        array[k].sum(axis=0).reshape(N_LEVELS, N_LAGS) for array in (sums.lag_sums, sums.lag_first, sums.lag_recent)
    )
    totals = sums.level_sums[k].sum(axis=0)
    lags, rho = [], []
    for level in range(N_LEVELS):
        stride = LAG_RATIO**level
        first = 0 if level == 0 else N_LAGS // LAG_RATIO
        last = min(N_LAGS - 1, n // (SHARE * stride))
        if last < first:
            break
        at = np.arange(first, last + 1)
        here = -(-n // stride)
        mean = totals[level] / (watched * here)
        left_out = np.concatenate([[0.0], np.cumsum(first_values[level] + last_values[level, ::-1])])
        lag = np.arange(last + 1)
        covariance = mean**2 + (products[level, lag] - mean * (2 * totals[level] - left_out[lag])) / (
            watched * (here - lag)
        )
        # Where all values are equal the difference is rounding.
        if not covariance[0] > 1e-12 * mean**2:
            return np.empty(0), np.empty(0)
        lags.append(at * stride)
        rho.append(covariance[at] / covariance[0])
    return np.concatenate(lags).astype(float), np.concatenate(rho)


def integrated_time(statistics: Statistics, k: int) -> IntegratedTime:
    """τ_int of column ``k`` by Sokal's window; nan where the run is too short to hold it (about 50 τ).

    Between the lags that are known ρ is taken as linear, so that τ(M) = 1 + 2 Σ_{t=1}^M ρ(t) = 2T(M) + ρ(M) with T
    the trapezoidal rule. On an exponential ρ that is off by less than .3 %, far below the standard error.
    """
    lags, rho = autocorrelation(statistics, k)
    if len(lags) < 2:
        return IntegratedTime(float("nan"), float("nan"), float("nan"))
    area = np.concatenate([[0.0], np.cumsum(np.diff(lags) * (rho[1:] + rho[:-1]) / 2)])
    tau = 2 * area + rho
    enough = np.flatnonzero(lags >= WINDOW * tau)
    if len(enough) == 0:
        return IntegratedTime(float("nan"), float("nan"), float("nan"))
    window, value = float(lags[enough[0]]), float(tau[enough[0]])
    n = statistics.n_steps * statistics.sums.lag_sums.shape[1]
    return IntegratedTime(value, abs(value) * float(np.sqrt(2 * (2 * window + 1) / n)), window)


def tau_int(statistics: Statistics, k: int) -> float:
    """The τ of :func:`integrated_time`. Its standard error is τ·√(2(2M + 1)/n) with the window M of about 5τ."""
    return integrated_time(statistics, k).tau
