"""A sweep of the methods for sparse regression in plain Python, which their tests compare with."""

import numpy as np


def above_zero(rng, mean):
    """N(mean, 1) above 0."""
    if mean > -0.45:
        while (z := mean + rng.standard_normal()) <= 0:
            pass
        return z
    rate = (-mean + np.sqrt(mean**2 + 4)) / 2
    while True:
        z = rng.standard_exponential() / rate
        if rng.random() <= np.exp(-((z - mean - rate) ** 2) / 2):
            return z


def inverse_gaussian(rng, mean, shape):
    """By the roots of (x − mean)²·shape/(mean²x) = y², one of which is mean² over the other."""
    b = mean * rng.standard_normal() ** 2 / shape
    # The larger root does not cancel.
    large = mean * (1 + b / 2 + np.sqrt(b + b * b / 4))
    small = mean**2 / large
    return small if rng.random() <= mean / (mean + small) else large


def sweep(rng, model, state, size, collapsed):
    """A sweep in place; the w that it drew."""
    x, z, w, (n, d) = model.x, state.z, state.w, model.x.shape
    # Each pick is followed by its draw, which uses random numbers, too.
    for j in range(size):
        i = j
        if size < len(state.order):
            at = j + int(rng.random() * (len(state.order) - j))
            state.order[[j, at]] = state.order[[at, j]]
            i = state.order[j]
        if model.probit:
            z[i] = above_zero(rng, x[i] @ w)
        else:
            state.precisions[i] = scale(rng, model, state, i)
    matrix = x.T @ x + np.diag(state.precisions)
    rest = z @ z - z @ x @ np.linalg.solve(matrix, x.T @ z)
    if collapsed and model.probit:
        z *= np.sqrt(2 * rng.standard_gamma(n / 2) / rest)
    elif collapsed:
        state.scales[0] = (model.noise_prior[1] + rest / 2) / rng.standard_gamma(model.noise_prior[0] + n / 2)
    elif not model.probit:
        loss = ((z - x @ w) ** 2).sum() + (w**2 * state.precisions).sum()
        state.scales[0] = (model.noise_prior[1] + loss / 2) / rng.standard_gamma(model.noise_prior[0] + (n + d) / 2)
    noise = np.array([rng.standard_normal() for _ in range(d)])
    root = np.linalg.inv(np.linalg.cholesky(matrix)).T
    w[:] = np.linalg.solve(matrix, x.T @ z) + np.sqrt(state.scales[0]) * root @ noise
    if model.probit:
        state.precisions[:] = [scale(rng, model, state, k) for k in range(d)]
    state.linear[:], state.scales[1] = x.T @ z, z @ z
    return w.copy()


def scale(rng, model, state, k):
    """1/τ² of a coefficient."""
    rate = model.shrinkage
    return inverse_gaussian(rng, rate * np.sqrt(state.scales[0]) / max(abs(state.w[k]), 1e-100), rate**2)


def finish(state, draws, touched):
    """The end of every step."""
    state.average.next()[:] += np.mean(draws, axis=0)
    return touched
