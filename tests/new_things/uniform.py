"""Uniform noise of a known size that the sampler makes room for."""

from math import sqrt

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.base import Estimator
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import KNOWN, NOISE


@jit.estimate
def estimate(rng, theta, out, each, model, data, params, memory):
    model.gradient(theta, out, model.params)
    for c in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            out[c, i] += params[0] * (2 * rng.random() - 1)


class Uniform(Estimator):
    """The exact gradient plus uniform noise of variance V, which is subtracted from the noise that is injected."""

    key = "uniform"
    title = "Uniform noise"
    tex = r"\nabla\tilde U = \nabla U + \mathcal U(-\sqrt{3V}, \sqrt{3V})"
    requires = frozenset({NOISE, KNOWN})

    variance = Real(
        1.0, bounds=(1e-3, 10.0), log=True, tex="V", label="Noise variance V", doc="Of each component's noise."
    )

    estimate = estimate

    def noise(self) -> jit.Noise:
        return jit.Noise(batch_size=1, correction=self.variance)

    def packed(self, target):
        return np.array([sqrt(3 * self.variance)])

    def textbook_gradients(self, rng, target, theta, data, memory):
        noise = sqrt(3 * self.variance) * (2 * np.array([rng.random() for _ in theta]) - 1)
        return target.gradient_at(theta[None]) + noise

    def textbook_subtracted(self, rng, each, n_data):
        return self.variance * np.eye(each.shape[1])
