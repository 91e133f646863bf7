"""SAGA that estimates its remaining noise."""

from sgmcmc_lab.samplers.gradients.minibatch_fisher import MinibatchFisher
from sgmcmc_lab.samplers.gradients.minibatch_saga import MinibatchSAGA
from sgmcmc_lab.samplers.requirements import BATCH, MEMORY, SPREAD


class MinibatchSAGAFisher(MinibatchSAGA, MinibatchFisher):
    """A minibatch as in :class:`MinibatchSAGA`, whose noise V is estimated from it and subtracted from the
    noise that is injected.

    V = (N²/n)·Cov_S(∇u_i(θ) − g_i), as :class:`MinibatchFisher` has it from the gradients themselves.
    """

    key = "minibatch_saga_fisher"
    title = "SAGA, V estimated"
    tex = r"\nabla\tilde U = \bar g + \tfrac{N}{n}\textstyle\sum_{i\in S}\delta_i,\quad \delta_i = \nabla u_i(\theta) - g_i,\quad V = \tfrac{N^2}{n}\operatorname{Cov}_S(\delta_i)"
    requires = frozenset({BATCH, MEMORY, SPREAD})
