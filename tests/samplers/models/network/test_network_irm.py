"""The infinite relational model: its posterior by enumeration of all partitions, and the joint law by Geweke's test."""

import copy
from math import lgamma

import numpy as np
import pytest
from numpy.random import SFC64, Generator
from scipy import integrate, special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.average import LaterAverage
from sgmcmc_lab.samplers.models.network import irm
from sgmcmc_lab.samplers.models.network.graph import karate, make_graph
from sgmcmc_lab.samplers.models.network.irm import IRMState, NetworkIRM, counted, textbook_log_marginal
from sgmcmc_lab.samplers.models.network.model import Network, partners
from tests.helpers.statistics import batch_mean_and_error, failures, z_verdict

EDGES = np.array([[0, 1], [0, 2], [1, 2], [3, 4]])
BETA = 0.5


def tiny(n, edges, held=((1, 3),)):
    """A graph of n nodes with these edges, and these pairs held out."""
    model = copy.copy(Network(graph="florentine", n_communities=3))
    model.data, model.edges, model.held = make_graph(tuple("abcdefgh"[:n]), []), edges, np.array(held)
    model.edge_of, model.held_of = partners(model.edges, n), partners(model.held, n)
    jit.prepare(NetworkIRM.compiled)
    return model


def state_of(model, z, alpha):
    return IRMState(z, *counted(model, z, irm.SLOTS), np.array([alpha]), LaterAverage(len(model.held)))


def partitions(n):
    """All partitions of n nodes as labels, each in the order in which they first come."""
    found = [[0]]
    for _ in range(n - 1):
        found = [[*z, k] for z in found for k in range(max(z) + 2)]
    return [tuple(z) for z in found]


def canonical(z):
    labels = {}
    return tuple(labels.setdefault(k, len(labels)) for k in z)


def exact(model, beta):
    """p(z | Y) of every partition, α ~ Gamma(1, 1) integrated out by quadrature, and P(edge) of the held-out pair."""
    n = model.data.n_nodes
    y = model.data.adjacency().astype(int)
    y[tuple(model.edges.T)] = y[tuple(model.edges.T[::-1])] = 1
    seen = ~np.eye(n, dtype=bool)
    seen[tuple(model.held.T)] = seen[tuple(model.held.T[::-1])] = False

    def of_count(k):
        return integrate.quad(lambda a: np.exp(k * np.log(a) + lgamma(a) - lgamma(a + n) - a), 0, np.inf)[0]

    def crp(z):
        sizes = np.bincount(z)
        return of_count(len(sizes)) * np.exp(special.gammaln(sizes).sum())

    def likelihood(z):
        return np.exp(textbook_log_marginal(y, seen, np.array(z), beta))

    weights = {z: crp(z) * likelihood(z) for z in partitions(n)}
    total = sum(weights.values())
    i, j = model.held[0]
    y[i, j] = y[j, i] = seen[i, j] = seen[j, i] = True
    edge = sum(crp(z) * likelihood(z) for z in weights) / total
    return {z: weight / total for z, weight in weights.items()}, edge


def verdicts(fault="", sweeps=12_000):
    """The share of each partition and the mean prediction beside the exact ones; 1e-4 false alarms in all."""
    model = tiny(5, EDGES)
    p, edge = exact(model, BETA)
    method = NetworkIRM(beta=BETA * 1.3 if fault == "another prior" else BETA)
    if fault == "held-out pair counted":
        model.held = model.held[:0]
        model.held_of = partners(model.held, 5)
    if fault == "an edge left out":
        model.edge_of = partners(EDGES[:-1], 5)
    rng = Generator(SFC64(5))
    state = state_of(model, np.zeros(5, np.int64), 1.0)
    seen = {z: np.zeros(sweeps) for z in p}
    predicted = np.zeros(sweeps)
    for t in range(sweeps):
        if fault == "α held":
            state.alpha[0] = 1.0
        method.advance(model, state, rng)
        seen[canonical(state.z)][t] = 1
        a, b = state.z[[1, 3]]
        predicted[t] = method._probability(state)[a, b]
    out = []
    for z, share in p.items():
        mean, error = batch_mean_and_error(seen[z][None])
        out.append(z_verdict(str(z), mean, share, max(error, (share / sweeps) ** 0.5), n_tests=len(p) + 1, freedom=31))
    mean, error = batch_mean_and_error(predicted[None])
    return [*out, z_verdict("P(edge)", mean, edge, error, n_tests=len(p) + 1, freedom=31)]


@pytest.mark.slow
def test_the_posterior_is_that_of_all_partitions():
    assert failures(verdicts()) == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["another prior", "held-out pair counted", "an edge left out", "α held"])
def test_faults_of_the_posterior_are_caught(fault):
    assert failures(verdicts(fault))


# The joint law of α, z and the graph: Geweke 2004, by independent replicates that start in it

N = 5
PAIRS = np.column_stack(np.triu_indices(N, 1)).astype(np.int64)


def prior_draw(rng):
    alpha, z, sizes = rng.gamma(1.0), np.zeros(N, np.int64), [1]
    for i in range(1, N):
        p = np.array([*sizes, alpha])
        z[i] = rng.choice(len(p), p=p / p.sum())
        if z[i] == len(sizes):
            sizes.append(0)
        sizes[z[i]] += 1
    return alpha, z


