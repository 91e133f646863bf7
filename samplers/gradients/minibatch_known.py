"""A minibatch whose noise has been measured before."""

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.minibatch import Minibatch
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import BATCH, KNOWN


class MinibatchKnown(Minibatch):
    """A minibatch as in :class:`Minibatch`, and V·I with a V that is known subtracted from what is injected.

    V is measured before the run: (N²/n)·Var(∇u_i) at typical θ, as a mean over directions. In a single direction the
    noise may be larger or smaller: see :class:`MinibatchFisher`.
    """

    key = "minibatch_known"
    title = "Minibatch, V known"
    tex = r"\nabla\tilde U = \nabla U_0 + \tfrac{N}{n}\textstyle\sum_{i\in S}\nabla u_i,\quad \hat B = V I"
    requires = frozenset({BATCH, KNOWN})

    variance = Real(
        5700.0,
        bounds=(1e-3, 1e7),
        log=True,
        tex="V",
        label="Known variance V",
        doc="The sampler's estimate of the variance of the minibatch's noise in each direction. If it is too small, the chain is too hot; if it is too large, too cold.",
    )

    def noise(self) -> jit.Noise:
        return super().noise()._replace(correction=self.variance)

    def textbook_subtracted(self, rng, each, n_data):
        return self.variance * np.eye(each.shape[1])
