"""Minibatches that go through all of the data before any is seen again."""

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.minibatch import Batches, average
from sgmcmc_lab.samplers.requirements import BATCH, MEMORY
from sgmcmc_lab.samplers.targets.base import Target

# A chain's memory: how many of its order it has taken, and that order of the data.
_TAKEN, _ORDER = 0, 1


@jit.estimate
def estimate(rng, theta, out, each, model, data, params, memory):
    batch_size, order = int(params[0]), memory[_ORDER:]
    taken = int(memory[_TAKEN])
    if taken + batch_size > order.size:
        for k in range(order.size - 1):
            i = k + int(rng.random() * (order.size - k))
            order[k], order[i] = order[i], order[k]
        taken = 0
    average(theta, order[taken : taken + batch_size].astype(np.int64), out, each, model)
    memory[_TAKEN] = taken + batch_size


class MinibatchEpochs(Batches):
    """A minibatch of the next n data in an order that is shuffled anew when fewer than n are left of it.

    This is how networks are trained. Each batch by itself is one without replacement; those of an epoch belong
    together: at one θ their mean is the whole gradient, where n divides N. So over an epoch the noise nearly cancels,
    and heats a chain that moves little in an epoch less than fresh batches do. Every chain has an order of its own.
    """

    key = "minibatch_epochs"
    title = "Minibatch, reshuffled epochs"
    tex = r"\nabla\tilde U = \nabla U_0 + \tfrac{N}{n}\textstyle\sum_{i\in S_t}\nabla u_i,\quad S_1 \cup \dots \cup S_{N/n} = \{1, \dots, N\}"
    requires = frozenset({BATCH, MEMORY})
    estimate = estimate

    def first_memory(self, target: Target) -> NDArray[np.float64]:
        n_data = len(target.data())
        return np.concatenate([[n_data], np.arange(n_data)]).astype(float)

    def textbook_gradients(self, rng, target, theta, data, memory):
        order = memory[_ORDER:].astype(int)
        if memory[_TAKEN] + self.batch_size > len(order):
            for k in range(len(order) - 1):
                i = k + int(rng.random() * (len(order) - k))
                order[[k, i]] = order[[i, k]]
            memory[:] = [0, *order]
        first = int(memory[_TAKEN])
        memory[_TAKEN] += self.batch_size
        return np.array([target.textbook_slope(theta, datum) for datum in order[first : first + self.batch_size]])
