"""Slice sampling of the sticks of a Dirichlet process mixture, without truncation."""

import numpy as np
from numba import types
from numpy.random import Generator

from samplers import jit
from samplers.models.base import Snapshot
from samplers.models.clusters import normal, textbook
from samplers.models.clusters.method import ClusterMethod, State
from samplers.models.clusters.model import Clusters
from samplers.targets.base import Array

MAX_STICKS = 2000
"""A step that needs more ends the run. With α = 10 about α log(1/u*) = 140 sticks leave less than a u* of 1e-6."""


@jit.loop(
    types.int64(
        jit.rng_type, jit.matrix, jit.integers, jit.matrix, jit.matrix, jit.vector, jit.vector, jit.vector,
        jit.integers, jit.matrix,
    )
)  # fmt: skip
def step(rng, x, z, known, drawn, weights, prior, alpha, shown, together):
    """Draw the sticks and clusters given z, then α, the slices and z; how many sticks there are, 0 where too many.

    ``weights`` are w_k, the lengths of the sticks.
    """
    n, n_used, n_slots = len(x), 0, len(known)
    for k in range(n_slots):
        if known[k, 0] > 0:
            n_used = k + 1
    # v_k ~ Beta(1 + N_k, α + Σ_{l>k} N_l), and μ_k, Σ_k: of an empty cluster from the prior.
    beyond, left, logs = float(n), 1.0, 0.0
    for k in range(n_used):
        beyond -= known[k, 0]
        one, log_rest = rng.standard_gamma(1 + known[k, 0]), normal.log_gamma(rng, alpha[0] + beyond)
        both = one + np.exp(log_rest)
        weights[k] = left * one / both
        left *= np.exp(log_rest) / both
        logs += log_rest - np.log(both)
        normal.draw(rng, known[k], prior, drawn[k])
    alpha[0] = rng.standard_gamma(1.0 + n_used) / (1 - logs)
    # Slices u_i below the stick of each point, and as many sticks more as the lowest may reach.
    slices = np.empty(n)
    lowest = 1.0
    for i in range(n):
        slices[i] = rng.random() * weights[z[i]]
        lowest = min(lowest, slices[i])
    n_sticks = n_used
    while left >= lowest:
        if n_sticks == n_slots:
            return 0
        one, rest = rng.standard_gamma(1.0), np.exp(normal.log_gamma(rng, alpha[0]))
        weights[n_sticks] = left * one / (one + rest)
        left *= rest / (one + rest)
        normal.draw(rng, known[n_sticks], prior, drawn[n_sticks])
        n_sticks += 1
    fitting = np.empty(n_sticks)
    for i in range(n):
        total = 0.0
        for k in range(n_sticks):
            fitting[k] = normal.density(x[i], drawn[k]) if weights[k] > slices[i] else 0.0
            total += fitting[k]
        normal.add(known[z[i]], x[i], -1.0)
        if total > 0:
            z[i] = normal.pick(rng, fitting, n_sticks, total)
        normal.add(known[z[i]], x[i], 1.0)
    for k in range(n_sticks, n_slots):
        weights[k] = 0.0
        drawn[k] = 0.0
    normal.count_together(z, shown, together)
    return n_sticks


@jit.loop(types.void(jit.matrix, jit.matrix, jit.vector, jit.vector, jit.vector))
def add_density(x, drawn, weights, prior, out):
    """Add the density of each point of x (M, 2) given the sticks; beyond the last one clusters are as the prior has
    them.
    """
    left = 1.0
    for k in range(len(weights)):
        if weights[k] > 0:
            left -= weights[k]
            for i in range(len(x)):
                out[i] += weights[k] * normal.density(x[i], drawn[k])
    normal.add_new(x, prior, max(left, 0.0), out)


