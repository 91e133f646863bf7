"""Each optimiser's change against its formula, written out for a scalar."""

from math import sqrt

import numpy as np
import pytest

from sgmcmc_lab.samplers.models.variational.optimisers import NAMES, Ascent
from tests.helpers.cases import for_each

GRADIENTS, STEP_SIZE, MOMENTUM, RHO = (3.0, -0.5, 4.0), 0.3, 0.4, 0.2


def by_hand(name):
    """The changes for the gradients, one after another."""
    v = squares = changes = 0.0
    out = []
    for g in GRADIENTS:
        v = MOMENTUM * v + (1 - MOMENTUM) * g
        if name == "sgd":
            change = 0.01 * STEP_SIZE * v
        elif name == "adagrad":
            squares += v**2
            change = 0.1 * STEP_SIZE * v / (1e-6 + sqrt(squares))
        elif name == "rmsprop":
            squares = 0.1 * v**2 + 0.9 * squares
            change = 0.01 * STEP_SIZE * v / (1e-6 + sqrt(squares))
        else:
            squares = RHO * v**2 + (1 - RHO) * squares
            change = STEP_SIZE * v * sqrt(changes + 1e-4) / sqrt(squares + 1e-4)
            changes = RHO * change**2 + (1 - RHO) * changes
        out.append(change)
    return out


@for_each("name", NAMES)
def test_a_change_is_its_formula(name):
    ascent = Ascent(1)
    found = [float(ascent.change(name, np.array([g]), STEP_SIZE, MOMENTUM, RHO)[0]) for g in GRADIENTS]
    assert found == pytest.approx(by_hand(name), rel=1e-12)
