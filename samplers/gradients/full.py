"""The gradient itself."""

from sgmcmc_lab.samplers.gradients.base import Estimator
from sgmcmc_lab.samplers.requirements import FULL


class Full(Estimator):
    """The exact gradient, from all the data."""

    key = "full"
    title = "Full"
    tex = r"\nabla\tilde U = \nabla U"
    requires = frozenset({FULL})

    def textbook_gradients(self, rng, target, theta, data, memory):
        return target.gradient_at(theta[None])
