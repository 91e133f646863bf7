"""The special functions of the densities, compiled: to some 14 digits, as SciPy has them."""

from math import erfc, exp, expm1, lgamma, log, log1p, pi, sin, sqrt, tan

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.expressions.functions import (
    EXCESS,
    HALF_STEP,
    LARGE_SHAPE,
    LARGE_SQUARE,
    SMALL_EXCESS,
    STIRLING,
)

_LOG_2 = log(2.0)
_HALF_STEP, _STIRLING, _EXCESS = map(np.array, (HALF_STEP, STIRLING, EXCESS))
_LARGE = 10.0
"""From here on the asymptotic series of ψ and ψ′ in 1/x² are good to a double's last digits with seven terms."""
_ROOT_2, _LOG_ROOT_2_PI = sqrt(2.0), log(2 * pi) / 2
_FAR = 10.0
_FRACTIONS = 20
"""Below −10, Φ comes from a continued fraction, which has the precision of a double with 20 levels."""
_SERIES = 20.0
"""Up to here I₀ and I₁ are summed by their power series, whose terms are all positive; beyond by that in 1/x."""


@jit.helper
def log1p_exp(x):
    """log(1 + eˣ), which neither overflows nor loses a small eˣ."""
    return log1p(exp(x)) if x <= 0 else x + log1p(exp(-x))


@jit.helper
def log1m_exp(x):
    """log(1 − eˣ) of x ≤ 0: by log1p where eˣ is small, by expm1 where 1 − eˣ is."""
    return log1p(-exp(x)) if x < -_LOG_2 else log(-expm1(x))


@jit.helper
def log1p_square(x):
    """log(1 + x²), also where x² is too large for a number."""
    return log1p(x * x) if abs(x) < LARGE_SQUARE else 2 * log(abs(x))


@jit.helper
def log_sum_exp(a, b):
    """log(eᵃ + eᵇ): of −∞ and another number it is that number."""
    if a == b:
        return a + _LOG_2
    return a + log1p(exp(b - a)) if a > b else b + log1p(exp(a - b))


@jit.helper
def zero_times(w, u):
    """w·u, and 0 where w is 0, whatever u is."""
    return w * u if abs(w) > 0 else w


@jit.helper
def if_nonnegative(c, u):
    """The log density u where c ≥ 0, and −∞ where c < 0."""
    return -np.inf if c < 0 else u


@jit.helper
def inv_logit(x):
    """1/(1 + e⁻ˣ)."""
    e = exp(-abs(x))
    return 1 / (1 + e) if x >= 0 else e / (1 + e) if x < 0 else x


@jit.helper
def log_gamma(x):
    """log|Γ(x)|; ∞ at 0 and the negative whole numbers, where it has its poles."""
    return np.inf if x <= 0 and x == np.floor(x) else lgamma(x)


@jit.helper
def digamma(x):
    """ψ(x) = Γ′(x)/Γ(x) (Abramowitz & Stegun 6.3.5, 6.3.7, 6.3.18); nan at its poles."""
    if x <= 0:
        return np.nan if x == np.floor(x) else digamma_above(1 - x) - pi / tan(pi * x)
    return digamma_above(x)


@jit.helper
def digamma_above(x):
    """ψ(x) of x > 0: by ψ(x) = ψ(x + 1) − 1/x to where the series holds."""
    shift = 0.0
    while x < _LARGE:
        shift -= 1 / x
        x += 1
    u = 1 / (x * x)
    series = u * (1 / 12 - u * (1 / 120 - u * (1 / 252 - u * (1 / 240 - u * (1 / 132 - u * (691 / 32760 - u / 12))))))
    return shift + log(x) - 0.5 / x - series


@jit.helper
def trigamma(x):
    """ψ′(x) (Abramowitz & Stegun 6.4.6, 6.4.7, 6.4.12); ∞ at its poles."""
    if x <= 0:
        return np.inf if x == np.floor(x) else (pi / sin(pi * x)) ** 2 - trigamma_above(1 - x)
    return trigamma_above(x)


@jit.helper
def trigamma_above(x):
    """ψ′(x) of x > 0."""
    shift = 0.0
    while x < _LARGE:
        shift += 1 / (x * x)
        x += 1
    u = 1 / (x * x)
    series = u * (1 / 6 - u * (1 / 30 - u * (1 / 42 - u * (1 / 30 - u * (5 / 66 - u * (691 / 2730 - u * 7 / 6))))))
    return shift + 1 / x + u / 2 + series / x


@jit.helper
def polynomial(coefficients, u):
    """Σ coefficients[k]·uᵏ."""
    total = 0.0
    for k in range(coefficients.size - 1, -1, -1):
        total = total * u + coefficients[k]
    return total


@jit.helper
def lgamma_half_step(x):
    """log Γ(x + ½) − log Γ(x) − ½ log x of x > 0, which goes to 0: by steps of 1 to where the series holds."""
    if not x > 0:
        return np.nan
    shift = 0.0
    while x < LARGE_SHAPE:
        shift += log1p(1 / x) / 2 - log1p(0.5 / x)
        x += 1
    return shift + polynomial(_HALF_STEP, 1 / (x * x)) / x


