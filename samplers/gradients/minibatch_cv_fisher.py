"""A minibatch with control variates that estimates its remaining noise."""

from sgmcmc_lab.samplers.gradients.minibatch_cv import MinibatchCV
from sgmcmc_lab.samplers.gradients.minibatch_fisher import MinibatchFisher
from sgmcmc_lab.samplers.requirements import BATCH, MODE, SPREAD


class MinibatchCVFisher(MinibatchCV, MinibatchFisher):
    """A minibatch as in :class:`MinibatchCV`, whose noise V is estimated from it and subtracted from what is injected.

    V = (N²/n)·Cov_S(∇u_i(θ) − ∇u_i(θ̂)), as :class:`MinibatchFisher` has it from the gradients themselves.
    """

    key = "minibatch_cv_fisher"
    title = "Control variates, V estimated"
    tex = r"\nabla\tilde U = \nabla U(\hat\theta) + \tfrac{N}{n}\textstyle\sum_{i\in S}\delta_i,\quad \delta_i = \nabla u_i(\theta) - \nabla u_i(\hat\theta),\quad V = \tfrac{N^2}{n}\operatorname{Cov}_S(\delta_i)"
    requires = frozenset({BATCH, MODE, SPREAD})
