"""A minibatch with control variates at an earlier point of the chain."""

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.minibatch import Minibatch
from sgmcmc_lab.samplers.gradients.minibatch_cv import vary
from sgmcmc_lab.samplers.parameters import Count
from sgmcmc_lab.samplers.requirements import BATCH, MEMORY
from sgmcmc_lab.samplers.targets.base import Target

# The packed parameters: n, whether with replacement, how many gradients an anchor serves. A chain's memory: for how
# many more gradients its anchor θ̃ serves, θ̃ and ∇U(θ̃).
_PERIOD = 2
_LEFT, _ANCHOR = 0, 1


@jit.estimate
def estimate(rng, theta, out, each, model, data, params, memory):
    dim = theta.shape[1]
    anchor = memory[_ANCHOR : _ANCHOR + dim].reshape((1, dim))
    slope = memory[_ANCHOR + dim : _ANCHOR + 2 * dim].reshape((1, dim))
    if memory[_LEFT] == 0:
        anchor[0] = theta[0]
        model.gradient(anchor, slope, model.params)
        memory[_LEFT] = params[_PERIOD]
    memory[_LEFT] -= 1
    vary(rng, theta, out, each, model, data, params, anchor, slope[0])


class MinibatchSVRG(Minibatch):
    """∇Ũ = ∇U(θ̃) + (N/n) Σ_{i∈S} (∇u_i(θ) − ∇u_i(θ̃)), θ̃ where the chain was at the first of every m gradients.

    Stochastic variance-reduced gradients for Langevin dynamics (Dubey et al. 2016, SVRG-LD). The variance is
    Var_i(∇u_i(θ) − ∇u_i(θ̃))/n for a sample of n with replacement, where each ∇u_i stands for all data: it grows with
    the distance from the anchor, and needs no mode. Each chain has an anchor of its own.

    A gradient uses n data points, and one in m gradients also all N: n + N/m on average.
    """

    key = "minibatch_svrg"
    title = "Minibatch, SVRG"
    tex = r"\nabla\tilde U = \nabla U(\tilde\theta) + \tfrac{N}{n}\textstyle\sum_{i\in S}\bigl(\nabla u_i(\theta) - \nabla u_i(\tilde\theta)\bigr)"
    requires = frozenset({BATCH, MEMORY})

    period = Count(
        50,
        bounds=(1, 100_000),
        log=True,
        tex="m",
        label="Gradients an anchor m",
        doc="After this number of gradients the chain's position becomes the new anchor of the control variates, which costs one gradient of all data.",
    )

    estimate = estimate

    def packed(self, target: Target) -> NDArray[np.float64]:
        return np.append(super().packed(target), self.period)

    def first_memory(self, target: Target) -> NDArray[np.float64]:
        return np.zeros(1 + 2 * target.dim)

    def data_per_gradient(self, target: Target) -> float:
        return self.batch_size + len(target.data()) / self.period

    def contributions(
        self, target: Target, theta: NDArray[np.float64], memory: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        # The next gradient has a new anchor where none is left of this one.
        anchor = memory[_ANCHOR : _ANCHOR + target.dim] if memory[_LEFT] > 0 else theta
        there = target.slopes_at(anchor)
        return target.slopes_at(theta) - there + there.mean(axis=0)

    def textbook_gradients(self, rng, target, theta, data, memory):
        anchor = memory[_ANCHOR : _ANCHOR + target.dim]
        if memory[_LEFT] == 0:
            anchor[:] = theta
            memory[_LEFT] = self.period
        memory[_LEFT] -= 1
        chosen, everything = (
            textbook.batch(rng, data, self.batch_size, self.replacement),
            textbook.slope(target, anchor),
        )
        return np.array(
            [
                target.textbook_slope(theta, datum) - target.textbook_slope(anchor, datum) + everything
                for datum in chosen
            ]
        )
