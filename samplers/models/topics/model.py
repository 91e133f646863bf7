"""The topic model: latent Dirichlet allocation, with some documents held out."""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np

from sgmcmc_lab.samplers.file_format import GUESSED, Format
from sgmcmc_lab.samplers.files import Tell, untold
from sgmcmc_lab.samplers.models.base import Model
from sgmcmc_lab.samplers.models.topics.coherence import Coherence
from sgmcmc_lab.samplers.models.topics.corpus import Corpus, bars, read_uploads, reuters, synthetic
from sgmcmc_lab.samplers.models.topics.docstrings import scipy_docstrings
from sgmcmc_lab.samplers.models.topics.stream import Stream, bars_stream, n_held
from sgmcmc_lab.samplers.parameters import UPLOADED, Count, Option, Real, SpecError

MAX_CELLS = 5_000_000
"""Topics × words."""
FOLLOWED = 1000
"""Training documents whose topics are followed: to count those of more would take longer than a small minibatch."""
SPLIT_SEED = 20_130_612
"""All studies of a corpus hold out the same words, so that their perplexities can be compared."""

BUILT_IN: dict[str, Callable[[], Corpus | Stream]] = {
    "reuters": lru_cache(reuters),
    "docstrings": lru_cache(scipy_docstrings),
    "bars": lru_cache(bars),
    "synthetic": lru_cache(lambda: synthetic(500, n_words=1000, n_topics=4)),
    "stream": lru_cache(bars_stream),
}
# The package that has the Reuters articles is not built for every Python.
FIRST = "reuters" if importlib.util.find_spec("lda") else "docstrings"


