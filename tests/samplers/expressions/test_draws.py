"""Random draws of the densities that may be typed, against SciPy's distributions."""

import numpy as np
import pytest
from scipy import stats

from samplers.expressions.densities import DENSITIES
from samplers.expressions.draws import LAWS

N = 20_000
WHOLE = 1e-5
"""False alarms of each test, two-sided: 11 of them make 1e-4 in all."""
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
    "von_mises_lpdf": ((0.4, 2.0), stats.vonmises(2.0, loc=0.4)),
}
FAULTS = {
    "normal_lpdf": (0.7, 2.0**0.5), "student_t_lpdf": (2.0, -0.5, 1.5), "cauchy_lpdf": (1.0, 0.6), "laplace_lpdf": (1.0, 0.7), "exponential_lpdf": (1 / 2.5,),
    "gamma_lpdf": (1.7, 1 / 2.5), "beta_lpdf": (0.6, 1.7), "lognormal_lpdf": (0.3, 0.64), "bernoulli_logit_lpmf": (-0.6,),
    "poisson_log_lpmf": (1.2 / 1.1,), "von_mises_lpdf": (0.4, 0.5),
}  # fmt: skip
"""What somebody might take for the arguments: a variance, a scale for a rate, two that are exchanged."""


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


@pytest.mark.parametrize("key", ARGUMENTS)
def test_draws_are_of_the_distribution(key):
    arguments, law = ARGUMENTS[key]
    assert p_value(key, arguments, law) > WHOLE
    assert p_value(key, FAULTS[key], law) < WHOLE


@pytest.mark.parametrize("key", [key for key, law in LAWS.items() if law.cdf is not None])
def test_distribution_functions_and_their_inverses(key):
    """To 1e-9, where SciPy's inverse of Student's t has ten digits."""
    arguments, law = ARGUMENTS[key]
    p = np.linspace(0.001, 0.999, 99)
    y = LAWS[key].quantile(p, *map(np.float64, arguments))
    np.testing.assert_allclose(y, law.ppf(p), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(LAWS[key].cdf(y, *map(np.float64, arguments)), p, rtol=1e-9)
    wrong = LAWS[key].quantile(p, *map(np.float64, FAULTS[key]))
    assert np.abs(wrong - law.ppf(p)).max() > 1e-3


def test_what_is_not_allowed_is_no_number():
    """A scale, a rate or a shape that is not positive; and a mean that NumPy refuses is cut off."""
    rng, bad = np.random.default_rng(1), np.array([-1.0, 1.0])
    for key, arguments in {"normal_lpdf": (0.0, bad), "cauchy_lpdf": (0.0, bad), "laplace_lpdf": (0.0, bad), "student_t_lpdf": (bad, 0.0, 1.0),
                           "exponential_lpdf": (bad,), "gamma_lpdf": (bad, 1.0), "beta_lpdf": (1.0, bad), "lognormal_lpdf": (0.0, bad), "von_mises_lpdf": (0.0, bad)}.items():  # fmt: skip
        assert list(np.isnan(LAWS[key].draw(rng, (2,), *map(np.asarray, arguments)))) == [True, False], key
    assert np.isfinite(LAWS["poisson_log_lpmf"].draw(rng, (1,), np.array([700.0]))).all()
