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
    """The natural logarithm."""
    return apply("log", u)


def lgamma(u: Expression) -> Expression:
    """log Γ(u)."""
    return apply("lgamma", u)


def normal(y: Any, mu: Any, sigma: Any) -> Expression:
    """The Gaussian distribution N(mu, sigma²)."""
    return -0.5 * ((y - mu) / sigma) ** 2 - log(sigma) - math.log(2 * math.pi) / 2


def student_t(y: Any, nu: Any, mu: Any, sigma: Any) -> Expression:
    """Student's t with nu degrees of freedom, moved and scaled."""
    far = log(1 + ((y - mu) / sigma) ** 2 / nu)
    return lgamma((nu + 1) / 2) - lgamma(nu / 2) - 0.5 * log(math.pi * nu) - log(sigma) - (nu + 1) / 2 * far


def cauchy(y: Any, mu: Any, sigma: Any) -> Expression:
    """Cauchy's distribution."""
    return -math.log(math.pi) - log(sigma) - log(1 + ((y - mu) / sigma) ** 2)


def laplace(y: Any, mu: Any, sigma: Any) -> Expression:
    """Laplace's distribution, with the standard deviation √2 sigma."""
    return -math.log(2) - log(sigma) - apply("abs", y - mu) / sigma


def exponential(y: Any, rate: Any) -> Expression:
    """The exponential distribution with the mean 1/rate."""
    return log(rate) - rate * y


def gamma(y: Any, shape: Any, rate: Any) -> Expression:
    """The gamma distribution with the mean shape/rate."""
    return shape * log(rate) - lgamma(shape) + (shape - 1) * log(y) - rate * y


def beta(y: Any, a: Any, b: Any) -> Expression:
    """The beta distribution on (0, 1)."""
    return lgamma(a + b) - lgamma(a) - lgamma(b) + (a - 1) * log(y) + (b - 1) * log(1 - y)


def lognormal(y: Any, mu: Any, sigma: Any) -> Expression:
    """Of y whose logarithm is N(mu, sigma²)."""
    return normal(log(y), mu, sigma) - log(y)


def bernoulli_logit(y: Any, logit: Any) -> Expression:
    """Of y = 0 or 1 with P(y = 1) = 1/(1 + e^−logit)."""
    return y * logit - apply("log1p_exp", logit)


def poisson_log(y: Any, log_rate: Any) -> Expression:
    """Poisson's distribution with the mean e^log_rate."""
    return y * log_rate - apply("exp", log_rate) - lgamma(y + 1)


def von_mises(y: Any, mu: Any, kappa: Any) -> Expression:
    """Von Mises' distribution on the circle."""
    return kappa * apply("cos", y - mu) - math.log(2 * math.pi) - apply("log_i0", kappa)


def log_sum_exp(a: Any, b: Any) -> Expression:
    """log(eᵃ + eᵇ), without overflow."""
    return a + apply("log1p_exp", b - a)


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
    "log_sum_exp": Density(("a", "b"), log_sum_exp),
    "log_mix": Density(("share of the first", "log density of the first", "log density of the second"), log_mix),
}
"""What may be typed with several arguments, by what it is typed as."""
