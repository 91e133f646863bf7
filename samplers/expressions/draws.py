"""Random draws of the densities that may be typed, with their distribution functions where these have an inverse."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from samplers.expressions.functions import Array

_MANY = 40.0
"""The logarithm of the largest mean of a Poisson distribution that NumPy draws from is 43.7; e⁴⁰ is taken for more."""


class Law(NamedTuple):
    """How a density is drawn from, its arguments arrays that broadcast. Where they are not allowed a draw is nan."""

    draw: Callable[..., Array]
    """``draw(rng, shape, *arguments)``."""
    cdf: Callable[..., Array] | None = None
    """``cdf(y, *arguments)``; None of whole numbers, and where its inverse is not had."""
    quantile: Callable[..., Array] | None = None
    """``quantile(p, *arguments)``."""
    whole: bool = False
    """Whether it is of whole numbers."""
    low: float = -np.inf
    """The lower bound that a parameter needs: the density is 0 below."""
    width: float = np.inf
    """The widest range of a parameter: the density is periodic."""


def _where(allowed: NDArray[np.bool_], values: Array) -> Array:
    return np.where(allowed, values, np.nan)


def _gamma(rng: Generator, shape: tuple[int, ...], a: Array, rate: Array) -> Array:
    allowed = (a > 0) & (rate > 0)
    return _where(allowed, rng.gamma(np.where(allowed, a, 1.0), 1.0, shape) / np.where(allowed, rate, 1.0))


def _beta(rng: Generator, shape: tuple[int, ...], a: Array, b: Array) -> Array:
    allowed = (a > 0) & (b > 0)
    return _where(allowed, rng.beta(np.where(allowed, a, 1.0), np.where(allowed, b, 1.0), shape))


def _student_t(rng: Generator, shape: tuple[int, ...], nu: Array, mu: Array, sigma: Array) -> Array:
    allowed = (nu > 0) & (sigma > 0)
    return _where(allowed, mu + sigma * rng.standard_t(np.where(nu > 0, nu, 1.0), shape))


def _von_mises(rng: Generator, shape: tuple[int, ...], mu: Array, kappa: Array) -> Array:
    return _where(kappa >= 0, rng.vonmises(mu, np.maximum(kappa, 0.0), shape))


def _laplace_cdf(y: Array, mu: Array, sigma: Array) -> Array:
    z = (y - mu) / sigma
    return np.where(z < 0, np.exp(np.minimum(z, 0.0)) / 2, 1 - np.exp(-np.maximum(z, 0.0)) / 2)


LAWS: dict[str, Law] = {
    "normal_lpdf": Law(
        lambda rng, shape, mu, sigma: _where(sigma > 0, mu + sigma * rng.standard_normal(shape)),
        lambda y, mu, sigma: special.ndtr((y - mu) / sigma),
        lambda p, mu, sigma: mu + sigma * special.ndtri(p),
    ),
    "student_t_lpdf": Law(
        _student_t,
        lambda y, nu, mu, sigma: special.stdtr(nu, (y - mu) / sigma),
        lambda p, nu, mu, sigma: mu + sigma * special.stdtrit(nu, p),
    ),
    "cauchy_lpdf": Law(
        lambda rng, shape, mu, sigma: _where(sigma > 0, mu + sigma * rng.standard_cauchy(shape)),
        lambda y, mu, sigma: 0.5 + np.arctan((y - mu) / sigma) / np.pi,
        lambda p, mu, sigma: mu + sigma * np.tan(np.pi * (p - 0.5)),
    ),
    "laplace_lpdf": Law(
        lambda rng, shape, mu, sigma: _where(sigma > 0, mu + sigma * rng.laplace(size=shape)),
        _laplace_cdf,
        lambda p, mu, sigma: mu - sigma * np.sign(p - 0.5) * np.log1p(-2 * abs(p - 0.5)),
    ),
    "exponential_lpdf": Law(
        lambda rng, shape, rate: _where(rate > 0, rng.standard_exponential(shape) / rate),
        lambda y, rate: -np.expm1(-rate * np.maximum(y, 0.0)),
        lambda p, rate: -np.log1p(-p) / rate,
        low=0.0,
    ),
    "gamma_lpdf": Law(
        _gamma,
        lambda y, a, rate: special.gammainc(a, rate * np.maximum(y, 0.0)),
        lambda p, a, rate: special.gammaincinv(a, p) / rate,
    ),
    "beta_lpdf": Law(
        _beta,
        lambda y, a, b: special.betainc(a, b, np.clip(y, 0.0, 1.0)),
        lambda p, a, b: special.betaincinv(a, b, p),
    ),
    "lognormal_lpdf": Law(
        lambda rng, shape, mu, sigma: _where(sigma > 0, np.exp(mu + sigma * rng.standard_normal(shape))),
        lambda y, mu, sigma: special.ndtr((np.log(np.maximum(y, 0.0)) - mu) / sigma),
        lambda p, mu, sigma: np.exp(mu + sigma * special.ndtri(p)),
    ),
    "bernoulli_logit_lpmf": Law(
        lambda rng, shape, logit: _where(~np.isnan(logit), rng.random(shape) < special.expit(logit)), whole=True
    ),
    "poisson_log_lpmf": Law(
        lambda rng, shape, log_rate: _where(
            ~np.isnan(log_rate), rng.poisson(np.exp(np.minimum(np.nan_to_num(log_rate), _MANY)), shape)
        ),
        whole=True,
    ),
    "von_mises_lpdf": Law(_von_mises, width=2 * np.pi),
}
"""By the name of the density; of log_mix a draw is one of its parts', and log_sum_exp is none of a density."""
