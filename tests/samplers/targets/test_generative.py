"""A typed posterior as a program that makes data."""

import numpy as np
import pytest
from scipy import stats

from sgmcmc_lab.samplers.expressions import name
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.bounded import declarations
from sgmcmc_lab.samplers.targets.generative import Generative, coordinates, log_stretch
from tests.helpers.cases import for_each

X = np.linspace(-1, 1, 5)
COLUMNS = {"x": X, "y": np.zeros(5), "z": np.zeros(5)}


def model(parameters, prior, row="normal_lpdf(y, 0, 1)"):
    return Generative(declarations(parameters, "target.parameters"), COLUMNS, prior, row)


def drawn(parameters, prior, n=20_000):
    return model(parameters, prior).parameters(np.random.default_rng(3), n)


def p(values, law):
    return stats.kstest(values, law.cdf).pvalue


ALARM = 1e-5
"""False alarms of each comparison; there are eight."""


def test_a_prior_within_bounds():
    """Half of a Cauchy by its inverse, a mixture by choosing, a uniform where nothing is said, an angle in its turn."""
    found = drawn(
        "t > 0, u, 2 < w < 5, 0 < phi < 6.283185307179586",
        "cauchy_lpdf(t, 0, 2) + log_mix(0.3, normal_lpdf(u, -3, 1), normal_lpdf(u, 3, 1)) + von_mises_lpdf(phi, 1, 2) + 3",
    )
    assert p(found["t"], stats.halfcauchy(0, 2)) > ALARM
    assert p(found["t"], stats.halfcauchy(0, 1)) < ALARM
    assert (
        abs((found["u"] < 0).mean() - (0.3 * stats.norm(-3).cdf(0) + 0.7 * stats.norm(3).cdf(0)))
        < 4.5 * (0.21 / 20_000) ** 0.5
    )
    assert p(found["w"], stats.uniform(2, 3)) > ALARM
    assert p((found["phi"] - 1 + np.pi) % (2 * np.pi) - np.pi, stats.vonmises(2)) > ALARM


def test_a_bounded_parameter_of_a_drawn_mean_is_the_product():
    """p(m, s) ∝ N(m; 0, 1) N(s; m, 1) on s > 0: m has the density 2 N(m) Φ(m), whose mean is √(1/π) and not 0."""
    found = drawn("m, s > 0", "normal_lpdf(m, 0, 1) + normal_lpdf(s, m, 1)")
    mean, error = found["m"].mean(), found["m"].std() / 20_000**0.5
    assert abs(mean - np.pi**-0.5) < 4.5 * error
    # Planted: each s cut off by itself, which leaves m as it is.
    assert abs(0.0 - np.pi**-0.5) > 4.5 * error


def test_ancestors_come_first_and_rows_have_their_covariates():
    made = model(
        "e, t > 0",
        "normal_lpdf(e, 10, t) + exponential_lpdf(t, 2)",
        "poisson_log_lpmf(z, 0.1*y) + normal_lpdf(y, e*x, 0.5)",
    )
    assert made.outcomes == ("y", "z")
    rng = np.random.default_rng(1)
    given = {"e": np.full(4000, 2.0), "t": np.ones(4000)}
    data = made.data(rng, given)
    assert data["y"].shape == data["z"].shape == (4000, 5)
    errors = 0.5 / 4000**0.5
    assert (np.abs(data["y"].mean(axis=0) - 2 * X) < 4.5 * errors).all()
    assert not (np.abs(data["y"].mean(axis=0) + 2 * X) < 4.5 * errors).all()
    assert made.data(rng, given, np.array([1, 3]))["y"].shape == (4000, 2)


def test_coordinates_are_the_inverse_of_bounds_and_their_slopes():
    bounded = declarations("a, s > 1, q < 3, 2 < w < 5", "")
    values = {
        "a": np.array([0.3, -2.0]),
        "s": np.array([1.2, 40.0]),
        "q": np.array([2.9, -8.0]),
        "w": np.array([2.1, 4.5]),
    }
    theta, h = coordinates(bounded, values), 1e-6
    for k, each in enumerate(bounded):
        back = each.value(name("theta1")).evaluate(theta1=theta[:, k])
        np.testing.assert_allclose(back, values[each.name], rtol=1e-12)
        alone = {each.name: values[each.name]}
        up, down = (coordinates([each], {each.name: values[each.name] + s * h})[:, 0] for s in (1, -1))
        np.testing.assert_allclose(log_stretch([each], alone), np.log(np.abs(up - down) / (2 * h)), atol=1e-6)


@for_each(
    ("parameters", "prior", "row", "said"),
    [
        ("a", "2*normal_lpdf(a, 0, 1)", "normal_lpdf(y, a, 1)", "2*normal_lpdf(a,0,1) is no density of a parameter by itself"),
        ("a", "normal_lpdf(a, 0, 1) + cauchy_lpdf(a, 0, 1)", "normal_lpdf(y, a, 1)", "two densities of a"),
        ("a, b", "normal_lpdf(a, 0, 1)", "normal_lpdf(y, a, 1)", "no density of b"),
        ("a, b", "normal_lpdf(a, b, 1) + normal_lpdf(b, a, 1)", "normal_lpdf(y, a, 1)", "a and b depend on each other"),
        ("a", "exponential_lpdf(a, 1)", "normal_lpdf(y, a, 1)", "is 0 below 0"),
        ("a", "von_mises_lpdf(a, 0, 1)", "normal_lpdf(y, a, 1)", "one turn"),
        ("a", "poisson_log_lpmf(a, 1)", "normal_lpdf(y, a, 1)", "whole numbers"),
        ("a", "-a^2", "normal_lpdf(y, a, 1)", "is no density of a parameter"),
        ("a", "(normal_lpdf(a, 0, 1))", "normal_lpdf(y, a, 1)", "is no density of a parameter"),
        ("a", "normal_lpdf(a, 0, 1)", "-(y - a)^2", "is no density of a column"),
        ("a", "normal_lpdf(a, 0, 1)", "normal_lpdf(y^2, a, 1)", "is no density of a column"),
        ("a", "normal_lpdf(a, 0, 1)", "log_sum_exp(normal_lpdf(y, a, 1), normal_lpdf(y, -a, 1))", "is no density of a column"),
        ("a", "normal_lpdf(a, 0, 1)", "log_mix(0.5, normal_lpdf(y, a, 1), normal_lpdf(z, a, 1))", "mixes a density of y and one of z"),
        ("a", "normal_lpdf(a, 0, 1)", "normal_lpdf(y, y, 1)", "y depends on itself"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_said(parameters, prior, row, said):
    made = model(parameters, prior, row)
    with pytest.raises(SpecError) as error:
        made.prior, made.rows  # noqa: B018
    assert said in error.value.allowed


def test_bounds_that_nearly_nothing_is_within_end_in_a_sentence():
    with pytest.raises(SpecError, match="lie within the bounds"):
        drawn("m, s > 90", "normal_lpdf(m, 0, 1) + normal_lpdf(s, m, 1)", 100)
