"""The batch size that costs least (Smolyakov, Liu & Fisher, Algorithm 1), and the case where it is known exactly.

A step draws m local variables, which takes m·w_z, and the global ones, which takes w_θ. In a time T there are
n = T/(m w_z + w_θ) draws, whose mean has the variance σ²τ_int(m)/n. So the best m has the smallest

    f(m) = (m w_z + w_θ) τ_int(m)

The paper chooses m once. Where m is chosen again during the run, it depends on earlier states, and the chain has p for
its stationary distribution only in the limit, and only if the choice settles (diminishing adaptation: Roberts &
Rosenthal 2007, Theorem 1) or ends.
"""

from dataclasses import dataclass, field

import numpy as np
from numba import types
from numpy.typing import ArrayLike, NDArray

from sgmcmc_lab.samplers import convergence
from sgmcmc_lab.samplers.compile import jit

Array = NDArray[np.float64]

RATIO = 4
"""The sizes that are tried are N, N/RATIO, N/RATIO², …, 1."""
PART = 4
"""τ is told from blocks of N/(PART·m) draws: a PART-th of the steps that draw all z once."""
ONCE, ALWAYS, FADING, BURN_IN = RULES = ("once", "always", "fading", "burn-in")
"""When m is chosen: after the trials; after every round; so, but a round counts ever less; so, until burn-in ends."""
VISIT = 4
"""Every VISIT-th round has the size whose last one is longest ago."""


def tau_int(draws: ArrayLike, block: int = 1) -> float:
    """τ_int = 1 + 2 Σ_{t≥1} ρ_t of the draws (n,), at least 1; infinity where they are too few to tell or do not vary.

    τ = b v_b/v · τ_b with v the variance of the draws, and v_b and τ_b the variance and τ of the means of blocks of
    b = ``block`` draws; τ_b is by the effective sample size (Geyer 1992, as ArviZ has it). It holds for every b, but
    where a ρ that is small from the first lag on falls slowly, all of τ is in sums of ρ's that are lost in their own
    noise one by one. Such are the draws of φ ~ p(φ | z): the larger part of their variance is new in every step, and
    what they have of the z is remembered. The blocks' means have little of what is new.
    """
    x = np.asarray(draws, dtype=float)
    n = len(x) // block
    if n < convergence.ENOUGH or not np.ptp(x) > 0:
        return np.inf
    means = (x - x.mean())[: n * block].reshape(n, block).mean(axis=1) / x.std()
    tau = convergence.tau_of_mean(means)
    return max(block * float(means.var()) * tau, 1.0) if np.isfinite(tau) else np.inf


