"""The gradient of a few data points in place of all."""

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients.base import Estimator
from sgmcmc_lab.samplers.parameters import Count, Flag, SpecError
from sgmcmc_lab.samplers.requirements import BATCH
from sgmcmc_lab.samplers.targets.base import Target


@jit.inlined
def choose(rng, data, k, replacement):
    """The ``k``-th data point of a minibatch.

    Without replacement the first places of ``data`` are filled by a partial Fisher–Yates shuffle; from any order of
    the data that is a uniform draw, so the shuffled order can stay.
    """
    if replacement:
        i = int(rng.random() * data.size)
    else:
        i = k + int(rng.random() * (data.size - k))
        data[k], data[i] = data[i], data[k]
        i = k
    return data[i]


@jit.inlined
def average(theta, batch, out, each, model):
    """Write the gradients of these data, and their mean."""
    model.batch(theta, batch, each, model.params)
    out[0] = 0.0
    for k in range(batch.size):
        for i in range(theta.shape[1]):
            out[0, i] += each[k, i] / batch.size


@jit.estimate
def estimate(rng, theta, out, each, model, data, params, memory):
    batch_size, replacement = int(params[0]), params[1] > 0
    batch = np.empty(batch_size, dtype=np.int64)
    for k in range(batch_size):
        batch[k] = choose(rng, data, k, replacement)
    average(theta, batch, out, each, model)


class Batches(Estimator):
    """A gradient from n of the N data."""

    batch_size = Count(
        10,
        bounds=(1, 100_000),
        log=True,
        tex="n",
        label="Batch size n",
        doc="The number of data points in a step. Larger batches cost more and are less noisy.",
    )

    def noise(self) -> jit.Noise:
        return jit.Noise(batch_size=self.batch_size, replacement=False)

    def packed(self, target: Target) -> NDArray[np.float64]:
        return np.array([self.batch_size], dtype=float)

    def data_per_gradient(self, target: Target) -> float:
        return self.batch_size

    def contributions(
        self, target: Target, theta: NDArray[np.float64], memory: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Each data point's part of the estimate at θ (dim,), (N, dim): a batch has the mean of its own."""
        return target.slopes_at(theta)

    def check(self, target: Target) -> None:
        n_data = len(target.data())
        if self.batch_size > n_data:
            raise SpecError(
                "gradient.batch_size", self.batch_size, f"allowed is at most N = {n_data}, the number of data"
            )


class Minibatch(Batches):
    """The sum over the data is estimated by N/n times that over a minibatch of n data.

    For categorical data that is: the counts N_j by (N/n)·(how often category j is in the minibatch).
    """

    key = "minibatch"
    title = "Minibatch"
    tex = r"\nabla\tilde U = \nabla U_0 + \tfrac{N}{n}\textstyle\sum_{i\in S}\nabla u_i"
    tex_of_categories = r"\hat N_j = \tfrac{N}{n} \textstyle\sum_{i\in S} z_{ij}"
    requires = frozenset({BATCH})

    replacement = Flag(
        True,
        label="With replacement",
        doc="Whether one data point may be drawn twice into a minibatch. Without replacement the noise is smaller by (N−n)/(N−1).",
    )

    estimate = estimate

    def noise(self) -> jit.Noise:
        return jit.Noise(batch_size=self.batch_size, replacement=self.replacement)

    def packed(self, target: Target) -> NDArray[np.float64]:
        return np.array([self.batch_size, self.replacement], dtype=float)

    def textbook_gradients(self, rng, target, theta, data, memory):
        chosen = textbook.batch(rng, data, self.batch_size, self.replacement)
        return np.array([target.textbook_slope(theta, datum) for datum in chosen])
