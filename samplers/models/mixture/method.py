"""The common part of all methods for clusters of documents: the slice sampler's step, with the move of θ left open.

The sticks and the words of the clusters are gamma variables, v_k = γ_k0/(γ_k0 + γ_k1) and θ_k = x_k/Σ_w x_kw. Given the
clusters z of all documents they are independent: γ_k0 ~ Gamma(1 + N_k, 1), γ_k1 ~ Gamma(α + Σ_{l>k} N_l, 1) and
x_kw ~ Gamma(a + N_kw, 1). A method draws them so, or moves them by a process that has these as its stationary
distribution, with the counts estimated from a minibatch.
"""

from abc import abstractmethod
from dataclasses import dataclass
from math import exp, log
from typing import Any, ClassVar

import numpy as np
from numba import types
from numpy.random import Generator
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.average import LaterLogAverage
from sgmcmc_lab.samplers.models.base import Method, Snapshot
from sgmcmc_lab.samplers.models.clusters.normal import count_together, pick
from sgmcmc_lab.samplers.models.mixture import textbook
from sgmcmc_lab.samplers.models.mixture.model import Mixture
from sgmcmc_lab.samplers.models.topics.local import ids
from sgmcmc_lab.samplers.models.topics.method import N_TOP, top
from sgmcmc_lab.samplers.parameters import Count
from sgmcmc_lab.samplers.targets.base import Array

TINY = 1e-300
"""A gamma draw that is smaller, or 0 in floating point, is taken for this."""

MOVE = types.void(jit.rng_type, jit.matrix, jit.vector, jit.matrix, types.float64, jit.vector, types.int64, jit.vector)
"""move(rng, x, prior, counts, factor, sizes, top, params): move x (rows, slots), of the first ``top`` slots.

The shape of x_rk is prior_r + factor·counts_rk. A slot whose ``sizes`` is 0 has no documents: what it holds is drawn
with that shape at once, which is that of the prior for its words.
"""


@jit.loop(
    types.int64(
        jit.rng_type,
        jit.integers,
        jit.integers,
        ids,
        jit.integers,
        jit.vector,
        jit.matrix,
        jit.matrix,
        jit.vector,
        types.float64,
        types.float64,
        jit.integers,
        jit.matrix,
    )
)
def assign(rng, documents, offsets, words, z, sizes, gammas, theta, alpha, alpha_mean, prior, shown, together):
    """Draw α given the sticks, then the slices of these documents, as many new sticks as they reach, and their z.

    In place; how many sticks there were, 0 where there is no room for them.
    """
    n_slots, n_words = len(sizes), len(theta)
    n_used = 0
    for k in range(n_slots):
        if sizes[k] > 0:
            n_used = k + 1
    weights = np.zeros(n_slots)
    left, logs = 1.0, 0.0
    for k in range(n_used):
        rest = gammas[1, k] / (gammas[0, k] + gammas[1, k])
        weights[k] = left * gammas[0, k] / (gammas[0, k] + gammas[1, k])
        left *= rest
        logs += log(rest)
    alpha[0] = max(rng.standard_gamma(1.0 + n_used) / (1 / alpha_mean - logs), TINY)
    slices = np.empty(len(documents))
    lowest = 1.0
    for i in range(len(documents)):
        slices[i] = rng.random() * weights[z[documents[i]]]
        lowest = min(lowest, slices[i])
    n_sticks = n_used
    while left >= lowest:
        if n_sticks == n_slots:
            return 0
        one, two = max(rng.standard_gamma(1.0), TINY), max(rng.standard_gamma(alpha[0]), TINY)
        gammas[0, n_sticks], gammas[1, n_sticks] = one, two
        weights[n_sticks] = left * one / (one + two)
        left *= two / (one + two)
        for w in range(n_words):
            theta[w, n_sticks] = max(rng.standard_gamma(prior), TINY)
        n_sticks += 1
    table = logs_of(theta, n_sticks)
    p = np.empty(n_sticks)
    for i in range(len(documents)):
        d = documents[i]
        p[:] = 0.0
        for t in range(offsets[d], offsets[d + 1]):
            row = table[words[t]]
            for k in range(n_sticks):
                p[k] += row[k]
        largest = -np.inf
        for k in range(n_sticks):
            if weights[k] > slices[i]:
                largest = max(largest, p[k])
        total = 0.0
        for k in range(n_sticks):
            p[k] = exp(p[k] - largest) if weights[k] > slices[i] else 0.0
            total += p[k]
        sizes[z[d]] -= 1
        if total > 0:
            z[d] = pick(rng, p, n_sticks, total)
        sizes[z[d]] += 1
    count_together(z, shown, together)
    return n_sticks


@jit.helper
def logs_of(theta, n):
    """log θ_kw/Σ_w θ_kw of the first n slots, (words, n)."""
    out, totals = np.empty((len(theta), n)), np.zeros(n)
    for w in range(len(theta)):
        for k in range(n):
            totals[k] += theta[w, k]
    for k in range(n):
        totals[k] = log(totals[k])
    for w in range(len(theta)):
        for k in range(n):
            out[w, k] = log(theta[w, k]) - totals[k]
    return out


