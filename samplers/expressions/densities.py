"""Log densities that may be typed, by the names that Stan has for them (Stan Functions Reference 2.36).

Each is written in the functions that there are, and so has its derivatives by every argument. The densities are
normalised in their first argument.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sgmcmc_lab.samplers.expressions.functions import LARGE_SHAPE
from sgmcmc_lab.samplers.expressions.normal_form import Expression, apply

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
    "von_mises_lpdf": Density(("y", "mean direction", "concentration"), von_mises),
    "log_gamma_density": Density(("shape", "log of y"), log_gamma_density),
    "zero_times": Density(("factor", "what it multiplies"), times),
    "if_nonnegative": Density(("what must be at least 0", "log density"), within),
    "log_sum_exp": Density(("a", "b"), log_sum_exp),
    "log_mix": Density(("share of the first", "log density of the first", "log density of the second"), log_mix),
}
"""Functions of several arguments, by their typed names."""
