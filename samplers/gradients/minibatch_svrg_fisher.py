"""SVRG that estimates its remaining noise."""

from sgmcmc_lab.samplers.gradients.minibatch_fisher import MinibatchFisher
from sgmcmc_lab.samplers.gradients.minibatch_svrg import MinibatchSVRG
from sgmcmc_lab.samplers.requirements import BATCH, MEMORY, SPREAD


class MinibatchSVRGFisher(MinibatchSVRG, MinibatchFisher):
    """A minibatch as in :class:`MinibatchSVRG`, whose noise V is estimated from it and subtracted from the
    noise that is injected.

    V = (N²/n)·Cov_S(∇u_i(θ) − ∇u_i(θ̃)), as :class:`MinibatchFisher` has it from the gradients themselves.
    """

    key = "minibatch_svrg_fisher"
    title = "SVRG, V estimated"
    tex = r"\nabla\tilde U = \nabla U(\tilde\theta) + \tfrac{N}{n}\textstyle\sum_{i\in S}\delta_i,\quad \delta_i = \nabla u_i(\theta) - \nabla u_i(\tilde\theta),\quad V = \tfrac{N^2}{n}\operatorname{Cov}_S(\delta_i)"
    requires = frozenset({BATCH, MEMORY, SPREAD})
