"""Parts of the methods' steps in plain Python: what the compiled steps are tested against.

They take the random numbers in the order of the compiled steps, and change the state in place.
"""

import numpy as np

from sgmcmc_lab.samplers.parameters import Value
from sgmcmc_lab.samplers.textbook import pick

FEW: dict[str, Value] = {"batch_size": 3, "decay_steps": 4.0, "decay_power": 0.5, "sweeps": 2}
"""Settings to try a method over minibatches at."""
FULL: dict[str, Value] = {"batch_size": 3, "sweeps": 1, "decay_power": 0.0}
"""Settings for three documents, with which a step draws z given θ exactly and then moves θ given z. So SCIR is exact at
any h; the others have the bias of their step size."""


def normals(rng, like):
    """One for every entry."""
    return np.array([rng.standard_normal() for _ in range(like.size)]).reshape(like.shape)


def reflected(x, r):
    """|x|, and r with its sign changed where x < 0."""
    return np.abs(x), np.where(x < 0, -r, r)


def slope(beta, theta, counts):
    """∂ log p/∂θ of the expanded mean."""
    return (beta - 1 + counts) / theta - 1 - counts.sum(axis=0) / theta.sum(axis=0)


def local_sweep(rng, model, state, d, phi):
    """The topics of document d anew, given φ (words, topics)."""
    data, k = model.training, model.n_topics
    for i in range(data.offsets[d], data.offsets[d + 1]):
        own = state.counts[d, :k]
        own[state.topics[i]] -= 1
        state.topics[i] = pick((own + model.alpha) * phi[data.words[i]], rng.random())
        own[state.topics[i]] += 1


def over_minibatches(move):
    """The whole step of a ``move(self, rng, theta, momentum, counts, h, beta)`` of θ and its momentum, in place.

    θ, its momentum and the counts (D/n)B are (words, topics); h is the step size that the schedule has at this step.
    """

    def textbook_step(self, rng, model, state):
        data, k = model.training, model.n_topics
        phi = state.weights[:, :k] / state.totals[:k]
        state.batch = rng.choice(data.n_documents, self.batch_size, replace=False, shuffle=False)
        counts = np.zeros((model.n_words, k))
        for d in state.batch:
            for _ in range(self.sweeps):
                local_sweep(rng, model, state, d, phi)
                for i in range(data.offsets[d], data.offsets[d + 1]):
                    counts[data.words[i], state.topics[i]] += 1 / self.sweeps
        state.extra["counts"][:, :k] = counts
        state.extra["count_totals"][:k] = counts.sum(axis=0)
        h = self.step_size * (1 + state.steps / self.decay_steps) ** -self.decay_power
        theta, momentum = state.weights[:, :k], state.extra["momentum"][:, :k]
        move(self, rng, theta, momentum, counts * data.n_documents / self.batch_size, h, model.beta)
        state.totals[:k] = theta.sum(axis=0)
        state.steps += 1
        return self.batch_size

    return textbook_step
