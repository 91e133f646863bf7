"""The checks that every method for a model of data has to pass; ``test_formulas`` runs them over the registry."""

import copy
from array import array
from itertools import pairwise

import numpy as np
import pytest
from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.clusters.model import Clusters
from sgmcmc_lab.samplers.models.clusters.points import Points
from sgmcmc_lab.samplers.models.clusters.sphere import SphereClusters
from sgmcmc_lab.samplers.models.clusters.sphere_points import Directions
from sgmcmc_lab.samplers.models.factors import Factors
from sgmcmc_lab.samplers.models.factors.data import Rows
from sgmcmc_lab.samplers.models.mixture.data import Documents
from sgmcmc_lab.samplers.models.mixture.model import Mixture
from sgmcmc_lab.samplers.models.network.model import Network
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.models.sparse import Sparse
from sgmcmc_lab.samplers.models.spherical import Spherical
from sgmcmc_lab.samplers.models.topics.corpus import Corpus
from sgmcmc_lab.samplers.models.topics.method import TopicMethod
from sgmcmc_lab.samplers.models.topics.model import Topics
from sgmcmc_lab.samplers.models.variational.gamma import GammaAscent
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.targets.own import Table


def missing(cls):
    """The missing declarations of a method's class, as sentences."""
    needed = ["tried_at", "textbook_step", "textbook_unknowns"] + ["exact_at"] * issubclass(cls, TopicMethod)
    return [f"{cls.__name__} declares no {name}" for name in needed if not hasattr(cls, name)]


def small_network():
    return Network(graph="florentine", n_communities=3, a_prior=0.5, mass_prior=0.8)


def small_topics():
    lengths = np.array([3, 5, 4, 6, 2, 7, 4])
    words = np.random.default_rng(2).integers(5, size=lengths.sum()).astype(np.int32)
    corpus = Corpus(np.concatenate([[0], lengths.cumsum()]), words, tuple("abcde"), tuple(map(str, lengths)))
    return Topics(corpus, corpus="uploaded", n_topics=3, alpha=0.4, beta=0.7, min_documents=1, max_share=1.0)


def small_clusters():
    x = np.random.default_rng(3).standard_normal((14, 3)) + np.repeat([[0.0], [3.0]], 7, axis=0)
    return Clusters(Points(("a", "b", "c"), x), points="uploaded", second=3, cluster_sd=0.5)


def small_sphere_clusters():
    x = np.random.default_rng(3).standard_normal((14, 4)) + np.repeat([[-2.0], [2.0]], 7, axis=0)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return SphereClusters(Directions(tuple("abcd"), x), points="uploaded", kappa=6.0, kappa0=0.5)


def small_mixture():
    lengths = np.array([3, 5, 4, 6, 2, 7, 4, 3, 5])
    words = np.random.default_rng(2).integers(5, size=lengths.sum()).astype(np.int32)
    offsets = np.concatenate([[0], lengths.cumsum()])
    words = np.concatenate([np.sort(words[a:b]) for a, b in pairwise(offsets)])
    corpus = Corpus(offsets, words, tuple("abcde"), tuple(map(str, lengths)))
    return Mixture(Documents(corpus, of_text=False), corpus="uploaded", alpha_mean=2.0)


def small_sparse():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((9, 4))
    return Sparse(
        Table(tuple("abcd"), x, "y", np.sign(x[:, 0] + rng.standard_normal(9)), ("no", "yes")), data="uploaded"
    )


def small_factors():
    rng = np.random.default_rng(6)
    y = rng.standard_normal((12, 2)) @ rng.random((2, 5)) + 0.5 * rng.standard_normal((12, 5))
    return Factors(Rows(tuple("abcde"), y), data="uploaded", n_factors=3)


def small_spherical():
    lengths = np.array([3, 5, 4, 6, 2, 7, 4])
    words = np.random.default_rng(2).integers(6, size=lengths.sum()).astype(np.int32)
    offsets = np.concatenate([[0], lengths.cumsum()])
    words = np.concatenate([np.sort(words[a:b]) for a, b in pairwise(offsets)])
    corpus = Corpus(offsets, words, tuple("abcdef"), tuple(map(str, lengths)))
    return Spherical(corpus, corpus="uploaded", n_topics=3, min_documents=1, max_share=1.0)


SMALL = {
    "network": small_network,
    "topics": small_topics,
    "clusters": small_clusters,
    "sphere_clusters": small_sphere_clusters,
    "mixture": small_mixture,
    "sparse": small_sparse,
    "factors": small_factors,
    "spherical": small_spherical,
}


def small_model(cls):
    """A model on which a step in plain Python takes no time."""
    if cls.model not in SMALL:
        pytest.fail(f"{cls.model} is registered and has no small model in tests/helpers/checks_methods.py")
    return SMALL[cls.model]()


def numbers(state, name="state"):
    """Every number and every array of numbers in a state, by its name."""
    if isinstance(state, (int, float, array, np.ndarray)):
        return {name: np.array(state, dtype=float)}
    inside = state if isinstance(state, dict) else getattr(state, "__dict__", {})
    return {key: x for part, value in inside.items() for key, x in numbers(value, f"{name}.{part}").items()}


def step_error(method, steps=4, by=None):
    """How far a method's steps are from its formula's, relative to what is there: the largest of all of the state.

    ``by`` is the method whose formula it is, where that is not its own.
    """
    model = small_model(type(method))
    run = ModelChain(model, method, Generator(SFC64(4)))
    worst = 0.0
    for _ in range(steps):
        state, rng = copy.deepcopy(run.state), copy.deepcopy(run.rng)
        seen = (by or method).textbook_step(rng, model, state)
        assert method.advance(model, run.state, run.rng) == seen
        one, two = numbers(run.state), numbers(state)
        assert one.keys() == two.keys()
        for name, x in one.items():
            assert x.shape == two[name].shape, name
            scale = max(np.abs(two[name]).max(initial=0.0), 1e-12)
            worst = max(worst, float(np.abs(x - two[name]).max(initial=0.0)) / scale)
        assert (run.rng.bit_generator.state["state"]["state"] == rng.bit_generator.state["state"]["state"]).all()
    return worst


def check_step(key):
    """Fails where a method's step is not its formula, at any of the settings that it declares; the planted fault, a
    formula whose step size is larger by one part in a thousand, must show."""
    cls = METHODS[key]
    assert missing(cls) == []
    # The slope of a gamma draw is by a difference in the formula.
    tolerance = 1e-6 if issubclass(cls, GammaAscent) else 1e-9
    for params in cls.tried_at:
        method = cls(**params)
        assert step_error(method) < tolerance, params
        if "step_size" in dict(declared(cls)):
            wrong = cls(**{**params, "step_size": method.step_size * (1 + 1e-3)})
            assert step_error(method, by=wrong) > tolerance, params