@jit.loop(types.void(jit.integers, jit.integers, ids, jit.integers, jit.matrix, jit.matrix))
def count(documents, offsets, words, z, of_words, of_sticks):
    """How often these documents' words are in each slot, (words, slots), and (2, slots) how many of the documents are
    in it, and in those after it.
    """
    of_words[:] = 0.0
    of_sticks[:] = 0.0
    for d in documents:
        of_sticks[0, z[d]] += 1
        for t in range(offsets[d], offsets[d + 1]):
            of_words[words[t], z[d]] += 1
    for k in range(of_sticks.shape[1] - 2, -1, -1):
        of_sticks[1, k] = of_sticks[1, k + 1] + of_sticks[0, k + 1]


@jit.loop(types.void(jit.integers, ids, jit.matrix, jit.vector, jit.vector, jit.vector))
def log_density(offsets, words, theta, weights, new, out):
    """log p of each document given the sticks; beyond the last one clusters are as the prior has them, with the log
    density ``new``.
    """
    n, left = 0, 1.0
    for k in range(len(weights)):
        left -= weights[k]
        if weights[k] > 0:
            n = k + 1
    table = logs_of(theta, n)
    p = np.empty(n + 1)
    for i in range(len(offsets) - 1):
        for k in range(n):
            p[k] = log(weights[k]) if weights[k] > 0 else -np.inf
        p[n] = log(left) + new[i] if left > 0 else -np.inf
        for t in range(offsets[i], offsets[i + 1]):
            row = table[words[t]]
            for k in range(n):
                p[k] += row[k]
        largest = p.max()
        total = 0.0
        for k in range(n + 1):
            total += exp(p[k] - largest)
        out[i] = largest + log(total)


@dataclass
class State:
    """The state of a method. Clusters have slots, of which some may be empty."""

    z: NDArray[np.int64]
    """The slot of every document, (N,)."""
    sizes: Array
    """How many documents are in each, (slots,)."""
    gammas: Array
    """γ_k0 and γ_k1, (2, slots)."""
    theta: Array
    """x_kw, (words, slots); 0 beyond the last cluster with documents."""
    weights: Array
    """w_k, the lengths of the sticks, (slots,); 0 beyond the last cluster with documents."""
    alpha: Array
    """The concentration α, (1,)."""
    together: Array
    """In how many steps two of the documents that are shown were in one cluster, (shown, shown)."""
    average: LaterLogAverage
    steps: int = 0


