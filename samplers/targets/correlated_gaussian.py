"""The correlated Gaussian in two dimensions."""

from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Real, Value
from sgmcmc_lab.samplers.requirements import ADDED, LIPSCHITZ
from sgmcmc_lab.samplers.targets.base import Array, Column, Moment, Target
from sgmcmc_lab.samplers.targets.expectations import sum_products


@jit.potential
def potential(theta, out, params):
    rho, sd1, sd2 = params[0], params[1], params[2]
    for c in range(theta.shape[0]):
        x, y = theta[c, 0] / sd1, theta[c, 1] / sd2
        out[c] = (x * x - 2 * rho * x * y + y * y) / (2 * (1 - rho * rho))


@jit.gradient
def gradient(theta, out, params):
    rho, sd1, sd2 = params[0], params[1], params[2]
    scale = 1 / (1 - rho * rho)
    for c in range(theta.shape[0]):
        x, y = theta[c, 0] / sd1, theta[c, 1] / sd2
        out[c, 0] = scale * (x - rho * y) / sd1
        out[c, 1] = scale * (y - rho * x) / sd2


@jit.draw
def draw(rng, out, params):
    rho, sd1, sd2 = params[0], params[1], params[2]
    rest = np.sqrt(1 - rho * rho)
    for c in range(out.shape[0]):
        x = rng.standard_normal()
        out[c, 0] = sd1 * x
        out[c, 1] = sd2 * (rho * x + rest * rng.standard_normal())


class CorrelatedGaussian(Target):
    """N(0, Σ) with Σ = [[σ₁², ρσ₁σ₂], [ρσ₁σ₂, σ₂²]]: U(θ) = θᵀΣ⁻¹θ/2.

    With ρ near ±1 it is a ridge that small steps cross slowly.
    """

    key = "correlated_gaussian"
    title = "Correlated Gaussian"
    tex = (
        r"U(\theta) = \tfrac12\,\theta^{\mathsf T}\Sigma^{-1}\theta,\quad "
        r"\Sigma = \begin{pmatrix}\sigma_1^2 & \rho\sigma_1\sigma_2\\ \rho\sigma_1\sigma_2 & \sigma_2^2\end{pmatrix}"
    )
    source = "Chen, Fox & Guestrin 2014, Fig 3, has ρ = 0.9"
    provides = ADDED | {LIPSCHITZ}
    potential, gradient, draw = potential, gradient, draw
    tempers = True
    dim = 2

    rho = Real(
        0.9,
        bounds=(-0.99, 0.99),
        tex=r"\rho",
        label="Correlation ρ",
        doc="How strongly the two coordinates move together. Near ±1 the distribution is a narrow ridge: steps must fit across it, and many are needed along it.",
    )
    sd1 = Real(
        1.0,
        bounds=(0.1, 10.0),
        log=True,
        tex=r"\sigma_1",
        label="Standard deviation σ₁",
        doc="The spread of the first coordinate.",
    )
    sd2 = Real(
        1.0,
        bounds=(0.1, 10.0),
        log=True,
        tex=r"\sigma_2",
        label="Standard deviation σ₂",
        doc="The spread of the second coordinate. Where the two spreads differ much, one step size cannot suit both.",
    )

    def formula(self) -> str:
        return (
            f"((theta1/{self.sd1!r})^2 - 2*{self.rho!r}*(theta1/{self.sd1!r})*(theta2/{self.sd2!r}) + (theta2/{self.sd2!r})^2)"
            f"/(2*(1 - {self.rho!r}^2))"
        )

    def at_temperature(self, temperature: float) -> dict[str, Value]:
        return {"sd1": float(self.sd1 * temperature**0.5), "sd2": float(self.sd2 * temperature**0.5)}

    def start(self) -> Array:
        return np.zeros(2)

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Σ, (2, 2)."""
        cross = self.rho * self.sd1 * self.sd2
        return np.array([[self.sd1**2, cross], [cross, self.sd2**2]])

    @property
    def lipschitz(self) -> Array:
        """The lengths of the rows of Σ⁻¹."""
        return np.linalg.norm(np.linalg.inv(self.covariance), axis=1)

    def log_density(self, theta: Array) -> Array:
        sigma = self.covariance
        quadratic = np.einsum("...i,ij,...j", theta, np.linalg.inv(sigma), theta)
        return -quadratic / 2 - np.log(2 * np.pi) - np.log(np.linalg.det(sigma)) / 2

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return Column.gaussian("θ₁", 0.0, self.sd1**2), Column.gaussian("θ₂", 0.0, self.sd2**2)

    @property
    def moments(self) -> tuple[Moment, ...]:
        cross = Moment.compiled("Cov(θ₁, θ₂)", sum_products, (0.0, 0.0), self.rho * self.sd1 * self.sd2)
        return (*super().moments, cross)

    tried_at = ({"rho": 0.99, "sd1": 0.1, "sd2": 10.0}, {"rho": -0.99, "sd1": 2.0, "sd2": 0.5})
    drawn_at = {"rho": -0.6, "sd1": 0.8, "sd2": 2.0}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        one, two = rng.standard_normal(), rng.standard_normal()
        return [self.sd1 * one, self.sd2 * (self.rho * one + sqrt(1 - self.rho**2) * two)]
