"""The quadrature that exact answers rest on, against closed forms."""

import numpy as np
import pytest
from scipy import special

from sgmcmc_lab.samplers.targets.double_well import DoubleWell
from sgmcmc_lab.samplers.targets.quadrature import (
    _BLOCK,
    density_cdf,
    in_blocks,
    integrate,
    marginal_cdf,
    panel_integrals,
    rule,
)
from sgmcmc_lab.samplers.targets.ranges import TINY, log_range
from tests.helpers.cases import for_each


def normal(x):
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def test_integrate():
    assert integrate(normal, -9, 9) == pytest.approx(1, abs=1e-14)
    assert integrate(lambda x: x**31, 0, 1, panels=1) == pytest.approx(1 / 32, abs=1e-15)


def test_the_rule_is_exact_to_degree_31_and_not_beyond():
    assert abs(integrate(lambda x: x**32, -1, 1, panels=1) - 2 / 33) > 1e-11


def test_panel_integrals_are_differences_of_the_cdf():
    edges = np.array([-8.0, -1.0, 0.5, 0.6, 3.0])
    np.testing.assert_allclose(panel_integrals(normal, edges), np.diff(special.ndtr(edges)), atol=1e-10)


def test_rule_takes_arrays_of_limits():
    low, high = np.array([[0.0, 1.0], [2.0, -1.0]]), np.array([[1.0, 1.0], [5.0, 1.0]])
    points, weights = rule(low, high, 3)
    assert points.shape == weights.shape == (2, 2, 48)
    np.testing.assert_allclose((points**2 * weights).sum(axis=-1), (high**3 - low**3) / 3, rtol=1e-13)
    assert (points >= low[..., None]).all()
    assert (points <= high[..., None]).all()


@for_each("x", [np.linspace(-4, 4, 1001), np.array(0.3), np.zeros((2, 3)), np.array([])])
def test_density_cdf(x):
    np.testing.assert_allclose(density_cdf(normal, -9, 9)(x), special.ndtr(x), atol=1e-9)


def test_density_cdf_of_the_double_well_is_as_accurate_as_it_says():
    target = DoubleWell()
    x = np.random.default_rng(0).uniform(-2.3, 2.3, 200)
    exact = [integrate(lambda t: np.exp(target.log_density(t[..., None])), -3.5, upper, panels=64) for upper in x]
    np.testing.assert_allclose(target.columns[0].cdf(x), exact, rtol=0, atol=1e-9)


def test_fault_density_cdf_with_too_few_panels():
    x = np.linspace(-4, 4, 1001)
    assert np.abs(density_cdf(normal, -9, 9, panels=64)(x) - special.ndtr(x)).max() > 1e-9


def test_density_cdf_outside_its_range():
    np.testing.assert_array_equal(density_cdf(normal, -9, 9)(np.array([-np.inf, -10, 10, np.inf])), [0, 0, 1, 1])


def convolution(panels: int):
    """X ~ N(0, 1) and Y given X ~ N(X, 1/16²), so that Y ~ N(0, 1 + 1/16²)."""
    return marginal_cdf(lambda x, y: normal(x) * special.ndtr(16 * (y - x)), -9, 9, panels)


@for_each("n", [0, 1, _BLOCK - 1, _BLOCK, _BLOCK + 1, 3 * _BLOCK + 7])
def test_marginal_cdf_in_any_number_of_blocks(n):
    y = np.linspace(-4, 4, n)
    np.testing.assert_allclose(convolution(128)(y), special.ndtr(y / np.sqrt(1 + 1 / 256)), atol=1e-13)


def test_fault_marginal_cdf_with_too_few_panels():
    y = np.linspace(-4, 4, 101)
    assert np.abs(convolution(8)(y) - special.ndtr(y / np.sqrt(1 + 1 / 256))).max() > 1e-6


def test_marginal_cdf_keeps_shapes_and_takes_infinite_values():
    cdf = convolution(32)
    assert cdf(np.array(0.0)).shape == ()
    assert cdf(np.zeros((2, 3))).shape == (2, 3)
    np.testing.assert_allclose(cdf(np.array([-np.inf, np.inf])), [0, 1], atol=1e-14)


def test_in_blocks_calls_inside_the_range_and_keeps_nan():
    seen = []

    def cdf(y):
        seen.extend(y)
        return y * 2

    out = in_blocks(cdf, 0.0, 1.0)(np.array([-np.inf, 0.25, 5.0, np.nan]))
    np.testing.assert_array_equal(out, [0.0, 0.5, 1.0, np.nan])
    np.testing.assert_array_equal(seen, [0.0, 0.25, 1.0, np.nan])


@for_each(
    ("quantiles", "expected"),
    [
        ((1e-60, 0.5, 12.0), (1e-60 / 1.5, 18.0)),
        ((0.81, 1.0, 1.21), (0.729, 1.331)),
        ((0.0, 1.0, np.inf), (TINY, 1 / TINY)),
    ],
)
def test_log_range(quantiles, expected):
    assert log_range(*quantiles) == pytest.approx(expected)
