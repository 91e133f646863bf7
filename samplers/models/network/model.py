"""The infinite edge partition model of a graph, with a part of its pairs held out."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.random import SFC64, Generator
from numpy.typing import NDArray
from scipy.stats import rankdata

from sgmcmc_lab.samplers.file_format import GUESSED, Format
from sgmcmc_lab.samplers.files import FileError, Tell, untold
from sgmcmc_lab.samplers.models.base import Model, Snapshot
from sgmcmc_lab.samplers.models.network import joint
from sgmcmc_lab.samplers.models.network.graph import BUILT_IN, Graph, read_upload
from sgmcmc_lab.samplers.parameters import UPLOADED, Count, Option, Real, SpecError

Array = NDArray[np.float64]

MAX_SHOWN = 300
"""Nodes of the probability matrix that a view shows; of a larger graph it shows a sample."""


class Split(NamedTuple):
    """The pairs of a graph in two parts."""

    edges: NDArray[np.int64]
    """The observed edges (·, 2). Every other pair that is not held out is observed to be none."""
    held: NDArray[np.int64]
    """The held-out pairs (·, 2), i < j."""
    truth: NDArray[np.bool_]
    """Whether each held-out pair is an edge."""


def hold_out(graph: Graph, share: float, seed: int) -> Split:
    """Hold out that share of all pairs at random; a node all of whose edges are held out gets one of them back.

    Raises :class:`SpecError` where no held-out pair is an edge, or all are.
    """
    rng = Generator(SFC64(seed))
    n = graph.n_nodes
    chosen = np.sort(rng.permutation(graph.n_pairs)[: round(share * graph.n_pairs)])
    # Pair by pair in the order of the upper triangle: of many nodes a list of all pairs would be large.
    first = np.arange(n) * (2 * n - np.arange(n) - 1) // 2
    i = np.searchsorted(first, chosen, side="right") - 1
    is_held = np.zeros((n, n), dtype=bool)
    is_held[i, chosen - first[i] + i + 1] = True
    is_edge = graph.adjacency()
    for node in rng.permutation(n):
        others = np.flatnonzero(is_edge[node])
        low, high = np.minimum(node, others), np.maximum(node, others)
        if len(others) and is_held[low, high].all():
            back = rng.integers(len(others))
            is_held[low[back], high[back]] = False
    held = np.ascontiguousarray(np.argwhere(is_held))
    truth = is_edge[held[:, 0], held[:, 1]]
    if truth.all() or not truth.any():
        raise SpecError(
            "model.held_out",
            share,
            f"of {len(held):,} held-out pairs {truth.sum():,} are edges, and a score needs both kinds: hold out more, or take another split",
        )
    i, j = graph.edges.T
    return Split(graph.edges[~is_held[i, j]], held, truth)


def partners(pairs: NDArray[np.int64], n_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(first, other): the nodes that node i is paired with are other[first[i] : first[i + 1]]."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    first = np.concatenate([[0], np.bincount(both[:, 0], minlength=n_nodes).cumsum()]).astype(np.int64)
    return first, np.ascontiguousarray(both[np.argsort(both[:, 0], kind="stable"), 1])


def auc(scores: Array, truth: NDArray[np.bool_]) -> float:
    """The share of (edge, no edge) pairs that the scores put in order, where a tie counts ½."""
    ranks = rankdata(scores)
    n_edges = int(truth.sum())
    return float((ranks[truth].sum() - n_edges * (n_edges + 1) / 2) / (n_edges * (len(truth) - n_edges)))


def explained(w: Array, r: Array) -> Array:
    """How many edges each community explains, r_k Σ_{i<j} w_ik w_jk, (K,): the expected number, to first order."""
    return r * (w.sum(axis=0) ** 2 - (w**2).sum(axis=0)) / 2


class Network(Model):
    """The infinite edge partition model (Zhou 2015; Knowles 2015, section 3.1), truncated at K communities.

    P(y_ij = 1) = 1 − e^{−p_ij} with p_ij = Σ_k r_k w_ik w_jk; w_ik ~ Gamma(a_i, rate c_i), a_i ~ Gamma(e, rate e),
    c_i ~ Gamma(1, 1), r_k ~ Gamma(γ₀/K, rate c₀), γ₀ ~ Gamma(g, rate g), c₀ ~ Gamma(1, 1). Corrects the printed eqs
    (12)–(13), which lack r_k; each pair counts once.
    """

    key = "network"
    title = "Communities of a network"
    tex = (
        r"\begin{aligned}P(y_{ij}=1) &= 1-e^{-\sum_k r_k w_{ik} w_{jk}},\quad w_{ik}\sim\mathrm{Gamma}(a_i,c_i),\quad "
        r"r_k\sim\mathrm{Gamma}(\gamma_0/K,c_0)\\ a_i&\sim\mathrm{Gamma}(e,e),\quad c_i,c_0\sim\mathrm{Gamma}(1,1),\quad "
        r"\gamma_0\sim\mathrm{Gamma}(g,g)\end{aligned}"
    )
    source = "Zhou 2015; Knowles 2015, section 3.1"
    score_name = "held-out AUC"
    higher_is_better = True
    data_name = "observed pairs"
    data_parameter = "graph"
    real_data = "les_miserables"
    followed = ("total rate", "communities in use", "largest community", "second community")

    graph = Option(
        default="blocks",
        objects=[*BUILT_IN, UPLOADED],
        label="Graph",
        doc="Built-in graphs, one drawn from four blocks, or an uploaded edge list (CSV) or GraphML file.",
    )
    n_communities = Count(
        10,
        bounds=(1, 100),
        tex="K",
        label="Communities K",
        doc="The largest number of communities; the prior of r turns off those that are not needed.",
    )
    a_prior = Real(
        0.01,
        bounds=(1e-3, 10.0),
        log=True,
        tex="e",
        label="Prior of a",
        doc="Shape and rate of the prior of a_i, the shape of a node's weights. Small: a_i may be anything.",
    )
    mass_prior = Real(
        1.0,
        bounds=(1e-3, 10.0),
        log=True,
        tex="g",
        label="Prior of γ₀",
        doc="Shape and rate of the prior of γ₀, the mass that the communities share.",
    )
    held_out = Real(
        0.2,
        bounds=(0.05, 0.5),
        label="Held-out share",
        doc="The share of pairs that the methods do not see. Each node keeps an observed edge.",
    )
    split_seed = Count(1, bounds=(0, 2**32 - 1), label="Split seed", doc="It selects the held-out pairs.")

    data: Graph

    @classmethod
    def read(cls, files: Mapping[str, bytes], tell: Tell = untold, form: Format = GUESSED) -> Graph:
        """One file."""
        if len(files) != 1:
            raise FileError("The network", f"has {len(files)} files", "a network is one file")
        ((name, content),) = files.items()
        return read_upload(name, content, tell, form)

    def prepare(self) -> None:
        """Load the graph and hold out pairs."""
        if self.graph == UPLOADED:
            if not isinstance(self.uploaded, Graph):
                raise SpecError("model.graph", UPLOADED, "no file has been uploaded; choose one, or a built-in graph")
            self.data = self.uploaded
        else:
            self.data = BUILT_IN[self.graph]()
        self.edges, self.held, self.truth = hold_out(self.data, self.held_out, self.split_seed)
        self.edge_of, self.held_of = (partners(pairs, self.data.n_nodes) for pairs in (self.edges, self.held))
        self.prior = np.array([self.a_prior, self.mass_prior])
        rng = Generator(SFC64(self.split_seed))
        n = self.data.n_nodes
        self.shown = np.sort(rng.permutation(n)[:MAX_SHOWN]) if n > MAX_SHOWN else np.arange(n)

    @property
    def n_data(self) -> int:
        """Pairs that are not held out."""
        return self.data.n_pairs - len(self.held)

    def facts(self) -> Mapping[str, str]:
        """The description of the data."""
        graph = self.data
        facts = {
            "nodes": f"{graph.n_nodes:,}",
            "edges": f"{len(graph.edges):,} of {graph.n_pairs:,} pairs ({len(graph.edges) / graph.n_pairs:.1%})",
            "held out": f"{len(self.held):,} pairs, {self.truth.sum():,} of them edges",
        }
        if graph.groups is not None:
            facts["known groups"] = f"{graph.groups.max() + 1}: {graph.group_source}"
        return facts

    def ranges(self) -> tuple[tuple[float, float, bool], ...]:
        """The total rate is about the number of edges, and more where some are certain; shares of it.

        The relational model has no K: its communities are counted to as many as K may be.
        """
        edges = float(max(len(self.data.edges), 1))
        share = (0.0, 1.0001, False)
        most = max(int(self.n_communities), min(self.data.n_nodes, 100))
        return (1e-4 * edges, 1e4 * edges, True), (0.99, 1.01 * most + 0.01, False), share, share

    def followed_of(self, w: Array, r: Array) -> Array:
        """The numbers that are followed. All rates sum to Σ_k e_k with e_k = r_k Σ_{i<j} w_ik w_jk."""
        return self.followed_from(explained(w, r))

    def followed_from(self, each: Array) -> Array:
        """The same of what each community explains, e (communities,).

        In use are e^{entropy} communities: as many equal ones would have the entropy of the shares e_k / Σ e.
        """
        total = each.sum()
        shares = np.sort(each)[::-1] / max(total, 1e-300)
        some = shares[shares > 0]
        second = shares[1] if len(shares) > 1 else 0.0
        return np.array([total, np.exp(-(some * np.log(some)).sum()), shares[0], second])

    # The vector of all unknowns: W, r, a, c, γ₀, c₀

    @property
    def n_unknowns(self) -> int:
        """N·K + K + 2N + 2."""
        n, k = self.data.n_nodes, self.n_communities
        return n * k + k + 2 * n + 2

    def weights(self, x: Array) -> tuple[Array, Array]:
        """W (nodes, communities) and r (communities,), parts of the vector of all unknowns."""
        n, k = self.data.n_nodes, self.n_communities
        return x[: n * k].reshape(n, k), x[n * k : n * k + k]

    def first_guess(self, rng: Generator) -> Array:
        """A random start of all unknowns, (n_unknowns,): weights about those that give the graph's density."""
        n, k = self.data.n_nodes, self.n_communities
        x = np.ones(self.n_unknowns)
        density = len(self.edges) / self.n_data
        w, _ = self.weights(x)
        w[:] = np.sqrt(-np.log1p(-density) / k) * rng.standard_gamma(1.0, (n, k))
        return x

    def log_joint(self, log_x: Array, grad: Array) -> float:
        """The log of p(Y, x), a density in x; writes its gradient in log x. Both are (n_unknowns,)."""
        return float(
            joint.log_joint(log_x, self.edges, self.held, self.data.n_nodes, self.n_communities, self.prior, grad)
        )

    def add_held_out(self, w: Array, r: Array, out: Array) -> None:
        """Add the probability of an edge of every held-out pair to ``out``."""
        joint.add_probabilities(w, r, self.held, out)

    def score(self, probability: Array) -> float:
        """The AUC of the held-out pairs, given their probabilities or a sum of such."""
        if not np.isfinite(probability).all():
            raise FloatingPointError("A predicted probability is no longer finite.")
        return auc(probability, self.truth)

    def picture(self, w: Array, r: Array) -> Snapshot:
        """The numbers of every method that the views show.

        ``r`` (K,), ``W`` (N, K), ``explained`` (K,): the edges of each community; ``community`` (N,): argmax_k r_k w_ik
        Σ_j w_jk, through which a node has most edges;
        ``shown``: the nodes of ``P``, all of them where there are few; ``P``: their edges' probabilities.
        """
        shown = self.shown
        half = w[shown] * np.sqrt(r)
        rates = half @ half.T
        np.fill_diagonal(rates, 0.0)
        return {
            "r": r.copy(),
            "W": w.copy(),
            "community": (r * w * w.sum(axis=0)).argmax(axis=1),
            "shown": shown.copy(),
            "P": -np.expm1(-rates),
            "explained": explained(w, r),
        }
