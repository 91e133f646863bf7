"""The densities that may be typed: against SciPy, by differences, and by what is said of a wrong one."""

import numpy as np
import pytest
from scipy import special, stats

from sgmcmc_lab.samplers.expressions import densities, parse
from sgmcmc_lab.samplers.expressions.densities import DENSITIES
from sgmcmc_lab.samplers.expressions.functions import FUNCTIONS
from sgmcmc_lab.samplers.expressions.machine import LANES, program, workspace
from sgmcmc_lab.samplers.expressions.special import digamma_above, trigamma_above
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.cases import for_each
from tests.helpers.machine import execute

NAMES = ("y", "a", "b", "c")
# Of each density: what is typed, SciPy's own, and where y is, by a, b > 0 and c > 0.
TYPED = {
    "normal_lpdf": ("normal_lpdf(y, a, b)", lambda y, a, b, c: stats.norm.logpdf(y, a, b)),
    "student_t_lpdf": ("student_t_lpdf(y, c, a, b)", lambda y, a, b, c: stats.t.logpdf(y, c, a, b)),
    "cauchy_lpdf": ("cauchy_lpdf(y, a, b)", lambda y, a, b, c: stats.cauchy.logpdf(y, a, b)),
    "laplace_lpdf": ("laplace_lpdf(y, a, b)", lambda y, a, b, c: stats.laplace.logpdf(y, a, b)),
    "exponential_lpdf": ("exponential_lpdf(y^2, b)", lambda y, a, b, c: stats.expon.logpdf(y * y, scale=1 / b)),
    "gamma_lpdf": ("gamma_lpdf(y^2, b, c)", lambda y, a, b, c: stats.gamma.logpdf(y * y, b, scale=1 / c)),
    "beta_lpdf": ("beta_lpdf(inv_logit(y), b, c)", lambda y, a, b, c: stats.beta.logpdf(special.expit(y), b, c)),
    "lognormal_lpdf": (
        "lognormal_lpdf(y^2, a, b)",
        lambda y, a, b, c: stats.norm.logpdf(np.log(y * y), a, b) - np.log(y * y),
    ),
    "bernoulli_logit_lpmf": (
        "bernoulli_logit_lpmf(1, 9*a)",
        lambda y, a, b, c: stats.bernoulli.logpmf(1, special.expit(9 * a)),
    ),
    "poisson_log_lpmf": ("poisson_log_lpmf(3, a)", lambda y, a, b, c: stats.poisson.logpmf(3, np.exp(a))),
    "binomial_logit_lpmf": (
        "binomial_logit_lpmf(3, 8, a)",
        lambda y, a, b, c: stats.binom.logpmf(3, 8, special.expit(a)),
    ),
    "neg_binomial_2_log_lpmf": (
        "neg_binomial_2_log_lpmf(3, a, b)",
        lambda y, a, b, c: stats.nbinom.logpmf(3, b, b / (b + np.exp(a))),
    ),
    "weibull_lpdf": ("weibull_lpdf(y^2, b, c)", lambda y, a, b, c: stats.weibull_min.logpdf(y * y, b, scale=c)),
    "weibull_lcdf": ("weibull_lcdf(y^2, b, c)", lambda y, a, b, c: stats.weibull_min.logcdf(y * y, b, scale=c)),
    "weibull_lccdf": ("weibull_lccdf(y^2, b, c)", lambda y, a, b, c: stats.weibull_min.logsf(y * y, b, scale=c)),
    "normal_lcdf": ("normal_lcdf(y, a, b)", lambda y, a, b, c: stats.norm.logcdf(y, a, b)),
    "normal_lccdf": ("normal_lccdf(y, a, b)", lambda y, a, b, c: stats.norm.logsf(y, a, b)),
    "lognormal_lcdf": ("lognormal_lcdf(y^2, a, b)", lambda y, a, b, c: stats.norm.logcdf(np.log(y * y), a, b)),
    "lognormal_lccdf": ("lognormal_lccdf(y^2, a, b)", lambda y, a, b, c: stats.norm.logsf(np.log(y * y), a, b)),
    "exponential_lcdf": ("exponential_lcdf(y^2, b)", lambda y, a, b, c: stats.expon.logcdf(y * y, scale=1 / b)),
    "exponential_lccdf": ("exponential_lccdf(y^2, b)", lambda y, a, b, c: stats.expon.logsf(y * y, scale=1 / b)),
    "von_mises_lpdf": ("von_mises_lpdf(y, a, 30*b)", lambda y, a, b, c: stats.vonmises.logpdf(y, 30 * b, a)),
    "log_gamma_density": ("log_gamma_density(30*b, a)", lambda y, a, b, c: stats.gamma.logpdf(np.exp(a), 30 * b)),
    "zero_times": ("zero_times(y, a)", lambda y, a, b, c: y * a),
    "if_nonnegative": ("if_nonnegative(b, y)", lambda y, a, b, c: y),
    "log_sum_exp": ("log_sum_exp(40*y, 50*a)", lambda y, a, b, c: np.logaddexp(40 * y, 50 * a)),
    "log_mix": (
        "log_mix(inv_logit(a), -y^2, c)",
        lambda y, a, b, c: np.logaddexp(np.log(special.expit(a)) - y * y, np.log(special.expit(-a)) + c),
    ),
}


