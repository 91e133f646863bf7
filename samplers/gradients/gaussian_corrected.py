"""Noise of known variance, which the sampler subtracts from the noise that it injects."""

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.gaussian import Gaussian
from sgmcmc_lab.samplers.requirements import KNOWN, NOISE


class GaussianCorrected(Gaussian):
    """Noise as in :class:`Gaussian`, and its variance B̂ = V subtracted from the noise that the sampler injects."""

    key = "gaussian_corrected"
    title = "Noisy, B̂ subtracted"
    tex = r"\nabla\tilde U = \nabla U + \mathcal N(0, V I),\quad \hat B = V"
    requires = frozenset({NOISE, KNOWN})

    def noise(self) -> jit.Noise:
        return jit.Noise(variance=self.variance, correction=self.variance)

    def textbook_subtracted(self, rng, each, n_data):
        return self.variance * np.eye(each.shape[1])
