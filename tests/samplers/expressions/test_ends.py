"""Functions, transforms and densities at their ends, against mpmath; and −∞, which is a log density like any other.

Each planted fault is one that was there, or is the naive formula.
"""

import numpy as np
import pytest

from sgmcmc_lab.samplers.expressions import densities, parse
from sgmcmc_lab.samplers.expressions.densities import DENSITIES
from sgmcmc_lab.samplers.expressions.functions import FUNCTIONS, OF_TWO
from sgmcmc_lab.samplers.expressions.normal_form import call, constant
from sgmcmc_lab.samplers.targets import bounded
from tests import ends
from tests.ends import CASES, by_machine, by_numpy, worst
from tests.helpers.cases import for_each

BY_TITLE = {case.title: case for case in CASES}


@pytest.mark.slow
@for_each("case", CASES, ids=lambda case: case.title, apart=lambda case: case.title.split()[0])
def test_values_and_slopes_have_their_digits_at_the_ends(case):
    value, slope = worst(case)
    assert value.share <= 1, value
    assert slope.share <= 1, slope


def test_everything_that_may_be_typed_is_looked_at():
    texts = " ".join(case.text for case in CASES)
    seen = {key for key in (*FUNCTIONS, *OF_TWO, *DENSITIES) if f"{key}(" in texts}
    # ψ′ is there as the slope of ψ, whose own slope is not known.
    assert seen | {"trigamma"} == {*FUNCTIONS, *OF_TWO, *DENSITIES}


def by_subtraction(self, theta):
    """The parameter with a term that is 0 and that nothing works out beforehand: 1 − p is then a subtraction."""
    return VALUE(self, theta) + call("sign", constant(0.0))


VALUE = bounded.Bounded.value


@pytest.mark.slow
@pytest.mark.parametrize(
    "title", ["0 < p < 1", "2 < a < 5", "-0.1 < a < 0.3", "complement", "power of a complement", "beta_lpdf", "log_mix"]
)
def test_fault_a_complement_by_subtraction(title, monkeypatch):
    """Planted fault: log(1 − y) by subtraction, for every parameter."""
    monkeypatch.setattr(bounded.Bounded, "value", by_subtraction)
    value, slope = worst(BY_TITLE[title])
    assert max(value.share, slope.share) > 1e3


