"""Steps with random numbers that are set: their end without noise, and the covariance of the noise."""

import numpy as np


class Set:
    """Random numbers that are set: normal ones from a list, and every proposal is accepted, no swap made."""

    def __init__(self, normals):
        self.normals, self.used = normals, 0

    def standard_normal(self, size=None):
        if size is not None:
            return np.reshape([self.standard_normal() for _ in range(np.prod(size))], size)
        self.used += 1
        return self.normals[self.used - 1] if self.used <= len(self.normals) else 0.0

    def random(self):
        return 1e-300


def linear(outcome):
    """The end of a step without noise, and its covariance for standard normal noise: a linearisation at 0.

    ``outcome(rng)`` gives the end as a vector.
    """
    counter = Set([])
    middle = outcome(counter)
    rows = []
    for k in range(counter.used):
        ends = [outcome(Set([0.0] * k + [h])) for h in (1e-4, -1e-4)]
        rows.append((ends[0] - ends[1]) / 2e-4)
    return middle, np.array(rows).T @ np.array(rows)
