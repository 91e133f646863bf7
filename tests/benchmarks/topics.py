"""How fast collapsed Gibbs is, beside the other programs that do it: ``lda`` and ``tomotopy``, each in one thread.

Tokens a second: one draw of one word's topic counts once. All are measured in turns within one process, on the
Reuters articles with the same priors.
"""

import importlib.util
import logging
import statistics
from dataclasses import dataclass

from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models import METHODS, Method
from sgmcmc_lab.samplers.models.run import functions
from sgmcmc_lab.samplers.models.topics.collapsed_gibbs import CollapsedGibbs
from sgmcmc_lab.samplers.models.topics.model import Topics
from tests.benchmarks.timing import Effort, Requirement, Work, ratio_of, rounds

TOPICS = (20, 50)


@dataclass(frozen=True)
class TokenRate:
    """One program's collapsed Gibbs sampler."""

    program: str
    n_topics: int
    rate: float | None
    """Tokens a second; None where the program is not installed."""
    ratio: float | None
    """The engine's rate over this one's, the median over rounds."""


def token_rates(effort: Effort) -> list[TokenRate]:
    """The engine and the others; nothing where the articles are not there."""
    if not importlib.util.find_spec("lda"):
        return []
    out = []
    for n_topics in TOPICS:
        model = Topics(n_topics=n_topics, alpha=0.1, beta=0.01, test_share=0.01)
        works = {"engine": _engine(model), "lda": _lda(model)}
        if importlib.util.find_spec("tomotopy"):
            works["tomotopy"] = _tomotopy(model)
        # A sweep is the least that all of them can make.
        sweeps = max(1, round(20 * effort.seconds))
        for work in works.values():
            work(1)
        tokens = model.training.n_tokens
        rates = rounds({name: (work, sweeps, tokens) for name, work in works.items()}, effort.rounds)
        for program in ("engine", "lda", "tomotopy"):
            known = rates.get(program)
            ratio = ratio_of(rates, "engine", program) if known else None
            out.append(TokenRate(program, n_topics, statistics.median(known) if known else None, ratio))
    return out


def token_requirements(rates: list[TokenRate]) -> list[Requirement]:
    """The speeds that the engine promises."""
    ratios = {x.program: x.ratio for x in rates if x.n_topics == TOPICS[0]}
    return [
        Requirement(f"collapsed Gibbs on Reuters over {program}, K = {TOPICS[0]}", ratios.get(program), needed)
        for program, needed in (("lda", 2.0), ("tomotopy", 1.0))
    ]


def runtime_requirements(effort: Effort) -> list[Requirement]:
    """Ma, Chen & Fox 2015, Fig 3, lower left: the time that a document takes is similar for their four methods, the
    gradient being most of it. Over SGLD's they have 1.05, .94 and 1.04; here K = 50, and minibatches of 50 documents.
    Our topics are drawn so fast that what else a step does is seen too: similar means less than twice.
    """
    if not importlib.util.find_spec("lda"):
        return []
    model = Topics(n_topics=50)
    keys = ("lda_sgld", "lda_sghmc", "lda_sgrld", "lda_sgrhmc")
    works = {key: _of_method(model, METHODS[key](batch_size=50)) for key in keys}
    for work in works.values():
        work(1)
    rates = rounds({key: (work, max(1, round(20 * effort.seconds)), 50) for key, work in works.items()}, effort.rounds)
    return [
        Requirement(
            f"time of a document of LDA, {METHODS[key].title} over SGLD",
            ratio_of(rates, keys[0], key),
            2.0,
            at_most=True,
        )
        for key in keys[1:]
    ]


def _engine(model: Topics) -> Work:
    return _of_method(model, CollapsedGibbs(batch_size=model.training.n_documents))


def _of_method(model: Topics, method: Method) -> Work:
    jit.prepare(functions(method))
    rng = Generator(SFC64(1))
    state = method.start(model, rng)

    def work(n: int) -> None:
        for _ in range(n):
            method.advance(model, state, rng)

    return work


def _lda(model: Topics) -> Work:
    import lda

    # It prints its progress to whom nobody has told otherwise.
    logging.getLogger("lda").setLevel(logging.ERROR)
    peer = lda.LDA(model.n_topics, alpha=model.alpha, eta=model.beta, random_state=1)
    peer._initialize(model.training.matrix())

    def work(n: int) -> None:
        for _ in range(n):
            peer._sample_topics(peer._rands)

    return work


def _tomotopy(model: Topics) -> Work:
    import tomotopy

    data = model.training
    peer = tomotopy.LDAModel(k=model.n_topics, alpha=model.alpha, eta=model.beta, seed=1)
    for d in range(data.n_documents):
        peer.add_doc([data.vocabulary[w] for w in data.words[data.offsets[d] : data.offsets[d + 1]]])
    peer.optim_interval = 0

    def work(n: int) -> None:
        peer.train(n, workers=1)

    return work
