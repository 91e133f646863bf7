"""The logistic law on the line."""

from functools import cached_property
from math import log

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.targets.base import Array, Column, Target


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        z = abs(theta[c, 0] - params[0]) / params[1]
        out[c] = z + 2 * np.log1p(np.exp(-z))


@jit.gradient
def gradient(theta, out, params):
    for c in range(theta.shape[0]):
        out[c, 0] = np.tanh((theta[c, 0] - params[0]) / params[1] / 2) / params[1]


@jit.draw
def draw(rng, out, params):
    for c in range(out.shape[0]):
        u = rng.random()
        out[c, 0] = params[0] + params[1] * np.log(u / (1 - u))


class Logistic(Target):
    """The law with the CDF 1/(1 + e^{−z}), z = (θ − μ)/s: U(θ) = z + 2 log(1 + e^{−z})."""

    key = "logistic"
    title = "Logistic"
    tex = r"U(\theta) = z + 2\log(1 + e^{-z}),\quad z = (\theta - \mu)/s"
    source = "Balakrishnan 1991"
    potential, gradient, draw = potential, gradient, draw
    dim = 1

    mean = Real(0.0, bounds=(-10.0, 10.0), tex=r"\mu", label="Mean μ", doc="The centre of the distribution.")
    scale = Real(1.0, bounds=(0.1, 10.0), log=True, tex="s", label="Scale s", doc="How wide the law is.")

    def formula(self) -> str:
        return f"log(cosh((theta - ({self.mean!r}))/{2 * self.scale!r}))*2"

    def start(self) -> Array:
        return np.array([self.mean])

    def log_density(self, theta: Array) -> Array:
        z = abs(theta[..., 0] - self.mean) / self.scale
        return -z - 2 * np.log1p(np.exp(-z)) - np.log(self.scale)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        mean, s = self.mean, self.scale
        return (
            Column(
                "θ",
                mean - 20 * s,
                mean + 20 * s,
                lambda x: special.expit((x - mean) / s),
                mean,
                (np.pi * s) ** 2 / 3,
                shown=(mean - 8 * s, mean + 8 * s),
            ),
        )

    tried_at = ({"mean": -10.0, "scale": 0.1}, {"mean": 3.0, "scale": 10.0})
    drawn_at = {"mean": -0.7, "scale": 1.3}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        u = rng.random()
        return [self.mean + self.scale * log(u / (1 - u))]
