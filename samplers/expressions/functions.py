"""The functions that may be typed."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]


def trigamma(x: Array) -> Array:
    """ψ′(x). SciPy's own goes up from x to 9 by ones, which from −10¹² takes hours: below 0 the reflection is used."""
    above = special.polygamma(1, np.where(x > 0, x, 1 - x))
    poles = (x <= 0) & (x == np.floor(x))
    below = np.where(poles, np.inf, (np.pi / np.sin(np.pi * (x % 1))) ** 2 - above)
    return np.asarray(np.where(x <= 0, below, above))


def log1m_exp(x: Array) -> Array:
    """log(1 − eˣ) of x ≤ 0."""
    return np.where(x < -np.log(2), np.log1p(-np.exp(x)), np.log(-np.expm1(x)))


def log1p_square(x: Array) -> Array:
    """log(1 + x²), also where x² is too large for a number."""
    return np.where(np.abs(x) < LARGE_SQUARE, np.log1p(x * x), 2 * np.log(np.abs(x)))


LARGE_SQUARE = 1e10
"""From here on 1 + x² is x² to the last digit."""
LARGE_SHAPE = 20.0
"""From here on log Γ is computed by Stirling's series, without its large terms where they cancel."""
HALF_STEP = (-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432, 691 / 180224)
"""log Γ(x + ½) − log Γ(x) − ½ log x as a series in x⁻¹, x⁻³, x⁻⁵ …"""
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
"""log Γ(x) − (x − ½) log x + x − ½ log 2π as such a series (Abramowitz & Stegun 6.1.41)."""


def in_odd_powers(series: tuple[float, ...], x: Array) -> Array:
    """Σ series[k]/x²ᵏ⁺¹."""
    return np.polyval(series[::-1], 1 / (x * x)) / x


def lgamma_half_step(x: Array) -> Array:
    """log Γ(x + ½) − log Γ(x) − ½ log x of x > 0, which goes to 0: by steps of 1 to where the series holds."""
    x, shift = np.where(x > 0, x, np.nan), np.zeros_like(x)
    while (small := x < LARGE_SHAPE).any():
        shift = shift + np.where(small, np.log1p(1 / x) / 2 - np.log1p(0.5 / x), 0.0)
        x = x + small
    return shift + in_odd_powers(HALF_STEP, x)


def lgamma_half_step_slope(x: Array) -> Array:
    """ψ(x + ½) − ψ(x) − 1/(2x) of x > 0."""
    x, shift = np.where(x > 0, x, np.nan), np.zeros_like(x)
    while (small := x < LARGE_SHAPE).any():
        shift = shift + np.where(small, 0.25 / x / (x + 1) / (x + 0.5), 0.0)
        x = x + small
    return shift + in_odd_powers(tuple(-(2 * k + 1) * c for k, c in enumerate(HALF_STEP)), x) / x


def log_i0(x: Array) -> Array:
    """log I₀(x): near 0 by the power series of I₀ − 1."""
    u = np.where(np.abs(x) < 1, x, 0.0) ** 2 / 4
    near = np.log1p(u * np.polyval([1 / math.factorial(k) ** 2 for k in range(10, 0, -1)], u))
    return np.where(np.abs(x) < 1, near, np.abs(x) + np.log(special.i0e(x)))


def log_i0e(x: Array) -> Array:
    """log e^−|x| I₀(x)."""
    return np.where(np.abs(x) < 1, log_i0(x) - np.abs(x), np.log(special.i0e(x)))


def log_i0e_slope(x: Array) -> Array:
    """I₁(x)/I₀(x) − sign x, which goes to −1/(2x)."""
    distance = np.abs(x)
    k = np.arange(1, 31).reshape(-1, *[1] * np.ndim(x))
    zeroth, first = (
        np.cumprod(((2 * k - 1) ** 2 - 4 * order**2) / (8 * k * np.maximum(distance, LARGE_SHAPE)), axis=0)
        for order in (0, 1)
    )
    far = (first - zeroth)[::-1].sum(axis=0) / (1 + zeroth.sum(axis=0))
    near = special.i1e(distance) / special.i0e(distance) - 1
    return np.sign(x) * np.where(distance < LARGE_SHAPE, near, far)


