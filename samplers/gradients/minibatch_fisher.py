"""A minibatch that estimates its own noise."""

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.minibatch import Minibatch
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.requirements import BATCH, SPREAD
from sgmcmc_lab.samplers.targets.base import Target


class MinibatchFisher(Minibatch):
    """A minibatch as in :class:`Minibatch`, whose noise V is estimated from it and subtracted from what is injected.

    V = (N²/n)·Cov_S(∇ log p(x_i | θ)), the minibatch's empirical Fisher information (Ahn, Korattikara & Welling 2012).
    """

    key = "minibatch_fisher"
    title = "Minibatch, V estimated"
    tex = r"\nabla\tilde U = \nabla U_0 + \tfrac{N}{n}\textstyle\sum_{i\in S}\nabla u_i,\quad V = \tfrac{N^2}{n}\operatorname{Cov}_S(\nabla u_i)"
    requires = frozenset({BATCH, SPREAD})

    def noise(self) -> jit.Noise:
        return super().noise()._replace(estimated=True)

    def check(self, target: Target) -> None:
        super().check(target)
        if self.batch_size < 2:
            raise SpecError(
                "gradient.batch_size", self.batch_size, "allowed is at least 2: one data point has no spread"
            )

    def textbook_subtracted(self, rng, each, n_data):
        left = 1.0 if self.replacement is True else 1 - self.batch_size / n_data
        return left * np.cov(each.T) / self.batch_size
