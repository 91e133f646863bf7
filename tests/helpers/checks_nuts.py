"""Draws of blackjax's NUTS, a program that is not ours, and how far estimates of ours are from those of its draws."""

import numpy as np


def nuts(log_density, dim, kept=4000):
    """Draws (4, kept, dim) of blackjax's NUTS in double precision, after 1000 steps of window adaptation."""
    import blackjax
    import jax

    jax.config.update("jax_enable_x64", True)

    def chain(key):
        first, second = jax.random.split(key)
        (state, parameters), _ = blackjax.window_adaptation(blackjax.nuts, log_density).run(
            first, jax.numpy.zeros(dim), 1000
        )
        step = blackjax.nuts(log_density, **parameters).step

        def body(state, key):
            state, _ = step(key, state)
            return state, state.position

        return jax.lax.scan(body, state, jax.random.split(second, kept))[1]

    return np.array(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.PRNGKey(3), 4)))


def estimates(draws):
    """Means and variances of draws (chains, draws, d), and their standard errors by effective sample sizes."""
    from arviz_stats.base import array_stats

    squares = (draws - draws.mean(axis=(0, 1))) ** 2
    found = []
    for values in (draws, squares):
        ess = [float(array_stats.ess(values[..., k], method="mean")) for k in range(values.shape[2])]
        found += [values.mean(axis=(0, 1)), values.std(axis=(0, 1)) / np.sqrt(ess)]
    return found


def apart(one, two):
    """How far two estimates are from each other, in standard errors."""
    return np.concatenate([(one[k] - two[k]) / np.hypot(one[k + 1], two[k + 1]) for k in (0, 2)])
