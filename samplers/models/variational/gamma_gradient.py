"""The slope of a gamma draw in its shape, by implicit differentiation (Knowles 2015, eqs 6–10).

A draw x = F_a⁻¹(u) of Gamma(a, rate 1) moves with a, at a fixed quantile u, as dx/da = −∂_aF_a(x) / f_a(x), whichever
way it was drawn. Everything is in log x, because a draw of a small shape is smaller than any double. The paper's own
rule for a small shape (its section 2.3) misses its claim by up to 17 %, and is not used; its rule for a large shape
lacks a ½, which is put right here: x ≈ a + √a z has the slope 1 + z/(2√a).
"""

from math import exp, log, log1p, sqrt

from numba import types

from sgmcmc_lab.samplers.compile import jit

LARGE = 1000.0
"""From this shape on the Cornish–Fisher expansion is used: at |z| ≤ 7 its slope is right to 5e-7."""
TOLERANCE = 1e-12
MOST_TERMS = 10_000
"""A series of a shape below LARGE takes some hundred terms; this ends it where a number is not finite."""


@jit.helper
def digamma(x):
    """ψ(x) for x > 0: the recurrence up to 10, then the asymptotic series, right to 1e-14."""
    shift = 0.0
    while x < 10:
        shift -= 1 / x
        x += 1
    y = 1 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760)))))
    return shift + log(x) - 0.5 / x - series


@jit.helper
def log_draw(rng, a):
    """The logarithm of a draw of Gamma(a, rate 1); it is finite even where the draw itself is below 1e-308."""
    if a < 1:
        return log(rng.standard_gamma(a + 1)) + log1p(-rng.random()) / a
    return log(rng.standard_gamma(a))


@jit.helper
def _series_slope(log_x, a):
    """From F_a(x) = x^a e^{−x} Σ_n x^n/Γ(a+n+1), differentiated term by term. Nothing cancels while x < a + 1."""
    x = exp(log_x)
    term, psi = 1 / a, digamma(a + 1)
    total = term * (psi - log_x)
    for n in range(1, MOST_TERMS):
        psi += 1 / (a + n)
        term *= x / (a + n)
        more = term * (psi - log_x)
        total += more
        if more <= TOLERANCE * total and n > x - a:
            break
    return total


@jit.helper
def _fraction_slope(log_x, a):
    """From 1 − F_a(x) = x^a e^{−x} h/Γ(a), h = 1/(x+1−a− 1(1−a)/(x+3−a− …)); Lentz's rule carries h and ∂h/∂a."""
    x = exp(log_x)
    b = x + 1 - a
    c, dc = 1e300, 0.0
    d, dd = 1 / b, 1 / b**2
    h, dh = d, dd
    for n in range(1, MOST_TERMS):
        p, dp = -n * (n - a), n
        b += 2
        bottom, dbottom = p * d + b, dp * d + p * dd - 1
        d, dd = 1 / bottom, -dbottom / bottom**2
        # c = b + p/c of the step before; ∂b/∂a = −1.
        c, dc = b + p / c, -1 + dp / c - p * dc / c**2
        factor, dfactor = c * d, dc * d + c * dd
        h, dh = h * factor, dh * factor + h * dfactor
        if abs(factor - 1) < TOLERANCE and abs(dfactor) * h <= TOLERANCE * abs(dh):
            break
    return (log_x - digamma(a)) * h + dh


@jit.helper
def _large_slope(log_x, a):
    """From x = a + √a z + (z²−1)/3 + (z³−7z)/(36√a) − (3z⁴+7z²−16)/(810a) at a fixed normal quantile z."""
    x, s = exp(log_x), sqrt(a)
    z = 3 * s * ((x / a) ** (1 / 3) - 1 + 1 / (9 * a))
    for _ in range(3):
        value = a + s * z + (z * z - 1) / 3 + z * (z * z - 7) / (36 * s) - (z * z * (3 * z * z + 7) - 16) / (810 * a)
        # Newton's step with the slope of the largest terms alone: it leaves less than a hundredth of the error.
        z -= (value - x) / (s + 2 * z / 3)
    slope = 1 + z / (2 * s) - z * (z * z - 7) / (72 * a * s) + (z * z * (3 * z * z + 7) - 16) / (810 * a * a)
    return slope / x


@jit.helper
def log_slope(log_x, a):
    """∂log x/∂a of a draw x of Gamma(a, rate 1) at its fixed quantile; ∂x/∂a is x times this."""
    if a >= LARGE:
        return _large_slope(log_x, a)
    if log_x <= log(a + 1):
        return _series_slope(log_x, a)
    return _fraction_slope(log_x, a)


@jit.loop(types.void(jit.vector, jit.vector, jit.vector))
def log_slopes(log_x, a, out):
    """The vectorised form: ``out[i]`` = ∂log x_i/∂a_i for draws x_i of Gamma(a_i, rate 1) given by their logarithms."""
    for i in range(log_x.size):
        out[i] = log_slope(log_x[i], a[i])
