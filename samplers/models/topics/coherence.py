"""Coherence of topics: how often their top words share documents, compared with independent words.

The coherence of a topic is the mean over all pairs of its top words of the normalised pointwise mutual information

    NPMI(i, j) = log(P(i, j)/(P(i) P(j)))/(−log P(i, j)),

which is in [−1, 1] (Bouma 2009; for topics Aletras & Stevenson 2013, Lau, Newman & Baldwin 2014; with other measures
Röder, Both & Hinneburg 2015). P(i) is the share of the reference documents that have the word i, P(i, j) of those that
have both, however often. Many authors count windows of ten words in Wikipedia in place of documents; a bag of
words has no windows. Only values from the same documents are comparable.
"""

import numpy as np
from numba import types
from numpy.typing import NDArray
from scipy import sparse

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.topics.corpus import Array, Corpus
from sgmcmc_lab.samplers.models.topics.local import ids

Words = NDArray[np.int64]

BY_2, BY_4, BY_8, BYTES = (np.uint64(0xFFFF_FFFF_FFFF_FFFF // d) for d in (0b11, 0b101, 0b1_0001, 0b1111_1111))
"""The lower bit of each two, the lower two of each four and the lower four of each eight; and a one in each byte."""
ONE, TWO, FOUR, LAST = (np.uint64(k) for k in (1, 2, 4, 56))


@jit.helper
def ones(x):
    """How many of the 64 bits are set: in every two, every four, every eight, and then in all."""
    x -= (x >> ONE) & BY_2
    x = (x & BY_4) + ((x >> TWO) & BY_4)
    x = (x + (x >> FOUR)) & BY_8
    return (x * BYTES) >> LAST


@jit.loop(types.void(ids, ids, jit.integer_matrix, types.int64, types.Array(types.int64, 3, "C")))
def count_shared(ends, documents, top_words, n_documents, out):
    """The number of documents with both words i and j of a topic, (topics, words, words); for i = j, with that word.

    Word w is in ``documents[ends[w]:ends[w + 1]]``, perhaps several times in one of them. Each word of a topic has a
    bit for every document, so that a common word takes no longer than a rare one.
    """
    n_top = top_words.shape[1]
    bits = np.empty((n_top, (n_documents + 63) // 64), dtype=np.uint64)
    for k in range(len(top_words)):
        bits[:] = 0
        for i in range(n_top):
            w = top_words[k, i]
            for p in range(ends[w], ends[w + 1]):
                d = documents[p]
                bits[i, d >> 6] |= ONE << np.uint64(d & 63)
        for i in range(n_top):
            for j in range(i, n_top):
                total = np.uint64(0)
                for b in range(bits.shape[1]):
                    total += ones(bits[i, b] & bits[j, b])
                out[k, i, j] = out[k, j, i] = np.int64(total)


def npmi(both: Words, one: Words, other: Words, n_documents: int) -> Array:
    """NPMI of pairs of words, from the numbers of documents that have both, the one, and the other.

    In −log P, written I, it is (I(i) + I(j))/I(i, j) − 1; so it keeps its bounds in floating point. It is 1 for words
    that occur only together, and 0 for independent words. Two words that share no document have −1, the limit as
    P(i, j) → 0, even if one of them is in no document. A word that is in every document says nothing about another:
    NPMI is then 0. It is set to 0 for two such words, for which the quotient is 0/0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        of_both, of_one, of_other = (-np.log(count / n_documents) for count in (both, one, other))
        found = (of_one + of_other) / of_both - 1
    return np.where(both == 0, -1.0, np.where(both == n_documents, 0.0, found))


class Coherence:
    """NPMI of topics, over all documents of a corpus.

    It keeps the documents of each word, with four bytes each: as many as the words of the corpus themselves, and at
    most 40 MB for a corpus from a file, which has at most ten million words. A count needs ten bits per document:
    125 kB for the 100,000 documents that are allowed. Nothing grows with the square of the vocabulary.
    """

    def __init__(self, corpus: Corpus, name: str):
        """``name`` is the kind of the documents, such as ``training``."""
        self._n = corpus.n_documents
        self.documents = f"{self._n:,} {name} documents"
        """The reference documents, in words."""
        rows = np.ones(corpus.n_tokens, dtype=bool), corpus.words, corpus.offsets.astype(np.int32)
        self._by_word = sparse.csr_array(rows, shape=(self._n, corpus.n_words)).tocsc()

    def of_topics(self, top_words: Words) -> Array:
        """The coherence of each topic, (topics,), by its top words (topics, words), in any order."""
        n_topics, n_top = top_words.shape
        shared = np.empty((n_topics, n_top, n_top), dtype=np.int64)
        # In one order, so that the mean is the same in floating point, too.
        count_shared(self._by_word.indptr, self._by_word.indices, np.sort(top_words, axis=1), self._n, shared)
        each = np.diagonal(shared, axis1=1, axis2=2)
        i, j = np.triu_indices(n_top, 1)
        return npmi(shared[:, i, j], each[:, i], each[:, j], self._n).mean(axis=1)