class MixtureMethod(Method):
    """A slice sampler for :class:`Mixture`; a subclass says how x and γ are moved given z.

    Update: α given the sticks in use; a slice u_i ~ U(0, w_{z_i}) for each document; new sticks and clusters from the
    prior until the rest is below the lowest slice; z_i, each among the clusters whose stick is longer than its slice;
    then the move of x and γ given z. A cluster without documents has x from the prior.
    """

    model = "mixture"
    move: ClassVar[Any]
    """The compiled move, of type :data:`MOVE`."""

    start_clusters = Count(
        20,
        bounds=(1, 100),
        label="Clusters at the start",
        doc="The number of random clusters in which the documents begin. It affects the start of a run, and a sampler that does not mix.",
    )

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        jit.keep_plain(cls, "move")
        if "move" in vars(cls) and "compiled" not in vars(cls):
            cls.compiled = (assign, count, log_density, top, cls.move)

    def batch(self, model: Mixture, rng: Generator) -> NDArray[np.int64]:
        """The documents of a step."""
        return np.arange(model.n_data)

    def packed(self, sticks: bool) -> Array:
        """The numbers that the compiled move reads."""
        return np.zeros(1)

    def start(self, model: Mixture, rng: Generator) -> State:
        """Random clusters, no more than there is room for; α = 1; sticks and words given them."""
        n, n_slots = model.n_data, model.n_slots
        z = rng.integers(min(int(self.start_clusters), n_slots - 1), size=n)
        sizes, shown = np.bincount(z, minlength=n_slots).astype(float), len(model.shown)
        theta = np.zeros((model.n_words, n_slots))
        state = State(
            z,
            sizes,
            np.zeros((2, n_slots)),
            theta,
            np.zeros(n_slots),
            np.ones(1),
            np.zeros((shown, shown)),
            LaterLogAverage(model.held.n_documents),
        )
        counts, of_sticks = np.zeros_like(theta), np.zeros((2, n_slots))
        count(np.arange(n), model.training.offsets, model.training.words, z, counts, of_sticks)
        used = np.flatnonzero(sizes)[-1] + 1
        theta[:, :used] = np.maximum(rng.standard_gamma(model.prior + counts[:, :used]), TINY)
        shape = np.array([[1.0], state.alpha]) + of_sticks[:, :used]
        state.gammas[:, :used] = np.maximum(rng.standard_gamma(shape), TINY)
        measure(state, used)
        return state

    def advance(self, model: Mixture, state: State, rng: Generator) -> int:
        """Slices, new sticks and z of a batch, then the move of all clusters."""
        data, batch = model.training, self.batch(model, rng)
        if not assign(
            rng,
            batch,
            data.offsets,
            data.words,
            state.z,
            state.sizes,
            state.gammas,
            state.theta,
            state.alpha,
            model.alpha_mean,
            model.prior,
            model.shown,
            state.together,
        ):
            raise FloatingPointError(f"A step needs more than {model.n_slots:,} clusters, for which there is no room.")
        counts, of_sticks = np.empty_like(state.theta), np.empty_like(state.gammas)
        count(batch, data.offsets, data.words, state.z, counts, of_sticks)
        used, factor = int(np.flatnonzero(state.sizes)[-1]) + 1, model.n_data / len(batch)
        of_words = np.full(model.n_words, model.prior)
        self.move(rng, state.theta, of_words, counts, factor, state.sizes, used, self.packed(False))
        of_both = np.array([1.0, state.alpha[0]])
        self.move(rng, state.gammas, of_both, of_sticks, factor, state.sizes, used, self.packed(True))
        measure(state, used)
        if not np.isfinite(state.weights).all():
            raise FloatingPointError(
                f"{self.title} left the numbers at step {state.steps + 1:,}: its step size is too large."
            )
        state.steps += 1
        return len(batch)

    def score(self, model: Mixture, state: State) -> float:
        """−log p in the mean, p averaged over the states at which it was asked for, of which the later ones count."""
        state.average.add(self.log_density(model, state))
        return -float(state.average.mean().mean())

    def log_density(self, model: Mixture, state: State) -> Array:
        """log p of each held-out document given the state."""
        out = np.empty(model.held.n_documents)
        log_density(model.held.offsets, model.held.words, state.theta, state.weights, model.held_new, out)
        return out

    def follow(self, model: Mixture, state: State) -> Array:
        return model.followed_of(state.sizes, float(state.alpha[0]))

    def snapshot(self, model: Mixture, state: State) -> Snapshot:
        """``z`` (N,): the cluster of every document, counted from the largest on; ``sizes`` (K,) in that order.
        ``sticks``: the lengths of all, in their own order. ``alpha`` (1,). ``together``: the share of the steps in
        which two of the documents that are shown were in one cluster. By slot, which a cluster keeps: ``shares``
        (slots,) of the documents, and the words with the largest θ, ``top_words`` and ``top_probabilities``
        (slots, 10).
        """
        order = np.argsort(-state.sizes, kind="stable")
        order = order[: np.count_nonzero(state.sizes)]
        rank = np.zeros(model.n_slots, dtype=np.int64)
        rank[order] = np.arange(len(order))
        used = int(np.flatnonzero(state.sizes)[-1]) + 1
        n_top = min(N_TOP, model.n_words)
        words, probabilities = np.zeros((model.n_slots, n_top), dtype=np.int64), np.zeros((model.n_slots, n_top))
        scale = 1 / state.theta[:, :used].sum(axis=0)
        top(state.theta, 0.0, scale, words[:used], probabilities[:used])
        return {
            "z": rank[state.z],
            "sizes": state.sizes[order],
            "sticks": state.weights[:used].copy(),
            "alpha": state.alpha.copy(),
            "together": state.together / max(state.steps, 1),
            "shares": state.sizes / model.n_data,
            "top_words": words,
            "top_probabilities": probabilities,
        }

    @abstractmethod
    def textbook_move(self, rng: Generator, x: float, shape: float, pull: float, sticks: bool) -> float:
        """One x_rk after the move, in plain Python: ``shape`` is its prior and count, ``pull`` N_k·/x_k·."""

    def textbook_step(self, rng, model, state):
        return textbook.step(self, rng, model, state)

    def textbook_unknowns(self, model, state):
        return state.theta


def measure(state: State, used: int) -> None:
    """Write the lengths of the sticks in use, and forget what lies beyond them."""
    v = state.gammas[0, :used] / state.gammas[:, :used].sum(axis=0)
    rest = state.gammas[1, :used] / state.gammas[:, :used].sum(axis=0)
    state.weights[:] = 0.0
    state.weights[:used] = v * np.cumprod(np.concatenate([[1.0], rest[:-1]]))
    state.gammas[:, used:] = 0.0
    state.theta[:, used:] = 0.0


class StochasticMixture(MixtureMethod):
    """A method over minibatches of documents."""

    batch_size = Count(
        100,
        bounds=(1, 100_000),
        log=True,
        tex="n",
        label="Documents in a step",
        doc="The number of documents that get a new cluster in a step, and that represent all documents in the update of the clusters' words and sticks.",
    )

    def batch(self, model: Mixture, rng: Generator) -> NDArray[np.int64]:
        size = min(int(self.batch_size), model.n_data)
        return rng.choice(model.n_data, size, replace=False, shuffle=False).astype(np.int64)
