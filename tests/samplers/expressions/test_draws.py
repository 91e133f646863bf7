"""Random draws of the densities that may be typed, against SciPy's distributions."""

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from sgmcmc_lab.samplers.expressions.densities import DENSITIES
from sgmcmc_lab.samplers.expressions.draws import LAWS, Truncated
from tests.helpers.cases import for_each

N = 20_000
WHOLE = 1e-5
"""False alarms of each test, two-sided: 14 of them make 1.4e-4 in all."""
ARGUMENTS = {
    "normal_lpdf": ((0.7, 2.0), stats.norm(0.7, 2.0)),
    "student_t_lpdf": ((3.0, -0.5, 1.5), stats.t(3.0, -0.5, 1.5)),
    "cauchy_lpdf": ((1.0, 0.5), stats.cauchy(1.0, 0.5)),
    "laplace_lpdf": ((1.0, 0.5), stats.laplace(1.0, 0.5)),
    "exponential_lpdf": ((2.5,), stats.expon(scale=1 / 2.5)),
    "gamma_lpdf": ((1.7, 2.5), stats.gamma(1.7, scale=1 / 2.5)),
    "beta_lpdf": ((1.7, 0.6), stats.beta(1.7, 0.6)),
    "lognormal_lpdf": ((0.3, 0.8), stats.lognorm(0.8, scale=np.exp(0.3))),
    "bernoulli_logit_lpmf": ((0.6,), stats.bernoulli(1 / (1 + np.exp(-0.6)))),
    "poisson_log_lpmf": ((1.2,), stats.poisson(np.exp(1.2))),
    "binomial_logit_lpmf": ((7.0, 0.6), stats.binom(7, 1 / (1 + np.exp(-0.6)))),
    "neg_binomial_2_log_lpmf": ((1.2, 2.5), stats.nbinom(2.5, 2.5 / (2.5 + np.exp(1.2)))),
    "weibull_lpdf": ((1.7, 2.5), stats.weibull_min(1.7, scale=2.5)),
    "von_mises_lpdf": ((0.4, 2.0), stats.vonmises(2.0, loc=0.4)),
}
FAULTS = {
    "normal_lpdf": (0.7, 2.0**0.5),
    "student_t_lpdf": (2.0, -0.5, 1.5),
    "cauchy_lpdf": (1.0, 0.6),
    "laplace_lpdf": (1.0, 0.7),
    "exponential_lpdf": (1 / 2.5,),
    "gamma_lpdf": (1.7, 1 / 2.5),
    "beta_lpdf": (0.6, 1.7),
    "lognormal_lpdf": (0.3, 0.64),
    "bernoulli_logit_lpmf": (-0.6,),
    "poisson_log_lpmf": (1.2 / 1.1,),
    "binomial_logit_lpmf": (7.0, -0.6),
    "neg_binomial_2_log_lpmf": (1.2, 1 / 2.5),
    "weibull_lpdf": (2.5, 1.7),
    "von_mises_lpdf": (0.4, 0.5),
}
"""Likely mistakes in the arguments: a variance, a scale for a rate, two that are exchanged."""


def p_value(key, arguments, law):
    """That draws are from this distribution: Kolmogorov and Smirnov's, or χ² of whole numbers."""
    draws = LAWS[key].draw(np.random.default_rng(1), (N,), *map(np.float64, arguments))
    if not LAWS[key].whole:
        # On the circle an angle is the same a turn further.
        draws = 0.4 + (draws - 0.4 + np.pi) % (2 * np.pi) - np.pi if key == "von_mises_lpdf" else draws
        return stats.kstest(draws, law.cdf).pvalue
    most = int(law.ppf(0.999))
    seen = np.bincount(np.minimum(draws, most).astype(int), minlength=most + 1)
    expected = N * np.append(law.pmf(np.arange(most)), law.sf(most - 1))
    return stats.chisquare(seen, expected).pvalue


def test_each_density_is_drawn_from_but_sums_of_two():
    assert LAWS.keys() == {key for key in DENSITIES if key.endswith(("_lpdf", "_lpmf"))} == ARGUMENTS.keys()


@for_each("key", ARGUMENTS)
def test_draws_are_of_the_distribution(key):
    arguments, law = ARGUMENTS[key]
    assert p_value(key, arguments, law) > WHOLE
    assert p_value(key, FAULTS[key], law) < WHOLE


WITH_INVERSE = [key for key, law in LAWS.items() if law.tails]


