"""Minibatch Gibbs sampling of a Dirichlet process mixture, with the batch size chosen by its cost."""

from math import log
from typing import Any, ClassVar

import numpy as np
from numba import types
from numpy.random import Generator

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.base import Snapshot
from sgmcmc_lab.samplers.models.batch_size import Adaptation, sizes_to_try
from sgmcmc_lab.samplers.models.clusters import family, normal, textbook
from sgmcmc_lab.samplers.models.clusters.method import ClusterMethod, State
from sgmcmc_lab.samplers.models.clusters.model import ClusterModel
from sgmcmc_lab.samplers.models.clusters.split_merge import split_or_merge
from sgmcmc_lab.samplers.parameters import Count, Real
from sgmcmc_lab.samplers.targets.base import Array


def step_type(prior):
    """The signature of a step with a prior of this type."""
    chosen = jit.integers, types.int64, jit.integers
    more = jit.matrix, jit.matrix, prior, jit.vector, jit.integers, jit.matrix
    return types.float64(jit.rng_type, jit.matrix, *chosen, *more)


def density_type(prior):
    """The signature of the density of points with a prior of this type."""
    return types.void(jit.matrix, jit.matrix, jit.matrix, prior, types.float64, jit.vector)


@jit.inlined
def step_of_family(rng, x, chosen, proposals, z, known, drawn, prior, alpha, shown, together):
    """Draw z_i of the points that are chosen, propose splits and merges, then draw the parameters of every cluster and
    α, in place; how far all points are spread, in the mean.
    """
    n_slots = len(known)
    logs = np.zeros(n_slots)
    top = 0
    for k in range(n_slots):
        if known[k, 0] > 0:
            top = k + 1
    new = family.predict_new(prior)
    for i in chosen:
        family.add(known[z[i]], x[i], -1.0, prior)
        for k in range(top):
            if known[k, 0] > 0:
                logs[k] = family.log_density(x[i], drawn[k], prior)
        alone = log(alpha[0]) + family.next_log_density(x[i], new, prior)
        z[i], top = normal.seat(rng, known, logs, top, alone)
        family.add(known[z[i]], x[i], 1.0, prior)
        if known[z[i], 0] == 1:
            family.draw(rng, known[z[i]], prior, drawn[z[i]])
    for _ in range(proposals):
        split_or_merge(rng, x, z, known, prior, alpha[0])
    n_clusters, size = 0, 0.0
    for k in range(n_slots):
        if known[k, 0] > 0:
            family.draw(rng, known[k], prior, drawn[k])
            size += family.spread(known[k], drawn[k], prior)
            n_clusters += 1
        else:
            drawn[k] = 0.0
    alpha[0] = normal.draw_concentration(rng, alpha[0], n_clusters, len(x))
    normal.count_together(z, shown, together)
    return size / len(x)


@jit.helper
def add_density_of_family(x, known, drawn, prior, alpha, out):
    """Add, in logs, the density of each point of x (M, d) as the next one, given the clusters that were drawn."""
    whole = known[:, 0].sum() + alpha
    for k in range(len(known)):
        if known[k, 0] > 0:
            for i in range(len(x)):
                out[i] = np.logaddexp(out[i], log(known[k, 0] / whole) + family.log_density(x[i], drawn[k], prior))
    family.add_new(x, prior, alpha / whole, out)


@jit.loop(step_type(jit.vector))
def step(rng, x, chosen, proposals, z, known, drawn, prior, alpha, shown, together):
    return step_of_family(rng, x, chosen, proposals, z, known, drawn, prior, alpha, shown, together)


@jit.loop(density_type(jit.vector))
def add_density(x, known, drawn, prior, alpha, out):
    add_density_of_family(x, known, drawn, prior, alpha, out)


