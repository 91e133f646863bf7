"""NPMI of topics: against loops over the documents, its bounds and limits, and faults that must show."""

import itertools
import tracemalloc
from math import log

import numpy as np
import pytest
from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.models.topics import coherence
from sgmcmc_lab.samplers.models.topics.coherence import Coherence, count_shared, npmi
from sgmcmc_lab.samplers.models.topics.corpus import Corpus, from_bags
from sgmcmc_lab.samplers.models.topics.method import N_TOP
from sgmcmc_lab.samplers.models.topics.model import Topics
from tests.helpers.cases import for_each

A, B, C, D = range(4)


def corpus_of(*documents, n_words=4):
    """A corpus of documents as lists of words; equal ones together, as everywhere."""
    return from_bags([np.sort(np.array(words, dtype=np.int32)) for words in documents], tuple("abcdefghi")[:n_words])


def of_topic(corpus, *words):
    return Coherence(corpus, "training").of_topics(np.array([words]))[0]


def by_loops(corpus, words):
    """The mean over the pairs, by the definition and its limits, document by document."""
    documents = [set(corpus.words[a:b].tolist()) for a, b in itertools.pairwise(corpus.offsets)]
    total = pairs = 0
    for i, j in itertools.combinations(words, 2):
        p_i, p_j, p_both = (
            sum(found <= document for document in documents) / len(documents) for found in ({i}, {j}, {i, j})
        )
        if p_both == 0:
            total -= 1
        elif p_both < 1:
            total += log(p_both / (p_i * p_j)) / -log(p_both)
        pairs += 1
    return total / pairs


def some_corpus(seed, n_documents=40):
    """Documents of up to ten words of nine, some many times; words 6 and 8 are in all of them, word 7 in none."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(6, 0.5), size=n_documents)
    bags = [[6, 8, *rng.choice(6, rng.integers(1, 9), p=share)] for share in shares]
    return corpus_of(*bags, n_words=9)


TOPICS = [(0, 1, 2), (3, 4, 5), (5, 1, 0, 4), (0, 6, 7), (2, 6, 3), (7, 6, 5), (0, 1, 2, 3, 4, 5, 6, 7), (6, 8, 1)]


def check():
    """A topic's coherence is what the loops make of it."""
    for n in (40, 64, 150):
        corpus = some_corpus(n, n)
        made = Coherence(corpus, "training")
        for words in TOPICS:
            assert made.of_topics(np.array([words]))[0] == pytest.approx(by_loops(corpus, words), abs=1e-12)


def test_coherence_is_that_of_the_definition():
    check()


def test_a_value_by_hand():
    """P(a) = 3/4, P(b) = P(a, b) = 1/2: log(½/⅜)/log 2. With c, which is with neither, the mean of this and two −1."""
    corpus = corpus_of([A, B], [A, B, B], [A], [C])
    assert of_topic(corpus, A, B) == pytest.approx(log(4 / 3) / log(2))
    assert of_topic(corpus, A, B, C) == pytest.approx((log(4 / 3) / log(2) - 2) / 3)


# --- faults --------------------------------------------------------------------------------------------------------


def no_norm(both, one, other, n):
    return np.where(both == 0, -1.0, np.log(np.maximum(both, 1) * n / np.maximum(one * other, 1)))


FAULTS = {
    "another base in the denominator": lambda both, one, other, n: npmi(both, one, other, n) * log(2),
    "no normalisation": no_norm,
    "the marginal of one word twice": lambda both, one, other, n: npmi(both, one, one, n),
    "the joint in place of a marginal": lambda both, one, other, n: npmi(both, both, other, n),
    "a sign": lambda both, one, other, n: -npmi(both, one, other, n),
    "one document too many": lambda both, one, other, n: npmi(both, one, other, n + 1),
    "zero for pairs that are never together": lambda *counts: np.where(counts[0] == 0, 0.0, npmi(*counts)),
    "one for pairs that are everywhere": lambda *counts: np.where(counts[0] == counts[3], 1.0, npmi(*counts)),
}


