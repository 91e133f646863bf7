"""Log densities that may be typed, by the names that Stan has for them (Stan Functions Reference 2.36).

Each is written in the functions that there are, and so has its derivatives by every argument. The densities are
normalised in their first argument.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sgmcmc_lab.samplers.expressions.functions import LARGE_SHAPE
from sgmcmc_lab.samplers.expressions.normal_form import Expression, apply, call
from sgmcmc_lab.samplers.expressions.writing import DENSITIES as WRITTEN

SMALLEST = 5e-324
"""The smallest number above 0."""


@dataclass(frozen=True)
class Density:
    """Something that may be typed with several arguments."""

    arguments: tuple[str, ...]
    build: Callable[..., Expression]


def log(u: Any) -> Expression:
    """The natural logarithm."""
    return apply("log", u)


def within(c: Any, density: Expression) -> Expression:
    """The log density where c ≥ 0, and −∞ outside."""
    return apply("if_nonnegative", c, density)


def times(w: Any, u: Any) -> Expression:
    """w·u; 0·(−∞) is 0 here, as in the limit of w log w."""
    return apply("zero_times", w, u)


def lgamma(u: Expression) -> Expression:
    """log Γ(u)."""
    return apply("lgamma", u)


def log_gamma_density(shape: Any, eta: Any) -> Expression:
    """The log density of the gamma distribution with rate 1 at e^η, by its shape."""
    return apply("log_gamma_density", shape, eta)


def _is_small(shape: Any) -> bool:
    """Whether log Γ of it is too small a number for its rounding to show."""
    return isinstance(shape, Expression) and shape.constant is not None and 0 < shape.constant < LARGE_SHAPE


def normal(y: Any, mu: Any, sigma: Any) -> Expression:
    """The Gaussian distribution N(mu, sigma²)."""
    return -0.5 * ((y - mu) / sigma) ** 2 - log(sigma) - math.log(2 * math.pi) / 2


def student_t(y: Any, nu: Any, mu: Any, sigma: Any) -> Expression:
    """Student's t with nu degrees of freedom, moved and scaled."""
    far = log(1 + ((y - mu) / sigma) ** 2 / nu)
    return apply("lgamma_half_step", nu / 2) - math.log(2 * math.pi) / 2 - log(sigma) - (nu + 1) / 2 * far


def cauchy(y: Any, mu: Any, sigma: Any) -> Expression:
    """Cauchy's distribution."""
    return -math.log(math.pi) - log(sigma) - log(1 + ((y - mu) / sigma) ** 2)


def laplace(y: Any, mu: Any, sigma: Any) -> Expression:
    """Laplace's distribution, with the standard deviation √2 sigma."""
    return -math.log(2) - log(sigma) - apply("abs", y - mu) / sigma


def exponential(y: Any, rate: Any) -> Expression:
    """The exponential distribution with the mean 1/rate."""
    return within(y, log(rate) - rate * y)


def gamma(y: Any, shape: Any, rate: Any) -> Expression:
    """The gamma distribution with the mean shape/rate."""
    if _is_small(shape):
        return within(y, shape * log(rate) - lgamma(shape) + times(shape - 1, log(y)) - rate * y)
    return within(y, log_gamma_density(shape, log(rate * y)) + log(rate))


def beta(y: Any, a: Any, b: Any) -> Expression:
    """The beta distribution on (0, 1)."""
    if _is_small(a) and _is_small(b):
        inside = lgamma(a + b) - lgamma(a) - lgamma(b) + times(a - 1, log(y)) + times(b - 1, log(1 - y))
    else:
        n = log(a + b)
        inside = (
            log_gamma_density(a, log(y) + n) + log_gamma_density(b, log(1 - y) + n) - log_gamma_density(a + b, n) + n
        )
    return within(y, within(1 - y, inside))


def lognormal(y: Any, mu: Any, sigma: Any) -> Expression:
    """The distribution of y whose logarithm is N(mu, sigma²)."""
    return within(y - SMALLEST, normal(log(y), mu, sigma) - log(y))