@jit.helper
def lgamma_half_step_slope(x):
    """ψ(x + ½) − ψ(x) − 1/(2x) of x > 0."""
    if not x > 0:
        return np.nan
    shift = 0.0
    while x < LARGE_SHAPE:
        shift += 0.25 / x / (x + 1) / (x + 0.5)
        x += 1
    u, total = 1 / (x * x), 0.0
    for k in range(_HALF_STEP.size - 1, -1, -1):
        total = total * u - (2 * k + 1) * _HALF_STEP[k]
    return shift + total / x / x


@jit.helper
def log_gamma_density(shape, eta):
    """(k − 1)η − e^η − log Γ(k): the gamma distribution with rate 1 at e^η, and Poisson's of k − 1 with the mean e^η.

    For large k this is the deviance and Stirling's series (Loader 2000), so that nothing large cancels.
    """
    if shape < LARGE_SHAPE or eta == -np.inf:
        return zero_times(shape - 1, eta) - exp(eta) - log_gamma(shape)
    w = eta - log(shape)
    excess = polynomial(_EXCESS, w) * w * w if abs(w) < SMALL_EXCESS else expm1(w) - w
    return -shape * excess + log(shape / (2 * pi)) / 2 - polynomial(_STIRLING, 1 / (shape * shape)) / shape - eta


@jit.helper
def mills_ratio(x):
    """Φ(−x)/φ(x) of x ≥ 10, by Laplace's continued fraction 1/(x + 1/(x + 2/(x + 3/(x + …))))."""
    below = x
    for k in range(_FRACTIONS, 0, -1):
        below = x + k / below
    return 1 / below


@jit.helper
def log_ndtr(x):
    """log Φ(x), where Φ is the standard normal distribution function."""
    if x < -_FAR:
        return log(mills_ratio(-x)) - x * x / 2 - _LOG_ROOT_2_PI
    return log(erfc(-x / _ROOT_2) / 2) if x < 0 else log1p(-erfc(x / _ROOT_2) / 2)


@jit.helper
def log_ndtr_slope(x):
    """φ(x)/Φ(x), which is close to −x for x far below 0."""
    if x < -_FAR:
        return 1 / mills_ratio(-x)
    return exp(-x * x / 2 - _LOG_ROOT_2_PI) / (erfc(-x / _ROOT_2) / 2)


@jit.helper
def i0_less_one(x):
    """I₀(x) − 1 by its power series, whose terms are all positive."""
    term = total = x * x / 4
    k = 2.0
    while term > 1e-17 * total:
        term *= x * x / 4 / (k * k)
        total += term
        k += 1
    return total


@jit.helper
def log_i0e(x):
    """log e^−|x| I₀(x)."""
    x = abs(x)
    return log1p(i0_less_one(x)) - x if x < _SERIES else log(scaled_bessel(0, x))


@jit.helper
def log_i0e_slope(x):
    """I₁(x)/I₀(x) − sign x, which goes to −1/(2x)."""
    distance = abs(x)
    if not distance >= _SERIES:
        above = i1_over_i0(distance) - 1
        return above if x > 0 else -above if x < 0 else x
    # The difference of the two series term by term, for both go to 1.
    zeroth = first = total = 1.0
    k, difference, change = 1.0, 0.0, 1.0
    while abs(change) > 1e-17 * abs(difference) and k < 2 * distance:
        zeroth *= (2 * k - 1) ** 2 / (8 * k * distance)
        first *= ((2 * k - 1) ** 2 - 4) / (8 * k * distance)
        change = first - zeroth
        difference += change
        total += zeroth
        k += 1
    return difference / total if x > 0 else -difference / total


@jit.helper
def scaled_bessel(order, x):
    """e⁻ˣ I_order(x) of x ≥ 0, order 0 or 1 (Abramowitz & Stegun 9.6.10, 9.7.1)."""
    if x < _SERIES:
        term = total = exp(-x) * (x / 2 if order == 1 else 1.0)
        k = 1.0
        while term > 1e-17 * total:
            term *= x * x / 4 / (k * (k + order))
            total += term
            k += 1
        return total
    term = total = 1.0
    k = 1.0
    # The series diverges in the end: its terms fall until k is about 2x, far below a double's last digit.
    while abs(term) > 1e-17 and k < 2 * x:
        term *= -(4 * order * order - (2 * k - 1) ** 2) / (8 * k * x)
        total += term
        k += 1
    return total / sqrt(2 * pi * x)


@jit.helper
def log_i0(x):
    """log I₀(x)."""
    x = abs(x)
    return log1p(i0_less_one(x)) if x < _SERIES else x + log(scaled_bessel(0, x))


@jit.helper
def i1_over_i0(x):
    """I₁(x)/I₀(x), the mean of cos φ under the von Mises distribution with concentration x."""
    ratio = scaled_bessel(1, abs(x)) / scaled_bessel(0, abs(x))
    return ratio if x >= 0 else -ratio
