"""The recipe paper's double well."""

from functools import cached_property
from math import exp

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.targets.base import Array, Column, Moment, Target
from sgmcmc_lab.samplers.targets.quadrature import density_cdf

# ∫ e^{−θ⁴ + bθ²} dθ = (π/2) √(b/2) e^u S(u) with u = b²/8 and S = I_{−1/4} + I_{1/4}; here b = 2, u = 1/2.
_BESSEL = special.iv(-0.25, 0.5) + special.iv(0.25, 0.5)
_NORMALISER = np.pi / 2 * np.exp(0.5) * _BESSEL
# E θ² = d/db log ∫ e^{−θ⁴ + bθ²} dθ = 1/(2b) + (b/4)(1 + S′(u)/S(u)).
_SECOND = 0.25 + 0.5 * (1 + (special.ivp(-0.25, 0.5) + special.ivp(0.25, 0.5)) / _BESSEL)
# By parts, E θ H′(θ) = E (4θ⁴ − 4θ²) = 1.
_FOURTH = _SECOND + 0.25


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        square = theta[c, 0] * theta[c, 0]
        out[c] = square * (square - 2)


@jit.gradient
def gradient(theta, out, params):
    for c in range(theta.shape[0]):
        x = theta[c, 0]
        out[c, 0] = 4 * x * (x * x - 1)


@jit.draw
def draw(rng, out, params):
    # e^{−U} is e^{−(θ⁴ − 5θ²/2)} times e^{−θ²/2}; the first factor is largest, e^{25/16}, at θ² = 5/4, and its
    # ratio to that is e^{−(θ² − 5/4)²}. Of the proposals from N(0, 1) a share Z/(√(2π) e^{25/16}) = 0.449 is accepted.
    for c in range(out.shape[0]):
        while True:
            x = rng.standard_normal()
            if rng.random() < np.exp(-((x * x - 1.25) ** 2)):
                break
        out[c, 0] = x


class DoubleWell(Target):
    """U(θ) = θ⁴ − 2θ²: wells at ±1 with a barrier of height 1 between them (recipe paper, Fig 2 left)."""

    key = "double_well"
    title = "Double well"
    tex = r"U(\theta) = \theta^4 - 2\theta^2"
    source = "Ma, Chen & Fox 2015, Fig 2 (left)"
    potential, gradient, draw = potential, gradient, draw
    tempers = True
    dim = 1

    def formula(self) -> str:
        return "theta^4 - 2*theta^2"

    def start(self) -> Array:
        return np.array([1.0])

    def log_density(self, theta: Array) -> Array:
        square = theta[..., 0] ** 2
        return square * (2 - square) - np.log(_NORMALISER)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        cdf = density_cdf(lambda x: np.exp(x**2 * (2 - x**2)) / _NORMALISER, -3.5, 3.5)
        return (Column("θ", -3.5, 3.5, cdf, 0.0, _SECOND, shown=(-2.1, 2.1)),)

    @property
    def moments(self) -> tuple[Moment, ...]:
        return (
            Moment("E θ", lambda v: v[..., 0], 0.0),
            Moment("E θ²", lambda v: v[..., 0] ** 2, _SECOND),
            Moment("E θ⁴", lambda v: v[..., 0] ** 4, _FOURTH),
        )

    tried_at = ()
    drawn_at = {}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        while True:
            x = rng.standard_normal()
            if rng.random() < exp(-((x**2 - 5 / 4) ** 2)):
                return [x]