class SliceGibbs(ClusterMethod):
    """Slice sampling of the sticks (Walker 2007; Kalli, Griffin & Walker 2011).

    Update: the sticks v_k and the clusters μ_k, Σ_k given z; α given the sticks in use; a slice u_i ~ U(0, w_{z_i})
    for each point; new sticks and clusters from the prior until the rest is below the lowest slice; then all z_i, each
    among the clusters whose stick is longer than its slice.
    Invariant distribution: p(z, μ, Σ, w, α | x), exactly, without a truncation. Given the sticks the z are independent,
    so that they could be drawn at once; but two clusters seldom change places, and a new one has to be hit by chance.
    """

    key = "cluster_slice"
    title = "Slice sampler"
    update = (
        r"\begin{aligned}v_k &\sim \mathrm{Beta}\bigl(1+N_k,\;\alpha+\textstyle\sum_{l>k}N_l\bigr),\quad "
        r"w_k = v_k\textstyle\prod_{l<k}(1-v_l),\quad \mu_k,\Sigma_k \sim \mathrm{NIW}(\cdot\mid\{x_i: z_i=k\})\\"
        r"u_i &\sim \mathcal U(0, w_{z_i}),\quad p(z_i = k \mid \cdot) \propto \mathbb 1(w_k > u_i)\;\mathcal N(x_i;\mu_k,\Sigma_k)\end{aligned}"
    )
    source = "Walker 2007; Kalli, Griffin & Walker 2011"
    compiled = (step, add_density)

    def n_slots(self, model: Clusters) -> int:
        return MAX_STICKS

    def start(self, model: Clusters, rng: Generator) -> State:
        """Random clusters, and their sticks given them."""
        state = self.first_state(model, rng)
        state.extra["weights"] = np.zeros(MAX_STICKS)
        self._step(model, state, rng)
        state.together[:] = 0.0
        return state

    def _step(self, model: Clusters, state: State, rng: Generator) -> None:
        known, drawn, weights = state.known, state.drawn, state.extra["weights"]
        if not step(
            rng, model.x, state.z, known, drawn, weights, model.prior, state.alpha, model.shown, state.together
        ):
            raise FloatingPointError(f"A step needs more than {MAX_STICKS:,} sticks.")

    def advance(self, model: Clusters, state: State, rng: Generator) -> int:
        """One sweep over sticks, clusters and points."""
        self._step(model, state, rng)
        state.steps += 1
        return model.n_data

    def density(self, model: Clusters, state: State, out: Array) -> None:
        add_density(model.held, state.drawn, state.extra["weights"], model.prior, out)

    def snapshot(self, model: Clusters, state: State) -> Snapshot:
        """As of every method; and ``sticks``: the lengths of all sticks, in their order."""
        weights = state.extra["weights"]
        return super().snapshot(model, state) | {"sticks": weights[: np.count_nonzero(weights)].copy()}

    tried_at = ({}, {"start_clusters": 4})

    def textbook_step(self, rng, model, state):
        z, n_used = state.z, state.z.max() + 1
        v, clusters, logs = [], [], 0.0
        for k in range(n_used):
            one = rng.standard_gamma(1 + (z == k).sum())
            log_rest = textbook.log_gamma(rng, state.alpha[0] + (z > k).sum())
            v.append(one / (one + np.exp(log_rest)))
            logs += log_rest - np.log(one + np.exp(log_rest))
            clusters.append(textbook.draw(rng, model, model.x[z == k]))
        state.alpha[0] = rng.standard_gamma(1 + n_used) / (1 - logs)

        def lengths():
            return np.array(v) * np.cumprod([1, *(1 - np.array(v[:-1]))])

        u = np.array([rng.random() * lengths()[k] for k in z])
        while np.prod(1 - np.array(v)) >= u.min():
            one, rest = rng.standard_gamma(1.0), np.exp(textbook.log_gamma(rng, state.alpha[0]))
            v.append(one / (one + rest))
            clusters.append(textbook.draw(rng, model, model.x[:0]))
        w = lengths()
        for i, x in enumerate(model.x):
            z[i] = textbook.pick(rng, {k: (w[k] > u[i]) * textbook.density(x, clusters[k]) for k in range(len(v))})
        state.extra["weights"][:] = np.pad(w, (0, MAX_STICKS - len(v)))
        state.drawn[:] = 0.0
        state.drawn[: len(v)] = clusters
        textbook.finish(model, state)
        return len(z)
