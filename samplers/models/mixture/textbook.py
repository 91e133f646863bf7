"""The slice sampler's step in plain Python: what the compiled step is tested against.

It takes the random numbers in the order of the compiled step, and changes the state in place.
"""

import numpy as np


def lengths(gammas):
    """v_k and w_k of sticks (2, K)."""
    v = gammas[0] / gammas.sum(axis=0)
    return v, v * np.cumprod(np.concatenate([[1.0], 1 - v[:-1]]))


def step(method, rng, model, state):
    """The whole step; how many documents it touched."""
    data, z = model.training, state.z
    bags = [data.words[a:b] for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    all_of_them = method.key == "mixture_gibbs"
    batch = (
        np.arange(len(z))
        if all_of_them
        else rng.choice(len(z), min(method.batch_size, len(z)), replace=False, shuffle=False)
    )
    gammas = [state.gammas[:, k].copy() for k in range(z.max() + 1)]
    clusters = [state.theta[:, k].copy() for k in range(z.max() + 1)]
    v, w = lengths(np.array(gammas).T)
    alpha = rng.standard_gamma(1.0 + len(gammas)) / (1 / model.alpha_mean - np.log(1 - v).sum())
    u = np.array([rng.random() * w[z[i]] for i in batch])
    while np.prod(1 - v) >= u.min():
        gammas.append(np.array([rng.standard_gamma(1.0), rng.standard_gamma(alpha)]))
        clusters.append(np.array([rng.standard_gamma(model.prior) for _ in range(model.n_words)]))
        v, w = lengths(np.array(gammas).T)
    theta = np.array(clusters) / np.sum(clusters, axis=1, keepdims=True)
    for i, slice_ in zip(batch, u, strict=True):
        p = (w > slice_) * np.prod(theta[:, bags[i]], axis=1)
        z[i] = min(np.searchsorted(p.cumsum(), rng.random() * p.sum(), side="right"), len(p) - 1)
    used, scale = z.max() + 1, len(z) / len(batch)
    mine = [[i for i in batch if z[i] == k] for k in range(used)]
    counts = [
        np.bincount(np.concatenate([bags[i] for i in some] or [bags[0][:0]]), minlength=model.n_words) for some in mine
    ]
    sizes = np.array([len(some) for some in mine])
    both = [np.array([sizes[k], sizes[k + 1 :].sum()]) for k in range(used)]
    state.theta[:], state.gammas[:] = 0.0, 0.0
    for into, old, prior, seen, sticks in (
        (state.theta, clusters, np.full(model.n_words, model.prior), counts, False),
        (state.gammas, gammas, np.array([1.0, alpha]), both, True),
    ):
        for r, k in np.ndindex(len(prior), used):
            shape, pull = prior[r] + scale * seen[k][r], scale * seen[k].sum() / old[k].sum()
            if (z == k).any():
                into[r, k] = method.textbook_move(rng, old[k][r], shape, pull, sticks)
            else:
                into[r, k] = rng.standard_gamma(shape)
    state.alpha[0] = alpha
    state.sizes[:] = np.bincount(z, minlength=model.n_slots)
    state.weights[:] = 0.0
    state.weights[:used] = lengths(state.gammas[:, :used])[1]
    shown = z[model.shown]
    state.together += shown[:, None] == shown
    state.steps += 1
    return len(batch)
