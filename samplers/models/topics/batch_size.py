"""The batch size that costs least (Smolyakov, Liu & Fisher, Algorithm 1), and the case where it is known exactly.

A step draws m local variables, which takes m·w_z, and the global ones, which takes w_θ. In a time T there are
n = T/(m w_z + w_θ) draws, whose mean has the variance σ²τ_int(m)/n. So the best m has the smallest

    f(m) = (m w_z + w_θ) τ_int(m)
"""

from dataclasses import dataclass, field

import numpy as np
from numba import types
from numpy.typing import ArrayLike, NDArray
from scipy import signal

from samplers import jit

Array = NDArray[np.float64]

WINDOW = 5.0
"""Sokal's window: the sum of the autocorrelations ends at the first lag M ≥ WINDOW·τ(M)."""
SHARE = 10
"""Lags up to this fraction of the draws are looked at: τ is known from about 50 τ draws on."""
RATIO = 4
"""The sizes that are tried are N, N/RATIO, N/RATIO², …, 1."""


def tau_int(draws: ArrayLike) -> float:
    """τ_int = 1 + 2 Σ_{t≥1} ρ_t of the draws (n,); infinity where they are too few to tell or do not vary."""
    x = np.asarray(draws, dtype=float)
    x = x - x.mean() if len(x) else x
    n_lags = len(x) // SHARE + 1
    if n_lags < 2 or not np.ptp(x) > 0:
        return np.inf
    products = signal.correlate(x, x, method="fft")[len(x) - 1 :][:n_lags]
    rho = products / products[0] * len(x) / (len(x) - np.arange(n_lags))
    tau = 2 * np.cumsum(rho) - 1
    enough = np.flatnonzero(np.arange(n_lags) >= WINDOW * np.maximum(tau, 1))
    return max(float(tau[enough[0]]), 1.0) if len(enough) else np.inf


def sizes_to_try(n_data: int) -> NDArray[np.int64]:
    """N, N/4, N/16, …, 1: falling."""
    n = int(np.ceil(np.log(max(n_data, 1)) / np.log(RATIO)))
    return np.unique(np.maximum(n_data // RATIO ** np.arange(n + 1), 1))[::-1].astype(np.int64)


def objective(sizes: ArrayLike, taus: ArrayLike, local: float, overall: float) -> Array:
    """f(m) = (m w_z + w_θ) τ_int(m), eq (13), with w_z = ``local`` and w_θ = ``overall``."""
    return (np.asarray(sizes) * local + overall) * np.asarray(taus)


def choose_batch_size(sizes: ArrayLike, taus: ArrayLike, local: float, overall: float) -> int:
    """The size with the smallest objective; the largest size where no τ is known."""
    costs = objective(sizes, taus, local, overall)
    sizes = np.asarray(sizes)
    return int(sizes[costs.argmin()] if np.isfinite(costs).any() else sizes.max())


@dataclass
class Adaptation:
    """The trial of one size after another, each for the same cost, and the choice, which is then kept.

    A size whose τ cannot be told from its draws has made fewer than about 50 independent ones, and so is worse than
    every size of which τ is known: that is why all have the same cost rather than the same number of draws.
    """

    sizes: NDArray[np.int64]
    local: float
    overall: float
    cost: float
    """What the trial of one size may cost, in the unit of ``local`` and ``overall``."""
    warm_up: int
    """Steps of the first size before its trial."""
    taus: list[float] = field(default_factory=list)
    chosen: int = 0
    """0 until all sizes are tried."""
    _draws: list[float] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The batch size of the next step."""
        return self.chosen or int(self.sizes[len(self.taus)])

    def record(self, value: float) -> None:
        """What the last step drew, as one number."""
        if self.chosen:
            return
        if self.warm_up > 0:
            self.warm_up -= 1
            return
        self._draws.append(value)
        if len(self._draws) >= max(self.cost / (self.size * self.local + self.overall), 2 * SHARE):
            self.taus.append(tau_int(self._draws))
            self._draws.clear()
            if len(self.taus) == len(self.sizes):
                self.chosen = choose_batch_size(self.sizes, self.taus, self.local, self.overall)


# --- the exact case ------------------------------------------------------------------------------------------------


def exact_tau(batch_size: ArrayLike, n_data: int, variance: float) -> Array:
    """τ_int(m) = 1 + 2s²N/m of θ in :func:`gaussian_scan`."""
    return 1 + 2 * variance * n_data / np.asarray(batch_size)


def exact_best(n_data: int, variance: float, local: float, overall: float) -> float:
    """m* = √(2 s² N w_θ/w_z), where f is smallest."""
    return float(np.sqrt(2 * variance * n_data * overall / local))


@jit.loop(types.void(jit.rng_type, jit.vector, jit.vector, types.float64, types.int64, jit.vector))
def gaussian_scan(rng, x, z, variance, batch_size, out):
    """Minibatch Gibbs where all is known: θ flat, z_i | θ ~ N(θ, 1), x_i | z_i ~ N(z_i, s²).

    A step draws ``batch_size`` different z_i, chosen at random, and then θ given all z. ``out`` (steps,) are the θ.
    """
    n = len(x)
    order = np.arange(n)
    total = z.sum()
    theta = total / n
    spread = np.sqrt(variance / (1 + variance))
    for t in range(len(out)):
        for j in range(batch_size):
            chosen = j + int(rng.random() * (n - j))
            i = order[chosen]
            order[chosen] = order[j]
            order[j] = i
            fresh = (variance * theta + x[i]) / (1 + variance) + spread * rng.standard_normal()
            total += fresh - z[i]
            z[i] = fresh
        theta = total / n + rng.standard_normal() / np.sqrt(n)
        out[t] = theta