def drawn_edges(z, rng, fault):
    eta = rng.beta(BETA, BETA, 1 if fault == "one η for all" else (N, N)) * np.ones((N, N))
    a, b = z[PAIRS].T
    edge = (rng.random(len(PAIRS)) < eta[np.minimum(a, b), np.maximum(a, b)]) & ~((PAIRS == (1, 3)).all(axis=1))
    return np.ascontiguousarray(PAIRS[edge])


def statistics_of(alpha, z):
    sizes = np.bincount(z)
    return [
        np.log(alpha),
        alpha,
        (sizes > 0).sum(),
        sizes.max(),
        z[0] == z[1],
        z[1] == z[3],
        z[3] == z[4],
        (sizes == 1).sum(),
    ]


def joint_law(fault="", replicates=2000, rounds=4):
    """|z| of the worst difference of means before and after rounds of (draw graph, step), of independent replicates."""
    rng, model, method = Generator(SFC64(7)), tiny(N, EDGES), NetworkIRM(beta=BETA)
    before, after = [], []
    for _ in range(replicates):
        before.append(statistics_of(*prior_draw(rng)))
        alpha, z = prior_draw(rng)
        for _ in range(rounds):
            model.edges = drawn_edges(z, rng, fault)
            model.edge_of = partners(model.edges, N)
            state = state_of(model, z, alpha)
            if fault == "α counts nodes":
                state.alpha[0] = N / 3
            method.advance(model, state, rng)
            alpha, z = state.alpha[0], state.z
        after.append(statistics_of(alpha, z))
    before, after = np.array(before, dtype=float), np.array(after, dtype=float)
    error = np.sqrt((before.var(axis=0) + after.var(axis=0)) / replicates)
    return float((np.abs(before.mean(axis=0) - after.mean(axis=0)) / error).max())


@pytest.mark.slow
def test_gewekes_joint_law():
    """The largest of eight z is beyond 4 by chance once in 2,000 times."""
    assert joint_law() < 4


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["one η for all", "α counts nodes"])
def test_faults_of_the_joint_law_are_caught(fault):
    assert joint_law(fault, replicates=1000) > 4


def test_the_room_for_clusters_changes_no_draw(monkeypatch):
    """With room for two clusters at first the sampler stops for more, and goes on with the same draws and counts."""

    def run():
        model, rng = Network(graph="karate", n_communities=2), Generator(SFC64(3))
        method = NetworkIRM(beta=0.1)
        state = method.start(model, rng)
        for _ in range(20):
            method.advance(model, state, rng)
        return model, state

    jit.prepare(NetworkIRM.compiled)
    _, roomy = run()
    monkeypatch.setattr(irm, "SLOTS", 1)
    model, tight = run()
    assert len(tight.sizes) < len(roomy.sizes) and (tight.z == roomy.z).all() and tight.alpha == roomy.alpha
    for part, anew in zip(
        (tight.sizes, tight.edges, tight.pairs), counted(model, tight.z, len(tight.sizes)), strict=True
    ):
        assert (part == anew).all()
    assert len(np.unique(tight.z)) > 2


def test_more_clusters_than_are_shown_share_the_last_column():
    model = Network(graph="karate", n_communities=2)
    z = np.arange(karate().n_nodes) % 5
    state = IRMState(z, *counted(model, z, irm.SLOTS), np.ones(1), LaterAverage(len(model.held)))
    shown, sizes = NetworkIRM().snapshot(model, state), np.bincount(z)
    assert shown["W"].sum(axis=0).tolist() == [sizes[0], sizes[1:].sum()]
    assert shown["explained"].sum() == pytest.approx(NetworkIRM().follow(model, state)[0])
    i, j = 0, 6
    a, b = z[[i, j]]
    assert shown["P"][i, j] == (state.edges[a, b] + 1) / (state.pairs[a, b] + 2)


def picture_error(model, state, probabilities):
    """How far shown probabilities are from (e + β)/(n + 2β), pair by pair counted."""
    z, y, n = state.z, np.zeros((34, 34), dtype=bool), model.data.n_nodes
    y[tuple(model.edges.T)] = True
    seen = np.triu(np.ones((n, n), dtype=bool), 1)
    seen[tuple(model.held.T)] = False
    y, seen = y | y.T, seen | seen.T
    worst = 0.0
    for a, i in enumerate(model.shown):
        for b, j in enumerate(model.shown):
            pairs = [(k, m) for k in range(n) for m in range(k) if seen[k, m] and {z[k], z[m]} == {z[i], z[j]}]
            due = (sum(y[k, m] for k, m in pairs) + 1) / (len(pairs) + 2) if i != j else 0.0
            worst = max(worst, abs(probabilities[a, b] - due))
    return worst


@pytest.mark.slow
def test_a_snapshot_by_its_formulas():
    model = Network(graph="karate", n_communities=3)
    state, method = NetworkIRM().start(model, Generator(SFC64(4))), NetworkIRM()
    for _ in range(2):
        method.advance(model, state, Generator(SFC64(5)))
    seen = method.snapshot(model, state)
    assert picture_error(model, state, seen["P"]) < 1e-12
    # Planted fault: a node with itself as with its cluster.
    assert picture_error(model, state, seen["P"] + np.eye(len(seen["P"]))) > 1e-12
    order = np.argsort(-np.bincount(state.z, minlength=len(state.sizes)), kind="stable")
    assert seen["community"].tolist() == [min(int(np.flatnonzero(order == k)[0]), 2) for k in state.z]
