"""Adaptation of a step size and of a diagonal mass matrix, for the samplers with an accept step.

Each chain adapts by itself in its first ``adapt_steps`` steps. The numbers that it learns follow its momentum. The
step size follows dual averaging (Hoffman & Gelman 2014, section 3.2), x = log ε, with the acceptance statistic α of
step m and its wanted mean δ:
    H̄ ← (1 − 1/(m + t₀))H̄ + (δ − α)/(m + t₀),  x = μ − (√m/γ)H̄,  x̄ ← m^{−κ}x + (1 − m^{−κ})x̄,  μ = log 10ε₀.
The inverse of the mass is the variance of the chain's own draws in windows that double, with a buffer before and after
them, as in Stan; after each window dual averaging begins again. After the last step of adaptation ε = e^x̄ and the mass
are fixed, and the kernel leaves the target invariant. Before, it does not, because ε depends on all draws so far.
A new step size during adaptation becomes ε₀, and dual averaging begins again; a new one after adaptation becomes ε.
"""

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Count
from sgmcmc_lab.samplers.targets.base import Target

SHRINKAGE, DELAY, DECAY = 0.05, 10.0, 0.75
"""γ, t₀ and κ of the paper."""
BEFORE, FIRST_WINDOW, AFTER = 75, 25, 50
"""Steps before the first window, in it, and after the last one."""
WANTED = {"hmc": 0.651, "chees": 0.651, "nuts": 0.8, "mala": 0.574, "mclmc": 5e-4}
"""The mean of α: for HMC that of least cost, for MALA that of the fastest moves, as d → ∞ (Beskos et al. 2013; Roberts
& Rosenthal 1998); for NUTS that of Stan, where α is the mean over a trajectory (Betancourt, Byrne & Girolami 2014). For
MCLMC the mean of the squared energy error per dimension, as in ``energy_adaptation.py``."""
LEAST = 20
"""With fewer steps only the step size adapts."""
MADE, GIVEN, AVERAGED, MEAN_ERROR, LOG_MEAN, STEP_SIZE, SHRUNK_TO, STATISTIC, LEARNT, VECTORS = range(10)
"""The numbers of a chain: the steps made, the given ε₀, m, H̄, x̄, ε, μ, the last α and the number of draws in the
window; then three vectors, the mean and the scatter of these draws, and the inverse of the mass."""


class Adaptation(NamedTuple):
    """The declaration of a sampler whose chains adapt: the number of a step that ε follows, and what they learn."""

    statistic: str
    """The name of this number."""
    wanted: float
    """The mean of it that ε aims at."""
    goes_on: bool = True
    """Whether the steps after the adaptation measure it, too."""
    vectors: int = 1
    """The vectors of a chain, each as long as θ, before the numbers that it learns."""
    length: tuple[str, int] | None = None
    """The symbol and the place of the length that it learns; None where it learns M⁻¹, in its last numbers."""


ADAPTED = r"\text{adapt } \epsilon \text{ and } M"
ADAPT = r"\\&" + ADAPTED + r"\text{, in the first steps}"
"""The adaptation as the last line of an update."""


def adapt_steps(wanted: float) -> Count:
    """The parameter for the number of adapting steps, with the acceptance wanted."""
    return Count(
        0,
        bounds=(0, 10_000),
        label="Adaptation steps",
        doc=f"The number of first steps in which each chain adapts its own ε to an acceptance of {wanted}, and its inverse masses to the variances of its draws. These steps are burn-in. ε begins with the step size above. With a schedule only the masses adapt. 0: nothing adapts.",
    )


def auxiliary(target: Target, steps: int) -> NDArray[np.float64]:
    """A momentum and, if steps adapt, the numbers that a chain learns, 0 at first."""
    return np.zeros(target.dim + (VECTORS + 3 * target.dim if steps else 0))


@jit.helper
def window_at(t, n):
    """Whether step t of n, from 0, is in a window, and whether it is the last step of one."""
    before, size, after = BEFORE, FIRST_WINDOW, AFTER
    if before + size + after > n:
        before, after = int(0.15 * n), int(0.1 * n)
        size = n - before - after
    if n < LEAST or not before <= t < n - after:
        return False, False
    end = before + size - 1
    while end < t:
        size *= 2
        end += size
        # The rest would not hold a window of twice the size.
        if end + 2 * size >= n - after:
            end = n - after - 1
    return True, end == t


