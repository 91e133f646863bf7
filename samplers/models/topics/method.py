"""The common part of all methods for topics: their state, their score, and what the views see."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numba import types
from numpy.random import Generator
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.base import Method, Snapshot
from sgmcmc_lab.samplers.models.topics.coherence import count_shared
from sgmcmc_lab.samplers.models.topics.completion import Completion, fold_in, predict
from sgmcmc_lab.samplers.models.topics.corpus import Corpus
from sgmcmc_lab.samplers.models.topics.local import columns
from sgmcmc_lab.samplers.models.topics.model import Topics
from sgmcmc_lab.samplers.models.topics.stream import Source
from sgmcmc_lab.samplers.parameters import Count, SpecError, Value

Array = NDArray[np.float64]

N_TOP = 10
"""Words that a topic is shown by."""
SPARSITY_EDGES = np.linspace(-16.0, 0.0, 65)
"""The edges of the histogram of log10 φ; smaller values count in the first bin."""
MAX_SHOWN = 20_000
"""Entries of φ in the histogram, and the most that are given in full."""


@dataclass
class State:
    """The state of a method: the topics of all words, and the weights φ = (weights + prior)·scale."""

    weights: Array
    """Counts or θ, (words, columns)."""
    totals: Array
    """Σ_w weights, (columns,)."""
    topics: NDArray[np.int32]
    """z of every word of ``data``, (tokens,)."""
    counts: Array
    """How many of its words each document of ``data`` has in each topic, (documents, columns)."""
    completion: Completion
    batch: NDArray[np.int64]
    """The documents of the last step, out of ``data``."""
    data: Corpus
    """The training documents, or of a stream its last minibatch."""
    source: Source | None = None
    """The position in the stream."""
    steps: int = 0
    coherence: list[float] = field(default_factory=list)
    """The mean coherence of all topics, including those without words, at each score."""
    extra: dict[str, Any] = field(default_factory=dict)
    """The further state of one method."""


class TopicMethod(Method):
    """A method for :class:`Topics`. The first state has uniformly random topics."""

    model = "topics"
    takes_streams: ClassVar[bool] = False
    """Whether it needs no document twice."""

    # Further declarations for the tests.
    exact_at: ClassVar[tuple[dict[str, Value], int, float]]
    """Settings, steps, and the bias that the posterior then has for a corpus of three documents of three words."""

    batch_size = Count(
        50,
        bounds=(1, 100_000),
        log=True,
        tex="n",
        label="Documents in a step",
        doc="How many training documents one step looks at.",
    )

    def prior(self, model: Topics) -> float:
        """The number added to the weights to make φ: β where they are counts, 0 where they are θ."""
        return 0.0

    def first_state(self, model: Topics, rng: Generator, weights: Array) -> State:
        """The state with random topics."""
        topics, counts = random_topics(model.training, model.n_topics, rng)
        own = Generator(type(rng.bit_generator)(rng.integers(2**63)))
        source = model.stream.begin(rng) if model.stream else None
        return State(
            weights, weights.sum(axis=0), topics, counts, Completion(model, own), np.arange(0), model.training, source
        )

    def size(self, model: Topics) -> int:
        """How many documents one step looks at."""
        return min(int(self.batch_size), model.n_data)

    @classmethod
    def fits(cls, values: Mapping[str, Value]) -> bool:
        return cls.takes_streams or values["corpus"] != "stream"

    def check(self, model: Topics) -> None:
        if model.stream is None:
            return
        if not self.takes_streams:
            allowed = "it comes back to every document, and a stream shows each once; allowed are methods over minibatches of fresh documents, as SCIR and SGRLD"
            raise SpecError("sampler", self.key, allowed)
        if self.batch_size > MAX_FRESH:
            raise SpecError(
                "sampler.batch_size",
                self.batch_size,
                f"on a stream allowed are at most {MAX_FRESH:,} documents in a step",
            )

    def choose(self, model: Topics, state: State, rng: Generator) -> None:
        """The documents of a step: some of the training documents, or the stream's next ones with random topics."""
        size = self.size(model)
        if state.source is None:
            state.batch = rng.choice(model.n_data, size, replace=False, shuffle=False)
        else:
            state.data, state.batch = state.source.next(size), np.arange(size)
            state.topics, state.counts = random_topics(state.data, model.n_topics, rng)

    def scale(self, model: Topics, state: State) -> Array:
        """1/Σ_w (weights + prior), (columns,); 0 beyond the topics."""
        out = np.zeros_like(state.totals)
        out[: model.n_topics] = 1 / (state.totals[: model.n_topics] + model.n_words * self.prior(model))
        return out

    def score(self, model: Topics, state: State) -> float:
        """The perplexity is that of the average over the draws. The coherence, kept beside it, is that of the present
        draw: topics change places between draws, and have no average.
        """
        prior, scale = self.prior(model), self.scale(model, state)
        perplexity = state.completion.score(model, state.steps, state.weights, prior, scale)
        top_words, _ = top_of(model, state.weights, prior, scale)
        state.coherence.append(float(model.coherence.of_topics(top_words).mean()))
        return perplexity

    def snapshot(self, model: Topics, state: State) -> Snapshot:
        """Arrays for the views.

        ``top_words``, ``top_probabilities`` (K, 10): the words of each topic with the largest φ, as ids of the
        vocabulary. ``npmi`` (K,): the coherence of each topic from these words. ``topic_shares`` (K,): the share of the
        training words in each topic. ``sparsity`` (64,): how many entries of a draw of φ, up to 20,000, are in each bin
        of log10 φ of ``sparsity_edges``. ``documents`` (n,) and ``proportions`` (n, K): the training documents of the
        last step, and their π. ``phi`` (K, V), only where that is small. ``document_topics`` (training documents,): the
        commonest topic of each, where their labels are known.
        """
        n_topics = model.n_topics
        prior, scale = self.prior(model), self.scale(model, state)
        top_words, top_probabilities = top_of(model, state.weights, prior, scale)
        batch = state.batch[:MAX_BATCH_SHOWN]
        proportions = state.counts[batch, :n_topics] + model.alpha
        shares = np.bincount(state.topics, minlength=n_topics) / len(state.topics)
        out: Snapshot = {
            "top_words": top_words,
            "top_probabilities": top_probabilities,
            "npmi": model.coherence.of_topics(top_words),
            "topic_shares": shares,
            "sparsity_edges": SPARSITY_EDGES,
            "sparsity": self._sparsity(model, state, prior, scale),
            "documents": batch.copy(),
            "proportions": proportions / proportions.sum(axis=1, keepdims=True),
        }
        if model.training.labels is not None:
            out["document_topics"] = state.counts[:, :n_topics].argmax(axis=1)
        if n_topics * model.n_words <= MAX_SHOWN:
            out["phi"] = np.ascontiguousarray(((state.weights + prior) * scale)[:, :n_topics].T)
        return out

    def follow(self, model: Topics, state: State) -> Array:
        """By the last topics of all words; a minibatch changes those of its own documents."""
        return model.shares(state.counts[:, : model.n_topics])

    def textbook_unknowns(self, model, state):
        return state.weights[:, : model.n_topics]

    def _sparsity(self, model: Topics, state: State, prior: float, scale: Array) -> NDArray[np.int64]:
        """The histogram of log10 φ."""
        every = -(-model.n_words * model.n_topics // MAX_SHOWN)
        some = state.weights[state.steps % every :: every, : model.n_topics]
        if prior:
            # Counts say what φ is on average; its smallest entries are seen in a draw.
            some = np.random.default_rng(state.steps).standard_gamma(some + prior)
        with np.errstate(divide="ignore"):
            logs = np.log10(some * scale[: model.n_topics])
        return np.histogram(np.clip(logs, SPARSITY_EDGES[0], SPARSITY_EDGES[-1]), SPARSITY_EDGES)[0]


MAX_BATCH_SHOWN = 50
"""Documents in a snapshot."""
MAX_FRESH = 2000
"""Documents of a stream in one step: they are held, with their counts."""


def random_topics(data: Corpus, n_topics: int, rng: Generator) -> tuple[NDArray[np.int32], Array]:
    """Random z of every word, (tokens,), and how many words each document has in each topic, (documents, columns)."""
    topics = rng.integers(n_topics, size=data.n_tokens).astype(np.int32)
    counts = np.zeros((data.n_documents, columns(n_topics)))
    np.add.at(counts, (data.document_of(), topics), 1)
    return topics, counts


@jit.loop(types.void(jit.matrix, types.float64, jit.vector, jit.integer_matrix, jit.matrix))
def top(weights, prior, scale, words, probabilities):
    """The largest φ of each topic, in falling order, and whose they are: both (topics, n)."""
    n_topics, n_top = words.shape
    probabilities[:] = -1
    for w in range(len(weights)):
        for k in range(n_topics):
            x = (weights[w, k] + prior) * scale[k]
            if x > probabilities[k, n_top - 1]:
                j = n_top - 1
                while j > 0 and probabilities[k, j - 1] < x:
                    probabilities[k, j] = probabilities[k, j - 1]
                    words[k, j] = words[k, j - 1]
                    j -= 1
                probabilities[k, j] = x
                words[k, j] = w


def top_of(model: Topics, weights: Array, prior: float, scale: Array) -> tuple[NDArray[np.int64], Array]:
    """The top words of each topic, and their φ: both (topics, 10), or fewer where the vocabulary has fewer."""
    shape = model.n_topics, min(N_TOP, model.n_words)
    words, probabilities = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    top(weights, prior, scale, words, probabilities)
    return words, probabilities


COMPILED = (fold_in, predict, top, count_shared)
"""The functions that every method needs compiled."""
