"""The modified Bessel function I_ν and the von Mises–Fisher density, on the log scale, in thousands of dimensions.

The density of vMF(μ, κ) on S^{V−1} is c_V(κ) e^{κμ·x} with c_V(κ) = κ^{V/2−1} / ((2π)^{V/2} I_{V/2−1}(κ)).
"""

from math import exp, lgamma, log, log1p, pi, sqrt

from scipy.special import ive

SMALLEST = 1e-280
"""Below it a scaled Bessel function has lost digits, or is 0 in floating point."""
LARGE_ORDER = 30.0
"""From this order on the expansion for large orders has ten digits; below it SciPy's is 0 next to x = 0 only."""


def log_bessel(order: float, x: float) -> float:
    """log I_ν(x), for ν ≥ 0 and x > 0.

    SciPy's scaled function where it is a normal number; else the uniform expansion for large orders (DLMF 10.41.3), or
    next to 0 the first two terms of the series. The relative error is below 1e-9 everywhere.
    """
    scaled = float(ive(order, x))
    if scaled > SMALLEST:
        return log(scaled) + x
    if order < LARGE_ORDER:
        return order * log(x / 2) - lgamma(order + 1) + log1p(x * x / 4 / (order + 1))
    z = x / order
    root = sqrt(1 + z * z)
    p = 1 / root
    u1 = p * (3 - 5 * p**2) / 24
    u2 = p**2 * (81 - 462 * p**2 + 385 * p**4) / 1152
    u3 = p**3 * (30375 - 369603 * p**2 + 765765 * p**4 - 425425 * p**6) / 414720
    terms = log1p(u1 / order + u2 / order**2 + u3 / order**3)
    return order * (root + log(z / (1 + root))) - log(2 * pi * order * root) / 2 + terms


def log_c(dim: int, kappa: float) -> float:
    """log c_V(κ) on the sphere of unit vectors of V = ``dim`` numbers."""
    order = dim / 2 - 1
    return order * log(kappa) - dim / 2 * log(2 * pi) - log_bessel(order, kappa)


def mean_length(dim: int, kappa: float) -> float:
    """A(κ) = I_{V/2}(κ)/I_{V/2−1}(κ), the length of the mean of vMF(μ, κ); −d log c_V/dκ."""
    return exp(log_bessel(dim / 2, kappa) - log_bessel(dim / 2 - 1, kappa))
