"""The infinite relational model by collapsed Gibbs sampling: what Knowles 2015 compares with."""

from dataclasses import dataclass
from math import exp, lgamma, log

import numpy as np
from numba import types
from numpy.random import Generator
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.average import LaterAverage
from sgmcmc_lab.samplers.models.base import Snapshot
from sgmcmc_lab.samplers.models.clusters.normal import draw_concentration
from sgmcmc_lab.samplers.models.network.method import NetworkMethod
from sgmcmc_lab.samplers.models.network.model import Array, Network
from sgmcmc_lab.samplers.parameters import Real

Counts = NDArray[np.int64]
SLOTS = 16
"""Clusters that there is room for at first; the room is doubled where it does not do."""


@jit.helper
def _log_beta(edges, pairs, prior):
    """log ∫ η^edges (1 − η)^(pairs − edges) Beta(η; prior, prior) dη, but for a constant."""
    return lgamma(prior + edges) + lgamma(prior + pairs - edges) - lgamma(2 * prior + pairs)


@jit.helper
def _move(sign, k, edges_of, pairs_of, edges, pairs):
    """Count the pairs of a node, by its partners' clusters, among those of cluster k, or no longer."""
    for b in range(edges_of.size):
        edges[k, b] += sign * edges_of[b]
        pairs[k, b] += sign * pairs_of[b]
        if b != k:
            edges[b, k] += sign * edges_of[b]
            pairs[b, k] += sign * pairs_of[b]


@jit.loop(
    types.int64(
        jit.rng_type,
        types.int64,
        jit.integers,
        jit.integers,
        jit.integer_matrix,
        jit.integer_matrix,
        jit.vector,
        jit.integers,
        jit.integers,
        jit.integers,
        jit.integers,
        types.float64,
    )
)
def sweep(rng, first, z, sizes, edges, pairs, alpha, edge_first, edge_other, held_first, held_other, prior):
    """Draw z_i of every node from ``first`` on given all others, then α; in place.

    The node at which there is no room for a new cluster, which has not been moved, or the number of nodes.
    ``sizes`` (slots,), ``edges`` and ``pairs`` (slots, slots) are counts of the nodes, of the observed edges and of the
    observed pairs between clusters.
    """
    n, slots = z.size, sizes.size
    edges_of, pairs_of = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    logs, there = np.empty((slots, slots)), np.empty(slots)
    for a in range(slots):
        for b in range(slots):
            logs[a, b] = _log_beta(edges[a, b], pairs[a, b], prior)
    nothing = _log_beta(0, 0, prior)
    for i in range(first, n):
        new = 0
        while new < slots and sizes[new] > 0:
            new += 1
        if new == slots:
            return i
        old = z[i]
        sizes[old] -= 1
        for b in range(slots):
            edges_of[b], pairs_of[b] = 0, sizes[b]
        for p in range(edge_first[i], edge_first[i + 1]):
            edges_of[z[edge_other[p]]] += 1
        for p in range(held_first[i], held_first[i + 1]):
            pairs_of[z[held_other[p]]] -= 1
        _move(-1, old, edges_of, pairs_of, edges, pairs)
        for b in range(slots):
            logs[old, b] = logs[b, old] = _log_beta(edges[old, b], pairs[old, b], prior)
        if sizes[old] == 0:
            new = min(new, old)
        fresh = log(alpha[0])
        for b in range(slots):
            if pairs_of[b] > 0:
                fresh += _log_beta(edges_of[b], pairs_of[b], prior) - nothing
        largest = fresh
        for a in range(slots):
            if sizes[a] > 0:
                there[a] = log(float(sizes[a]))
                for b in range(slots):
                    if pairs_of[b] > 0:
                        there[a] += _log_beta(edges[a, b] + edges_of[b], pairs[a, b] + pairs_of[b], prior) - logs[a, b]
                largest = max(largest, there[a])
        there[new] = fresh
        total = 0.0
        for a in range(slots):
            there[a] = exp(there[a] - largest) if sizes[a] > 0 or a == new else 0.0
            total += there[a]
        left, chosen = rng.random() * total, new
        for a in range(slots):
            if there[a] > 0:
                chosen = a
                left -= there[a]
                if left < 0:
                    break
        z[i] = chosen
        sizes[chosen] += 1
        _move(1, chosen, edges_of, pairs_of, edges, pairs)
        for b in range(slots):
            logs[chosen, b] = logs[b, chosen] = _log_beta(edges[chosen, b], pairs[chosen, b], prior)
    n_clusters = 0
    for a in range(slots):
        n_clusters += sizes[a] > 0
    alpha[0] = draw_concentration(rng, alpha[0], n_clusters, n)
    return n


