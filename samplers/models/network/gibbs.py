"""The exact Gibbs sampler of the edge partition model (Zhou 2015): the reference."""

from dataclasses import dataclass
from math import log1p

import numpy as np
from numba import types
from numpy.random import Generator

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.average import LaterAverage
from sgmcmc_lab.samplers.models.network.joint import add_probabilities
from sgmcmc_lab.samplers.models.network.method import NetworkMethod
from sgmcmc_lab.samplers.models.network.model import Array, Network

TINY = 1e-300
"""The smallest weight: a gamma draw of a small shape may be zero in floating point."""

LARGEST_RATE = 1e7
"""A rate of an edge beyond it, or NaN, ends the run: e^{−rate} is nothing long before, and counts take time."""


@jit.helper
def _hidden_counts(rng, rates, rate, out):
    """Draw independent Poisson counts with these rates, whose sum is ``rate``, given that they are not all zero."""
    for k in range(rates.size):
        out[k] = 0
    if rate >= 1:
        while True:
            total = 0
            for k in range(rates.size):
                out[k] = rng.poisson(rates[k])
                total += out[k]
            if total > 0:
                return
    while True:
        # 1 + Poisson is Poisson given positive, tilted by the count.
        count = 1 + rng.poisson(rate)
        if rng.random() * count < 1:
            break
    for _ in range(count):
        left = rng.random() * rate
        k = 0
        while k < rates.size - 1:
            left -= rates[k]
            if left < 0:
                break
            k += 1
        out[k] += 1


@jit.helper
def _tables(rng, count, concentration):
    """A draw of CRT(count, concentration): the occupied tables when ``count`` customers have come."""
    tables = 0
    for customer in range(count):
        tables += rng.random() * (concentration + customer) < concentration
    return tables


@jit.helper
def _draw_gamma(rng, shape, rate):
    return max(rng.standard_gamma(shape) / rate, TINY)


@jit.loop(
    types.boolean(
        jit.rng_type,
        jit.matrix,
        jit.vector,
        jit.vector,
        jit.vector,
        jit.vector,
        jit.integer_matrix,
        jit.integers,
        jit.integers,
        jit.vector,
    )
)
def sweep(rng, w, r, a, c, top, edges, held_first, held_other, prior):
    """Draw every unknown once from its conditional, in place; whether that could be done. ``top`` holds γ₀ and c₀.

    The held-out partners of node i are held_other[held_first[i] : held_first[i + 1]].
    """
    n, n_communities = w.shape
    e, g = prior
    node_counts = np.zeros((n, n_communities), np.int64)
    counts, drawn = np.zeros(n_communities, np.int64), np.zeros(n_communities, np.int64)
    rates = np.empty(n_communities)

    # The hidden counts m_ijk of every observed edge.
    for index in range(edges.shape[0]):
        i, j = edges[index]
        rate = 0.0
        for k in range(n_communities):
            rates[k] = r[k] * w[i, k] * w[j, k]
            rate += rates[k]
        if not rate < LARGEST_RATE:
            return False
        _hidden_counts(rng, rates, rate, drawn)
        for k in range(n_communities):
            node_counts[i, k] += drawn[k]
            node_counts[j, k] += drawn[k]
            counts[k] += drawn[k]

    # For each node a_i without its weights, then the weights, then c_i.
    whole = w.sum(axis=0)
    others = np.empty(n_communities)
    for i in range(n):
        tables, logs = 0, 0.0
        for k in range(n_communities):
            others[k] = whole[k] - w[i, k]
        for p in range(held_first[i], held_first[i + 1]):
            for k in range(n_communities):
                others[k] -= w[held_other[p], k]
        for k in range(n_communities):
            # The rounding of the subtractions may leave less than nothing.
            others[k] = max(others[k], 0.0) * r[k]
            tables += _tables(rng, node_counts[i, k], a[i])
            logs += log1p(others[k] / c[i])
        a[i] = _draw_gamma(rng, e + tables, e + logs)
        sum_w = 0.0
        for k in range(n_communities):
            whole[k] -= w[i, k]
            w[i, k] = _draw_gamma(rng, a[i] + node_counts[i, k], c[i] + others[k])
            whole[k] += w[i, k]
            sum_w += w[i, k]
        c[i] = _draw_gamma(rng, 1 + n_communities * a[i], 1 + sum_w)

    # γ₀ without r, then r, then c₀.
    both = np.zeros(n_communities)
    for k in range(n_communities):
        below = 0.0
        for i in range(n):
            both[k] += below * w[i, k]
            below += w[i, k]
    for i in range(n):
        for p in range(held_first[i], held_first[i + 1]):
            j = held_other[p]
            if i < j:
                for k in range(n_communities):
                    both[k] -= w[i, k] * w[j, k]
    tables, logs = 0, 0.0
    for k in range(n_communities):
        both[k] = max(both[k], 0.0)
        tables += _tables(rng, counts[k], top[0] / n_communities)
        logs += log1p(both[k] / top[1])
    top[0] = _draw_gamma(rng, g + tables, g + logs / n_communities)
    for k in range(n_communities):
        r[k] = _draw_gamma(rng, top[0] / n_communities + counts[k], top[1] + both[k])
    top[1] = _draw_gamma(rng, 1 + top[0], 1 + r.sum())
    return True


