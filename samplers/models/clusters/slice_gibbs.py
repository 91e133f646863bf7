"""Slice sampling of the sticks of a Dirichlet process mixture, without truncation."""

from math import inf, log
from typing import Any, ClassVar

import numpy as np
from numba import types
from numpy.random import Generator

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.base import Snapshot
from sgmcmc_lab.samplers.models.clusters import family, normal, textbook
from sgmcmc_lab.samplers.models.clusters.method import ClusterMethod, State
from sgmcmc_lab.samplers.models.clusters.model import ClusterModel
from sgmcmc_lab.samplers.models.clusters.split_merge import split_or_merge
from sgmcmc_lab.samplers.targets.base import Array

MAX_STICKS = 2000
"""A step that needs more ends the run. With α = 10 about α log(1/u*) = 140 sticks leave less than a u* of 1e-6."""


def step_type(prior):
    """The signature of a step with a prior of this type."""
    points, clusters = (jit.matrix, jit.integers), (jit.matrix, jit.matrix)
    more = types.int64, *clusters, jit.vector, prior, jit.vector, jit.integers, jit.matrix
    return types.int64(jit.rng_type, *points, *more)


def density_type(prior):
    """The signature of the density of points with a prior of this type."""
    return types.void(jit.matrix, jit.matrix, jit.vector, prior, jit.vector)


@jit.inlined
def step_of_family(rng, x, z, proposals, known, drawn, weights, prior, alpha, shown, together):
    """Propose splits and merges, draw α, the sticks and the clusters given z, then the slices and z; 0 where there are
    too many sticks, else 1.

    ``weights`` are w_k, the lengths of the sticks.
    """
    n, n_slots, n_clusters = len(x), len(known), 0
    for _ in range(proposals):
        split_or_merge(rng, x, z, known, prior, alpha[0])
    for k in range(n_slots):
        n_clusters += known[k, 0] > 0
    alpha[0] = normal.draw_concentration(rng, alpha[0], n_clusters, n)
    # Those of clusters with points, and all others together, ~ Dirichlet(N_1, …, N_K, α).
    left = rng.standard_gamma(alpha[0])
    whole, n_sticks = left, 0
    for k in range(n_slots):
        weights[k] = 0.0
        if known[k, 0] > 0:
            weights[k] = rng.standard_gamma(known[k, 0])
            whole += weights[k]
            family.draw(rng, known[k], prior, drawn[k])
            n_sticks = k + 1
    weights /= whole
    left /= whole
    # Slices u_i below the stick of each point, and as many sticks more as the lowest may reach.
    slices = np.empty(n)
    lowest = 1.0
    for i in range(n):
        slices[i] = rng.random() * weights[z[i]]
        lowest = min(lowest, slices[i])
    free = 0
    while left >= lowest:
        while free < n_slots and known[free, 0] > 0:
            free += 1
        if free == n_slots:
            return 0
        # 1 − v with v ~ Beta(1, α).
        rest = rng.random() ** (1 / alpha[0])
        weights[free] = left * (1 - rest)
        left *= rest
        family.draw(rng, known[free], prior, drawn[free])
        free += 1
        n_sticks = max(n_sticks, free)
    fitting = np.empty(n_sticks)
    for i in range(n):
        for k in range(n_sticks):
            fitting[k] = family.log_density(x[i], drawn[k], prior) if weights[k] > slices[i] else -inf
        total = normal.weigh(fitting, n_sticks)
        family.add(known[z[i]], x[i], -1.0, prior)
        if total > 0:
            z[i] = normal.pick(rng, fitting, n_sticks, total)
        family.add(known[z[i]], x[i], 1.0, prior)
    for k in range(n_slots):
        if weights[k] == 0:
            drawn[k] = 0.0
    normal.count_together(z, shown, together)
    return 1


@jit.helper
def add_density_of_family(x, drawn, weights, prior, out):
    """Add, in logs, the density of each point of x (M, d) given the sticks; beyond the last one clusters are as the
    prior has them.
    """
    left = 1.0
    for k in range(len(weights)):
        if weights[k] > 0:
            left -= weights[k]
            for i in range(len(x)):
                out[i] = np.logaddexp(out[i], log(weights[k]) + family.log_density(x[i], drawn[k], prior))
    family.add_new(x, prior, max(left, 0.0), out)


@jit.loop(step_type(jit.vector))
def step(rng, x, z, proposals, known, drawn, weights, prior, alpha, shown, together):
    return step_of_family(rng, x, z, proposals, known, drawn, weights, prior, alpha, shown, together)


@jit.loop(density_type(jit.vector))
def add_density(x, drawn, weights, prior, out):
    add_density_of_family(x, drawn, weights, prior, out)


