"""Collapsed Gibbs sampling of a Dirichlet process mixture: the reference."""

from math import log
from typing import Any, ClassVar

import numpy as np
from numba import types
from numpy.random import Generator

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.clusters import family, normal, textbook
from sgmcmc_lab.samplers.models.clusters.method import ClusterMethod, State
from sgmcmc_lab.samplers.models.clusters.model import ClusterModel
from sgmcmc_lab.samplers.models.clusters.split_merge import split_or_merge
from sgmcmc_lab.samplers.targets.base import Array


def sweep_type(prior):
    """The signature of a sweep with a prior of this type."""
    points = jit.matrix, jit.integers
    return types.void(jit.rng_type, *points, types.int64, jit.matrix, prior, jit.vector, jit.integers, jit.matrix)


@jit.inlined
def sweep_of_family(rng, x, z, proposals, known, prior, alpha, shown, together):
    """Draw z_i of every point given all the others, propose splits and merges, and draw α given z, in place."""
    n_slots = len(known)
    fit, logs = np.empty((n_slots, family.n_next(prior))), np.zeros(n_slots)
    top = 0
    for k in range(n_slots):
        if known[k, 0] > 0:
            top = k + 1
            family.predict(known[k], prior, fit[k])
    new = family.predict_new(prior)
    for i in range(len(x)):
        family.add(known[z[i]], x[i], -1.0, prior)
        family.predict(known[z[i]], prior, fit[z[i]])
        for k in range(top):
            if known[k, 0] > 0:
                logs[k] = family.next_log_density(x[i], fit[k], prior)
        alone = log(alpha[0]) + family.next_log_density(x[i], new, prior)
        z[i], top = normal.seat(rng, known, logs, top, alone)
        family.add(known[z[i]], x[i], 1.0, prior)
        family.predict(known[z[i]], prior, fit[z[i]])
    for _ in range(proposals):
        split_or_merge(rng, x, z, known, prior, alpha[0])
    n_clusters = 0
    for k in range(n_slots):
        n_clusters += known[k, 0] > 0
    alpha[0] = normal.draw_concentration(rng, alpha[0], n_clusters, len(x))
    normal.count_together(z, shown, together)


@jit.helper
def add_density_of_family(x, known, prior, alpha, out):
    """Add, in logs, the density of each point of x (M, d) as the next one, given the clusters of the others."""
    fit, whole = np.empty(family.n_next(prior)), known[:, 0].sum() + alpha
    for k in range(len(known)):
        if known[k, 0] > 0:
            family.predict(known[k], prior, fit)
            for i in range(len(x)):
                out[i] = np.logaddexp(out[i], log(known[k, 0] / whole) + family.next_log_density(x[i], fit, prior))
    family.add_new(x, prior, alpha / whole, out)


@jit.loop(sweep_type(jit.vector))
def sweep(rng, x, z, proposals, known, prior, alpha, shown, together):
    sweep_of_family(rng, x, z, proposals, known, prior, alpha, shown, together)


@jit.loop(types.void(jit.matrix, jit.matrix, jit.vector, types.float64, jit.vector))
def add_density(x, known, prior, alpha, out):
    add_density_of_family(x, known, prior, alpha, out)


class CollapsedGibbs(ClusterMethod):
    """Collapsed Gibbs sampling (Neal 2000, Algorithm 3), with μ, Σ and w integrated out.

    Update: each z_i in turn given all others: cluster k with probability ∝ N_{k,−i} p(x_i | its other points), a new
    one ∝ α p(x_i), Student's t densities; splits and merges (Dahl 2003); then α given z (Escobar & West 1995).
    Invariant distribution: p(z, α | x), exactly.
    """

    key = "cluster_collapsed"
    title = "Collapsed Gibbs"
    update = (
        r"\begin{aligned}p(z_i = k \mid z_{-i}, x) &\propto N_{k,-i}\; p(x_i \mid \{x_j : z_j = k, j \ne i\})\\"
        r"p(z_i = \text{new} \mid z_{-i}, x) &\propto \alpha\; p(x_i)\end{aligned}"
    )
    source = "Neal 2000, Algorithm 3; Dahl 2003; Escobar & West 1995"
    sweep: ClassVar[Any] = sweep
    """The compiled sweep of the family."""
    add_density: ClassVar[Any] = add_density
    """The compiled density of points, given the clusters."""
    compiled = (sweep, add_density)

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        jit.keep_plain(cls, "sweep", "add_density")

    def start(self, model: ClusterModel, rng: Generator) -> State:
        return self.first_state(model, rng)

    def advance(self, model: ClusterModel, state: State, rng: Generator) -> int:
        """One sweep over all points."""
        proposals = self.proposals(model, model.n_data, rng)
        self.sweep(rng, model.x, state.z, proposals, state.known, model.prior, state.alpha, model.shown, state.together)
        state.steps += 1
        return model.n_data

    def density(self, model: ClusterModel, state: State, out: Array) -> None:
        self.add_density(model.held, state.known, model.prior, state.alpha[0], out)

    tried_at = ({"split_merge": 0}, {"start_clusters": 4, "split_merge": 3})

    def textbook_step(self, rng, model, state):
        z, n_slots = state.z, len(state.known)
        proposals = textbook.proposals(self.split_merge, rng)
        for i, x in enumerate(model.x):
            others = np.arange(len(z)) != i
            sizes = np.bincount(z[others], minlength=n_slots)
            new = int(np.flatnonzero(sizes == 0)[0])
            weights = {}
            for k in np.flatnonzero((sizes > 0) | (np.arange(n_slots) == new)):
                mine = model.x[others & (z == k)]
                weights[k] = (len(mine) or state.alpha[0]) * textbook.next_density(model, mine, x)
            z[i] = textbook.pick(rng, weights)
        for _ in range(proposals):
            textbook.split_or_merge(rng, model, state)
        state.alpha[0] = textbook.draw_concentration(rng, state.alpha[0], len(np.unique(z)), len(z))
        textbook.finish(model, state)
        return len(z)


jit.keep_plain(CollapsedGibbs, "sweep", "add_density")
