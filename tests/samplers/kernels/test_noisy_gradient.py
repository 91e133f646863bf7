"""A row of a Cholesky factor whose pivot is negative is made as long as its entry of the matrix says."""

import numpy as np
import pytest

from sgmcmc_lab.samplers.kernels import noisy_gradient


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "pivot"), [([3.0, 4.0], -9.0), ([3.0, 4.0], -25.0), ([3.0, 4.0], -40.0), ([0.0, 0.0], -1.0)]
)
def test_a_row_is_as_long_as_its_entry(row, pivot):
    """Also a row of zeros, whose length has no direction: planted faults are NaN and a row that keeps its length."""
    factor = np.zeros((3, 3))
    factor[2, :2] = row
    noisy_gradient.shorten(factor, 2, pivot)
    assert np.sum(factor[2] ** 2) == pytest.approx(max(np.sum(np.square(row)) + pivot, 0.0), abs=1e-12)
    assert factor[2, 0] * row[1] == pytest.approx(factor[2, 1] * row[0], abs=1e-12)
