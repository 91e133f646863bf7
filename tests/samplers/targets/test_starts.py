"""Where chains start, in standard deviations of the target's own columns."""

import numpy as np
import pytest

from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each, of_a_long_run

AWAY = {
    **dict.fromkeys(("gaussian", "skew_normal", "correlated_gaussian", "funnel", "gamma"), 0.0),
    **{"double_well": 1.1, "quartic": 0.70, "banana": 0.60, "ring": 1.37, "gaussian_mixture": 1.31, "typed": 0.87},
    **{"lognormal": 0.22, "dense_dirichlet": 1.0, "tied_means": 0.45, "eight_schools": 1.33},
    **{"von_mises": 0.0, "circle_mixture": 1.27, "fisher": 0.44, "sphere_mixture": 1.03, "bingham": 1.87},
    **{"mises_posterior": 1.31, "matrix_langevin": 1.57, "sphere_dirichlet": 3.6},
    # At the mode, 0, whose radius √d is far from it.
    "isotropic_gaussian": 4.42,
    # At ω = (1, …, 1)/d: most of a sparse distribution is at the edges.
    "sparse_dirichlet": 316.0,
    # At 0, the mean of the prior, which a hundred data points have left behind: the run shows the way.
    **{"linear_regression": 10.74, "linear_table": 10.77, "logistic_regression": 4.73, "poisson_regression": 4.24},
    **{"student_mean": 3.97, "lasso": 7.95, "logistic_large": 37.5},
}
"""How far the start of the defaults is from the mean of each column, at most, in its standard deviations."""
SLOW = ("lasso", "logistic_regression", "matrix_langevin", "mises_posterior", "tied_means", "sphere_mixture")


def away(columns, values):
    """The largest distance of values from the means of the columns, in their standard deviations."""
    means, variances = (np.array([getattr(column, name) for column in columns]) for name in ("mean", "variance"))
    return float(np.abs((values - means) / np.sqrt(variances)).max())


def is_near(key, columns, values):
    return abs(away(columns, values) - AWAY[key]) <= 0.02 + 0.01 * AWAY[key]


@for_each("key", AWAY, slow=lambda key: key in SLOW)
def test_a_start_is_as_far_as_is_said(key):
    """Planted faults: three times as far from the mean, and a standard deviation beside it where it is there."""
    target = TARGETS[key]()
    target.prepare(lambda what, share: None)
    columns = target.columns
    (values,) = target.values(target.starts())
    assert is_near(key, columns, values)
    means, sds = (np.array([c.mean for c in columns]), np.array([c.variance**0.5 for c in columns]))
    wrong = means + 3 * (values - means) if AWAY[key] else values + sds
    assert not is_near(key, columns, wrong)


def test_every_target_says_how_far():
    """But those of a long run, and typed posteriors, which have their own test."""
    assert {key for key in TARGETS if not of_a_long_run(key)} - {"posterior", "probit_lasso"} == set(AWAY)


def line(unit, coordinates):
    """A straight line through eight schools, whose posterior is Gaussian, with y in another unit."""
    wide = 9 * unit
    return TARGETS["posterior"](
        table="schools",
        parameters="a, b",
        prior=f"normal_lpdf(a, 0, {wide}) + normal_lpdf(b, 0, {wide})",
        row=f"normal_lpdf({unit}*y, a + b*s1, {unit}*error)",
        curve="",
        coordinates=coordinates,
    )


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", ["standardised", "typed"])
@pytest.mark.parametrize("unit", [1.0, 1000.0, 0.01])
def test_typed_posteriors_start_two_of_their_own_standard_deviations_away(unit, coordinates):
    """As their start says, in the tail and in the picture; whatever the unit of the data is. Planted fault: 0."""
    target = line(unit, coordinates)
    target.prepare(lambda what, share: None)
    (theta,) = target.starts()
    sds = [column.variance**0.5 for column in target.columns]
    apart = (theta - [column.mean for column in target.columns]) / sds
    if coordinates == "typed":
        assert apart == pytest.approx([2, 2], rel=1e-3)
    else:
        assert target.whitening.z(theta) == pytest.approx([2, 2])
    assert 1.9 < np.abs(apart).max() < 3


@pytest.mark.slow
def test_chains_of_a_typed_posterior_start_beside_each_mode():
    """Data on a² say nothing of the sign of a: chains start beside both modes, in turn."""
    target = TARGETS["posterior"](
        table="schools", parameters="a", prior="normal_lpdf(a, 0, 3)", row="normal_lpdf(y, a^2, error)", curve=""
    )
    target.prepare(lambda what, share: None)
    starts, mode = target.starts()[:, 0], abs(float(target.mode[0]))
    width = float(target.curvature[0, 0] ** -0.5)
    step = target.start()[0] - target.mode[0]
    assert step == pytest.approx(2 * width)
    for place in (mode, -mode):
        assert np.abs(starts - step - place).min() < 0.01 * width
    # None is at a mode, where a chain would show no way to it.
    assert np.abs(np.abs(starts) - mode).min() > width
