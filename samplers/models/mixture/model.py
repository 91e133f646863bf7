"""A Dirichlet process mixture of categorical distributions, with some of its documents held out."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import SFC64, Generator
from scipy.special import gammaln

from sgmcmc_lab.samplers.file_format import GUESSED, Format
from sgmcmc_lab.samplers.files import Tell, untold
from sgmcmc_lab.samplers.models.base import Model
from sgmcmc_lab.samplers.models.clusters.model import beside
from sgmcmc_lab.samplers.models.mixture.data import Documents, known_clusters, read
from sgmcmc_lab.samplers.models.topics.corpus import Corpus, reuters
from sgmcmc_lab.samplers.parameters import UPLOADED, Count, Option, Real, SpecError
from sgmcmc_lab.samplers.targets.base import Array

MAX_TEST = 5000
"""Held-out documents: with more a score would take longer than many steps."""
MAX_SLOTS, MAX_CELLS = 500, 1_000_000
"""Clusters that there is room for, and clusters × words."""
_REUTERS = lru_cache(reuters)
_SYNTHETIC = lru_cache(maxsize=4)(known_clusters)


class Mixture(Model):
    """A Dirichlet process mixture of categorical distributions (Dunson & Xing 2009; Baker et al. 2018, section 4.2).

    w ~ GEM(α), α ~ Gamma(1, 1/m) with the mean m; θ_k ~ Dir(a); document i has one cluster, z_i ~ w, from whose θ all
    its words are drawn. Held out are some documents; the score is −log p of one of them, in the mean, without the
    multinomial coefficient.
    """

    key = "mixture"
    title = "Clusters of documents"
    tex = (
        r"\begin{aligned}w &\sim \mathrm{GEM}(\alpha),\quad \alpha\sim\mathrm{Gamma}(1, 1/m),\quad "
        r"\theta_k \sim \mathrm{Dir}(a)\\ z_i &\sim w,\quad x_{ij} \mid z_i \sim \theta_{z_i}\end{aligned}"
    )
    source = "Ferguson 1973; Dunson & Xing 2009; Baker et al. 2018, section 4.2"
    score_name = "held-out −log p"
    higher_is_better = False
    data_name = "documents"
    data_parameter = "corpus"
    real_data = "reuters"
    followed = ("clusters", "largest cluster", "second cluster", "concentration α")

    corpus = Option(
        default="synthetic",
        objects=["synthetic", "reuters", UPLOADED],
        label="Documents",
        doc="Synthetic: documents of six clusters, each with its own words. Reuters: 395 articles. Uploaded: a corpus, or visits of web pages.",
    )
    documents = Count(
        600,
        bounds=(20, 20_000),
        log=True,
        label="Synthetic documents",
        doc="The number of synthetic documents, held-out ones included.",
    )
    length = Count(
        20,
        bounds=(2, 200),
        log=True,
        label="Their length",
        doc="The number of words of a synthetic document. Fewer words say less about its cluster.",
    )
    prior = Real(
        0.5,
        bounds=(1e-3, 10.0),
        log=True,
        tex="a",
        label="Prior of words a",
        doc="The parameter of the Dirichlet prior of a cluster's words. Small values give each cluster few words.",
    )
    alpha_mean = Real(
        1.0,
        bounds=(1e-3, 1000.0),
        log=True,
        tex="m",
        label="Prior mean of α",
        doc="The mean of the exponential prior of the concentration α. Large values expect many clusters.",
    )
    held_out = Real(
        0.2,
        bounds=(0.01, 0.5),
        label="Held-out share",
        doc="The share of the documents that the methods do not see; at most 5,000. Visits with a .test file have theirs.",
    )
    split_seed = Count(1, bounds=(0, 2**32 - 1), label="Split seed", doc="It selects the held-out documents.")
    min_documents = Count(
        2,
        bounds=(1, 1000),
        log=True,
        label="Rare words",
        doc="Words in fewer documents than this are left out of uploaded texts.",
    )
    max_share = Real(
        0.5,
        bounds=(0.01, 1.0),
        label="Common words",
        doc="Words in a larger share of the documents are left out of uploaded texts.",
    )
    max_words = Count(
        5000,
        bounds=(10, 10_000),
        log=True,
        tex="V",
        label="Largest vocabulary",
        doc="The most words kept of uploaded documents: those in the most documents.",
    )

    @classmethod
    def read(cls, files: Mapping[str, bytes], tell: Tell = untold, form: Format = GUESSED) -> Documents:
        """One file or several."""
        return read(files, tell, form)

    def prepare(self) -> None:
        """Load the documents and hold some out."""
        known = self._whole()
        whole, n_test = known.corpus, known.n_test
        n = whole.n_documents
        if n_test:
            seen, held = np.arange(n - n_test), np.arange(n - n_test, n)[:MAX_TEST]
        else:
            n_test = min(max(1, round(self.held_out * n)), MAX_TEST)
            order = Generator(SFC64(self.split_seed)).permutation(n)
            seen, held = np.sort(order[n_test:]), np.sort(order[:n_test])
        if len(seen) < 2:
            raise SpecError(
                "model.held_out", self.held_out, f"of {n} documents that leaves {len(seen)}; two are needed"
            )
        self.training, self.held = whole.part(seen), whole.part(held)
        """The documents that the methods see, and those that they do not."""
        self.groups = None if known.groups is None else known.groups[seen]
        """The known cluster of each that they see."""
        self.vocabulary, self.n_words = whole.vocabulary, whole.n_words
        self.n_slots = max(2, min(MAX_SLOTS, MAX_CELLS // self.n_words))
        """Clusters that there is room for."""
        self.held_new = log_predictive(self.held, self.prior)
        """log p of each held-out document from a cluster of its own."""
        self.shown = beside(np.arange(self.n_data) if self.groups is None else self.groups, self.split_seed)
        """Documents whose co-clustering is counted, those of one known cluster beside each other."""

    def _whole(self) -> Documents:
        if self.corpus == "synthetic":
            return _SYNTHETIC(self.documents, self.length)
        if self.corpus != UPLOADED:
            return Documents(_REUTERS())
        if not isinstance(self.uploaded, Documents):
            raise SpecError("model.corpus", UPLOADED, "no file has been uploaded; choose one, or synthetic documents")
        brought = self.uploaded
        if not brought.of_text:
            if brought.corpus.n_words > MAX_CELLS // 100:
                raise SpecError(
                    "model.corpus",
                    UPLOADED,
                    f"these visits are of {brought.corpus.n_words:,} pages; allowed are {MAX_CELLS // 100:,}",
                )
            return brought
        return Documents(brought.corpus.trimmed(self.min_documents, self.max_share, self.max_words))

    @property
    def n_data(self) -> int:
        """The documents that the methods see."""
        return self.training.n_documents

    def facts(self) -> Mapping[str, str]:
        """The description of the data."""
        facts = {
            "documents": f"{self.n_data + self.held.n_documents:,}, of which {self.held.n_documents:,} are held out",
            "different words": f"{self.n_words:,}",
            "words of a document": f"{self.training.n_tokens / self.n_data:.1f} in the mean",
        }
        if self.groups is not None:
            facts["known clusters"] = f"{len(np.unique(self.groups))}"
        return facts

    def ranges(self) -> tuple[tuple[float, float, bool], ...]:
        """One cluster, or any number up to the limit; shares of the documents."""
        share = (0.0, 1.0001, False)
        return (0.9, 1.1 * MAX_SLOTS, True), share, share, (1e-6, 1e4, True)

    def followed_of(self, sizes: Array, alpha: float) -> Array:
        """The numbers that are followed, from the sizes of the clusters."""
        largest = np.sort(sizes)[::-1] / self.n_data
        return np.array([np.count_nonzero(sizes), largest[0], largest[1], alpha])


def log_predictive(corpus: Corpus, prior: float) -> Any:
    """log p of each document with its cluster's θ ~ Dir(a) integrated out, (documents,)."""
    lengths = np.diff(corpus.offsets)
    out = gammaln(corpus.n_words * prior) - gammaln(corpus.n_words * prior + lengths)
    # Equal words of a document lie together: the j-th of them has the weight a + j − 1.
    same = np.zeros(corpus.n_tokens, dtype=bool)
    same[1:] = corpus.words[1:] == corpus.words[:-1]
    same[corpus.offsets[:-1]] = False
    at = np.arange(corpus.n_tokens)
    before = at - np.maximum.accumulate(np.where(same, 0, at))
    out += np.add.reduceat(np.log(prior + before), corpus.offsets[:-1])
    return out