def log_gamma_density(shape: Array, eta: Array) -> Array:
    """(k − 1)η − e^η − log Γ(k): the gamma distribution with rate 1 at e^η, and Poisson's of k − 1 with the mean e^η.

    For large k this is the deviance and Stirling's series (Loader 2000), so that nothing large cancels.
    """
    w = eta - np.log(shape)
    far = -shape * (np.expm1(w) - w)
    u = np.where(np.abs(w) < SMALL_EXCESS, w, 0.0)
    near = -shape * np.polyval(EXCESS[::-1], u) * u * u
    large = (
        np.where(np.abs(w) < SMALL_EXCESS, near, far)
        + np.log(shape / (2 * np.pi)) / 2
        - in_odd_powers(STIRLING, shape)
        - eta
    )
    small = np.where(shape == 1, 0.0, (shape - 1) * eta) - np.exp(eta) - special.gammaln(shape)
    return np.where((shape < LARGE_SHAPE) | np.isneginf(eta), small, large)


def log_ndtr_slope(x: Array) -> Array:
    """φ(x)/Φ(x), the inverse of Mills' ratio at −x: close to −x for x far below 0."""
    return np.sqrt(2 / np.pi) / special.erfcx(-x / np.sqrt(2))


SMALL_EXCESS = 0.5
EXCESS = tuple(1 / math.factorial(n) for n in range(2, 18))
"""(eʷ − 1 − w)/w² as a series, for |w| < SMALL_EXCESS."""


@dataclass(frozen=True)
class Function:
    """A function that may be typed, of one variable or of two."""

    evaluate: Callable[..., Array]
    tex: str
    listed: bool = True
    """Whether a refusal has it among what may be typed; others come out of densities and of other functions."""


FUNCTIONS: dict[str, Function] = {
    "exp": Function(np.exp, r"\exp"),
    "expm1": Function(np.expm1, ""),
    "log": Function(np.log, r"\log"),
    "log1p": Function(np.log1p, ""),
    "log1p_square": Function(log1p_square, "", listed=False),
    "log1m_exp": Function(log1m_exp, "", listed=False),
    "sqrt": Function(np.sqrt, r"\sqrt"),
    "sin": Function(np.sin, r"\sin"),
    "cos": Function(np.cos, r"\cos"),
    "tan": Function(np.tan, r"\tan"),
    "sinh": Function(np.sinh, r"\sinh"),
    "cosh": Function(np.cosh, r"\cosh"),
    "tanh": Function(np.tanh, r"\tanh"),
    "atan": Function(np.arctan, r"\arctan"),
    "abs": Function(np.abs, ""),
    "sign": Function(np.sign, r"\operatorname{sign}"),
    "log1p_exp": Function(lambda x: np.logaddexp(0.0, x), ""),
    "inv_logit": Function(special.expit, r"\operatorname{logit}^{-1}"),
    "lgamma": Function(special.gammaln, r"\log\Gamma"),
    "digamma": Function(special.digamma, r"\psi"),
    "trigamma": Function(trigamma, r"\psi'"),
    "log_i0": Function(log_i0, r"\log I_0"),
    "log_i0e": Function(log_i0e, r"\log e^{-|\cdot|} I_0", listed=False),
    "log_i0e_slope": Function(log_i0e_slope, r"\left(\log e^{-|\cdot|} I_0\right)'", listed=False),
    "lgamma_half_step": Function(lgamma_half_step, r"\log\Gamma_{1/2}", listed=False),
    "lgamma_half_step_slope": Function(lgamma_half_step_slope, r"\log\Gamma_{1/2}'", listed=False),
    "log_ndtr": Function(special.log_ndtr, r"\log\Phi", listed=False),
    "log_ndtr_slope": Function(log_ndtr_slope, r"\tfrac{\varphi}{\Phi}", listed=False),
    "i1_over_i0": Function(lambda x: special.i1e(x) / special.i0e(x), r"\tfrac{I_1}{I_0}"),
}
"""The functions of one variable, by their names."""

OF_TWO: dict[str, Function] = {
    "log_sum_exp": Function(np.logaddexp, ""),
    "log_gamma_density": Function(log_gamma_density, ""),
    "zero_times": Function(lambda w, u: np.where(np.abs(w) > 0, w * u, w), ""),
    "if_nonnegative": Function(lambda c, u: np.where(c < 0, -np.inf, u), ""),
}
"""The functions of two variables, by their names."""