@for_each("fault", FAULTS)
def test_a_fault_in_the_formula_is_seen(fault, monkeypatch):
    monkeypatch.setattr(coherence, "npmi", FAULTS[fault])
    with pytest.raises(AssertionError):
        check()


def by_words(ends, documents, top_words, n_documents, out):
    """The fault of counting words in place of documents."""
    counts = np.array([np.bincount(documents[a:b], minlength=n_documents) for a, b in itertools.pairwise(ends)])
    for k, i, j in np.ndindex(out.shape):
        out[k, i, j] = np.minimum(counts[top_words[k, i]], counts[top_words[k, j]]).sum()


def without_the_last(ends, documents, top_words, n_documents, out):
    """The fault of a loop that ends one document early."""
    count_shared(ends, np.where(documents == n_documents - 1, 0, documents), top_words, n_documents, out)


def of_the_first_sixty_four(ends, documents, top_words, n_documents, out):
    """The fault of one number of bits for all documents."""
    count_shared(ends, documents % 64, top_words, 64, out)


@for_each("fault", [by_words, without_the_last, of_the_first_sixty_four])
def test_a_fault_in_what_is_counted_is_seen(fault, monkeypatch):
    monkeypatch.setattr(coherence, "count_shared", fault)
    with pytest.raises(AssertionError):
        check()


@for_each("n", [1, 2, 63, 64, 65, 128, 1000])
def test_shared_documents_are_counted_one_by_one(n):
    """Also where the documents end with a number of 64 bits."""
    rng = np.random.default_rng(n)
    there = rng.random((5, n)) < rng.random((5, 1))
    there[:, -1] = [True, True, False, True, False]
    ends = np.concatenate([[0], there.sum(axis=1).cumsum()]).astype(np.int32)
    out = np.empty((2, 4, 4), dtype=np.int64)
    topics = np.array([[0, 1, 2, 3], [4, 3, 1, 0]])
    count_shared(ends, np.nonzero(there)[1].astype(np.int32), topics, n, out)
    assert out.tolist() == [[[(there[i] & there[j]).sum() for j in words] for i in words] for words in topics]


# --- bounds and limits ---------------------------------------------------------------------------------------------


def test_words_that_are_always_together_have_one_and_those_that_never_are_minus_one():
    corpus = corpus_of([A, B, C], [A, B, C], [D], [D, D])
    assert of_topic(corpus, A, B, C) == 1
    assert of_topic(corpus, A, D) == -1
    assert of_topic(corpus_of([A], [B], [C], [D]), A, B, C, D) == -1


def test_independent_words_have_zero():
    corpus = corpus_of([A, B], [A], [B], [C])
    assert of_topic(corpus, A, B) == pytest.approx(0, abs=1e-15)


def test_the_limits():
    corpus = corpus_of([A, B, C], [A, B], [A, B, C, C])
    assert of_topic(corpus, A, B) == 0, "two words that are everywhere"
    assert of_topic(corpus, A, C) == 0, "one that is everywhere"
    assert of_topic(corpus, A, D) == of_topic(corpus, C, D) == -1, "one that is nowhere"


@for_each("n", [1, 2, 7, 63, 64, 65, 1000])
def test_the_bounds_hold_for_all_counts(n):
    """In floating point, too: 1 exactly where each word is only where the other is."""
    both, one, other = np.array([x for x in itertools.product(range(min(n, 9) + 1), repeat=3) if x[0] <= min(x[1:])]).T
    possible = one + other - both <= n
    found = npmi(both, one, other, n)[possible]
    assert (np.abs(found) <= 1).all()
    same = ((both == one) & (both == other) & (both > 0) & (both < n))[possible]
    assert (found[same] == 1).all() and (found[~same] < 1).all()


def test_neither_the_order_of_the_words_nor_their_number_in_a_document_counts():
    rng, corpus = np.random.default_rng(1), some_corpus(4)
    topics = np.array([rng.permutation(8)[:5] for _ in range(6)])
    found = Coherence(corpus, "training").of_topics(topics)
    assert len(set(found)) > 1
    assert np.array_equal(Coherence(corpus, "training").of_topics(rng.permuted(topics, axis=1)), found)
    assert np.array_equal(Coherence(corpus, "training").of_topics(topics[::-1]), found[::-1])
    twice = Corpus(2 * corpus.offsets, np.repeat(corpus.words, 2), corpus.vocabulary, corpus.titles)
    assert np.array_equal(Coherence(twice, "training").of_topics(topics), found)


