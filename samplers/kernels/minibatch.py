"""Minibatches of categorical data."""

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.minibatch import choose


@jit.inlined
def estimate_counts(rng, data, total, batch_size, replacement, out):
    """Write N̂_j = (N/n)·#{i in minibatch: z_i = j} to ``out`` (d,), for a fresh minibatch.

    N is the ``total`` of the counts, which at a temperature T is 1/T for each data point.
    """
    weight = total / batch_size
    out[:] = 0.0
    for k in range(batch_size):
        out[choose(rng, data, k, replacement)] += weight
