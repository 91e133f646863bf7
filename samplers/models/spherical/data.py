"""Documents as unit vectors: tf-idf of a corpus, and made-up ones of known topics."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import vonmises_fisher

from sgmcmc_lab.samplers.models.topics.corpus import Corpus
from sgmcmc_lab.samplers.targets.base import Array


@dataclass(frozen=True, eq=False)
class Vectors:
    """Documents on the unit sphere with one coordinate for each word."""

    rows: Array
    """(documents, words), each of length 1."""
    vocabulary: tuple[str, ...]
    titles: tuple[str, ...]
    topics: Array | None = None
    """The topics that they were drawn from, (topics, words), where they are known."""


def tf_idf(corpus: Corpus) -> Vectors:
    """tf·log(D/(1 + df)), each document scaled to length 1 (Liu, Zhu & Song 2016, appendix F).

    A word in all documents but one, or in all, has the weight 0. Documents without another word are left out.
    """
    weights = np.log(corpus.n_documents / (1 + corpus.spread()))
    rows = corpus.matrix() * np.maximum(weights, 0.0)
    lengths = np.sqrt((rows**2).sum(axis=1))
    there = lengths > 0
    titles = tuple(title for title, here in zip(corpus.titles, there, strict=True) if here)
    return Vectors(rows[there] / lengths[there, None], corpus.vocabulary, titles)


def known_topics(n_documents: int = 500, seed: int = 5) -> Vectors:
    """Documents of four topics on the sphere of 40 words: each has ten words of its own, and a tenth of all others.

    Drawn as the model has it, with θ ~ Dir(0.5) and κ = 6·40.
    """
    n_words, n_topics = 40, 4
    rng = np.random.default_rng(seed)
    topics = np.full((n_topics, n_words), 0.1)
    for k in range(n_topics):
        topics[k, 10 * k : 10 * k + 10] = np.linspace(1.5, 0.5, 10)
    topics /= np.linalg.norm(topics, axis=1, keepdims=True)
    rows = drawn(rng, topics, rng.dirichlet(np.full(n_topics, 0.5), size=n_documents), 6.0 * n_words)
    vocabulary = tuple(f"{'abcd'[w // 10]}{w % 10 + 1}" for w in range(n_words))
    return Vectors(rows, vocabulary, tuple(f"document {d + 1}" for d in range(n_documents)), topics)


def drawn(rng: np.random.Generator, topics: Array, theta: Array, kappa: float) -> Array:
    """A document of each row of θ (documents, topics), from vMF around its mean of the topics; (documents, words)."""
    means = theta @ topics
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return np.array([vonmises_fisher(mean, kappa).rvs(random_state=rng)[0] for mean in means])
