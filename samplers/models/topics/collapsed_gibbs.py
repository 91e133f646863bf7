"""Collapsed Gibbs sampling: the exact reference."""

import numpy as np
from numba import types
from numpy.random import Generator
from scipy.special import gammaln

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.topics.local import BLOCK, columns, find, ids
from sgmcmc_lab.samplers.models.topics.method import COMPILED, State, TopicMethod
from sgmcmc_lab.samplers.models.topics.model import Topics


@jit.helper
def share(k, old, gone, left, row, beta):
    """p(z = k) up to a factor; ``gone`` for the topic that the word itself has now."""
    return gone if k == old else left[k] * (row[k] + beta)


@jit.loop(
    types.void(
        jit.rng_type,
        jit.integers,
        jit.integers,
        ids,
        ids,
        jit.matrix,
        jit.matrix,
        jit.vector,
        types.float64,
        types.float64,
        types.int64,
    )
)
def scan(rng, documents, offsets, words, topics, counts, weights, totals, alpha, beta, n_topics):
    # Counts are written only where a topic changes: what is written as a number and at once read as a vector stalls.
    mass = beta * len(weights)
    p, left, scale = np.zeros(len(totals)), np.zeros(len(totals)), np.zeros(len(totals))
    ends = np.zeros(len(totals) // BLOCK)
    for k in range(n_topics):
        scale[k] = 1 / (totals[k] + mass)
    for d in documents:
        own = counts[d]
        for k in range(len(left)):
            left[k] = (own[k] + alpha) * scale[k]
        for i in range(offsets[d], offsets[d + 1]):
            row = weights[words[i]]
            old = types.int64(topics[i])
            without = 1 / (totals[old] - 1 + mass)
            gone = (own[old] - 1 + alpha) * without * (row[old] - 1 + beta)
            total = 0.0
            for b in range(len(ends)):
                j = b * BLOCK
                p0, p1 = share(j, old, gone, left, row, beta), share(j + 1, old, gone, left, row, beta)
                p2, p3 = share(j + 2, old, gone, left, row, beta), share(j + 3, old, gone, left, row, beta)
                p4, p5 = share(j + 4, old, gone, left, row, beta), share(j + 5, old, gone, left, row, beta)
                p6, p7 = share(j + 6, old, gone, left, row, beta), share(j + 7, old, gone, left, row, beta)
                p[j], p[j + 1], p[j + 2], p[j + 3] = p0, p1, p2, p3
                p[j + 4], p[j + 5], p[j + 6], p[j + 7] = p4, p5, p6, p7
                total += ((p0 + p1) + (p2 + p3)) + ((p4 + p5) + (p6 + p7))
                ends[b] = total
            z = find(p, ends, rng.random() * total, n_topics)
            if z != old:
                topics[i] = z
                own[old] -= 1
                row[old] -= 1
                totals[old] -= 1
                scale[old] = without
                left[old] = (own[old] + alpha) * without
                own[z] += 1
                row[z] += 1
                totals[z] += 1
                scale[z] = 1 / (totals[z] + mass)
                left[z] = (own[z] + alpha) * scale[z]


class CollapsedGibbs(TopicMethod):
    """Collapsed Gibbs sampling (Griffiths & Steyvers 2004), with π and φ integrated out.

    Update: the topic of each word in turn, given all others, over the next n documents in a fixed order.
    Invariant distribution: p(z | x), exactly. φ is shown and scored by its mean given z, (n_kw + β)/(n_k + Vβ).
    """

    key = "collapsed_gibbs"
    title = "Collapsed Gibbs"
    update = r"p(z_i = k \mid z_{-i}, x) \propto (n_{dk} + \alpha)\,\frac{n_{kw} + \beta}{n_k + V\beta}"
    source = "Griffiths & Steyvers 2004; Smolyakov, Liu & Fisher, eq (35)"
    compiled = (*COMPILED, scan)

    def prior(self, model: Topics) -> float:
        return model.beta

    def start(self, model: Topics, rng: Generator) -> State:
        """Uniformly random topics; a step begins where the one before ended."""
        state = self.first_state(model, rng, np.zeros((model.n_words, columns(model.n_topics))))
        count_words(model, state)
        return state

    def advance(self, model: Topics, state: State, rng: Generator) -> int:
        data = model.training
        next_one = int(state.batch[-1]) + 1 if len(state.batch) else 0
        size = self.size(model)
        state.batch = np.arange(next_one, next_one + size) % data.n_documents
        scan(
            rng,
            state.batch,
            data.offsets,
            data.words,
            state.topics,
            state.counts,
            state.weights,
            state.totals,
            model.alpha,
            model.beta,
            model.n_topics,
        )
        state.steps += 1
        return size

    exact_at = ({"batch_size": 2}, 20_000, 0.0)
    tried_at = ({"batch_size": 3},)

    def textbook_step(self, rng, model, state):
        data, k = model.training, model.n_topics
        first = int(state.batch[-1]) + 1 if len(state.batch) else 0
        state.batch = np.array([(first + i) % data.n_documents for i in range(self.batch_size)])
        for d in state.batch:
            for i in range(data.offsets[d], data.offsets[d + 1]):
                w, own, z = data.words[i], state.counts[d, :k], state.topics[i]
                for counts in (own, state.weights[w], state.totals):
                    counts[z] -= 1
                p = (own + model.alpha) * (state.weights[w, :k] + model.beta)
                z = state.topics[i] = textbook.pick(p / (state.totals[:k] + model.n_words * model.beta), rng.random())
                for counts in (own, state.weights[w], state.totals):
                    counts[z] += 1
        state.steps += 1
        return self.batch_size

    def textbook_unknowns(self, model, state):
        return state.weights[:, : model.n_topics] + model.beta


def count_words(model: Topics, state: State) -> None:
    """Make the weights how often each word has each topic."""
    state.weights[:] = 0
    np.add.at(state.weights, (model.training.words, state.topics), 1)
    state.totals[:] = state.weights.sum(axis=0)


def log_likelihood(model: Topics, state: State) -> float:
    """log p(x, z) of the training documents, with π and φ integrated out."""
    n_topics, alpha, beta = model.n_topics, model.alpha, model.beta
    words, documents = state.weights[:, :n_topics], state.counts[:, :n_topics]
    lengths = np.diff(model.training.offsets)
    given_z = (gammaln(words + beta) - gammaln(beta)).sum()
    given_z += (gammaln(beta * model.n_words) - gammaln(state.totals[:n_topics] + beta * model.n_words)).sum()
    of_z = (gammaln(documents + alpha) - gammaln(alpha)).sum()
    of_z += (gammaln(n_topics * alpha) - gammaln(lengths + n_topics * alpha)).sum()
    return float(given_z + of_z)