# --- topics --------------------------------------------------------------------------------------------------------


def test_true_topics_are_more_coherent_than_shuffled_ones():
    """By far: the topics have few words in common, and a shuffled one has words of all of them."""
    model = Topics(corpus="synthetic")
    top = np.argsort(-model.true_topics, axis=1)[:, :N_TOP]
    shuffled = np.random.default_rng(1).permuted(top.ravel()).reshape(top.shape)
    true, other = model.coherence.of_topics(top), model.coherence.of_topics(shuffled)
    assert true.min() > other.max() + 0.1


@for_each("key", [key for key, cls in METHODS.items() if cls.model == "topics"])
def test_every_score_has_the_coherence_of_its_draw(key):
    model = Topics(corpus="bars", n_topics=10)
    run = ModelChain(model, METHODS[key](), Generator(SFC64(1)))
    for n in range(1, 5):
        run.advance()
        shown = run.snapshot()
        assert len(run.state.coherence) == len(run.scores) == n + 1
        assert run.state.coherence[-1] == shown["npmi"].mean()
    np.testing.assert_allclose(shown["npmi"], [by_loops(model.training, row) for row in shown["top_words"]])


@pytest.mark.slow
def test_topics_become_coherent():
    """Four topics with few common words are found: their coherence comes near that of the true ones."""
    model = Topics(corpus="synthetic", n_topics=4)
    run = ModelChain(model, METHODS["collapsed_gibbs"](), Generator(SFC64(1)))
    while run.data_seen < 20 * model.n_data:
        run.advance()
    true = model.coherence.of_topics(np.argsort(-model.true_topics, axis=1)[:, :N_TOP]).mean()
    assert run.state.coherence[0] < 0.3 * true < 0.8 * true < run.state.coherence[-1]


def test_a_small_vocabulary_has_fewer_pairs():
    corpus = corpus_of(*[[A, B], [A, C], [B, C], [A, B], [C]] * 3, n_words=3)
    model = Topics(corpus, corpus="uploaded", n_topics=2, min_documents=1, max_share=1.0)
    run = ModelChain(model, METHODS["lda_scir"](), Generator(SFC64(1)))
    np.testing.assert_allclose(run.snapshot()["npmi"], by_loops(model.training, (A, B, C)))


# --- which documents -----------------------------------------------------------------------------------------------


def test_the_training_documents_count_and_of_a_stream_those_of_the_test():
    assert Topics(corpus="bars").coherence.documents == "400 training documents"
    model = Topics(corpus="stream", test_share=0.01)
    assert model.coherence.documents == "1,000 test documents"
    # The observed and the predicted words of a test document are one document.
    bags = [
        np.sort(
            np.concatenate([part.words[part.offsets[d] : part.offsets[d + 1]] for part in (model.folded, model.scored)])
        )
        for d in range(model.folded.n_documents)
    ]
    whole = from_bags(bags, model.vocabulary)
    topics = np.argsort(-model.true_topics, axis=1)[:, :N_TOP]
    np.testing.assert_allclose(model.coherence.of_topics(topics), [by_loops(whole, words) for words in topics])


def test_memory_is_bounded():
    """10⁵ documents of 200,000 words: a matrix of pairs would take 320 GB, one of documents and words 20 GB."""
    n, length, n_words = 100_000, 20, 200_000
    words = np.sort(np.random.default_rng(1).integers(n_words, size=(n, length), dtype=np.int32), axis=1)
    corpus = Corpus(np.arange(0, n * length + 1, length), words.ravel(), ("w",) * n_words, ("d",) * n)
    topics = words[:500, :N_TOP].astype(np.int64)
    tracemalloc.start()
    made = Coherence(corpus, "training")
    found = made.of_topics(topics)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6
    assert np.isfinite(found).all()