def sizes_to_try(n_data: int) -> NDArray[np.int64]:
    """N, N/4, N/16, …, 1: falling."""
    n = int(np.ceil(np.log(max(n_data, 1)) / np.log(RATIO)))
    return np.unique(np.maximum(n_data // RATIO ** np.arange(n + 1), 1))[::-1].astype(np.int64)


def block_length(size: int, n_data: int) -> int:
    """N/(PART·m), at least 1: the ``block`` of :func:`tau_int` for draws with m = ``size`` of the N = ``n_data``."""
    return max(n_data // (PART * size), 1)


def objective(sizes: ArrayLike, taus: ArrayLike, local: float, overall: float) -> Array:
    """f(m) = (m w_z + w_θ) τ_int(m), eq (13), with w_z = ``local`` and w_θ = ``overall``."""
    return (np.asarray(sizes) * local + overall) * np.asarray(taus)


def choose_batch_size(sizes: ArrayLike, costs: ArrayLike) -> int:
    """The size with the smallest f(m); the largest size where no τ is known."""
    sizes, costs = np.asarray(sizes), np.asarray(costs)
    return int(sizes[costs.argmin()] if np.isfinite(costs).any() else sizes.max())


@dataclass
class Adaptation:
    """The trial of one size after another, each for the same cost, and the choice; it is kept, or made again in rounds.

    All have the same cost, not the same number of draws: a size whose τ cannot be told has made fewer independent draws
    of what it remembers than the others at that cost, and is not chosen where the τ of another is known.
    """

    sizes: NDArray[np.int64]
    local: float
    overall: float
    cost: float
    """The allowed cost of the trial of one size, in the unit of ``local`` and ``overall``."""
    warm_up: int
    """Steps of the first size before its trial."""
    taus: list[float] = field(default_factory=list)
    chosen: int = 0
    """0 until all sizes are tried."""
    chosen_after: int = 0
    """Steps of the chain until then, or until the last change."""
    rule: str = ONCE
    """One of ``RULES``. With another than the first, rounds follow the trials: see :meth:`_round`."""
    round_cost: float = np.inf
    """The cost of a round, in the same unit."""
    adapting: int = 0
    """With the last rule: the step of the chain from which on m stays."""
    changes: int = 0
    """How often a round changed the choice."""
    _draws: list[float] = field(default_factory=list)
    _visited: int = 0
    """The size of this round, where it is not the chosen one."""
    _rounds: list[int] = field(default_factory=list)
    """How many values each τ is the mean of."""
    _last: list[int] = field(default_factory=list)
    """The last round of each size."""
    _seen: tuple[int, float, float] = (0, 0.0, 0.0)
    """How many draws there were, their mean, and their summed squares about it."""

    def __post_init__(self) -> None:
        # So that the seconds of the first step that tells a τ are not those of the import.
        import arviz_stats.base  # noqa: F401

    @property
    def size(self) -> int:
        """The batch size of the next step."""
        return self._visited or self.chosen or int(self.sizes[len(self.taus)])

    def record(self, value: float, step: int) -> None:
        """The draw of the chain's last step, as one number; ``step`` is how many it has made."""
        if self.chosen and self.rule == ONCE:
            return
        if self.chosen and self.rule == BURN_IN and step >= self.adapting:
            self._visited = 0
            return
        if self.warm_up > 0:
            self.warm_up -= 1
            return
        self._draws.append(value)
        if self.rule != ONCE:
            n, mean, squares = self._seen
            new = mean + (value - mean) / (n + 1)
            self._seen = n + 1, new, squares + (value - mean) * (value - new)
        if self.chosen:
            if len(self._draws) >= self.round_cost / (self.size * self.local + self.overall):
                self._round(step)
            return
        if len(self._draws) >= self.cost / (self.size * self.local + self.overall):
            self.taus.append(tau_int(self._draws, block_length(self.size, int(self.sizes.max()))))
            self._draws.clear()
            if len(self.taus) == len(self.sizes):
                costs = objective(self.sizes, self.taus, self.local, self.overall)
                self.chosen, self.chosen_after = choose_batch_size(self.sizes, costs), step
                self._rounds, self._last = [int(np.isfinite(tau)) for tau in self.taus], [0] * len(self.sizes)

    def _round(self, step: int) -> None:
        """The end of a round of b draws: its size's τ, and the choice anew.

        The round measures b(ȳ − μ)²/v with its mean ȳ, and the mean μ and the variance v of the run so far: τ in the
        mean, if b ≫ τ, and less if b is smaller. The τ of a size is that of its last round, or with the rule
        ``fading`` the mean of its rounds and its trial, where the n-th has the weight 1/n. A round far from μ has a
        large measure; so the last one alone makes the next size depend on where the chain is, and the stationary
        distribution is not p.
        """
        i, b, (n, mean, squares) = int(np.flatnonzero(self.sizes == self.size)[0]), len(self._draws), self._seen
        tau = max(b * (float(np.mean(self._draws)) - mean) ** 2 * n / squares, 0.0) if squares > 0 else 0.0
        self._draws.clear()
        self._rounds[i] += 1
        shares = {ALWAYS: 1.0, BURN_IN: 1.0, FADING: 1 / self._rounds[i]}
        share = shares[self.rule] if np.isfinite(self.taus[i]) else 1.0
        self.taus[i] = share * tau + ((1 - share) * self.taus[i] if share < 1 else 0.0)
        number = sum(self._rounds)
        self._last[i] = number
        chosen = choose_batch_size(self.sizes, objective(self.sizes, self.known, self.local, self.overall))
        if chosen != self.chosen:
            self.chosen, self.chosen_after, self.changes = chosen, step, self.changes + 1
        self._visited = int(self.sizes[np.argmin(self._last)]) if number % VISIT == 0 else 0

    @property
    def known(self) -> Array:
        """The τ of the sizes that were tried, at least 1: a measure of few draws may be less."""
        return np.maximum(self.taus, 1.0)

    @property
    def steps_left(self) -> int:
        """How many steps the trials that are not done yet will take."""
        if self.chosen:
            return 0
        lengths = np.ceil(self.cost / (self.sizes[len(self.taus) :] * self.local + self.overall))
        return int(np.maximum(lengths, 1).sum()) - len(self._draws) + max(self.warm_up, 0)

    def snapshot(self) -> dict[str, Array]:
        """``batch_sizes``, ``objective`` f(m) in units of w_z, ``tau``, of the sizes that were tried, and ``chosen``
        and ``chosen_after`` (1,), the size and the steps until it was chosen, which are 0 during the trials. ``trial``:
        the size of the next step, how many sizes there are to try, and the steps until the choice. ``changes`` (1,): of
        the choice, since the trials.
        """
        sizes, taus = self.sizes[: len(self.taus)], self.known
        return {
            "batch_sizes": sizes.copy(),
            "objective": objective(sizes, taus, self.local, self.overall),
            "tau": taus,
            "trial": np.array([self.size, len(self.sizes), self.steps_left]),
            "chosen": np.array([self.chosen]),
            "chosen_after": np.array([self.chosen_after]),
            "changes": np.array([self.changes]),
        }


# --- the exact case ------------------------------------------------------------------------------------------------


def exact_tau(batch_size: ArrayLike, n_data: int, variance: float) -> Array:
    """τ_int(m) = 1 + 2s²N/m of θ in :func:`gaussian_scan`."""
    return 1 + 2 * variance * n_data / np.asarray(batch_size)


def exact_best(n_data: int, variance: float, local: float, overall: float) -> float:
    """m* = √(2 s² N w_θ/w_z), where f is smallest."""
    return float(np.sqrt(2 * variance * n_data * overall / local))


@jit.helper
def refresh(rng, x, z, order, theta, total, variance, batch_size):
    """Draw ``batch_size`` different z_i given θ, in place; Σ z, of which ``total`` was the value before."""
    n = len(x)
    spread = np.sqrt(variance / (1 + variance))
    for j in range(batch_size):
        chosen = j + int(rng.random() * (n - j))
        i = order[chosen]
        order[chosen] = order[j]
        order[j] = i
        fresh = (variance * theta + x[i]) / (1 + variance) + spread * rng.standard_normal()
        total += fresh - z[i]
        z[i] = fresh
    return total


@jit.helper
def gaussian_scan(rng, x, z, variance, batch_size, out):
    """Minibatch Gibbs where all is known: θ flat, z_i | θ ~ N(θ, 1), x_i | z_i ~ N(z_i, s²).

    A step draws ``batch_size`` different z_i, chosen at random, and then θ given all z. ``out`` (steps,) are the θ.
    """
    n = len(x)
    order = np.arange(n)
    total = z.sum()
    theta = total / n
    for t in range(len(out)):
        total = refresh(rng, x, z, order, theta, total, variance, batch_size)
        theta = total / n + rng.standard_normal() / np.sqrt(n)
        out[t] = theta


@jit.loop(types.void(jit.rng_type, types.float64, types.int64, jit.vector, jit.vector, jit.vector))
def scan_chain(rng, variance, batch_size, x, z, out):
    """The θ of :func:`gaussian_scan`, out (steps,), from an exact draw, on data of the chain's own: x and z (N,) are
    overwritten.
    """
    n = len(x)
    theta = 0.0
    for i in range(n):
        x[i] = np.sqrt(1 + variance) * rng.standard_normal()
        theta += x[i] / n
    theta += np.sqrt((1 + variance) / n) * rng.standard_normal()
    for i in range(n):
        z[i] = (variance * theta + x[i]) / (1 + variance) + np.sqrt(variance / (1 + variance)) * rng.standard_normal()
    gaussian_scan(rng, x, z, variance, batch_size, out)
