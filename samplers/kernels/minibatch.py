"""Minibatches of categorical data."""

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.minibatch import choose


@jit.inlined
def estimate_counts(rng, data, batch_size, replacement, out):
    """Write N̂_j = (N/n)·#{i in minibatch: z_i = j} to ``out`` (d,), for a fresh minibatch."""
    weight = data.size / batch_size
    out[:] = 0.0
    for k in range(batch_size):
        out[choose(rng, data, k, replacement)] += weight