def bernoulli_logit(y: Any, logit: Any) -> Expression:
    """The distribution of y = 0 or 1 with P(y = 1) = 1/(1 + e^−logit)."""
    return within(-((y - y**2) ** 2), -apply("log1p_exp", (1 - 2 * y) * logit))


def poisson_log(y: Any, log_rate: Any) -> Expression:
    """Poisson's distribution with the mean e^log_rate."""
    return within(y, log_gamma_density(y + 1, log_rate))


def binomial_logit(y: Any, trials: Any, logit: Any) -> Expression:
    """The binomial distribution of y successes in a number of trials, each with the probability 1/(1 + e^−logit)."""
    log_p, log_q = -apply("log1p_exp", -logit), -apply("log1p_exp", logit)
    # With all successes, or none, no term is large, and the sum can be near 0.
    some = apply("sign", y) * apply("sign", trials - y)
    inside = times(some, _binomial(y, trials, log_p, log_q)) + times(1 - some, y * log_p + (trials - y) * log_q)
    return within(y, within(trials - y, inside))


def neg_binomial_2_log(y: Any, log_mean: Any, precision: Any) -> Expression:
    """The negative binomial distribution with the mean m = e^log_mean and the variance m + m²/precision."""
    odds = log_mean - log(precision)
    log_p, log_q = -apply("log1p_exp", odds), -apply("log1p_exp", -odds)
    total, some = precision + y, apply("sign", y)
    choices = _binomial(precision, total, log_p, log_q) + log(precision) - log(total)
    return within(y, times(some, choices) + times(1 - some, times(precision, log_p)))


def _binomial(y: Any, n: Any, log_p: Any, log_q: Any) -> Expression:
    """log Γ(n + 1)/(Γ(y + 1)Γ(n − y + 1)) + y log p + (n − y) log q, for any real 0 ≤ y ≤ n.

    As Poisson's probabilities, P(y; np)·P(n − y; nq)/P(n; n), in which nothing large cancels (Loader 2000).
    """
    log_n = log(n)
    return (
        log_gamma_density(y + 1, log_n + log_p)
        + log_gamma_density(n - y + 1, log_n + log_q)
        - log_gamma_density(n + 1, log_n)
    )


def weibull(y: Any, shape: Any, scale: Any) -> Expression:
    """The Weibull distribution, with P(Y > y) = exp(−(y/scale)^shape)."""
    slope = log(shape) - log(scale) + times(shape - 1, log(y) - log(scale))
    return within(y, slope + weibull_lccdf(y, shape, scale))


def weibull_lcdf(y: Any, shape: Any, scale: Any) -> Expression:
    """log P(Y ≤ y) of the Weibull distribution."""
    log_hazard = shape * (log(y) - log(scale))
    # e^−h is 1 − h to the last digit where h < e⁻⁴⁰.
    small = (1 - apply("sign", log_hazard + 40)) / 2
    return within(y, times(small, log_hazard) + times(1 - small, apply("log1m_exp", -apply("exp", log_hazard))))


def weibull_lccdf(y: Any, shape: Any, scale: Any) -> Expression:
    """log P(Y > y) of the Weibull distribution."""
    return _where_positive(y, -apply("exp", shape * (log(y) - log(scale))))


def _where_positive(y: Any, log_above: Expression) -> Expression:
    """log P(Y > y) of a positive Y: it and its slopes are 0 where y ≤ 0."""
    sign = apply("sign", y)
    return times((sign + apply("abs", sign)) / 2, log_above)


def normal_lcdf(y: Any, mu: Any, sigma: Any) -> Expression:
    """log P(Y ≤ y) of N(mu, sigma²)."""
    return apply("log_ndtr", (y - mu) / sigma)


def normal_lccdf(y: Any, mu: Any, sigma: Any) -> Expression:
    """log P(Y > y) of N(mu, sigma²)."""
    return apply("log_ndtr", (mu - y) / sigma)


def lognormal_lcdf(y: Any, mu: Any, sigma: Any) -> Expression:
    """log P(Y ≤ y) where log Y is N(mu, sigma²)."""
    return within(y - SMALLEST, normal_lcdf(log(y), mu, sigma))


