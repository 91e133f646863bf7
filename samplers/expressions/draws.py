"""Random draws of the densities that may be typed, with their distribution functions where these have an inverse."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from sgmcmc_lab.samplers.expressions.functions import Array

_MANY = 40.0
"""The logarithm of the largest mean of a Poisson distribution that NumPy draws from is 43.7; e⁴⁰ is taken for more."""
_MOST_TRIALS = 2.0**62
"""The number of trials is an integer of 64 bits."""


class Law(NamedTuple):
    """Draws from a density; its arguments are arrays that broadcast. With arguments that are not allowed, a draw is
    nan.
    """

    draw: Callable[..., Array]
    """``draw(rng, shape, *arguments)``."""
    tails: tuple[Callable[..., Array], ...] = ()
    """P(X ≤ x) and P(X > x), each ``(x, *arguments)``, and their inverses, each ``(p, *arguments)``; none of whole
    numbers, and where the inverses are not had. One less the other has lost its digits where the other is near 1."""
    whole: bool = False
    """Whether it is of whole numbers."""
    low: float = -np.inf
    """The lower bound that a parameter needs: the density is 0 below."""
    width: float = np.inf
    """The widest range of a parameter: the density is periodic."""


_LEAST = 1e-300
"""The least share that a standard normal score is taken of: −37."""


class Truncated:
    """A continuous distribution between two bounds, by the functions of its tails and their inverses.

    With F and S the probabilities below and above of the whole one, the one that is smaller at a point gives the share
    below or above within the bounds: (F(x) − F(low))/m or (S(x) − S(high))/m, with the mass m = F(high) − F(low), which
    is S(low) − S(high) where the bounds are above the median.
    """

    def __init__(self, law: Law, low: float, high: float, given: Sequence[Array]):
        self._below, self._above, self._from_below, self._from_above = law.tails
        self._given = given
        with np.errstate(all="ignore"):
            at = [
                (f(np.array(end), *given) if np.isfinite(end) else np.array(float(first == (end > 0))))
                for first, f in ((True, self._below), (False, self._above))
                for end in (low, high)
            ]
            self._low, self._high = at[0], at[3]
            self.mass: Array = np.where(at[0] < 0.5, at[1] - at[0], at[2] - at[3])
            """The probability within the bounds."""

    def at(self, z: Array) -> Array:
        """The points whose share below is Φ(z)."""
        with np.errstate(all="ignore"):
            below = self._low + self.mass * special.ndtr(z)
            above = self._high + self.mass * special.ndtr(-z)
            return np.where(
                below < 0.5,
                self._from_below(np.minimum(below, 0.5), *self._given),
                self._from_above(above, *self._given),
            )

    def score(self, x: Array) -> Array:
        """z, with Φ(z) the share below x."""
        with np.errstate(all="ignore"):
            below, above = self._below(x, *self._given), self._above(x, *self._given)
            lower = special.ndtri(np.clip((below - self._low) / self.mass, _LEAST, 1.0 - 1e-16))
            upper = -special.ndtri(np.clip((above - self._high) / self.mass, _LEAST, 1.0 - 1e-16))
            return np.where(below < 0.5, lower, upper)


def _symmetric(below: Callable[..., Array], inverse: Callable[..., Array]) -> tuple[Callable[..., Array], ...]:
    """The tails of a location and a scale, the last two arguments, from the lower tail of the standard distribution."""
    return (
        lambda y, *given: below((y - given[-2]) / given[-1], *given[:-2]),
        lambda y, *given: below((given[-2] - y) / given[-1], *given[:-2]),
        lambda p, *given: given[-2] + given[-1] * inverse(p, *given[:-2]),
        lambda p, *given: given[-2] - given[-1] * inverse(p, *given[:-2]),
    )


def _where(allowed: NDArray[np.bool_], values: Array | NDArray[np.int64]) -> Array:
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


def _mean(log_mean: Array) -> Array:
    """The mean of counts, up to the largest from which NumPy draws."""
    return np.exp(np.minimum(np.nan_to_num(log_mean), _MANY))


def _binomial(rng: Generator, shape: tuple[int, ...], trials: Array, logit: Array) -> Array:
    allowed = (trials >= 0) & (trials == np.floor(trials)) & (trials < _MOST_TRIALS) & ~np.isnan(logit)
    p = special.expit(np.nan_to_num(logit))
    return _where(allowed, rng.binomial(np.where(allowed, trials, 0).astype(np.int64), p, shape))


def _negative_binomial(rng: Generator, shape: tuple[int, ...], log_mean: Array, precision: Array) -> Array:
    allowed = (precision > 0) & ~np.isnan(log_mean)
    each = np.where(allowed, precision, 1.0)
    mean = np.minimum(rng.gamma(each, 1.0, shape) / each * _mean(log_mean), np.exp(_MANY))
    return _where(allowed, rng.poisson(mean))


def _weibull(rng: Generator, shape: tuple[int, ...], k: Array, scale: Array) -> Array:
    allowed = (k > 0) & (scale > 0)
    return _where(allowed, scale * rng.weibull(np.where(allowed, k, 1.0), shape))


def _laplace(z: Array) -> Array:
    return np.where(z < 0, np.exp(np.minimum(z, 0.0)) / 2, 1 - np.exp(-np.maximum(z, 0.0)) / 2)


def _laplace_inverse(p: Array) -> Array:
    return np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p)))


def _log(y: Array) -> Array:
    return np.log(np.maximum(y, 0.0))


LAWS: dict[str, Law] = {
    "normal_lpdf": Law(
        lambda rng, shape, mu, sigma: _where(sigma > 0, mu + sigma * rng.standard_normal(shape)),
        _symmetric(special.ndtr, special.ndtri),
    ),
    "student_t_lpdf": Law(
        _student_t,
        _symmetric(lambda z, nu: special.stdtr(nu, z), lambda p, nu: special.stdtrit(nu, p)),
    ),
    "cauchy_lpdf": Law(
        lambda rng, shape, mu, sigma: _where(sigma > 0, mu + sigma * rng.standard_cauchy(shape)),
        _symmetric(lambda z: np.arctan2(1.0, -z) / np.pi, lambda p: -1 / np.tan(np.pi * p)),
    ),
    "laplace_lpdf": Law(
        lambda rng, shape, mu, sigma: _where(sigma > 0, mu + sigma * rng.laplace(size=shape)),
        _symmetric(_laplace, _laplace_inverse),
    ),
    "exponential_lpdf": Law(
        lambda rng, shape, rate: _where(rate > 0, rng.standard_exponential(shape) / np.where(rate > 0, rate, 1.0)),
        (
            lambda y, rate: -np.expm1(-rate * np.maximum(y, 0.0)),
            lambda y, rate: np.exp(-rate * np.maximum(y, 0.0)),
            lambda p, rate: -np.log1p(-p) / rate,
            lambda p, rate: -np.log(p) / rate,
        ),
        low=0.0,
    ),
    "gamma_lpdf": Law(
        _gamma,
        (
            lambda y, a, rate: special.gammainc(a, rate * np.maximum(y, 0.0)),
            lambda y, a, rate: special.gammaincc(a, rate * np.maximum(y, 0.0)),
            lambda p, a, rate: special.gammaincinv(a, p) / rate,
            lambda p, a, rate: special.gammainccinv(a, p) / rate,
        ),
    ),
    "beta_lpdf": Law(
        _beta,
        (
            lambda y, a, b: special.betainc(a, b, np.clip(y, 0.0, 1.0)),
            lambda y, a, b: special.betaincc(a, b, np.clip(y, 0.0, 1.0)),
            lambda p, a, b: special.betaincinv(a, b, p),
            lambda p, a, b: special.betainccinv(a, b, p),
        ),
    ),
    "lognormal_lpdf": Law(
        lambda rng, shape, mu, sigma: _where(sigma > 0, np.exp(mu + sigma * rng.standard_normal(shape))),
        (
            lambda y, mu, sigma: special.ndtr((_log(y) - mu) / sigma),
            lambda y, mu, sigma: special.ndtr((mu - _log(y)) / sigma),
            lambda p, mu, sigma: np.exp(mu + sigma * special.ndtri(p)),
            lambda p, mu, sigma: np.exp(mu - sigma * special.ndtri(p)),
        ),
    ),
    "bernoulli_logit_lpmf": Law(
        lambda rng, shape, logit: _where(~np.isnan(logit), rng.random(shape) < special.expit(logit)), whole=True
    ),
    "poisson_log_lpmf": Law(
        lambda rng, shape, log_rate: _where(~np.isnan(log_rate), rng.poisson(_mean(log_rate), shape)), whole=True
    ),
    "binomial_logit_lpmf": Law(_binomial, whole=True),
    "neg_binomial_2_log_lpmf": Law(_negative_binomial, whole=True),
    "weibull_lpdf": Law(
        _weibull,
        (
            lambda y, k, scale: -np.expm1(-((np.maximum(y, 0.0) / scale) ** k)),
            lambda y, k, scale: np.exp(-((np.maximum(y, 0.0) / scale) ** k)),
            lambda p, k, scale: scale * (-np.log1p(-p)) ** (1 / k),
            lambda p, k, scale: scale * (-np.log(p)) ** (1 / k),
        ),
        low=0.0,
    ),
    "von_mises_lpdf": Law(_von_mises, width=2 * np.pi),
}
"""By the name of the density; of log_mix a draw is one of its parts', and log_sum_exp is none of a density."""