class MinibatchGibbs(ClusterMethod):
    """Minibatch Gibbs sampling (Smolyakov, Liu & Fisher, Algorithm 3), its batch size by their Algorithm 1.

    Update: z of m random points in turn given all others and the μ, Σ of their clusters, with w integrated out: cluster
    k with probability ∝ N_{k,−i} N(x_i; μ_k, Σ_k), a new one ∝ α p(x_i), the prior predictive, with its μ, Σ given x_i
    (Neal 2000, Algorithm 2); splits and merges, with μ and Σ integrated out (Dahl 2003); then μ_k, Σ_k given *all*
    points of each cluster, and α given z.
    Invariant distribution: p(z, μ, Σ, α | x), exactly, for every fixed m. With m = 0 the first steps try one size after
    another and keep that with the smallest f(m) = (m w_z + w_θ) τ_int(m), for Σ_k N_k tr Σ_k / N, which no exchange of
    clusters changes.
    """

    key = "cluster_minibatch"
    title = "Minibatch Gibbs"
    update = (
        r"\begin{aligned}p(z_i = k \mid \cdot) &\propto N_{k,-i}\;\mathcal N(x_i;\mu_k,\Sigma_k),\quad "
        r"p(z_i = \text{new} \mid \cdot) \propto \alpha\; p(x_i)\quad\text{for } m \text{ points } i\\"
        r"\mu_k, \Sigma_k &\sim \mathrm{NIW}(\cdot \mid \{x_i : z_i = k\})\end{aligned}"
    )
    source = "Smolyakov, Liu & Fisher, Algorithms 1 and 3; Neal 2000, Algorithm 2; Dahl 2003"
    chooses_batch_size = True
    step: ClassVar[Any] = step
    """The compiled step of the family."""
    add_density: ClassVar[Any] = add_density
    """The compiled density of points, given the clusters."""
    compiled = (step, add_density)

    batch_size = Count(
        50,
        bounds=(0, 100_000),
        tex="m",
        label="Points in a step",
        doc="The number of points whose clusters are drawn before the parameters of all clusters; 0 tries several sizes and keeps the best.",
    )
    cost_ratio = Real(
        8.0,
        bounds=(1e-2, 1e6),
        log=True,
        tex=r"w_\theta/w_z",
        label="Cost of the parameters",
        doc="The number of points whose clusters can be drawn in the time of one draw of the parameters of all clusters.",
    )
    trial = Count(
        400,
        bounds=(10, 100_000),
        log=True,
        label="Trial of a size",
        doc="The trial of one batch size costs as much as this many steps with all points. A size with fewer than 50 effective draws in its trial is not judged; if no size is judged, all points are used.",
    )

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        jit.keep_plain(cls, "step", "add_density")

    def start(self, model: ClusterModel, rng: Generator) -> State:
        """Random clusters, and their μ and Σ given their points."""
        state = self.first_state(model, rng)
        self.sweep(model, state, 0, rng)
        state.together[:] = 0.0
        if self.batch_size == 0:
            self.adaptation(model, state)
        return state

    def sweep(self, model: ClusterModel, state: State, size: int, rng: Generator) -> float:
        """A step with ``size`` points, in place; Σ_k N_k tr Σ_k / N of what it drew."""
        chosen = rng.choice(model.n_data, size, replace=False, shuffle=False)
        value = self.step(
            rng,
            model.x,
            chosen,
            self.proposals(model, size, rng),
            state.z,
            state.known,
            state.drawn,
            model.prior,
            state.alpha,
            model.shown,
            state.together,
        )
        return float(value)

    def adaptation(self, model: ClusterModel, state: State) -> Adaptation:
        """The trials of this run; they begin anew where their parameters were changed."""
        cost = self.trial * (model.n_data + self.cost_ratio)
        known = state.extra.get("adaptation")
        if known is None or (known.cost, known.overall) != (cost, self.cost_ratio):
            known = Adaptation(sizes_to_try(model.n_data), 1.0, self.cost_ratio, cost, self.trial // 10)
            state.extra["adaptation"] = known
        return known

    def advance(self, model: ClusterModel, state: State, rng: Generator) -> int:
        size = min(int(self.batch_size), model.n_data) or self.adaptation(model, state).size
        value = self.sweep(model, state, size, rng)
        state.steps += 1
        if self.batch_size == 0:
            self.adaptation(model, state).record(value, state.steps)
        return size

    def density(self, model: ClusterModel, state: State, out: Array) -> None:
        self.add_density(model.held, state.known, state.drawn, model.prior, state.alpha[0], out)

    def snapshot(self, model: ClusterModel, state: State) -> Snapshot:
        """As of every method; where the method chooses its batch size, also what its trials found."""
        seen = super().snapshot(model, state)
        return seen | self.adaptation(model, state).snapshot() if self.batch_size == 0 else seen

    tried_at = ({"batch_size": 3}, {"batch_size": 8, "start_clusters": 4, "split_merge": 5})

    def textbook_step(self, rng, model, state):
        z, n_slots, drawn = state.z, len(state.known), state.drawn
        chosen = rng.choice(len(z), min(self.batch_size, len(z)), replace=False, shuffle=False)
        proposals = textbook.proposals(self.split_merge * len(chosen) / len(z), rng)
        for i in chosen:
            x, others = model.x[i], np.arange(len(z)) != i
            sizes = np.bincount(z[others], minlength=n_slots)
            new = int(np.flatnonzero(sizes == 0)[0])
            weights = {k: sizes[k] * textbook.density(model, x, drawn[k]) for k in map(int, np.flatnonzero(sizes))}
            weights[new] = state.alpha[0] * textbook.next_density(model, model.x[:0], x)
            z[i] = textbook.pick(rng, dict(sorted(weights.items())))
            if z[i] == new:
                drawn[new] = textbook.draw(rng, model, model.x[[i]])
        for _ in range(proposals):
            textbook.split_or_merge(rng, model, state)
        for k in range(n_slots):
            mine = model.x[z == k]
            drawn[k] = textbook.draw(rng, model, mine) if len(mine) else 0.0
        state.alpha[0] = textbook.draw_concentration(rng, state.alpha[0], len(np.unique(z)), len(z))
        textbook.finish(model, state)
        return len(chosen)


jit.keep_plain(MinibatchGibbs, "step", "add_density")