class SliceGibbs(ClusterMethod):
    """Slice sampling of the sticks (Walker 2007; Ge, Chen, Wan & Ghahramani 2015).

    Update: splits and merges, with all but z and α integrated out (Dahl 2003); α given z (Escobar & West 1995); the
    sticks w of the clusters in use, and what is left beside them, ~ Dirichlet(N_1, …, N_K, α), and their μ_k, Σ_k given
    z; a slice u_i ~ U(0, w_{z_i}) for each point; new sticks, v ~ Beta(1, α) of what is left, and their clusters from
    the prior until the rest is below the lowest slice; then all z_i, each among the clusters whose stick is longer than
    its slice.
    Invariant distribution: p(z, μ, Σ, w, α | x), exactly, without a truncation. The sticks have no order, in which two
    clusters could change places but seldom. Given them the z are independent, so that they could be drawn at once; but
    a new cluster has to be hit by chance, and without splits a chain from one cluster stays there.
    """

    key = "cluster_slice"
    title = "Slice sampler"
    update = (
        r"\begin{aligned}(w_1,\ldots,w_K,\text{rest}) &\sim \mathrm{Dir}(N_1,\ldots,N_K,\alpha),\quad \mu_k,\Sigma_k \sim \mathrm{NIW}(\cdot\mid\{x_i: z_i=k\})\\"
        r"u_i &\sim \mathcal U(0, w_{z_i}),\quad p(z_i = k \mid \cdot) \propto \mathbb 1(w_k > u_i)\;\mathcal N(x_i;\mu_k,\Sigma_k)\end{aligned}"
    )
    source = "Walker 2007; Ge, Chen, Wan & Ghahramani 2015; Dahl 2003"
    step: ClassVar[Any] = step
    """The compiled step of the family."""
    add_density: ClassVar[Any] = add_density
    """The compiled density of points, given the sticks."""
    compiled = (step, add_density)

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        jit.keep_plain(cls, "step", "add_density")

    def n_slots(self, model: ClusterModel) -> int:
        return MAX_STICKS

    def start(self, model: ClusterModel, rng: Generator) -> State:
        """Random clusters, and their sticks given them."""
        state = self.first_state(model, rng)
        state.extra["weights"] = np.zeros(MAX_STICKS)
        self._step(model, state, 0, rng)
        state.together[:] = 0.0
        return state

    def _step(self, model: ClusterModel, state: State, proposals: int, rng: Generator) -> None:
        known, drawn, weights = state.known, state.drawn, state.extra["weights"]
        if not self.step(
            rng,
            model.x,
            state.z,
            proposals,
            known,
            drawn,
            weights,
            model.prior,
            state.alpha,
            model.shown,
            state.together,
        ):
            raise FloatingPointError(f"A step needs more than {MAX_STICKS:,} sticks.")

    def advance(self, model: ClusterModel, state: State, rng: Generator) -> int:
        """One sweep over sticks, clusters and points."""
        self._step(model, state, self.proposals(model, model.n_data, rng), rng)
        state.steps += 1
        return model.n_data

    def density(self, model: ClusterModel, state: State, out: Array) -> None:
        self.add_density(model.held, state.drawn, state.extra["weights"], model.prior, out)

    def snapshot(self, model: ClusterModel, state: State) -> Snapshot:
        """As of every method; and ``sticks``: the lengths of all sticks."""
        weights = state.extra["weights"]
        return super().snapshot(model, state) | {"sticks": weights[weights > 0]}

    tried_at = ({"split_merge": 0}, {"start_clusters": 4, "split_merge": 3})

    def textbook_step(self, rng, model, state):
        z, n_slots = state.z, len(state.known)
        for _ in range(textbook.proposals(self.split_merge, rng)):
            textbook.split_or_merge(rng, model, state)
        sizes = np.bincount(z, minlength=n_slots)
        state.alpha[0] = textbook.draw_concentration(rng, state.alpha[0], len(np.unique(z)), len(z))
        left, w, clusters = rng.standard_gamma(state.alpha[0]), {}, {}
        for k in map(int, np.flatnonzero(sizes)):
            w[k] = rng.standard_gamma(sizes[k])
            clusters[k] = textbook.draw(rng, model, model.x[z == k])
        whole = left + sum(w.values())
        left, w = left / whole, {k: each / whole for k, each in w.items()}
        u = np.array([rng.random() * w[k] for k in z])
        empty = iter(np.flatnonzero(sizes == 0))
        while left >= u.min():
            k, rest = int(next(empty)), rng.random() ** (1 / state.alpha[0])
            w[k], left = left * (1 - rest), left * rest
            clusters[k] = textbook.draw(rng, model, model.x[:0])
        for i, x in enumerate(model.x):
            z[i] = textbook.pick(rng, {k: (w[k] > u[i]) * textbook.density(model, x, clusters[k]) for k in sorted(w)})
        state.extra["weights"][:] = [w.get(k, 0.0) for k in range(n_slots)]
        state.drawn[:] = [clusters.get(k, np.zeros(state.drawn.shape[1])) for k in range(n_slots)]
        textbook.finish(model, state)
        return len(z)


jit.keep_plain(SliceGibbs, "step", "add_density")
