"""The recipe paper's correlated quartic."""

from functools import cached_property

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.targets.base import Array, Column, Moment, Target
from sgmcmc_lab.samplers.targets.quadrature import marginal_cdf

# ∫ e^{−θ⁴/10} dθ = 2 · 10^{1/4} · Γ(5/4); θ₂ given θ₁ is N(θ₁²/4 − 1.2, 1/16), whose normaliser is √(2π)/4.
_NORMALISER_1 = 2 * 10**0.25 * special.gamma(1.25)
_LOG_NORMALISER = np.log(_NORMALISER_1 * np.sqrt(2 * np.pi) / 4)
# E θ₁² = √10 Γ(3/4)/Γ(1/4); E θ₁⁴ = 10/4 by parts.
_SECOND = np.sqrt(10) * special.gamma(0.75) / special.gamma(0.25)
_FOURTH = 2.5


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        x, y = theta[c, 0], theta[c, 1]
        a = 4 * (y + 1.2) - x * x
        out[c] = x**4 / 10 + a * a / 2


@jit.gradient
def gradient(theta, out, params):
    for c in range(theta.shape[0]):
        x, y = theta[c, 0], theta[c, 1]
        a = 4 * (y + 1.2) - x * x
        out[c, 0] = 0.4 * x * x * x - 2 * x * a
        out[c, 1] = 4 * a


@jit.draw
def draw(rng, out, params):
    # θ₁⁴/10 ~ Gamma(1/4, 1) with a fair sign.
    for c in range(out.shape[0]):
        x = (10 * rng.standard_gamma(0.25)) ** 0.25
        if rng.random() < 0.5:
            x = -x
        out[c, 0] = x
        out[c, 1] = x * x / 4 - 1.2 + rng.standard_normal() / 4


class Quartic(Target):
    """U(θ) = θ₁⁴/10 + (4(θ₂ + 1.2) − θ₁²)²/2: a curved valley with two arms (recipe paper, Fig 2 right)."""

    key = "quartic"
    title = "Correlated quartic"
    tex = r"U(\theta) = \tfrac{1}{10}\theta_1^4 + \tfrac12\bigl(4(\theta_2 + 1.2) - \theta_1^2\bigr)^2"
    source = "Ma, Chen & Fox 2015, Fig 2 (right)"
    potential, gradient, draw = potential, gradient, draw
    tempers = True
    dim = 2

    def formula(self) -> str:
        return "theta1^4/10 + (4*(theta2 + 1.2) - theta1^2)^2/2"

    def start(self) -> Array:
        return np.array([0.0, -1.2])

    def log_density(self, theta: Array) -> Array:
        x, y = theta[..., 0], theta[..., 1]
        return -(x**4) / 10 - (4 * (y + 1.2) - x**2) ** 2 / 2 - _LOG_NORMALISER

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        def first(x: Array) -> Array:
            return 0.5 + 0.5 * np.sign(x) * special.gammainc(0.25, x**4 / 10)

        def density_given(x: Array, y: Array) -> Array:
            return np.exp(-(x**4) / 10) / _NORMALISER_1 * special.ndtr(4 * (y - x**2 / 4 + 1.2))

        second = marginal_cdf(density_given, -5.0, 5.0, panels=32)
        mean = _SECOND / 4 - 1.2
        variance = (_FOURTH - _SECOND**2) / 16 + 1 / 16
        return (
            Column("θ₁", -5, 5, first, 0.0, _SECOND, shown=(-3.4, 3.4)),
            Column("θ₂", -3.5, 4.5, second, mean, variance, shown=(-2.4, 2.0)),
        )

    @property
    def moments(self) -> tuple[Moment, ...]:
        m2, m_y = _SECOND, _SECOND / 4 - 1.2
        return (
            Moment("E θ₁²", lambda v: v[..., 0] ** 2, m2),
            Moment("E θ₁⁴", lambda v: v[..., 0] ** 4, _FOURTH),
            Moment("E θ₂", lambda v: v[..., 1], m_y),
            Moment("Var θ₂", lambda v: (v[..., 1] - m_y) ** 2, (_FOURTH - m2**2) / 16 + 1 / 16),
            Moment("Cov(θ₁², θ₂)", lambda v: (v[..., 0] ** 2 - m2) * (v[..., 1] - m_y), (_FOURTH - m2**2) / 4),
        )

    tried_at = ()
    drawn_at = {}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        size = (10 * rng.standard_gamma(0.25)) ** 0.25
        x = -size if rng.random() < 0.5 else size
        return [x, x**2 / 4 - 1.2 + rng.standard_normal() / 4]
