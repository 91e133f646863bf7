"""The spherical admixture model, with some of its documents held out."""

import importlib.util
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers.file_format import GUESSED, Format
from sgmcmc_lab.samplers.files import Tell, untold
from sgmcmc_lab.samplers.models.base import Model
from sgmcmc_lab.samplers.models.spherical.bessel import log_c, mean_length
from sgmcmc_lab.samplers.models.spherical.data import Vectors, known_topics, tf_idf
from sgmcmc_lab.samplers.models.topics.corpus import Corpus, read_uploads, reuters
from sgmcmc_lab.samplers.models.topics.docstrings import scipy_docstrings
from sgmcmc_lab.samplers.parameters import UPLOADED, Count, Option, Real, SpecError
from sgmcmc_lab.samplers.targets.base import Array

MAX_CELLS = 6_000_000
"""Documents × words."""
MAX_WEIGHTS = 500_000
"""Topics × words."""
MAX_TEST = 500
"""Held-out documents: with more a score would take longer than many steps."""
N_SCORED = 300
"""Draws of θ that a score averages over."""
N_SHOWN = 400
"""Documents on the globe."""

_CORPORA: dict[str, Callable[[], Corpus]] = {"reuters": lru_cache(reuters), "docstrings": lru_cache(scipy_docstrings)}
_KNOWN = lru_cache(known_topics)
# The package that has the Reuters articles is not built for every Python.
FIRST = "reuters" if importlib.util.find_spec("lda") else "docstrings"