class Topics(Model):
    """Latent Dirichlet allocation (Blei, Ng & Jordan 2003).

    A document mixes K topics in proportions π_d ~ Dir(α), a topic is a distribution φ_k ~ Dir(β) over the V words;
    every word has a topic z ~ π_d and is drawn from φ_z. Held out are some documents: part of their words is observed,
    and the others are predicted (document completion).
    """

    key = "topics"
    title = "Topics of documents"
    tex = (
        r"\pi_d \sim \mathrm{Dir}(\alpha),\quad \phi_k \sim \mathrm{Dir}(\beta),\quad "
        r"z_{di} \mid \pi_d \sim \pi_d,\quad x_{di} \mid z_{di} \sim \phi_{z_{di}}"
    )
    source = "Blei, Ng & Jordan 2003; Griffiths & Steyvers 2004"
    score_name = "held-out perplexity"
    higher_is_better = False
    data_name = "documents"
    data_parameter = "corpus"
    followed = ("topics in use", "largest topic", "second topic", "third topic")

    corpus = Option(
        default=FIRST,
        objects=[*BUILT_IN, UPLOADED],
        label="Corpus",
        doc="Reuters: 395 articles. Docstrings: what SciPy says of its functions, read from the installed package; their subpackages are known. Bars: synthetic documents whose words are the pixels of a square and whose topics are its rows and columns. Synthetic: 500 documents of four topics that share few words. Stream: fresh documents of bars at every step, none of which comes again; for methods over minibatches.",
    )
    n_topics = Count(20, bounds=(2, 500), log=True, tex="K", label="Topics K", doc="How many topics there are.")
    alpha = Real(
        0.1,
        bounds=(1e-3, 10.0),
        log=True,
        tex=r"\alpha",
        label="Document prior α",
        doc="The parameter of the Dirichlet prior of a document's proportions. Small values give each document few topics.",
    )
    beta = Real(
        0.1,
        bounds=(1e-3, 10.0),
        log=True,
        tex=r"\beta",
        label="Topic prior β",
        doc="The parameter of the Dirichlet prior of a topic's words. Small values give each topic few words.",
    )
    test_share = Real(
        0.2,
        bounds=(0.01, 0.5),
        label="Test documents",
        doc="The share of the documents that are held out; at most 1,000 are.",
    )
    observed = Real(
        0.5,
        bounds=(0.1, 0.9),
        label="Observed part",
        doc="The share of a test document's words that its topics are found from; the others are predicted.",
    )
    min_documents = Count(
        2,
        bounds=(1, 1000),
        log=True,
        label="Rare words",
        doc="Words in fewer documents than this are left out of an uploaded corpus.",
    )
    max_share = Real(
        0.5,
        bounds=(0.01, 1.0),
        label="Common words",
        doc="Words in a larger share of the documents are left out of an uploaded corpus.",
    )
    max_words = Count(
        10_000,
        bounds=(10, 50_000),
        log=True,
        tex="V",
        label="Largest vocabulary",
        doc="The most words kept of an uploaded corpus: those in the most documents.",
    )

    @classmethod
    def read(cls, files: Mapping[str, bytes], tell: Tell = untold, form: Format = GUESSED) -> Corpus:
        """One file or several."""
        return read_uploads(files, tell=tell, form=form)

    def prepare(self) -> None:
        whole = self._whole()
        if self.n_topics * whole.n_words > MAX_CELLS:
            allowed = f"allowed are at most {MAX_CELLS // whole.n_words} topics with {whole.n_words:,} words"
            raise SpecError("model.n_topics", self.n_topics, allowed)
        self.vocabulary, self.n_words, self.true_topics = whole.vocabulary, whole.n_words, whole.topics
        rng = np.random.default_rng(SPLIT_SEED)
        self.stream: Stream | None = None
        """The stream, whose documents are fresh at every step."""
        if isinstance(whole, Stream):
            self.stream, sample, held = whole.split(self.test_share)
            titles = tuple(f"document {d + 1} of the last minibatch" for d in range(sample.n_documents))
            self.training = replace(sample, titles=titles)
            """The documents that are learned from; of a stream a few that a run begins with."""
            self.folded, self.scored = _split(held, self.observed, rng)
            """The two parts of the test documents."""
            self._reference = held, "test"
            return
        # A document of one word has nothing to observe beside what is predicted.
        splittable = np.flatnonzero(np.diff(whole.offsets) >= 2)
        n_test = n_held(self.test_share, whole.n_documents)
        if len(splittable) < n_test or whole.n_documents - n_test < 1:
            raise SpecError(
                "model.test_share",
                self.test_share,
                f"of {whole.n_documents} documents {len(splittable)} have two words or more; that is too few",
            )
        test = np.sort(rng.permutation(splittable)[:n_test])
        training = np.setdiff1d(np.arange(whole.n_documents), test)
        self.training = whole.part(training)
        self._reference = self.training, "training"
        self.folded, self.scored = _split(whole.part(test), self.observed, rng)

    def _whole(self) -> Corpus | Stream:
        if self.corpus != UPLOADED:
            return BUILT_IN[self.corpus]()
        if not isinstance(self.uploaded, Corpus | Stream):
            raise SpecError("model.corpus", self.corpus, f"no corpus was uploaded; built in are {', '.join(BUILT_IN)}")
        return self.uploaded.trimmed(self.min_documents, self.max_share, self.max_words)

    @property
    def n_data(self) -> int:
        """Training documents; of a stream how many the posterior is of."""
        return self.stream.n_documents if self.stream else self.training.n_documents

    @cached_property
    def coherence(self) -> Coherence:
        """Coherence over the training documents; for a stream, which keeps none of them, over the test documents.

        The first use finds the documents of each word.
        """
        return Coherence(*self._reference)

    def ranges(self) -> tuple[tuple[float, float, bool], ...]:
        """Topics in use from 1 to K; shares of the words."""
        return ((0.99, 1.01 * self.n_topics, False), *((0.0, 1.0001, False),) * 3)

    def shares(self, counts: np.ndarray) -> np.ndarray:
        """The numbers that are followed, by the words of the first documents in each topic, (documents, K).

        In use are e^{entropy} topics: as many equal ones would have the entropy of the topics' shares of the words.
        """
        words = np.sort(counts[:FOLLOWED].sum(axis=0))[::-1] / max(counts[:FOLLOWED].sum(), 1.0)
        first = np.zeros(3)
        first[: len(words[:3])] = words[:3]
        some = words[words > 0]
        return np.array([np.exp(-(some * np.log(some)).sum()), *first])

    def facts(self) -> dict[str, str]:
        tokens = self.training.n_tokens + self.folded.n_tokens + self.scored.n_tokens
        return {
            "documents": f"{self.n_data + self.folded.n_documents * (self.stream is None):,}",
            "different words": f"{self.n_words:,}",
            **({} if self.stream else {"words in all": f"{tokens:,}"}),
            "test documents": f"{self.folded.n_documents:,}",
            "words predicted": f"{self.scored.n_tokens:,}",
        }


def _split(test: Corpus, observed: float, rng: np.random.Generator) -> tuple[Corpus, Corpus]:
    """The observed and the predicted words of each document, at random; at least one of each."""
    first = np.zeros(test.n_tokens, dtype=bool)
    for begin, end in zip(test.offsets[:-1], test.offsets[1:], strict=True):
        n = min(max(round(observed * (end - begin)), 1), end - begin - 1)
        first[begin + rng.permutation(end - begin)[:n]] = True
    return tuple(_masked(test, mask) for mask in (first, ~first))  # type: ignore[return-value]


def _masked(corpus: Corpus, mask: np.ndarray) -> Corpus:
    lengths = np.bincount(corpus.document_of()[mask], minlength=corpus.n_documents)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Corpus(offsets, corpus.words[mask], corpus.vocabulary, corpus.titles, corpus.topics)