def places(n=200):
    rng = np.random.default_rng(4)
    # Not near 0, where log y² falls too steeply for differences.
    y, a = rng.uniform(0.4, 3, n) * rng.choice([-1, 1], n), rng.uniform(-3, 3, n)
    return [y, a, *rng.uniform(0.2, 5, (2, n))]


def run(expressions, values):
    """The stack machine's outputs (outputs, n) for values (names, n)."""
    made, out = program(expressions, NAMES), []
    work, n = np.zeros(workspace(made)), len(NAMES) * LANES
    for first in range(0, len(values[0]), LANES):
        for i, each in enumerate(values):
            work[i * LANES : (i + 1) * LANES] = each[first : first + LANES]
        execute(made, work)
        out.append(work[n : n + len(expressions) * LANES].reshape(-1, LANES).copy())
    return np.concatenate(out, axis=1)


def value_error(key):
    text, exact = TYPED[key]
    at = places()
    expected = exact(*at)
    typed = parse(text, NAMES, "row")
    found = [run([typed], at)[0], typed.evaluate(**dict(zip(NAMES, at, strict=True)))]
    return max(float(np.max(np.abs(each - expected) / (1e-10 * (1 + np.abs(expected))))) for each in found)


@pytest.mark.slow
@for_each("key", DENSITIES)
def test_densities_are_scipys(key):
    assert value_error(key) <= 1


@pytest.mark.slow
def test_fault_a_density_without_its_normaliser(monkeypatch):
    wrong = densities.Density(("y", "mean", "sd"), lambda y, mu, sigma: -0.5 * ((y - mu) / sigma) ** 2)
    monkeypatch.setitem(DENSITIES, "normal_lpdf", wrong)
    assert value_error("normal_lpdf") > 1


@pytest.mark.slow
@for_each("key", DENSITIES)
def test_slopes_of_densities_are_differences(key):
    typed, at = parse(TYPED[key][0], NAMES, "row"), places()
    slopes = run([typed.diff(by) for by in NAMES], at)
    for i, slope in enumerate(slopes):
        step = 1e-5
        ahead, behind = ([x + sign * step * (k == i) for k, x in enumerate(at)] for sign in (1, -1))
        expected = (TYPED[key][1](*ahead) - TYPED[key][1](*behind)) / (2 * step)
        assert np.allclose(slope, expected, rtol=1e-6, atol=2e-6)


def test_no_typed_number_makes_a_special_function_count_up_to_it(monkeypatch):
    """SciPy's ψ′ goes up to 9 by ones; from a number far below 0 that would take hours."""
    asked = []
    polygamma = special.polygamma
    monkeypatch.setattr(special, "polygamma", lambda n, x: (asked.append(np.min(x)), polygamma(n, x))[1])
    found = FUNCTIONS["trigamma"].evaluate(np.array([-300.5, 2.25]))
    assert np.allclose(found, [polygamma(1, -300.5), polygamma(1, 2.25)], rtol=1e-12)
    assert asked and min(asked) > 0
    assert abs(parse("trigamma(-100000000000.5)", NAMES, "row").constant - np.pi**2) < 1e-9


