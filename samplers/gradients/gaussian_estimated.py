"""Noise whose size the sampler has to estimate."""

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.gaussian import Gaussian
from sgmcmc_lab.samplers.parameters import Count
from sgmcmc_lab.samplers.requirements import KNOWN, NOISE, REDRAWN


class GaussianEstimated(Gaussian):
    """Noise as in :class:`Gaussian`, whose variance is estimated from the n draws that the gradient is the mean of.

    B̂ = V·χ²/(n − 1), with n − 1 degrees of freedom: new at every step, right on average.
    """

    key = "gaussian_estimated"
    title = "Noisy, B̂ estimated"
    tex = r"\nabla\tilde U = \nabla U + \mathcal N(0, V I),\quad \hat B = V \chi^2_{n-1}/(n-1)"
    requires = frozenset({NOISE, KNOWN, REDRAWN})

    sample_size = Count(
        10,
        bounds=(2, 10_000),
        log=True,
        tex="n",
        label="Draws n behind B̂",
        doc="The gradient is the mean of this number of draws, and B̂ is computed from their spread. Few draws give a noisy B̂.",
    )

    def noise(self) -> jit.Noise:
        return jit.Noise(variance=self.variance, correction=self.variance, sample_size=self.sample_size)

    def textbook_subtracted(self, rng, each, n_data):
        freedom = self.sample_size - 1
        return self.variance * 2 * rng.standard_gamma(freedom / 2) / freedom * np.eye(each.shape[1])
