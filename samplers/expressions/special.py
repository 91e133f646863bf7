"""The special functions of the densities, compiled: to some 14 digits, as SciPy has them."""

from math import exp, lgamma, log, log1p, pi, sin, sqrt, tan

import numpy as np

from samplers import jit

_LARGE = 10.0
"""From here on the asymptotic series of ψ and ψ′ in 1/x² are good to a double's last digits with seven terms."""
_SERIES = 20.0
"""Up to here I₀ and I₁ are summed by their power series, whose terms are all positive; beyond by that in 1/x."""


@jit.helper
def log1p_exp(x):
    """log(1 + eˣ), which neither overflows nor loses a small eˣ."""
    return log1p(exp(x)) if x <= 0 else x + log1p(exp(-x))


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
    return abs(x) + log(scaled_bessel(0, abs(x)))


@jit.helper
def i1_over_i0(x):
    """I₁(x)/I₀(x), the mean of cos φ under the von Mises distribution with concentration x."""
    ratio = scaled_bessel(1, abs(x)) / scaled_bessel(0, abs(x))
    return ratio if x >= 0 else -ratio
