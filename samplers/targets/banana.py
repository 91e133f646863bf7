"""The banana: a Gaussian bent along a parabola."""

from functools import cached_property

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.targets.base import Array, Column, Moment, Target
from sgmcmc_lab.samplers.targets.quadrature import in_blocks, rule


@jit.potential
def potential(theta, out, params):
    scale, bend = params[0], params[1]
    for c in range(theta.shape[0]):
        x = theta[c, 0]
        a = theta[c, 1] - bend * (x * x - scale * scale)
        out[c] = (x / scale) ** 2 / 2 + a * a / 2


@jit.gradient
def gradient(theta, out, params):
    scale, bend = params[0], params[1]
    for c in range(theta.shape[0]):
        x = theta[c, 0]
        a = theta[c, 1] - bend * (x * x - scale * scale)
        out[c, 0] = x / (scale * scale) - 2 * bend * x * a
        out[c, 1] = a


@jit.draw
def draw(rng, out, params):
    scale, bend = params[0], params[1]
    for c in range(out.shape[0]):
        x = scale * rng.standard_normal()
        out[c, 0] = x
        out[c, 1] = bend * (x * x - scale * scale) + rng.standard_normal()


class Banana(Target):
    """θ₁ ~ N(0, s²) and θ₂ given θ₁ ~ N(b(θ₁² − s²), 1): U(θ) = θ₁²/(2s²) + (θ₂ − b(θ₁² − s²))²/2.

    θ₂ = k(Z² − 1) + ε with k = bs² and standard normal Z, ε, so E θ₂ = 0 and Var θ₂ = 1 + 2k².
    """

    key = "banana"
    title = "Banana"
    tex = r"U(\theta) = \frac{\theta_1^2}{2s^2} + \tfrac12\bigl(\theta_2 - b\,(\theta_1^2 - s^2)\bigr)^2"
    source = "Haario, Saksman & Tamminen 1999"
    potential, gradient, draw = potential, gradient, draw
    tempers = True
    dim = 2

    scale = Real(
        1.5,
        bounds=(0.5, 3.0),
        tex="s",
        label="Width s",
        doc="How far the arms reach: the standard deviation of the first coordinate.",
    )
    bend = Real(
        0.5,
        bounds=(0.05, 1.0),
        log=True,
        tex="b",
        label="Bend b",
        doc="How strongly the arms curve upwards. The more they curve, the less one direction serves everywhere.",
    )

    def formula(self) -> str:
        return f"theta1^2/(2*{self.scale!r}^2) + (theta2 - {self.bend!r}*(theta1^2 - {self.scale!r}^2))^2/2"

    def start(self) -> Array:
        return np.array([0.0, -self._k])

    @property
    def _k(self) -> float:
        return float(self.bend * self.scale**2)

    def log_density(self, theta: Array) -> Array:
        x, y = theta[..., 0], theta[..., 1]
        a = y - self.bend * (x**2 - self.scale**2)
        return -(x**2) / (2 * self.scale**2) - a**2 / 2 - np.log(2 * np.pi * self.scale)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        s, k = self.scale, self._k

        def second(y: Array) -> Array:
            # P(kZ² ≤ y + k − ε) = ∫ P(|Z| ≤ z) φ(ε) dε with ε = y + k − kz², whose mass lies within 9 of 0.
            low, high = (np.sqrt(np.maximum(y + k + shift, 0.0) / k) for shift in (-9.0, 9.0))
            z, weights = rule(low, high, 16)
            noise = y[..., None] + k - k * z**2
            density = np.exp(-(noise**2) / 2) / np.sqrt(2 * np.pi)
            return (special.erf(z * np.sqrt(0.5)) * density * 2 * k * z * weights).sum(axis=-1)

        # |Z| > 4.9 has probability 1e-6, so that θ₂ stays below 23k + 5; the range is half as wide again.
        return (
            Column.gaussian("θ₁", 0.0, s**2),
            Column(
                "θ₂",
                -k - 7.5,
                35 * k + 7.5,
                in_blocks(second, -k - 9, 81 * k + 9),
                0.0,
                1 + 2 * k**2,
                shown=(-k - 3.2, 10 * k + 2.5),
            ),
        )

    @property
    def moments(self) -> tuple[Moment, ...]:
        s, k = self.scale, self._k
        cross = Moment("Cov(θ₁², θ₂)", lambda v: (v[..., 0] ** 2 - s**2) * v[..., 1], 2 * k * s**2)
        return (*super().moments, cross)

    tried_at = ({"scale": 0.5, "bend": 0.05}, {"scale": 3.0, "bend": 1.0})
    drawn_at = {"scale": 1.2, "bend": 0.3}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        x = self.scale * rng.standard_normal()
        return [x, self.bend * (x**2 - self.scale**2) + rng.standard_normal()]