class Spherical(Model):
    """The spherical admixture model (Reisinger et al. 2010; Liu, Zhu & Song 2016, section 4).

    μ ~ vMF(m, κ₀), β_k ~ vMF(μ, σ), θ_d ~ Dir(α), v_d ~ vMF(βθ_d/‖βθ_d‖, κ), all on the sphere S^{V−1}; m is the mean
    direction of the documents that the methods see. With μ integrated out
    p(v, β, θ) ∝ c_V(‖κ₀m + σΣβ_k‖)⁻¹ Π_d Dir(θ_d|α) e^{κ v_d·βθ_d/‖βθ_d‖}: eq (9), where c_V has the exponent −1,
    so that the energy contains + log c_V. The concentrations are given a word, κ/V and so on, so that the same values
    suit every vocabulary; 6, 2 and 2 are the paper's 3·10⁴, 10⁴ and 10⁴ with 5000 words.

    Held out are some documents. The score is the paper's log-perplexity −(1/T) Σ_d log p(v_d|β), where p is the mean
    over 300 draws of θ from its prior, the same ones for every method and step, and for samplers over the later draws
    of β. It is a density on the sphere: it may be negative, and values of another vocabulary or κ cannot be compared.
    """

    key = "spherical"
    title = "Topics on a sphere"
    tex = (
        r"\begin{aligned}\mu &\sim \mathrm{vMF}(m, \kappa_0),\quad \beta_k \mid \mu \sim \mathrm{vMF}(\mu, \sigma),\quad "
        r"\theta_d \sim \mathrm{Dir}(\alpha)\\ v_d \mid \theta_d, \beta &\sim \mathrm{vMF}\bigl(\beta\theta_d/\lVert\beta\theta_d\rVert,\ \kappa\bigr)\end{aligned}"
    )
    source = "Reisinger, Waters, Silverthorn & Mooney 2010; Liu, Zhu & Song 2016, section 4"
    score_name = "held-out log-perplexity"
    higher_is_better = False
    data_name = "documents"
    data_parameter = "corpus"
    real_data = "reuters"
    followed = ("fit v·v̄", "length of the topics' mean", "largest topic")

    corpus = Option(
        default="known",
        objects=["known", *_CORPORA, UPLOADED],
        label="Documents",
        doc="Known: made-up documents of four topics with ten words each. Reuters: 395 articles. Docstrings: what SciPy says of its functions. Uploaded: a corpus of your own. Each text is its tf-idf vector, scaled to length 1.",
    )
    n_topics = Count(4, bounds=(2, 50), log=True, tex="K", label="Topics K", doc="How many topics there are.")
    alpha = Real(
        1.0,
        bounds=(0.5, 100.0),
        log=True,
        tex=r"\alpha",
        label="Document prior α",
        doc="The parameter of the Dirichlet prior of a document's proportions. Small values give each document few topics.",
    )
    kappa = Real(
        6.0,
        bounds=(0.1, 100.0),
        log=True,
        tex=r"\kappa/V",
        label="Concentration of documents κ/V",
        doc="How close documents are to the mean of their topics: κ over the number of words.",
    )
    sigma = Real(
        2.0,
        bounds=(0.01, 100.0),
        log=True,
        tex=r"\sigma/V",
        label="Concentration of topics σ/V",
        doc="How close topics are to the corpus mean μ: σ over the number of words.",
    )
    kappa0 = Real(
        2.0,
        bounds=(0.01, 100.0),
        log=True,
        tex=r"\kappa_0/V",
        label="Concentration of the mean κ₀/V",
        doc="How close μ is to the mean direction of the documents: κ₀ over the number of words.",
    )
    held_out = Real(
        0.2,
        bounds=(0.01, 0.5),
        label="Held-out share",
        doc="The share of the documents that the methods do not see; at most 500.",
    )
    split_seed = Count(1, bounds=(0, 2**32 - 1), label="Split seed", doc="It selects the held-out documents.")
    min_documents = Count(
        2, bounds=(1, 1000), log=True, label="Rare words", doc="Words in fewer documents than this are left out."
    )
    max_share = Real(
        0.5, bounds=(0.01, 1.0), label="Common words", doc="Words in a larger share of the documents are left out."
    )
    max_words = Count(
        500,
        bounds=(10, 5000),
        log=True,
        tex="V",
        label="Largest vocabulary",
        doc="The most words kept of a corpus: those in the most documents.",
    )
    directions = Option(
        default="documents",
        objects=["documents", "contrasts"],
        label="Directions of the globe",
        doc="The globe's three axes. Documents: their mean and the two directions in which they differ most. Contrasts: the three directions in which they differ most.",
    )

    @classmethod
    def read(cls, files: Mapping[str, bytes], tell: Tell = untold, form: Format = GUESSED) -> Corpus:
        """One file or several."""
        return read_uploads(files, tell=tell, form=form)

    def prepare(self) -> None:
        """Load the documents and hold some out."""
        whole = self._whole()
        n, self.n_words = whole.rows.shape
        self.vocabulary, self.true_topics = whole.vocabulary, whole.topics
        if self.n_topics * self.n_words > MAX_WEIGHTS:
            allowed = f"allowed are at most {MAX_WEIGHTS // self.n_words} topics with {self.n_words:,} words"
            raise SpecError("model.n_topics", self.n_topics, allowed)
        n_test = min(max(1, round(self.held_out * n)), MAX_TEST)
        if n - n_test < 2:
            raise SpecError(
                "model.held_out", self.held_out, f"of {n} documents that leaves {max(n - n_test, 0)}; two are needed"
            )
        rng = Generator(SFC64(self.split_seed))
        order = rng.permutation(n)
        seen = np.sort(order[n_test:])
        self.training, self.held = (
            np.ascontiguousarray(whole.rows[seen]),
            np.ascontiguousarray(whole.rows[order[:n_test]]),
        )
        """Unit vectors (documents, words): those that the methods see, and those that they do not."""
        mean = self.training.sum(axis=0)
        self.mean = mean / np.linalg.norm(mean)
        """m, (words,)."""
        self.k, self.s, self.k0 = (x * self.n_words for x in (self.kappa, self.sigma, self.kappa0))
        """κ, σ, κ₀."""
        self.log_constant = log_c(self.n_words, self.k)
        """log c_V(κ)."""
        self.scored_theta = rng.dirichlet(np.full(self.n_topics, self.alpha), size=N_SCORED)
        """θ that the score averages over, (300, topics)."""
        self.axes = self._axes()
        """Three orthonormal directions, (3, words): the globe's. With few words some are 0."""
        self.shown = self.training[:N_SHOWN] @ self.axes.T
        """Documents on the globe, (documents, 3)."""

    def _whole(self) -> Vectors:
        if self.corpus == "known":
            return _KNOWN()
        if self.corpus in _CORPORA:
            corpus = _CORPORA[self.corpus]()
        elif isinstance(self.uploaded, Corpus):
            corpus = self.uploaded
        else:
            raise SpecError("model.corpus", UPLOADED, "no file has been uploaded; choose one, or built-in documents")
        corpus = corpus.trimmed(self.min_documents, self.max_share, self.max_words)
        if corpus.n_documents * corpus.n_words > MAX_CELLS:
            allowed = f"with {corpus.n_documents:,} documents allowed are at most {MAX_CELLS // corpus.n_documents:,}"
            raise SpecError("model.max_words", self.max_words, allowed)
        return tf_idf(corpus)

    def _axes(self) -> Array:
        along = self.training @ self.mean
        rest = self.training - along[:, None] * self.mean
        count = 3 if self.directions == "contrasts" else 2
        _, vectors = np.linalg.eigh(rest @ rest.T if len(rest) < self.n_words else rest.T @ rest)
        first = vectors[:, ::-1][:, :count].T
        axes = first @ rest if len(rest) < self.n_words else first
        axes = axes if count == 3 else np.vstack([self.mean, axes])
        found, triangle = np.linalg.qr(axes.T)
        # Two words or two documents differ in fewer directions; what is missing has no length.
        directions = np.zeros((3, self.n_words))
        directions[: found.shape[1]] = found.T * np.sign(triangle.diagonal())[:, None]
        return directions

    @property
    def n_data(self) -> int:
        """The documents that the methods see."""
        return len(self.training)

    def facts(self) -> Mapping[str, str]:
        """The description of the data."""
        return {
            "documents": f"{self.n_data + len(self.held):,}, of which {len(self.held):,} are held out",
            "different words": f"{self.n_words:,}",
            "concentrations": f"κ, σ, κ₀ = {self.k:.4g}, {self.s:.4g}, {self.k0:.4g}",
            **({} if self.true_topics is None else {"known topics": f"{len(self.true_topics)}"}),
        }

    def ranges(self) -> tuple[tuple[float, float, bool], ...]:
        """A mean cosine, which no posterior has far below 0, a length, a share."""
        return (-0.5, 1.0001, False), (0.0, 1.0001, False), (0.0, 1.0001, False)

    def prior_energy(self, beta: Array) -> float:
        """+ log c_V(‖m̄‖) of the topics (topics, words), m̄ = κ₀m + σΣβ_k: minus the log of their prior."""
        return log_c(self.n_words, float(np.linalg.norm(self.pull(beta))))

    def prior_gradient(self, beta: Array) -> Array:
        """Its derivative in each β_k, −σA(‖m̄‖)m̄/‖m̄‖, (words,), the same for all k."""
        pull = self.pull(beta)
        length = float(np.linalg.norm(pull))
        return -self.s * mean_length(self.n_words, length) / length * pull

    def pull(self, beta: Array) -> Array:
        """m̄, (words,)."""
        return self.k0 * self.mean + self.s * beta.sum(axis=0)

    def cosines(self, beta: Array, documents: Array, theta: Array) -> Array:
        """v_d·v̄(β, θ_d), (..., documents), for documents (documents, words) and θ (..., documents, topics)."""
        along = (theta * (documents @ beta.T)).sum(axis=-1)
        return along / np.sqrt(((theta @ (beta @ beta.T)) * theta).sum(axis=-1))

    def data_gradient(self, beta: Array, documents: Array, theta: Array) -> Array:
        """∂/∂β of −κ Σ_d v_d·v̄(β, θ_d), averaged over the draws of θ (draws, documents, topics); (topics, words)."""
        lengths = np.sqrt(((theta @ (beta @ beta.T)) * theta).sum(axis=-1))
        cosines = (theta * (documents @ beta.T)).sum(axis=-1) / lengths
        outer = np.einsum("ndk,nd,ndl->kl", theta, cosines / lengths**2, theta)
        return -self.k / len(theta) * ((theta / lengths[..., None]).sum(axis=0).T @ documents - outer @ beta)

    def log_density(self, beta: Array) -> Array:
        """log p(v|β) of each held-out document."""
        lengths = np.sqrt(((self.scored_theta @ (beta @ beta.T)) * self.scored_theta).sum(axis=1))
        logs = self.k * ((self.held @ beta.T) @ self.scored_theta.T / lengths)
        largest = logs.max(axis=1)
        return np.asarray(self.log_constant + largest + np.log(np.exp(logs - largest[:, None]).mean(axis=1)))
