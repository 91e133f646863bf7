"""Exact independent draws: the baseline that no chain can beat."""

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.requirements import FULL
from sgmcmc_lab.samplers.targets.base import LINE, MANIFOLD, POSITIVE, SIMPLEX


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    theta = state.position
    for t in range(n):
        model.draw(rng, theta, model.params)
        for c in range(theta.shape[0]):
            for i in range(theta.shape[1]):
                out[t, c, i] = theta[c, i]


class Exact(Sampler):
    """Independent draws from the target itself, by its own exact sampler. It uses no gradient."""

    key = "exact"
    title = "Exact i.i.d."
    update = r"\theta_{t+1} \sim \pi"
    diffusion = r"\text{none}"
    curl = r"\text{none}"
    integrator = "None: independent draws"
    source = "The target's own exact sampler"
    supports = frozenset({LINE, POSITIVE, SIMPLEX, MANIFOLD})
    accepts = frozenset({FULL})
    gradient_age = None
    advance = advance

    @property
    def gradients_per_step(self) -> int:
        return 0

    bias_order = None
    steps_to_test = 100
    # Its step is the target's draw, which has a formula of its own.
    textbook_step = None
    parts = {"draw": r"\theta_{t+1} \sim \pi"}
    # Its step is the target's draw, which has a formula of its own.
    textbook_step = None
