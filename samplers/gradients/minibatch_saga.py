"""A minibatch with control variates from the last gradient of each data point."""

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.minibatch import Minibatch, choose
from sgmcmc_lab.samplers.requirements import BATCH, MEMORY
from sgmcmc_lab.samplers.targets.base import Target

# A chain's memory: whether there is a table yet, the mean of its rows, and a row for each data point.
_BEGUN, _MEAN = 0, 1


@jit.estimate
def estimate(rng, theta, out, each, model, data, params, memory):
    batch_size, replacement, dim = int(params[0]), params[1] > 0, theta.shape[1]
    mean, table = memory[_MEAN : _MEAN + dim], memory[_MEAN + dim :].reshape((data.size, dim))
    if memory[_BEGUN] == 0:
        model.batch(theta, np.arange(data.size), table, model.params)
        for k in range(data.size):
            for i in range(dim):
                mean[i] += table[k, i] / data.size
        memory[_BEGUN] = 1
    batch, fresh = np.empty(batch_size, dtype=np.int64), np.empty((batch_size, dim))
    for k in range(batch_size):
        batch[k] = choose(rng, data, k, replacement)
    model.batch(theta, batch, fresh, model.params)
    out[0] = 0.0
    for k in range(batch_size):
        for i in range(dim):
            each[k, i] = mean[i] + fresh[k, i] - table[batch[k], i]
            out[0, i] += each[k, i] / batch_size
    # A data point that is in the batch twice changes nothing the second time.
    for k in range(batch_size):
        for i in range(dim):
            mean[i] += (fresh[k, i] - table[batch[k], i]) / data.size
            table[batch[k], i] = fresh[k, i]


class MinibatchSAGA(Minibatch):
    """∇Ũ = g̅ + (N/n) Σ_{i∈S} (∇u_i(θ) − g_i), g_i the gradient of data point i when it was last seen, g̅ the sum of all.

    SAGA for Langevin dynamics (Dubey et al. 2016, SAGA-LD): control variates as in SVRG, but no stored gradient is
    older than some N/n steps, and no step uses all data. The variance is Var_i(∇u_i(θ) − g_i)/n for a sample of n with
    replacement, where each gradient stands for all data.

    A gradient uses n data points; filling the table at a chain's first θ takes all of them once. It holds N·d
    numbers for each chain.
    """

    key = "minibatch_saga"
    title = "Minibatch, SAGA"
    tex = r"\nabla\tilde U = \bar g + \tfrac{N}{n}\textstyle\sum_{i\in S}\bigl(\nabla u_i(\theta) - g_i\bigr),\quad g_i \leftarrow \nabla u_i(\theta)\ \text{for } i \in S"
    requires = frozenset({BATCH, MEMORY})
    estimate = estimate

    def first_memory(self, target: Target) -> NDArray[np.float64]:
        return np.zeros(_MEAN + (len(target.data()) + 1) * target.dim)

    def contributions(
        self, target: Target, theta: NDArray[np.float64], memory: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        now = target.slopes_at(theta)
        table = memory[_MEAN + target.dim :].reshape(now.shape) if memory[_BEGUN] > 0 else now
        return now - table + table.mean(axis=0)

    def textbook_gradients(self, rng, target, theta, data, memory):
        table = memory[_MEAN + target.dim :].reshape(len(data), target.dim)
        if memory[_BEGUN] == 0:
            table[:] = [target.textbook_slope(theta, datum) for datum in range(len(data))]
            memory[_BEGUN] = 1
        chosen = textbook.batch(rng, data, self.batch_size, self.replacement)
        fresh = {datum: target.textbook_slope(theta, datum) for datum in chosen}
        out = np.array([table.mean(axis=0) + fresh[datum] - table[datum] for datum in chosen])
        for datum, gradient in fresh.items():
            table[datum] = gradient
        return out
