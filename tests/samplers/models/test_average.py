"""The average over the later draws of a run."""

import numpy as np

from sgmcmc_lab.samplers.models.average import LaterAverage


def test_it_is_of_the_last_half_to_three_quarters():
    """Every mean is that of draws from some first one to the last. Faults: all draws; a window that is one too long."""
    average = LaterAverage(2)
    for n in range(1, 200):
        average.next()[:] += [n**2, 1.0]
        mean, ones = average.mean()
        assert ones == 1.0
        squares = np.arange(n, 0, -1.0) ** 2
        kept = 1 + int(np.abs(np.cumsum(squares) / np.arange(1, n + 1) - mean).argmin())
        assert np.isclose(squares[:kept].mean(), mean, rtol=1e-12)
        assert 0.5 * n <= kept <= 0.75 * n + 1
