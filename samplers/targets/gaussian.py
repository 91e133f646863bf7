"""The Gaussian in one dimension."""

from functools import cached_property

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Real, Value
from sgmcmc_lab.samplers.requirements import ADDED, LIPSCHITZ
from sgmcmc_lab.samplers.targets.base import Array, Column, Moment, Target


@jit.potential
def potential(theta, out, params):
    mean, sd = params[0], params[1]
    for c in range(theta.shape[0]):
        out[c] = ((theta[c, 0] - mean) / sd) ** 2 / 2


@jit.gradient
def gradient(theta, out, params):
    mean, sd = params[0], params[1]
    for c in range(theta.shape[0]):
        out[c, 0] = (theta[c, 0] - mean) / (sd * sd)


@jit.draw
def draw(rng, out, params):
    for c in range(out.shape[0]):
        out[c, 0] = params[0] + params[1] * rng.standard_normal()


class Gaussian(Target):
    """N(μ, σ²): U(θ) = (θ − μ)²/(2σ²). Every sampler's own distribution on it is a Gaussian with a known variance."""

    key = "gaussian"
    title = "Gaussian"
    tex = r"U(\theta) = \frac{(\theta - \mu)^2}{2\sigma^2}"
    source = "Ma, Chen & Fox 2015, Fig 2 (left, one peak), with μ = 0 and σ = 1"
    provides = ADDED | {LIPSCHITZ}
    potential, gradient, draw = potential, gradient, draw
    tempers = True
    dim = 1

    mean = Real(0.0, bounds=(-10.0, 10.0), tex=r"\mu", label="Mean μ", doc="The centre of the bell.")
    sd = Real(
        1.0,
        bounds=(0.05, 20.0),
        log=True,
        tex=r"\sigma",
        label="Standard deviation σ",
        doc="How wide the bell is. A narrow bell has a steep gradient and needs a small step.",
    )

    def formula(self) -> str:
        return f"(theta - {self.mean!r})^2/(2*{self.sd!r}^2)"

    @property
    def lipschitz(self) -> Array:
        """U″."""
        return np.array([self.sd**-2])

    def at_temperature(self, temperature: float) -> dict[str, Value]:
        return {"sd": float(self.sd * temperature**0.5)}

    def start(self) -> Array:
        return np.array([self.mean])

    def log_density(self, theta: Array) -> Array:
        z = (theta[..., 0] - self.mean) / self.sd
        return -(z**2) / 2 - np.log(self.sd) - np.log(2 * np.pi) / 2

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (Column.gaussian("θ", self.mean, self.sd**2),)

    @property
    def moments(self) -> tuple[Moment, ...]:
        fourth = Moment("E (θ − μ)⁴", lambda v: (v[..., 0] - self.mean) ** 4, 3 * self.sd**4)
        return (*super().moments, fourth)

    tried_at = ({"mean": -10.0, "sd": 0.05}, {"mean": 3.0, "sd": 20.0})
    drawn_at = {"mean": -0.7, "sd": 1.3}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        return [self.mean + self.sd * rng.standard_normal()]