NAIVE = {
    "log_sum_exp": ("log_mix", lambda a, b: a + densities.apply("log1p_exp", b - a)),
    "bernoulli_logit_lpmf": ("bernoulli_logit_lpmf", lambda y, logit: y * logit - densities.apply("log1p_exp", logit)),
    "student_t_lpdf": ("student_t_lpdf, 1e10", lambda y, nu, mu, s: densities.lgamma((nu + 1) / 2) - densities.lgamma(nu / 2) - 0.5 * densities.log(np.pi * nu) - densities.log(s) - (nu + 1) / 2 * densities.log(1 + ((y - mu) / s) ** 2 / nu)),
    "gamma_lpdf": ("gamma_lpdf, 1e6", lambda y, k, rate: k * densities.log(rate) - densities.lgamma(k) + (k - 1) * densities.log(y) - rate * y),
    "poisson_log_lpmf": ("poisson_log_lpmf", lambda y, eta: y * eta - densities.apply("exp", eta) - densities.lgamma(y + 1)),
    "binomial_logit_lpmf": ("binomial_logit_lpmf, half", lambda y, n, a: densities.lgamma(n + 1) - densities.lgamma(y + 1) - densities.lgamma(n - y + 1) + y * a - n * densities.apply("log1p_exp", a)),
    "neg_binomial_2_log_lpmf": ("neg_binomial_2_log_lpmf", lambda y, eta, phi: densities.lgamma(y + phi) - densities.lgamma(phi) - densities.lgamma(y + 1) + y * eta + phi * densities.log(phi) - (y + phi) * densities.log(densities.apply("exp", eta) + phi)),
    "normal_lccdf": ("normal_lccdf", lambda y, mu, s: densities.log(1 - densities.apply("exp", densities.normal_lcdf(y, mu, s)))),
    "weibull_lcdf": ("weibull_lcdf", lambda y, k, s: densities.log(1 - densities.apply("sqrt", densities.apply("exp", densities.weibull_lccdf(y, k, s)) ** 2))),
    "von_mises_lpdf": ("von_mises_lpdf", lambda y, mu, k: k * densities.apply("cos", y - mu) - np.log(2 * np.pi) - densities.apply("log_i0", k)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("key", [key for key in NAIVE if key != "log_sum_exp"])
def test_fault_the_textbooks_formula_as_it_stands(key, monkeypatch):
    title, build = NAIVE[key]
    monkeypatch.setitem(DENSITIES, key, densities.Density(DENSITIES[key].arguments, build))
    value, slope = worst(BY_TITLE[title])
    assert max(value.share, slope.share) > 10


NAMES = ("y", "a", "b", "g")
NOTHING = -np.inf
# A text, where it is looked at, its value, and its slope by a.
IMPOSSIBLE = {
    "the other part of a mixture, g = 0": ("log_mix(g, normal_lpdf(y, a, 1), normal_lpdf(y, b, 1))", (0.5, 7.0, 0.5, 0.0), -0.9189385332046727, 0.0),
    "the other part of a mixture, g = 1": ("log_mix(g, normal_lpdf(y, a, 1), normal_lpdf(y, b, 1))", (0.5, 1.5, 7.0, 1.0), -1.4189385332046727, -1.0),
    "a part without the row in its support": ("log_mix(b, gamma_lpdf(y, a, 2), normal_lpdf(y, 0, 1))", (-1.0, 3.0, 0.5, 0.0), -0.5 - 0.9189385332046727 + np.log(0.5), 0.0),
    "a gamma part at 0": ("log_mix(b, gamma_lpdf(y, a, 2), normal_lpdf(y, 0, 1))", (0.0, 3.0, 0.5, 0.0), -0.9189385332046727 + np.log(0.5), 0.0),
    "a lognormal part at 0": ("log_mix(b, lognormal_lpdf(y, a, 2), normal_lpdf(y, 0, 1))", (0.0, 3.0, 0.5, 0.0), -0.9189385332046727 + np.log(0.5), 0.0),
    "a beta part beyond 1": ("log_mix(b, beta_lpdf(y, a, 2), normal_lpdf(y, 0, 1))", (2.0, 3.0, 0.5, 0.0), -2.0 - 0.9189385332046727 + np.log(0.5), 0.0),
    "both parts": ("log_sum_exp(log(g) + a, log(g) + b)", (0.0, 1.0, 2.0, 0.0), NOTHING, None),
    "an exponential below 0": ("exponential_lpdf(y, 2 + a)", (-1e-300, 1.0, 0.0, 0.0), NOTHING, None),
    "an exponential at 0": ("exponential_lpdf(y, 2 + a)", (0.0, 1.0, 0.0, 0.0), np.log(3), 1 / 3),
    "gamma below 0": ("gamma_lpdf(y, 3, a)", (-2.0, 1.0, 0.0, 0.0), NOTHING, None),
    "gamma at 0": ("gamma_lpdf(y, 3, a)", (0.0, 1.0, 0.0, 0.0), NOTHING, None),
    "gamma at 0 with the shape 1": ("gamma_lpdf(y, b, a)", (0.0, 2.0, 1.0, 0.0), np.log(2), 0.5),
    "lognormal at 0": ("lognormal_lpdf(y, a, 1)", (0.0, 1.0, 0.0, 0.0), NOTHING, None),
    "lognormal below 0": ("lognormal_lpdf(y, a, 1)", (-1.0, 1.0, 0.0, 0.0), NOTHING, None),
    "beta at 1": ("beta_lpdf(y, a, 3)", (1.0, 2.0, 0.0, 0.0), NOTHING, None),
    "beta beyond 1": ("beta_lpdf(y, a, 3)", (1.5, 2.0, 0.0, 0.0), NOTHING, None),
    "a count below 0": ("poisson_log_lpmf(y, a)", (-1.0, 2.0, 0.0, 0.0), NOTHING, None),
    "no count of none": ("poisson_log_lpmf(y, log(g) + 0*a)", (0.0, 2.0, 0.0, 0.0), 0.0, None),
    "a count of none": ("poisson_log_lpmf(y, log(g) + a)", (2.0, 2.0, 0.0, 0.0), NOTHING, None),
    "p = 0, and it does not happen": ("bernoulli_logit_lpmf(y, log(g/(1 - g)) + a)", (0.0, 2.0, 0.0, 0.0), 0.0, 0.0),
    "p = 0, and it happens": ("bernoulli_logit_lpmf(y, log(g/(1 - g)) + a)", (1.0, 2.0, 0.0, 0.0), NOTHING, None),
    "more successes than trials": ("binomial_logit_lpmf(y, b, a)", (3.0, 1.0, 2.0, 0.0), NOTHING, None),
    "none of no trials": ("binomial_logit_lpmf(y, b, a)", (0.0, 1.0, 0.0, 0.0), 0.0, 0.0),
    "fewer than no successes": ("binomial_logit_lpmf(y, b, a)", (-1.0, 1.0, 2.0, 0.0), NOTHING, None),
    "a negative count": ("neg_binomial_2_log_lpmf(y, a, b)", (-1.0, 1.0, 2.0, 0.0), NOTHING, None),
    "Weibull below 0": ("weibull_lpdf(y, a, b)", (-1.0, 1.0, 2.0, 0.0), NOTHING, None),
    "Weibull at 0 with the shape 1": ("weibull_lpdf(y, b, a)", (0.0, 2.0, 1.0, 0.0), -np.log(2), -0.5),
    "Weibull above 0, always": ("weibull_lccdf(y, a, b)", (0.0, 1.0, 2.0, 0.0), 0.0, 0.0),
    "Weibull above −1, always": ("weibull_lccdf(y, a, b)", (-1.0, 1.0, 2.0, 0.0), 0.0, 0.0),
    "Weibull never below 0": ("weibull_lcdf(y, a, b)", (-1.0, 1.0, 2.0, 0.0), NOTHING, None),
    "lognormal above 0, always": ("lognormal_lccdf(y, b, a)", (0.0, 1.0, 2.0, 0.0), 0.0, 0.0),
    "lognormal never below 0": ("lognormal_lcdf(y, b, a)", (0.0, 1.0, 2.0, 0.0), NOTHING, None),
    "exponential above −1, always": ("exponential_lccdf(y, a)", (-1.0, 1.0, 2.0, 0.0), 0.0, 0.0),
    "exponential never below 0": ("exponential_lcdf(y, a)", (-1.0, 1.0, 2.0, 0.0), NOTHING, None),
    "neither 0 nor 1": ("bernoulli_logit_lpmf(y, a)", (2.0, 2.0, 0.0, 0.0), NOTHING, None),
}  # fmt: skip


def impossible_error(what):
    """How far the machine and NumPy are from the value, and from the slope where there is one."""
    text, at, value, slope = IMPOSSIBLE[what]
    typed = parse(text, NAMES, "row")
    errors = []
    for compute in (by_machine, by_numpy):
        found = compute([typed, typed.diff("a")], NAMES, np.array([at]))[:, 0]
        errors.append(0.0 if found[0] == value else abs(found[0] - value))
        errors.append(0.0 if slope is None else abs(found[1] - slope))
    return max(errors) if not np.isnan(errors).any() else np.inf


@pytest.mark.slow
@for_each("what", IMPOSSIBLE)
def test_what_is_impossible_has_the_log_density_minus_infinity(what):
    assert impossible_error(what) < 1e-14


@pytest.mark.slow
def test_fault_a_sum_of_exponentials_from_its_first_part(monkeypatch):
    _, build = NAIVE["log_sum_exp"]
    monkeypatch.setattr(densities, "log_sum_exp", build)
    for what in ("the other part of a mixture, g = 0", "a part without the row in its support"):
        assert impossible_error(what) == np.inf


def test_fault_weights_of_0_that_multiply(monkeypatch):
    """Fails where the slope of an impossible part, which may be infinite, comes into that of the mixture."""
    monkeypatch.setitem(OF_TWO, "zero_times", FUNCTIONS["abs"].__class__(lambda w, u: w * u, ""))
    assert impossible_error("a lognormal part at 0") == np.inf


def test_nothing_but_minus_infinity_passes_for_it():
    """NaN stays NaN, and +∞ as a value of a density is never hidden."""
    for text, at in (
        ("log_mix(g, a, b)", (0.0, 1.0, 2.0, 1.5)),
        ("log_mix(g, log(y), b)", (-1.0, 1.0, 2.0, 0.5)),
        ("if_nonnegative(y, log(a))", (1.0, -1.0, 0.0, 0.0)),
    ):
        assert np.isnan(by_machine([parse(text, NAMES, "row")], NAMES, np.array([at]))[0, 0])
    assert (
        by_machine([parse("gamma_lpdf(y, 0.5, a)", NAMES, "row")], NAMES, np.array([[0.0, 1.0, 0, 0]]))[0, 0] == np.inf
    )


@pytest.mark.slow
def test_fault_a_reference_with_a_doubles_digits(monkeypatch):
    """Fails where the reference is as good as the digits that it is asked for: log(1 − p) at logit p = 700."""
    monkeypatch.setattr(ends, "DIGITS", 16)
    value, _ = worst(BY_TITLE["complement"])
    assert value.share > 1e3
