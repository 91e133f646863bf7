"""The checks that every estimator of the gradient has to pass; ``test_gradients`` runs them over the registry."""

import numpy as np
from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.requirements import BATCH
from sgmcmc_lab.samplers.targets import TARGETS


def missing(cls):
    """The missing declarations of an estimator's class, as sentences."""
    needed = ("title", "tex", "__doc__", "textbook_gradients")
    return [f"{cls.__name__} declares no {name}" for name in needed if not getattr(cls, name, None)]


def check_words(cls):
    """The texts and bounds for a card and a slider."""
    assert "\\nabla" in cls.tex or "\\hat" in cls.tex
    for name, parameter in declared(cls):
        assert parameter.label, name
        assert parameter.doc.endswith("."), name


def check_textbook(key):
    """Fails where the mean of 1,000 estimates in plain Python is not ∇U, to 4.5 standard errors, or what is subtracted
    is no covariance. The kernels' own are compared with these number for number. Each is a chain's second estimate, the
    first having been elsewhere, so that what it remembers is of another θ."""
    estimator, target, theta = GRADIENTS[key](), TARGETS["linear_regression"](items=12), np.array([0.7, -0.2])
    rng, data = Generator(SFC64(3)), target.data()

    def second():
        memory = estimator.first_memory(target)
        estimator.textbook_gradients(rng, target, theta + 0.4, data, memory)
        return estimator.textbook_gradients(rng, target, theta, data, memory)

    each = [second() for _ in range(1000)]
    means = np.array([gradients.mean(axis=0) for gradients in each])
    error = means.std(axis=0) / np.sqrt(len(means))
    assert (np.abs(means.mean(axis=0) - target.gradient_at(theta[None])[0]) < 4.5 * error + 1e-9).all()
    subtracted = estimator.textbook_subtracted(rng, each[0], len(data))
    assert subtracted.shape == (2, 2)
    assert (np.linalg.eigvalsh(subtracted) >= 0).all()


def check_contributions(key):
    """Fails where a data point's part, which pictures show, is none that the estimate in plain Python takes. Fault: the
    parts at another θ."""
    if BATCH not in GRADIENTS[key].requires:
        return
    estimator, target, theta = (
        GRADIENTS[key](batch_size=3),
        TARGETS["linear_regression"](items=12),
        np.array([0.7, -0.2]),
    )
    rng, data, memory = Generator(SFC64(4)), target.data(), estimator.first_memory(target)
    estimator.textbook_gradients(rng, target, theta + 0.4, data, memory)
    for at, same in ((theta, True), (theta + 0.1, False)):
        parts = estimator.contributions(target, at, memory)
        np.testing.assert_allclose(parts.mean(axis=0), target.gradient_at(at[None])[0], rtol=1e-9)
        taken = np.concatenate(
            [estimator.textbook_gradients(rng, target, theta, data, memory.copy()) for _ in range(100)]
        )
        nearest = np.abs(taken[:, None] - parts).max(axis=2)
        assert (nearest.min(axis=1) < 1e-9).all() == same


def check_gradient(key):
    """All of it, of one estimator."""
    check_words(GRADIENTS[key])
    check_textbook(key)
    check_contributions(key)
