"""Minibatches of categorical data."""

from samplers import jit


@jit.inlined
def estimate_counts(rng, data, batch_size, replacement, out):
    """Write N̂_j = (N/n)·#{i in minibatch: z_i = j} to ``out`` (d,), for a fresh minibatch.

    Without replacement the first ``n`` places of ``data`` are filled by a partial Fisher–Yates
    shuffle; from any order of the data that is a uniform draw, so the shuffled order can stay.
    """
    n_data = data.size
    weight = n_data / batch_size
    out[:] = 0.0
    for k in range(batch_size):
        if replacement:
            i = int(rng.random() * n_data)
        else:
            i = k + int(rng.random() * (n_data - k))
            data[k], data[i] = data[i], data[k]
            i = k
        out[data[i]] += weight
