"""No number depends on what an array held before anything was written to it."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests import nan_filled


def differing(one, other):
    """The names of what is another number, or none, where it should not be."""
    return [
        k
        for k in one
        if one[k].shape != other[k].shape or not np.allclose(one[k], other[k], rtol=1e-6, atol=1e-9, equal_nan=True)
    ]


@pytest.mark.slow
def test_arrays_without_contents_may_hold_anything(tmp_path):
    """Every sampler with each estimator, every method for a model of data, and targets of each support, with NaN in all
    that np.empty and np.empty_like make: the numbers are those of the compiled functions, to 1e-6.

    Fault: a fill of NaN in a result must show.
    """
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    file = tmp_path / "filled.npz"
    subprocess.run([sys.executable, "-m", "tests.nan_filled", str(file)], env=env, check=True, timeout=900)
    with np.load(file) as made:
        found = dict(made)
    expected = nan_filled.found()
    assert found.keys() == expected.keys()
    assert differing(found, expected) == []
    one = next(name for name in found if re.match("nuts .* draws", name))
    assert differing({**found, one: found[one] * np.nan}, expected) == [one]
