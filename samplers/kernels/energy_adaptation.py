"""Adaptation of the step size and of the decoherence length of MCLMC.

Each chain adapts by itself in its first n = ``adapt_steps`` steps, in three thirds (Robnik, De Luca, Silverstein &
Seljak 2023, section 4). The numbers that it learns follow its momentum and its last gradient.
The exact flow keeps E = U + K, dK = −u·∇U dt; a half turn at fixed ∇U has ΔK = (d − 1)log(cosh δ + (e·u) sinh δ) in the
words of ``mclmc.py``. The first two thirds adapt ε to the energy error of a step, ΔE = O(ε³), with ξ = ΔE²/(d·wanted):
    w = exp(−½(log ξ/6σ)²),  ε⁻⁶ = Σ w ξ/ε⁶ / Σ w,  each older term times (N − 1)/(N + 1), σ = 1.5, N = 150.
One step at most doubles ε. A step whose ΔE is no number is taken back, and bounds all later ε by .8 of its own.
The second third weights the draws with ε, and at its end L = √(Σ_i Var θ_i). In the last third ε is fixed, and at its
end L = 0.4 ε τ̄, with τ̄ the mean over the coordinates of their integrated autocorrelation times, τ = n/ESS.
τ is the long-run variance of the means of at most 64 batches, by Geyer's initial monotone sequence, times the size of
a batch over the variance: whatever the size, their autocovariances add up to it. The sequence of the draws themselves
would end too early: MCLMC is not reversible, and its autocovariances swing below 0 before they vanish. τ is at least 1.
After the last step of adaptation ε and L are fixed, and the kernel's bias is the one of its ε. A new ε or L during
adaptation begins it anew, and a new one later replaces the learnt one.
"""

from math import ceil, exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.adaptation import GIVEN, LEARNT, MADE, STATISTIC, STEP_SIZE, WANTED
from sgmcmc_lab.samplers.parameters import Count
from sgmcmc_lab.samplers.targets.base import Target

TRUST, FORGET = 1.5, 149 / 151
"""σ and (N − 1)/(N + 1)."""
SHARE = 0.4
"""L in autocorrelation lengths."""
LEAST = 60
"""With fewer steps only the step size adapts."""
BATCHES = 64
_WANTED, _SHRINK, _MOST = WANTED["mclmc"], 0.8, 1e50
WEIGHTS, RATIO, LARGEST, LENGTH, GIVEN_LENGTH, VECTORS = 2, 3, 4, 6, 9, 10
"""Beside those of ``adaptation.py``: Σw, Σwξ/ε⁶, the bound of ε or 0, L and the given L; then the mean and the scatter
of the draws, and the sums of the batches."""

ADAPTED = r"\text{adapt } \epsilon \text{ and } L"
ADAPT = r"\\&" + ADAPTED + r"\text{, in the first steps}"


def adapt_steps() -> Count:
    """The parameter for the number of adapting steps."""
    return Count(
        0,
        bounds=(0, 10_000),
        label="Adaptation steps",
        doc=f"The number of first steps in which each chain adapts its own ε to a mean squared energy error of {_WANTED:g} per dimension, and its L to the autocorrelation of its draws. These steps are burn-in. ε and L begin with the values above. With a schedule only L adapts. 0: nothing adapts.",
    )


def auxiliary(target: Target, steps: int) -> NDArray[np.float64]:
    """A direction, a gradient and, if steps adapt, the numbers that a chain learns, 0 at first."""
    return np.zeros(2 * target.dim + (VECTORS + (2 + BATCHES) * target.dim if steps else 0))


@jit.helper
def begin_step(known, step_size, length):
    """The ε of a chain's next step; its L is then among its numbers, too."""
    if known[GIVEN] != step_size:
        known[GIVEN] = known[STEP_SIZE] = step_size
        known[WEIGHTS] = known[RATIO] = known[LARGEST] = 0.0
    if known[GIVEN_LENGTH] != length:
        known[GIVEN_LENGTH] = known[LENGTH] = length
    return known[STEP_SIZE]


@jit.helper
def is_sound(change):
    """Whether an energy error is a number that ε can follow."""
    return abs(change) < _MOST


@jit.helper
def _follow(known, change, dim):
    """Adapt ε to the energy error of its step."""
    eps = known[STEP_SIZE]
    if not is_sound(change):
        known[LARGEST] = known[STEP_SIZE] = _SHRINK * eps
        return
    # The small number keeps an error of 0 from a logarithm of 0.
    xi = change * change / (dim * _WANTED) + 1e-8
    weight = exp(-0.5 * (log(xi) / (6 * TRUST)) ** 2)
    known[WEIGHTS] = FORGET * known[WEIGHTS] + weight
    known[RATIO] = FORGET * known[RATIO] + weight * xi / eps**6
    eps = min((known[WEIGHTS] / known[RATIO]) ** (1 / 6), 2 * eps)
    known[STEP_SIZE] = min(eps, known[LARGEST]) if known[LARGEST] > 0 else eps


@jit.helper
def batch_time(known, i, dim, n, size):
    """τ of coordinate i, from the sums of n batches of this size."""
    first = VECTORS + 2 * dim
    mean = 0.0
    for k in range(n):
        mean += known[first + k * dim + i] / (n * size)
    total, pair, least = 0.0, 0.0, 0.0
    for lag in range(n):
        covariance = 0.0
        for k in range(n - lag):
            before = known[first + k * dim + i] / size - mean
            covariance += before * (known[first + (k + lag) * dim + i] / size - mean) / n
        if lag == 0:
            total = -covariance
        pair += covariance
        if lag % 2 == 1:
            if pair <= 0:
                break
            least = pair if lag == 1 else min(least, pair)
            total += 2 * least
            pair = 0.0
    variance = known[VECTORS + dim + i] / known[LEARNT]
    return max(size * total / variance, 1.0) if variance > 0 else 1.0


@jit.helper
def learn(known, x, change, n):
    """Adapt after one of the n adapting steps, to x and the step's energy error; later nothing."""
    t, dim = int(known[MADE]), x.size
    if t >= n:
        return
    known[MADE] += 1
    second, third = (n // 3, 2 * n // 3) if n >= LEAST else (n, n)
    if is_sound(change):
        known[STATISTIC] = change * change / dim
    if t >= second:
        size = ceil((n - third) / BATCHES)
        batch = (t - third) // size
        weight = 1.0 if t >= third else known[STEP_SIZE]
        known[LEARNT] += weight
        for i in range(dim):
            away = x[i] - known[VECTORS + i]
            known[VECTORS + i] += weight / known[LEARNT] * away
            known[VECTORS + dim + i] += weight * away * (x[i] - known[VECTORS + i])
            if t >= third:
                known[VECTORS + (2 + batch) * dim + i] += x[i]
        if t + 1 == third:
            total = 0.0
            for i in range(dim):
                total += known[VECTORS + dim + i] / known[LEARNT]
            known[LENGTH] = sqrt(total)
        elif t + 1 == n:
            total = 0.0
            for i in range(dim):
                total += batch_time(known, i, dim, (n - third) // size, size) / dim
            known[LENGTH] = SHARE * known[STEP_SIZE] * total
        if t + 1 == third or t + 1 == n:
            known[LEARNT] = 0.0
            known[VECTORS:] = 0.0
    if t < third:
        _follow(known, change, dim)
