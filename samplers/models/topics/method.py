"""What all methods for topics have in common: their state, their score, and what the views see."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numba import types
from numpy.random import Generator
from numpy.typing import NDArray

from samplers import jit
from samplers.models.base import Method, Snapshot
from samplers.models.topics.completion import Completion, fold_in, predict
from samplers.models.topics.local import columns
from samplers.models.topics.model import Topics
from samplers.parameters import Count, Value

Array = NDArray[np.float64]

N_TOP = 10
"""Words that a topic is shown by."""
SPARSITY_EDGES = np.linspace(-16.0, 0.0, 65)
"""Of log10 φ; what is smaller is counted in the first bin."""
MAX_SHOWN = 20_000
"""Entries of φ in the histogram, and the most that are given in full."""


@dataclass
class State:
    """Where a method is: the topics of all words, and the weights φ = (weights + prior)·scale."""

    weights: Array
    """Counts or θ, (words, columns)."""
    totals: Array
    """Σ_w weights, (columns,)."""
    topics: NDArray[np.int32]
    """z of every word of the training documents, (tokens,)."""
    counts: Array
    """How many of its words each training document has in each topic, (documents, columns)."""
    completion: Completion
    batch: NDArray[np.int64]
    """The training documents of the last step."""
    steps: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    """What one method needs besides."""


class TopicMethod(Method):
    """A method for :class:`Topics`. The first state has uniformly random topics."""

    model = "topics"

    # What its tests need besides.
    exact_at: ClassVar[tuple[dict[str, Value], int, float]]
    """Settings, steps, and the bias that the posterior then has for a corpus of three documents of three words."""

    batch_size = Count(50, bounds=(1, 100_000), log=True, tex="n", label="Documents in a step", doc="How many training documents one step looks at.")  # fmt: skip

    def prior(self, model: Topics) -> float:
        """What is added to the weights to make φ: β where they are counts, 0 where they are θ."""
        return 0.0

    def first_state(self, model: Topics, rng: Generator, weights: Array) -> State:
        """The state with random topics."""
        topics = rng.integers(model.n_topics, size=model.training.n_tokens).astype(np.int32)
        counts = np.zeros((model.training.n_documents, columns(model.n_topics)))
        np.add.at(counts, (model.training.document_of(), topics), 1)
        own = Generator(type(rng.bit_generator)(rng.integers(2**63)))
        return State(weights, weights.sum(axis=0), topics, counts, Completion(model, own), np.arange(0))

    def size(self, model: Topics) -> int:
        """How many documents one step looks at."""
        return min(int(self.batch_size), model.training.n_documents)

    def scale(self, model: Topics, state: State) -> Array:
        """1/Σ_w (weights + prior), (columns,); 0 beyond the topics."""
        out = np.zeros_like(state.totals)
        out[: model.n_topics] = 1 / (state.totals[: model.n_topics] + model.n_words * self.prior(model))
        return out

    def score(self, model: Topics, state: State) -> float:
        return state.completion.score(model, state.steps, state.weights, self.prior(model), self.scale(model, state))

    def snapshot(self, model: Topics, state: State) -> Snapshot:
        """Arrays for the views.

        ``top_words``, ``top_probabilities`` (K, 10): the words of each topic with the largest φ, as ids of the
        vocabulary. ``topic_shares`` (K,): the share of the training words in each topic. ``sparsity`` (64,): how many
        entries of a draw of φ, up to 20,000, are in each bin of log10 φ of ``sparsity_edges``. ``documents`` (n,) and
        ``proportions`` (n, K): the training documents of the last step, and their π. ``phi`` (K, V), only where that
        is small.
        """
        n_topics = model.n_topics
        prior, scale = self.prior(model), self.scale(model, state)
        n_top = min(N_TOP, model.n_words)
        top_words = np.zeros((n_topics, n_top), dtype=np.int64)
        top_probabilities = np.zeros((n_topics, n_top))
        top(state.weights, prior, scale, top_words, top_probabilities)
        batch = state.batch[:MAX_BATCH_SHOWN]
        proportions = state.counts[batch, :n_topics] + model.alpha
        shares = np.bincount(state.topics, minlength=n_topics) / len(state.topics)
        out: Snapshot = {
            "top_words": top_words,
            "top_probabilities": top_probabilities,
            "topic_shares": shares,
            "sparsity_edges": SPARSITY_EDGES,
            "sparsity": self._sparsity(model, state, prior, scale),
            "documents": batch.copy(),
            "proportions": proportions / proportions.sum(axis=1, keepdims=True),
        }
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


COMPILED = (fold_in, predict, top)
"""What every method needs compiled."""
