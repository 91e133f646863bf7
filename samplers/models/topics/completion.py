"""Held-out perplexity by document completion (Wallach et al. 2009)."""

import numpy as np
from numba import types
from numpy.random import Generator
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.topics.local import BLOCK, columns, ids, sweep
from sgmcmc_lab.samplers.models.topics.model import Topics

Array = NDArray[np.float64]

FIRST_SWEEPS, SWEEPS = 30, 10
"""Over the observed words, at the first score and at later ones, which go on from there."""


@jit.loop(
    types.void(jit.rng_type, jit.integers, ids, ids, jit.matrix, jit.matrix, types.float64, jit.vector, types.float64,
               types.int64, types.int64, types.int64, jit.matrix)
)  # fmt: skip
def fold_in(rng, offsets, words, topics, counts, weights, prior, scale, alpha, n_topics, n_sweeps, n_kept, shares):
    """The proportions of each document given φ, (documents, columns): their mean over the last sweeps."""
    p = np.zeros(len(scale))
    ends = np.zeros(len(scale) // BLOCK)
    for d in range(len(offsets) - 1):
        begin, end = offsets[d], offsets[d + 1]
        each = 1 / (n_kept * (end - begin + n_topics * alpha))
        shares[d] = 0
        for s in range(n_sweeps):
            sweep(rng, words[begin:end], topics[begin:end], counts[d], weights, prior, scale, alpha, n_topics, p, ends)
            if s >= n_sweeps - n_kept:
                for k in range(n_topics):
                    shares[d, k] += (counts[d, k] + alpha) * each


@jit.loop(types.void(jit.integers, ids, jit.matrix, jit.matrix, types.float64, jit.vector, types.int64, jit.vector))
def predict(offsets, words, shares, weights, prior, scale, n_topics, out):
    """p(w|d) = Σ_k π_dk φ_kw of every word, (tokens,)."""
    for d in range(len(offsets) - 1):
        for i in range(offsets[d], offsets[d + 1]):
            total = 0.0
            for k in range(n_topics):
                total += shares[d, k] * (weights[words[i], k] + prior) * scale[k]
            out[i] = total


class Completion:
    """exp(−mean log p̄(w|d)) of the predicted words, p̄ the running average of p(w|d) over the draws.

    p(w|d) = Σ_k π_dk φ_kw, with π_d from Gibbs sweeps over the document's observed words given φ. Draws come at
    growing distances; each is weighted by the number of steps since the one before, so that p̄ is the average over
    time. The generator is its own: how often it is scored changes no draw of the method.
    """

    def __init__(self, model: Topics, rng: Generator):
        self.rng = rng
        self.shares = np.zeros((model.folded.n_documents, columns(model.n_topics)))
        """π of the test documents at the last score, (documents, columns)."""
        self._topics = rng.integers(model.n_topics, size=model.folded.n_tokens).astype(np.int32)
        self._counts = np.zeros_like(self.shares)
        np.add.at(self._counts, (model.folded.document_of(), self._topics), 1)
        self._mean = np.zeros(model.scored.n_tokens)
        self._now = np.zeros(model.scored.n_tokens)
        self._last: int | None = None

    def score(self, model: Topics, step: int, weights: Array, prior: float, scale: Array) -> float:
        """The perplexity, with the topics φ = (weights + prior)·scale of this step in the average."""
        sweeps = SWEEPS if self._last else FIRST_SWEEPS
        folded, scored = model.folded, model.scored
        fold_in(
            self.rng,
            folded.offsets,
            folded.words,
            self._topics,
            self._counts,
            weights,
            prior,
            scale,
            model.alpha,
            model.n_topics,
            sweeps,
            SWEEPS // 2,
            self.shares,
        )
        predict(scored.offsets, scored.words, self.shares, weights, prior, scale, model.n_topics, self._now)
        if not self._last:
            self._mean[:] = self._now
        else:
            self._mean += (self._now - self._mean) * (step - self._last) / step
        self._last = step
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.exp(-np.log(self._mean).mean()))