@dataclass
class IRMState:
    """The clusters and what is counted of them."""

    z: NDArray[np.int64]
    sizes: NDArray[np.int64]
    """(slots,): the nodes of each cluster; 0 where there is none."""
    edges: NDArray[np.int64]
    """(slots, slots): the observed edges between two clusters, within one on the diagonal."""
    pairs: NDArray[np.int64]
    """The same of all observed pairs."""
    alpha: Array
    average: LaterAverage


def counted(model: Network, z: NDArray[np.int64], slots: int) -> tuple[Counts, Counts, Counts]:
    """The nodes, observed edges and observed pairs of clusters, as :class:`IRMState` has them, counted anew."""
    sizes = np.bincount(z, minlength=slots)

    def between(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        out = np.zeros((slots, slots), np.int64)
        a, b = z[pairs].T
        np.add.at(out, (a, b), 1)
        np.add.at(out, (b[a != b], a[a != b]), 1)
        return out

    pairs = np.outer(sizes, sizes) - np.diag(sizes * (sizes + 1) // 2)
    return sizes, between(model.edges), pairs - between(model.held)


class NetworkIRM(NetworkMethod):
    """The infinite relational model (Kemp & Tenenbaum 2006): another model of the same graph, and its exact posterior.

    Each node is in one cluster, z ~ CRP(α) with α ~ Gamma(1, 1); P(y_ij = 1) = η_{z_i z_j}, and η_ab = η_ba ~
    Beta(β, β), integrated out. A step draws each z_i given the others, and α (Escobar & West 1995). With e and n the
    observed edges and pairs between two clusters, the held-out pairs left out, the predicted probability given z is
    (e + β)/(n + 2β). There is no truncation: K says how
    many clusters there are at the start and how many are shown, the last of which is all others.
    """

    key = "network_irm"
    title = "IRM"
    update = (
        r"\begin{aligned}p(z_i = a \mid z_{-i}, Y) &\propto N_a \prod_b \frac{B(e_{ab} + e_{ib} + \beta,\; f_{ab} + f_{ib} + \beta)}"
        r"{B(e_{ab} + \beta,\; f_{ab} + \beta)},\quad f = n - e\\"
        r"p(z_i = \text{new} \mid z_{-i}, Y) &\propto \alpha \prod_b \frac{B(e_{ib} + \beta,\; f_{ib} + \beta)}{B(\beta, \beta)}\end{aligned}"
    )
    source = "Kemp & Tenenbaum 2006; Knowles 2015, section 4.1"
    compiled = (sweep,)

    beta = Real(
        1.0,
        bounds=(1e-3, 100.0),
        log=True,
        tex=r"\beta",
        label="Prior of η: β",
        doc="The prior counts for each two clusters, of edges and equally of pairs without one.",
    )

    def start(self, model: Network, rng: Generator) -> IRMState:
        """Nodes in K clusters at random: from a single one the first step is the hardest."""
        z = rng.integers(model.n_communities, size=model.data.n_nodes)
        slots = max(SLOTS, int(model.n_communities))
        state = IRMState(z, *counted(model, z, slots), np.ones(1), LaterAverage(len(model.held)))
        self._predict(model, state)
        return state

    def advance(self, model: Network, state: IRMState, rng: Generator) -> int:
        """One sweep."""
        n, at = len(state.z), 0
        while at < n:
            at = sweep(
                rng,
                at,
                state.z,
                state.sizes,
                state.edges,
                state.pairs,
                state.alpha,
                *model.edge_of,
                *model.held_of,
                self.beta,
            )
            if at < n:
                state.sizes, state.edges, state.pairs = counted(model, state.z, 2 * len(state.sizes))
        self._predict(model, state)
        return model.n_data

    def _probability(self, state: IRMState) -> Array:
        """The probability of an edge between clusters (slots, slots), given z."""
        return np.asarray((state.edges + self.beta) / (state.pairs + 2 * self.beta))

    def _predict(self, model: Network, state: IRMState) -> None:
        """Count the present clusters in the average of the predictions."""
        a, b = state.z[model.held].T
        total = state.average.next()
        total += self._probability(state)[a, b]

    def score(self, model: Network, state: IRMState) -> float:
        """AUC of the running average."""
        return model.score(state.average.mean())

    def _explained(self, state: IRMState) -> Array:
        """−log(1 − η), summed over the pairs within a cluster and half of those with another, (slots,)."""
        rates = -np.log1p(-self._probability(state))
        pairs = np.outer(state.sizes, state.sizes) - np.diag(state.sizes)
        return np.asarray((rates * pairs).sum(axis=1) / 2)

    def follow(self, model: Network, state: IRMState) -> Array:
        return model.followed_from(self._explained(state))

    def weights(self, model: Network, state: IRMState) -> tuple[Array, Array]:
        """W is 1 where the node is in the cluster, the largest first; r is the rate within it."""
        k, order = model.n_communities, np.argsort(-state.sizes, kind="stable")
        column = np.minimum(np.argsort(order), k - 1)
        rates = -np.log1p(-self._probability(state).diagonal())[order]
        r = np.zeros(k)
        r[: len(rates)] = rates[:k]
        return np.eye(k)[column[state.z]], r

    def snapshot(self, model: Network, state: IRMState) -> Snapshot:
        """Clusters as communities, and each pair's own probability."""
        w, r = self.weights(model, state)
        community, shown = w.argmax(axis=1), state.z[model.shown]
        probability = self._probability(state)[np.ix_(shown, shown)]
        np.fill_diagonal(probability, 0.0)
        explained = np.zeros(model.n_communities)
        np.add.at(explained, community, (self._explained(state) / np.maximum(state.sizes, 1))[state.z])
        return {**model.picture(w, r), "community": community, "P": probability, "explained": explained}

    tried_at = ({}, {"beta": 0.2})

    def textbook_step(self, rng, model, state):
        z, beta, slots = state.z, self.beta, len(state.sizes)
        y, seen = np.zeros((len(z), len(z)), dtype=int), ~np.eye(len(z), dtype=bool)
        y[tuple(model.edges.T)] = y[tuple(model.edges.T[::-1])] = 1
        seen[tuple(model.held.T)] = seen[tuple(model.held.T[::-1])] = False
        for i in range(len(z)):
            others = np.arange(len(z)) != i
            sizes = np.bincount(z[others], minlength=slots)
            new, logs = int(np.flatnonzero(sizes == 0)[0]), np.full(slots, -np.inf)
            for k in map(int, np.flatnonzero((sizes > 0) | (np.arange(slots) == new))):
                z[i] = k
                logs[k] = np.log(sizes[k] or state.alpha[0]) + textbook_log_marginal(y, seen, z, beta)
            z[i] = textbook.pick(np.exp(logs - logs.max()), rng.random())
        state.sizes = np.bincount(z, minlength=slots)
        state.edges, state.pairs = np.zeros((2, slots, slots), dtype=int)
        for row, column in zip(*np.triu_indices(len(z), 1), strict=True):
            for a, b in {(z[row], z[column]), (z[column], z[row])}:
                state.edges[a, b] += y[row, column] and seen[row, column]
                state.pairs[a, b] += seen[row, column]
        one, n, clusters = rng.standard_gamma(state.alpha[0] + 1), len(z), len(np.unique(z))
        rate = 1 - np.log(one / (one + rng.standard_gamma(n)))
        odds = clusters / (n * rate)
        state.alpha[0] = rng.standard_gamma(clusters + (rng.random() * (1 + odds) < odds)) / rate
        total = state.average.next()
        for p, (i, j) in enumerate(model.held):
            block = np.outer(z == z[i], z == z[j]) & seen
            block = np.triu(block | block.T)
            total[p] += (y[block].sum() + beta) / (block.sum() + 2 * beta)
        return model.n_data

    def textbook_unknowns(self, model, state):
        k, w, r = model.n_communities, np.zeros((len(state.z), model.n_communities)), np.zeros(model.n_communities)
        for place, a in enumerate(sorted(range(len(state.sizes)), key=lambda a: -state.sizes[a])):
            w[state.z == a, min(place, k - 1)] = 1.0
            if place < k:
                r[place] = -np.log(1 - (state.edges[a, a] + self.beta) / (state.pairs[a, a] + 2 * self.beta))
        return np.concatenate([w.ravel(), r])


def textbook_log_marginal(y, seen, z, beta):
    """log p(Y | z), pair by pair counted: the product over pairs of clusters of beta functions."""
    out = 0.0
    labels = np.unique(z)
    for a in labels:
        for b in labels[labels >= a]:
            block = np.outer(z == a, z == b) & seen
            block = np.triu(block | block.T)
            edges, n = y[block].sum(), block.sum()
            out += lgamma(edges + beta) + lgamma(n - edges + beta) - lgamma(n + 2 * beta)
            out -= 2 * lgamma(beta) - lgamma(2 * beta)
    return out
