"""Log densities that may be typed, by the names that Stan has for them (Stan Functions Reference 2.36).

Each is written in the functions that there are, and so has its derivatives by every argument. The densities are
normalised in their first argument.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from samplers.expressions.normal_form import Expression, apply


@dataclass(frozen=True)
class Density:
    """Something that may be typed with several arguments."""

    arguments: tuple[str, ...]
    build: Callable[..., Expression]


def log(u: Expression) -> Expression:
    return apply("log", u)


def lgamma(u: Expression) -> Expression:
    return apply("lgamma", u)


def normal(y: Any, mu: Any, sigma: Any) -> Expression:
    return -0.5 * ((y - mu) / sigma) ** 2 - log(sigma) - math.log(2 * math.pi) / 2


def student_t(y: Any, nu: Any, mu: Any, sigma: Any) -> Expression:
    far = log(1 + ((y - mu) / sigma) ** 2 / nu)
    return lgamma((nu + 1) / 2) - lgamma(nu / 2) - 0.5 * log(math.pi * nu) - log(sigma) - (nu + 1) / 2 * far


def cauchy(y: Any, mu: Any, sigma: Any) -> Expression:
    return -math.log(math.pi) - log(sigma) - log(1 + ((y - mu) / sigma) ** 2)


def laplace(y: Any, mu: Any, sigma: Any) -> Expression:
    return -math.log(2) - log(sigma) - apply("abs", y - mu) / sigma


def exponential(y: Any, rate: Any) -> Expression:
    return log(rate) - rate * y


def gamma(y: Any, shape: Any, rate: Any) -> Expression:
    return shape * log(rate) - lgamma(shape) + (shape - 1) * log(y) - rate * y


def beta(y: Any, a: Any, b: Any) -> Expression:
    return lgamma(a + b) - lgamma(a) - lgamma(b) + (a - 1) * log(y) + (b - 1) * log(1 - y)


def lognormal(y: Any, mu: Any, sigma: Any) -> Expression:
    return normal(log(y), mu, sigma) - log(y)


def bernoulli_logit(y: Any, logit: Any) -> Expression:
    return y * logit - apply("log1p_exp", logit)


def poisson_log(y: Any, log_rate: Any) -> Expression:
    return y * log_rate - apply("exp", log_rate) - lgamma(y + 1)


def von_mises(y: Any, mu: Any, kappa: Any) -> Expression:
    return kappa * apply("cos", y - mu) - math.log(2 * math.pi) - apply("log_i0", kappa)


def log_sum_exp(a: Any, b: Any) -> Expression:
    return a + apply("log1p_exp", b - a)


def log_mix(share: Any, a: Any, b: Any) -> Expression:
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
    "log_sum_exp": Density(("a", "b"), log_sum_exp),
    "log_mix": Density(("share of the first", "log density of the first", "log density of the second"), log_mix),
}
"""What may be typed with several arguments, by what it is typed as."""