def lognormal_lccdf(y: Any, mu: Any, sigma: Any) -> Expression:
    """log P(Y > y) where log Y is N(mu, sigma²)."""
    return _where_positive(y, normal_lccdf(log(y), mu, sigma))


def exponential_lcdf(y: Any, rate: Any) -> Expression:
    """log P(Y ≤ y) of the exponential distribution."""
    return within(y, apply("log1m_exp", -rate * y))


def exponential_lccdf(y: Any, rate: Any) -> Expression:
    """log P(Y > y) of the exponential distribution."""
    return _where_positive(y, -rate * y)


def von_mises(y: Any, mu: Any, kappa: Any) -> Expression:
    """Von Mises' distribution on the circle."""
    fall = -2 * kappa * apply("sin", (y - mu) / 2) ** 2
    return fall + kappa - apply("abs", kappa) - math.log(2 * math.pi) - apply("log_i0e", kappa)


def log_sum_exp(a: Any, b: Any) -> Expression:
    """log(eᵃ + eᵇ), without overflow; −∞ is the logarithm of nothing."""
    return apply("log_sum_exp", a, b)


def log_mix(share: Any, a: Any, b: Any) -> Expression:
    """The log density of a mixture of two."""
    return log_sum_exp(log(share) + a, log(1 - share) + b)


DENSITIES: dict[str, Density] = {
    "normal_lpdf": Density(("y", "mean", "sd"), normal),
    "student_t_lpdf": Density(("y", "degrees of freedom", "location", "scale"), student_t),
    "cauchy_lpdf": Density(("y", "location", "scale"), cauchy),
    "laplace_lpdf": Density(("y", "location", "scale"), laplace),
    "exponential_lpdf": Density(("y", "rate"), exponential),
    "gamma_lpdf": Density(("y", "shape", "rate"), gamma),
    "beta_lpdf": Density(("y", "a", "b"), beta),
    "lognormal_lpdf": Density(("y", "mean of log y", "sd of log y"), lognormal),
    "bernoulli_logit_lpmf": Density(("y", "logit of the probability"), bernoulli_logit),
    "poisson_log_lpmf": Density(("y", "log of the mean"), poisson_log),
    "binomial_logit_lpmf": Density(("y", "trials", "logit of the probability"), binomial_logit),
    "neg_binomial_2_log_lpmf": Density(("y", "log of the mean", "precision"), neg_binomial_2_log),
    "weibull_lpdf": Density(("y", "shape", "scale"), weibull),
    "normal_lcdf": Density(("y", "mean", "sd"), normal_lcdf),
    "normal_lccdf": Density(("y", "mean", "sd"), normal_lccdf),
    "lognormal_lcdf": Density(("y", "mean of log y", "sd of log y"), lognormal_lcdf),
    "lognormal_lccdf": Density(("y", "mean of log y", "sd of log y"), lognormal_lccdf),
    "exponential_lcdf": Density(("y", "rate"), exponential_lcdf),
    "exponential_lccdf": Density(("y", "rate"), exponential_lccdf),
    "weibull_lcdf": Density(("y", "shape", "scale"), weibull_lcdf),
    "weibull_lccdf": Density(("y", "shape", "scale"), weibull_lccdf),
    "von_mises_lpdf": Density(("y", "mean direction", "concentration"), von_mises),
    "log_gamma_density": Density(("shape", "log of y"), log_gamma_density),
    "zero_times": Density(("factor", "what it multiplies"), times),
    "if_nonnegative": Density(("what must be at least 0", "log density"), within),
    "log_sum_exp": Density(("a", "b"), log_sum_exp),
    "log_mix": Density(("share of the first", "log density of the first", "log density of the second"), log_mix),
}
"""Functions of several arguments, by their typed names."""


def _named(key: str, *arguments: Expression) -> Expression:
    """The displayed form has the variance where the last argument is a standard deviation."""
    of_sd = DENSITIES[key].arguments[-1].startswith("sd")
    return call(key, *arguments[:-1], arguments[-1] ** 2 if of_sd else arguments[-1])


NAMED: dict[str, Density] = {
    key: replace(density, build=partial(_named, key)) if key in WRITTEN else density
    for key, density in DENSITIES.items()
}
"""The same, with densities as names for display: these have no value."""
