"""Noise of a known size, in place of a minibatch's."""

from math import sqrt

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.base import Estimator
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import NOISE


class Gaussian(Estimator):
    """The exact gradient plus Gaussian noise N(0, V I), a stand-in for a minibatch of known variance."""

    key = "gaussian"
    title = "Noisy"
    tex = r"\nabla\tilde U = \nabla U + \mathcal N(0, V I)"
    requires = frozenset({NOISE})

    variance = Real(
        4.0,
        bounds=(1e-3, 1e5),
        log=True,
        tex="V",
        label="Noise variance V",
        doc="The variance of the noise added to each component of the gradient. A minibatch has such noise; here you choose its size.",
    )

    def noise(self) -> jit.Noise:
        return jit.Noise(variance=self.variance)

    def textbook_gradients(self, rng, target, theta, data, memory):
        return target.gradient_at(theta[None]) + sqrt(self.variance) * rng.standard_normal((1, len(theta)))