@dataclass
class GibbsState:
    """The last draw, and the average over draws."""

    w: Array
    r: Array
    a: Array
    c: Array
    top: Array
    """γ₀ and c₀."""
    average: LaterAverage


class NetworkGibbs(NetworkMethod):
    """The Gibbs sampler of Zhou 2015 with r in the rate; its distribution is the exact posterior.

    Hidden counts m_ijk ~ Poisson(r_k w_ik w_jk) with y_ij = 1(Σ_k m_ijk > 0) make every conditional a gamma.
    a_i is drawn with the weights of its node integrated out, and γ₀ with r, through the tables of a Chinese restaurant.
    A step is one sweep over all unknowns; each is a sum over the observed pairs only.
    """

    key = "network_gibbs"
    title = "Gibbs"
    update = (
        r"\begin{aligned}m_{ij} &\sim \mathrm{Poisson}_{+}\Bigl(\sum_k r_k w_{ik} w_{jk}\Bigr),\quad "
        r"(m_{ijk})_k \sim \mathrm{Mult}\bigl(m_{ij}, \propto r_k w_{ik} w_{jk}\bigr)\\"
        r"w_{ik} &\sim \mathrm{Gamma}\Bigl(a_i + m_{i\cdot k},\; c_i + r_k \sum_j w_{jk}\Bigr),\quad "
        r"r_k \sim \mathrm{Gamma}\Bigl(\tfrac{\gamma_0}{K} + m_{\cdot\cdot k},\; c_0 + \sum_{i<j} w_{ik} w_{jk}\Bigr)\end{aligned}"
    )
    source = "Zhou 2015, section 3"
    compiled = (sweep, add_probabilities)

    def start(self, model: Network, rng: Generator) -> GibbsState:
        """Random weights about those that give the graph's density."""
        w, r = model.weights(model.first_guess(rng))
        n = model.data.n_nodes
        state = GibbsState(w, r, np.ones(n), np.ones(n), np.ones(2), LaterAverage(len(model.held)))
        model.add_held_out(w, r, state.average.next())
        return state

    def advance(self, model: Network, state: GibbsState, rng: Generator) -> int:
        """One sweep."""
        first, other = model.held_of
        if not sweep(rng, state.w, state.r, state.a, state.c, state.top, model.edges, first, other, model.prior):
            raise FloatingPointError(f"The rate of an edge is no longer below {LARGEST_RATE:,.0f}.")
        model.add_held_out(state.w, state.r, state.average.next())
        return model.n_data

    def score(self, model: Network, state: GibbsState) -> float:
        """AUC of the running average."""
        return model.score(state.average.mean())

    def weights(self, model: Network, state: GibbsState) -> tuple[Array, Array]:
        """The weights of the last draw."""
        return state.w, state.r

    tried_at = ({},)

    def textbook_step(self, rng, model, state):
        n, k = state.w.shape
        w, r, a, c, top = state.w, state.r, state.a, state.c, state.top
        mine = np.zeros((n, k), dtype=int)
        for i, j in model.edges:
            counts = textbook_counts(rng, r * w[i] * w[j])
            mine[i] += counts
            mine[j] += counts
        all_counts = mine.sum(axis=0) // 2
        held = np.eye(n, dtype=bool)
        held[tuple(model.held.T)] = held[tuple(model.held.T[::-1])] = True

        def tables(count, mass):
            return sum(rng.random() * (mass + m) < mass for m in range(count))

        for i in range(n):
            others = r * w[~held[i]].sum(axis=0)
            seated = sum(tables(mine[i, z], a[i]) for z in range(k))
            e = model.a_prior
            a[i] = rng.standard_gamma(e + seated) / (e + np.log1p(others / c[i]).sum())
            w[i] = [max(rng.standard_gamma(a[i] + mine[i, z]) / (c[i] + others[z]), 1e-300) for z in range(k)]
            c[i] = rng.standard_gamma(1 + k * a[i]) / (1 + w[i].sum())
        pairs = np.argwhere(~held & (np.arange(n)[:, None] < np.arange(n)))
        both = (w[pairs[:, 0]] * w[pairs[:, 1]]).sum(axis=0)
        seated = sum(tables(all_counts[z], top[0] / k) for z in range(k))
        g = model.mass_prior
        top[0] = rng.standard_gamma(g + seated) / (g + np.log1p(both / top[1]).sum() / k)
        r[:] = [max(rng.standard_gamma(top[0] / k + all_counts[z]) / (top[1] + both[z]), 1e-300) for z in range(k)]
        top[1] = rng.standard_gamma(1 + top[0]) / (1 + r.sum())
        model.add_held_out(w, r, state.average.next())
        return model.n_data

    def textbook_unknowns(self, model, state):
        return np.concatenate([state.w.ravel(), state.r])


def textbook_counts(rng, rates):
    """Poisson counts with these rates, given that they are not all zero."""
    if rates.sum() >= 1:
        while True:
            counts = np.array([rng.poisson(rate) for rate in rates])
            if counts.any():
                return counts
    while True:
        n = 1 + rng.poisson(rates.sum())
        if rng.random() * n < 1:
            break
    counts = np.zeros(len(rates), dtype=int)
    for _ in range(n):
        counts[textbook.pick(rates, rng.random())] += 1
    return counts