@for_each("key", WITH_INVERSE)
def test_distribution_functions_and_their_inverses(key):
    """Both tails agree to 1e-9, where SciPy's inverse of Student's t has ten digits."""
    arguments, law = ARGUMENTS[key]
    given, wrong = tuple(map(np.float64, arguments)), tuple(map(np.float64, FAULTS[key]))
    p = np.linspace(0.001, 0.999, 99)
    below, above, from_below, from_above = LAWS[key].tails
    for of, inverse, there in ((below, from_below, law.ppf(p)), (above, from_above, law.isf(p))):
        y = inverse(p, *given)
        np.testing.assert_allclose(y, there, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(of(y, *given), p, rtol=1e-9)
        assert np.abs(inverse(p, *wrong) - there).max() > 1e-3


# --- between two bounds ----------------------------------------------------------------------------------------------


def exact_tails(key, x):
    """P(X ≤ x) and P(X > x) to the digits of mpmath, by their definitions."""
    a = [mpmath.mpf(each) for each in ARGUMENTS[key][0]]
    x = mpmath.mpf(x)
    if key in ("normal_lpdf", "lognormal_lpdf"):
        z = ((mpmath.log(x) if key == "lognormal_lpdf" else x) - a[0]) / a[1] / mpmath.sqrt(2)
        return mpmath.erfc(-z) / 2, mpmath.erfc(z) / 2
    if key == "exponential_lpdf":
        return -mpmath.expm1(-a[0] * x), mpmath.exp(-a[0] * x)
    if key == "gamma_lpdf":
        return (mpmath.gammainc(a[0], *ends, regularized=True) for ends in ((0, a[1] * x), (a[1] * x, mpmath.inf)))
    if key == "weibull_lpdf":
        hazard = (x / a[1]) ** a[0]
        return -mpmath.expm1(-hazard), mpmath.exp(-hazard)
    if key == "beta_lpdf":
        return (mpmath.betainc(*a, *ends, regularized=True) for ends in ((0, x), (x, 1)))
    z = (x - a[-2]) / a[-1]
    if key == "laplace_lpdf":
        near, far = 1 - mpmath.exp(-abs(z)) / 2, mpmath.exp(-abs(z)) / 2
    else:
        nu = a[0] if key == "student_t_lpdf" else mpmath.mpf(1)
        far = mpmath.betainc(nu / 2, mpmath.mpf(1) / 2, 0, nu / (nu + z * z), regularized=True) / 2
        near = 1 - far
    return (near, far) if z > 0 else (far, near)


BOUNDS = {
    "normal_lpdf": ((30.0, np.inf), (-np.inf, -30.0), (-1.0, 40.0), (20.0, 20.5)),
    "student_t_lpdf": ((1e5, np.inf), (-np.inf, -1e5), (-1.0, 1e4)),
    "cauchy_lpdf": ((1e9, np.inf), (-np.inf, -1e9), (0.0, 1e8)),
    "laplace_lpdf": ((30.0, np.inf), (-np.inf, -30.0), (0.0, 40.0)),
    "exponential_lpdf": ((40.0, np.inf), (0.0, 1e-9), (1.0, 50.0)),
    "gamma_lpdf": ((40.0, np.inf), (0.0, 1e-9), (0.1, 50.0)),
    "beta_lpdf": ((0.0, 1e-9), (1 - 2.0**-10, 1.0), (0.1, 1 - 2.0**-30)),
    "weibull_lpdf": ((40.0, np.inf), (0.0, 1e-9), (0.1, 50.0)),
    "lognormal_lpdf": ((1e5, np.inf), (0.0, 1e-5), (0.5, 1e5)),
}
"""Far above the median, far below, on both sides of it, and narrow."""


@pytest.mark.slow
@for_each(("key", "low", "high"), [(key, *ends) for key in WITH_INVERSE for ends in BOUNDS[key]])
def test_a_distribution_between_bounds_keeps_its_digits(key, low, high):
    """Shares below points within the bounds, and back, against mpmath at 300 digits: at 30 standard deviations a tail
    is 10⁻¹⁹⁸. Near a bound of 30 a point has no more than 10⁻¹⁴ of its distance from it, which is a share of 10⁻¹³.

    Planted fault: the lower tail alone, as 1 − 1 is 0 from eight standard deviations above the median.
    """
    law = Truncated(LAWS[key], low, high, tuple(map(np.float64, ARGUMENTS[key][0])))
    z = np.array([-6.0, -2.0, -0.1, 0.7, 3.0])
    x = law.at(z)
    assert ((x > low) & (x < high)).all() and (np.diff(x) > 0).all()
    with mpmath.workdps(300):
        below = next(iter(exact_tails(key, low))) if np.isfinite(low) else 0
        above = tuple(exact_tails(key, high))[1] if np.isfinite(high) else 0
        mass = 1 - below - above
        assert float(law.mass) == pytest.approx(float(mass), rel=1e-9)
        exact = []
        for each in x:
            under, over = exact_tails(key, each)
            exact.append((float((under - below) / mass), float((over - above) / mass)))
    shares = np.array(exact)
    np.testing.assert_allclose(shares[:, 0], special.ndtr(z), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(shares[:, 1], special.ndtr(-z), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(law.score(x), z, atol=1e-4)


def test_the_lower_tail_alone_loses_what_lies_far_above():
    given = (np.float64(0.0), np.float64(1.0))
    below, _, from_below, _ = LAWS["normal_lpdf"].tails
    low = below(9.0, *given)
    assert from_below(low + (1 - low) * 0.5, *given) == np.inf
    assert Truncated(LAWS["normal_lpdf"], 9.0, np.inf, given).at(np.float64(0.0)) == pytest.approx(
        stats.norm.isf(stats.norm.sf(9) / 2), rel=1e-12
    )


def test_what_is_not_allowed_is_no_number():
    """A scale, a rate or a shape that is not positive; and a mean that NumPy refuses is cut off."""
    rng, bad = np.random.default_rng(1), np.array([-1.0, -0.5, 0.0, 1.0])
    for key, arguments in {
        "normal_lpdf": (0.0, bad),
        "cauchy_lpdf": (0.0, bad),
        "laplace_lpdf": (0.0, bad),
        "student_t_lpdf": (bad, 0.0, 1.0),
        "exponential_lpdf": (bad,),
        "gamma_lpdf": (bad, 1.0),
        "beta_lpdf": (1.0, bad),
        "lognormal_lpdf": (0.0, bad),
        "weibull_lpdf": (bad, 1.0),
        "neg_binomial_2_log_lpmf": (0.0, bad),
        "von_mises_lpdf": (0.0, bad),
    }.items():
        uniform = key == "von_mises_lpdf"  # where its concentration is 0
        assert list(np.isnan(LAWS[key].draw(rng, (4,), *map(np.asarray, arguments)))) == [
            True,
            True,
            not uniform,
            False,
        ], key
    assert np.isfinite(LAWS["poisson_log_lpmf"].draw(rng, (1,), np.array([700.0]))).all()