def special_is_scipys(key):
    """Whether the machine's function is SciPy's: also where it overflows as it stands, by reflection, and at poles."""
    x = np.concatenate([np.linspace(-30.3, 60.1, 400), np.linspace(0.01, 3, 60), [1e-8, 700.0, -700.0, 1e5]])
    found = run([parse(f"{key}(y)", NAMES, "row")], [x] * 4)[0]
    with np.errstate(all="ignore"):
        return np.allclose(found, FUNCTIONS[key].evaluate(x), rtol=2e-12, atol=2e-14, equal_nan=True)


@for_each(
    "key",
    [
        "log1p_exp", "inv_logit", "lgamma", "digamma", "trigamma", "log_i0", "i1_over_i0", "expm1", "log1p", "log1m_exp", "log1p_square",
        "log_i0e", "log_i0e_slope", "lgamma_half_step", "lgamma_half_step_slope",
        "log_ndtr", "log_ndtr_slope",
    ],
)  # fmt: skip
def test_special_functions_of_the_machine_are_scipys(key):
    assert special_is_scipys(key)
    assert np.isnan(run([parse(f"{key}(y)", NAMES, "row")], [np.array([1.0, 2.0, np.nan, 5.0])] * 4)[0][2])


# Of ψ and ψ′ below 0: the sign, and the argument, of the reflection.
REFLECTED = {
    "trigamma": (
        lambda x: (np.pi / np.sin(np.pi * x)) ** 2 + trigamma_above(1 - x),
        lambda x: (np.pi / np.sin(np.pi * x)) ** 2 - trigamma_above(-x),
    ),
    "digamma": (
        lambda x: digamma_above(1 - x) + np.pi / np.tan(np.pi * x),
        lambda x: digamma_above(-x) - np.pi / np.tan(np.pi * x),
    ),
}


@pytest.mark.parametrize("key", REFLECTED)
@pytest.mark.parametrize("fault", [0, 1])
def test_fault_a_reflection(key, fault, monkeypatch):
    wrong, right_one = REFLECTED[key][fault], execute

    def slipped(made, work):
        """The machine, with the wrong function below 0, which is all that is run here."""
        right_one(made, work)
        out = work[len(NAMES) * LANES :][:LANES]
        out[:] = [wrong(x) if x <= 0 else right for x, right in zip(work[:LANES], out, strict=True)]

    monkeypatch.setitem(globals(), "execute", slipped)
    assert not special_is_scipys(key)


WRONG = {
    "normal_lpdf(y, a)": (17, "normal_lpdf takes 3 arguments: y, mean, sd"),
    "normal_lpdf(y, a, b, c)": (20, "normal_lpdf takes 3 arguments: y, mean, sd"),
    "normal_lpdf(y, , b)": (16, "before this comma"),
    "normal_lpdf(y, a, )": (19, "before this bracket"),
    "normal_lpdf(y | a, b)": (15, "commas separate all arguments"),
    "normal_lpdf": (12, "expected an opening bracket"),
    "y, a": (2, "a comma has no meaning here"),
    "(y, a)": (3, "a comma has no meaning here"),
    "exp(y, a)": (6, "a comma has no meaning here"),
    "normal_lpdf(y, (a, b), c)": (18, "a comma has no meaning here"),
    "normal_lpfd(y, a, b)": (1, "perhaps normal_lpdf is meant"),
    "normal_lpdf(y, a, 0)": (12, "a number is divided by zero"),
}


@for_each("text", WRONG)
def test_what_is_wrong_with_a_density_is_said(text):
    position, why = WRONG[text]
    with pytest.raises(SpecError) as caught:
        parse(text, NAMES, "row")
    assert f"at character {position}: " in str(caught.value) and why in str(caught.value)


def test_densities_may_stand_in_each_other():
    typed = parse("log_mix(0.3, normal_lpdf(y, a + 2*(b - 1), 1), -(cauchy_lpdf(y, 0, c)))*2", NAMES, "row")
    at = places()
    y, a, b, c = at
    first, second = stats.norm.logpdf(y, a + 2 * (b - 1)), -stats.cauchy.logpdf(y, 0, c)
    assert np.allclose(run([typed], at)[0], 2 * np.logaddexp(np.log(0.3) + first, np.log(0.7) + second))