@jit.helper
def begin_averaging(known):
    """Begin dual averaging at the present ε."""
    known[SHRUNK_TO] = log(10 * known[STEP_SIZE])
    known[AVERAGED] = known[MEAN_ERROR] = known[LOG_MEAN] = 0.0


@jit.helper
def average(known, error):
    """A step of dual averaging, with δ − α."""
    known[AVERAGED] += 1
    m = known[AVERAGED]
    known[MEAN_ERROR] += (error - known[MEAN_ERROR]) / (m + DELAY)
    x = known[SHRUNK_TO] - sqrt(m) / SHRINKAGE * known[MEAN_ERROR]
    known[LOG_MEAN] += m**-DECAY * (x - known[LOG_MEAN])
    known[STEP_SIZE] = exp(x)


@jit.helper
def begin_step(known, step_size, n):
    """The ε of a chain's next step, from its numbers, the given ``step_size`` and the number n of adapting steps."""
    if known[GIVEN] != step_size:
        if known[MADE] == 0:
            known[VECTORS + 2 * ((known.size - VECTORS) // 3) :] = 1.0
        known[GIVEN] = known[STEP_SIZE] = step_size
        if known[MADE] < n:
            begin_averaging(known)
    return known[STEP_SIZE]


@jit.helper
def learn(known, x, statistic, wanted, n):
    """Adapt after one of the n adapting steps, to x with the acceptance statistic α; later only α is kept."""
    known[STATISTIC] = statistic
    t, dim = int(known[MADE]), x.size
    known[MADE] += 1
    if t >= n:
        return
    average(known, wanted - statistic)
    inside, ends = window_at(t, n)
    if inside:
        known[LEARNT] += 1
        for i in range(dim):
            away = x[i] - known[VECTORS + i]
            known[VECTORS + i] += away / known[LEARNT]
            known[VECTORS + dim + i] += away * (x[i] - known[VECTORS + i])
    if ends:
        count = known[LEARNT]
        for i in range(dim):
            # Stan's shrinkage towards 10⁻³, which keeps a variance of few draws from 0.
            variance = known[VECTORS + dim + i] / max(count - 1, 1.0)
            known[VECTORS + 2 * dim + i] = (count * variance + 5e-3) / (count + 5)
        known[LEARNT] = 0.0
        known[VECTORS : VECTORS + 2 * dim] = 0.0
        begin_averaging(known)
    if t + 1 == n:
        known[STEP_SIZE] = exp(known[LOG_MEAN])


@jit.helper
def inverse_mass_of(row, dim):
    """M⁻¹ in the row of a chain's auxiliary variables, (dim,): the last of them."""
    return row[row.size - dim :]


@jit.helper
def probability(log_ratio):
    """min(1, e^log_ratio), 0 where it is NaN."""
    if log_ratio < 0:
        return exp(log_ratio)
    return 1.0 if log_ratio >= 0 else 0.0


@jit.helper
def begin_steps(memory, strides, step_size, n):
    """Write ε√(M⁻¹) of every chain to ``strides`` (chains, dim): the step size of each coordinate, with masses."""
    dim = strides.shape[1]
    for c in range(strides.shape[0]):
        eps = begin_step(memory[c, dim:], step_size, n)
        for i in range(dim):
            strides[c, i] = eps * sqrt(memory[c, 3 * dim + VECTORS + i])


@jit.inlined
def begin_stride(model, theta, r, grad, _, more):
    """r ← r − (h/2)∇Ũ, θ ← θ + hr, each coordinate with its own h."""
    for c in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            r[c, i] -= more[0][c, i] / 2 * grad[c, i]
            theta[c, i] += more[0][c, i] * r[c, i]


@jit.inlined
def end_stride(model, theta, r, grad, _, more):
    """r ← r − (h/2)∇Ũ."""
    for c in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            r[c, i] -= more[0][c, i] / 2 * grad[c, i]
