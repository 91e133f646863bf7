"""An axis that grows holds what made it grow, by hand."""

import numpy as np
import pytest

from sgmcmc_lab.app.views.auto_range import GROWTH, LENGTHS, MOST, SHARE, Reach
from tests.helpers.cases import for_each


@for_each("side", [-1, 1])
@for_each("farthest", [1.2, 3.0, 17.0])
def test_an_axis_that_grows_holds_the_farthest_place(side, farthest):
    """One place in ten is outside, and one of them far: both ends go away from the middle, half as far again as it.
    Fails for an axis that grows by the mean excursion, or by the nearest."""
    reach = Reach(2.0, 6.0)
    places = 4 + np.concatenate([np.zeros(80), np.full(9, 2.1 * side), [2 * farthest * side]])
    assert reach.hold([np.full(50, 4.0), places])
    low, high = reach.ends
    assert low <= places.min() and places.max() <= high
    assert (low, high) == pytest.approx((4 - 2 * GROWTH * farthest, 4 + 2 * GROWTH * farthest))
    # Values within the range do not move it, and it never becomes shorter.
    assert not reach.hold([places]) and not reach.hold([np.full(90, 4.0)])
    assert reach.ends.tolist() == [low, high]


def test_a_rare_excursion_moves_nothing_and_none_goes_beyond_all():
    reach = Reach(-1.0, 1.0)
    for outside, grows in ((5, False), (6, True)):
        places = np.concatenate([np.zeros(100 - outside), np.full(outside, 1.5)])
        assert (outside / 100 > SHARE) == grows and Reach(-1.0, 1.0).hold([places]) == grows
    assert not reach.hold([np.zeros(0)])
    assert reach.hold([np.full(10, 1e9)]) and reach.ends.tolist() == [-MOST, MOST]


def test_an_axis_that_follows_holds_all_of_the_latest():
    """Each end by itself, at the first of the lengths that holds the farthest place, and shorter again afterwards."""
    reach = Reach(0.0, 10.0)
    for low, high in ((1.0, 9.0), (-7.0, 9.0), (4.0, 31.0), (-60.0, 80.0), (0.0, 10.0)):
        before = reach.times.copy()
        changed = reach.follow([np.array([[low, 5.0], [5.0, 5.0]]), np.array([[5.0, high]]), np.zeros((0, 2))])
        assert changed == (reach.times.tolist() != before.tolist())
        ends = reach.ends
        assert ends[0] <= low and high <= ends[1]
        for far, times in zip(((5 - low) / 5, (high - 5) / 5), reach.times, strict=True):
            assert times == min(length for length in LENGTHS if length >= far)
    reach.follow([np.array([[5.0, 1e6]])])
    assert reach.times.tolist() == [1.0, MOST]
