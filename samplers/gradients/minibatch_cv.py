"""A minibatch with control variates: the differences of the gradients of a few data points from those at the mode."""

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.minibatch import Minibatch, choose
from sgmcmc_lab.samplers.requirements import BATCH, MODE
from sgmcmc_lab.samplers.targets.base import Target

# The packed parameters: n, whether with replacement, θ̂ and ∇U(θ̂).
_MODE = 2


@jit.inlined
def anchor_of(params, dim):
    """θ̂ in the packed parameters; nothing in those of an estimator without control variates."""
    return params[_MODE : _MODE + dim]


@jit.inlined
def slope_of(params, dim):
    """∇U(θ̂) in the packed parameters."""
    return params[_MODE + dim : _MODE + 2 * dim]


@jit.inlined
def vary(rng, theta, out, each, model, data, params, anchor, slope):
    """Write a minibatch's gradient with control variates at ``anchor`` (1, dim), where the whole one is ``slope``."""
    batch_size, replacement, dim = int(params[0]), params[1] > 0, theta.shape[1]
    batch, at_anchor = np.empty(batch_size, dtype=np.int64), np.empty((batch_size, dim))
    for k in range(batch_size):
        batch[k] = choose(rng, data, k, replacement)
    model.batch(theta, batch, each, model.params)
    model.batch(anchor, batch, at_anchor, model.params)
    out[0] = 0.0
    for k in range(batch_size):
        for i in range(dim):
            each[k, i] += slope[i] - at_anchor[k, i]
            out[0, i] += each[k, i] / batch_size


@jit.estimate
def estimate(rng, theta, out, each, model, data, params, memory):
    dim = theta.shape[1]
    mode, slope = anchor_of(params, dim).reshape((1, dim)), slope_of(params, dim)
    vary(rng, theta, out, each, model, data, params, mode, slope)


class MinibatchCV(Minibatch):
    """∇Ũ = ∇U(θ̂) + (N/n) Σ_{i∈S} (∇u_i(θ) − ∇u_i(θ̂)), with the mode θ̂ found before the first step.

    Near the mode the two gradients of a data point are nearly the same, and so is their difference for all data: the
    noise is proportional to the distance from θ̂, while that of a plain minibatch does not vanish. Its variance for a
    sample of n with replacement is Var_i(∇u_i(θ) − ∇u_i(θ̂))/n, where each ∇u_i stands for all data. With N data the
    posterior is narrow as 1/√N, so that a batch whose size does not grow with N is enough; with a plain minibatch it is
    not.

    A step uses n data points, as a plain minibatch does; finding ∇U(θ̂) takes all of them once.
    """

    key = "minibatch_cv"
    title = "Minibatch, control variates"
    tex = r"\nabla\tilde U = \nabla U(\hat\theta) + \tfrac{N}{n}\textstyle\sum_{i\in S}\bigl(\nabla u_i(\theta) - \nabla u_i(\hat\theta)\bigr)"
    requires = frozenset({BATCH, MODE})

    estimate = estimate

    def packed(self, target: Target) -> NDArray[np.float64]:
        mode = np.asarray(target.mode, dtype=float)
        return np.concatenate([super().packed(target), mode, target.gradient_at(mode[None])[0]])

    def contributions(
        self, target: Target, theta: NDArray[np.float64], memory: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        at_mode = target.slopes_at(np.asarray(target.mode, dtype=float))
        return target.slopes_at(theta) - at_mode + at_mode.mean(axis=0)

    def textbook_gradients(self, rng, target, theta, data, memory):
        chosen = textbook.batch(rng, data, self.batch_size, self.replacement)
        everything = textbook.slope_at_mode(target)
        return np.array(
            [
                target.textbook_slope(theta, datum) - target.textbook_slope(target.mode, datum) + everything
                for datum in chosen
            ]
        )
