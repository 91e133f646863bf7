"""Minibatch Gibbs sampling, with the batch size chosen by its cost."""

import time

import numpy as np
from numba import types
from numpy.random import Generator

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.base import Snapshot
from sgmcmc_lab.samplers.models.batch_size import Adaptation, sizes_to_try
from sgmcmc_lab.samplers.models.topics import textbook
from sgmcmc_lab.samplers.models.topics.local import BLOCK, columns, ids, sweep
from sgmcmc_lab.samplers.models.topics.method import COMPILED, State, TopicMethod
from sgmcmc_lab.samplers.models.topics.model import Topics
from sgmcmc_lab.samplers.parameters import Count, Real


@jit.loop(
    types.void(
        jit.rng_type,
        jit.integers,
        jit.integers,
        ids,
        ids,
        jit.matrix,
        jit.matrix,
        jit.matrix,
        jit.vector,
        types.float64,
        types.int64,
    )
)
def visit(rng, documents, offsets, words, topics, counts, word_counts, phi, scale, alpha, n_topics):
    """The local update: the topics of these documents given φ; the counts of all words follow."""
    p = np.zeros(len(scale))
    ends = np.zeros(len(scale) // BLOCK)
    for d in documents:
        begin, end = offsets[d], offsets[d + 1]
        for i in range(begin, end):
            word_counts[words[i], topics[i]] -= 1
        sweep(rng, words[begin:end], topics[begin:end], counts[d], phi, 0.0, scale, alpha, n_topics, p, ends)
        for i in range(begin, end):
            word_counts[words[i], topics[i]] += 1


@jit.loop(types.float64(jit.rng_type, jit.matrix, types.float64, types.int64, jit.matrix, jit.vector))
def draw_topics(rng, word_counts, beta, n_topics, theta, totals):
    """The global update: θ_kw ~ Gamma(β + N_kw, 1), so that φ_k ~ Dir(β + N_k). Returns Σ φ²."""
    totals[:] = 0
    squares = np.zeros(n_topics)
    for w in range(len(theta)):
        for k in range(n_topics):
            x = rng.standard_gamma(beta + word_counts[w, k])
            theta[w, k] = x
            totals[k] += x
            squares[k] += x * x
    out = 0.0
    for k in range(n_topics):
        out += squares[k] / (totals[k] * totals[k])
    return out


class MinibatchGibbs(TopicMethod):
    """Minibatch Gibbs sampling (Smolyakov, Liu & Fisher, Algorithm 4), its batch size by their Algorithm 1.

    Update: the topics z of m random documents given φ, with their proportions integrated out; then
    φ_k ~ Dir(β + N_k) given the topics of *all* documents.
    Invariant distribution: p(z, φ | x), exactly, for every fixed m. With m = 0 the first steps try one size after
    another and keep that with the smallest f(m) = (m w_z + w_θ) τ_int(m); τ_int is that of Σ φ², which no exchange of
    topics changes. So the size is one for averages of φ, most of which is new in every step as long as the documents
    leave little doubt about their z; where what is remembered outweighs that, as for averages of z, all documents are
    best.
    Only w_θ/w_z is needed; it is a parameter, so that the clock decides no draw. :func:`measure_weights`
    measures it.
    """

    key = "minibatch_gibbs"
    title = "Minibatch Gibbs"
    update = (
        r"\begin{aligned}p(z_{di} = k \mid \cdot) &\propto (n_{dk} + \alpha)\,\phi_{kw}\quad\text{for } m \text{ documents } d\\"
        r"\phi_k &\sim \mathrm{Dir}(\beta + N_k)\end{aligned}"
    )
    source = "Smolyakov, Liu & Fisher, Algorithms 1 and 4"
    chooses_batch_size = True
    compiled = (*COMPILED, visit, draw_topics)

    batch_size = Count(
        0,
        bounds=(0, 100_000),
        tex="m",
        label="Documents in a step",
        doc="How many documents' topics are drawn before φ is; 0 tries several sizes and keeps the best.",
    )
    cost_ratio = Real(
        300.0,
        bounds=(1e-2, 1e6),
        log=True,
        tex=r"w_\theta/w_z",
        label="Cost of φ",
        doc="How many documents' topics can be drawn in the time that one draw of φ takes. With the Reuters articles that is about 70 for K = 4, 250 for 20 and 450 for 50.",
    )
    trial = Count(
        1000,
        bounds=(10, 100_000),
        log=True,
        label="Trial of a size",
        doc="The trial of one batch size costs as much as this many steps with all documents. A size with fewer than 50 effective draws in its trial is not judged; if no size is judged, all documents are used.",
    )

    def start(self, model: Topics, rng: Generator) -> State:
        """Uniformly random topics, and φ given them."""
        shape = (model.n_words, columns(model.n_topics))
        state = self.first_state(model, rng, np.zeros(shape))
        state.extra["counts"] = np.zeros(shape)
        np.add.at(state.extra["counts"], (model.training.words, state.topics), 1)
        draw_topics(rng, state.extra["counts"], model.beta, model.n_topics, state.weights, state.totals)
        if self.batch_size == 0:
            self.adaptation(model, state)
        return state

    def adaptation(self, model: Topics, state: State) -> Adaptation:
        """The trials of this run; they begin anew where their parameters were changed."""
        n = model.training.n_documents
        cost = self.trial * (n + self.cost_ratio)
        known = state.extra.get("adaptation")
        if known is None or (known.cost, known.overall) != (cost, self.cost_ratio):
            known = Adaptation(sizes_to_try(n), 1.0, self.cost_ratio, cost, self.trial // 10)
            state.extra["adaptation"] = known
        return known

    def advance(self, model: Topics, state: State, rng: Generator) -> int:
        data = model.training
        size = self.size(model) or self.adaptation(model, state).size
        state.batch = rng.choice(data.n_documents, size, replace=False, shuffle=False)
        visit(
            rng,
            state.batch,
            data.offsets,
            data.words,
            state.topics,
            state.counts,
            state.extra["counts"],
            state.weights,
            self.scale(model, state),
            model.alpha,
            model.n_topics,
        )
        value = draw_topics(rng, state.extra["counts"], model.beta, model.n_topics, state.weights, state.totals)
        state.steps += 1
        if self.batch_size == 0:
            self.adaptation(model, state).record(value, state.steps)
        return size

    def snapshot(self, model: Topics, state: State) -> Snapshot:
        """As of every method; where the method chooses its batch size, also what its trials found."""
        seen = super().snapshot(model, state)
        return seen | self.adaptation(model, state).snapshot() if self.batch_size == 0 else seen

    exact_at = ({"batch_size": 1}, 30_000, 0.0)
    tried_at = ({"batch_size": 3},)

    def textbook_step(self, rng, model, state):
        data, k = model.training, model.n_topics
        phi = state.weights[:, :k] / state.totals[:k]
        state.batch = rng.choice(data.n_documents, self.batch_size, replace=False, shuffle=False)
        for d in state.batch:
            textbook.local_sweep(rng, model, state, d, phi)
        for w, z in np.ndindex(model.n_words, k):
            n = state.extra["counts"][w, z] = ((data.words == w) & (state.topics == z)).sum()
            state.weights[w, z] = rng.standard_gamma(model.beta + n)
        state.totals[:k] = state.weights[:, :k].sum(axis=0)
        state.steps += 1
        return self.batch_size


def measure_weights(model: Topics, rounds: int = 20, seed: int = 1) -> tuple[float, float]:
    """w_z and w_θ: the seconds that one document more takes in a step, and those of a step without documents.

    From steps with one document and with all; of each the fastest, for other work on the machine only adds to it.
    """
    jit.prepare(MinibatchGibbs.compiled)
    n = model.training.n_documents
    rng = np.random.Generator(np.random.SFC64(seed))
    state = MinibatchGibbs().start(model, rng)
    seconds = []
    for size in (n, 1):
        method = MinibatchGibbs(batch_size=size)
        fastest = np.inf
        for _ in range(rounds):
            began = time.perf_counter()
            method.advance(model, state, rng)
            fastest = min(fastest, time.perf_counter() - began)
        seconds.append(fastest)
    whole, one = seconds
    local = max(whole - one, 1e-9) / max(n - 1, 1)
    return local, max(one - local, 1e-9)
