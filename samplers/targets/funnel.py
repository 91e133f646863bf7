"""Neal's funnel in two dimensions."""

from functools import cached_property
from math import exp

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.targets.base import Array, Column, Moment, Target
from sgmcmc_lab.samplers.targets.quadrature import marginal_cdf


@jit.potential
def potential(theta, out, params):
    scale = params[0]
    for c in range(theta.shape[0]):
        v, x = theta[c, 0], theta[c, 1]
        out[c] = (v / scale) ** 2 / 2 + x * x * np.exp(-v) / 2 + v / 2


@jit.gradient
def gradient(theta, out, params):
    scale = params[0]
    for c in range(theta.shape[0]):
        v, x = theta[c, 0], theta[c, 1]
        precision = np.exp(-v)
        out[c, 0] = v / (scale * scale) - x * x * precision / 2 + 0.5
        out[c, 1] = x * precision


@jit.draw
def draw(rng, out, params):
    for c in range(out.shape[0]):
        v = params[0] * rng.standard_normal()
        out[c, 0] = v
        out[c, 1] = np.exp(v / 2) * rng.standard_normal()


class Funnel(Target):
    """θ₁ ~ N(0, s²) and θ₂ given θ₁ ~ N(0, e^{θ₁}): a wide mouth, and a neck that no fixed step fits.

    Var θ₂ = E e^{θ₁} = e^{s²/2}. Powers of θ₂ are so heavy-tailed that their averages converge only after very
    many draws, exact ones too; the moments given here are those of θ₁ and of log |θ₂| = θ₁/2 + log |Z| with
    E log |Z| = −(γ + log 2)/2 and Var log |Z| = π²/8.
    """

    key = "funnel"
    title = "Funnel"
    tex = r"U(\theta) = \frac{\theta_1^2}{2s^2} + \tfrac12\theta_2^2\,e^{-\theta_1} + \tfrac12\theta_1"
    source = "Neal 2003, section 8, with one coordinate beside the scale"
    potential, gradient, draw = potential, gradient, draw
    dim = 2

    scale = Real(
        3.0,
        bounds=(0.5, 4.0),
        tex="s",
        label="Scale s",
        doc="The standard deviation of the first coordinate, which sets the width of the second. A large one makes the neck narrow and the mouth wide.",
    )

    def formula(self) -> str:
        return f"theta1^2/(2*{self.scale!r}^2) + theta2^2*exp(-theta1)/2 + theta1/2"

    def start(self) -> Array:
        return np.zeros(2)

    def log_density(self, theta: Array) -> Array:
        v, x = theta[..., 0], theta[..., 1]
        return -((v / self.scale) ** 2) / 2 - x**2 * np.exp(-v) / 2 - v / 2 - np.log(2 * np.pi * self.scale)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        s = self.scale

        def density_given(z: Array, x: Array) -> Array:
            return np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * special.ndtr(x * np.exp(-s * z / 2))

        second = marginal_cdf(density_given, -9.0, 9.0, panels=48)
        # The histogram's bins are of one width. Where 1e-6 of θ₂ lies outside, a bin would hold the whole neck;
        # at this reach it is 2e-4 for s = 3 and 4e-4 for s = 4.
        reach, bulk = float(5 * np.exp(1.25 * s)), float(3.5 * np.exp(s / 2))
        return (
            Column("θ₁", -7.5 * s, 7.5 * s, lambda v: special.ndtr(v / s), 0.0, s**2, shown=(-3.6 * s, 3.6 * s)),
            Column("θ₂", -reach, reach, second, 0.0, float(np.exp(s**2 / 2)), shown=(-bulk, bulk)),
        )

    @property
    def moments(self) -> tuple[Moment, ...]:
        s = self.scale
        mean_log = -(np.euler_gamma + np.log(2)) / 2
        return (
            Moment("E θ₁", lambda v: v[..., 0], 0.0),
            Moment("Var θ₁", lambda v: v[..., 0] ** 2, s**2),
            Moment("E log |θ₂|", lambda v: np.log(np.abs(v[..., 1])), mean_log),
            Moment("Var log |θ₂|", lambda v: (np.log(np.abs(v[..., 1])) - mean_log) ** 2, s**2 / 4 + np.pi**2 / 8),
            Moment("Cov(θ₁, log |θ₂|)", lambda v: v[..., 0] * (np.log(np.abs(v[..., 1])) - mean_log), s**2 / 2),
        )

    tried_at = ({"scale": 0.5}, {"scale": 4.0})
    drawn_at = {"scale": 1.6}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        v = self.scale * rng.standard_normal()
        return [v, exp(v / 2) * rng.standard_normal()]
