"""The log-normal on (0, ∞)."""

from functools import cached_property
from math import exp

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Real, Value
from sgmcmc_lab.samplers.requirements import FULL
from sgmcmc_lab.samplers.targets.base import POSITIVE, Array, Column, Moment, Target


@jit.potential
def potential(theta, out, params):
    mu, sigma = params[0], params[1]
    for c in range(theta.shape[0]):
        x = np.log(theta[c, 0])
        out[c] = x + ((x - mu) / sigma) ** 2 / 2


@jit.gradient
def gradient(theta, out, params):
    mu, sigma = params[0], params[1]
    for c in range(theta.shape[0]):
        out[c, 0] = (1 + (np.log(theta[c, 0]) - mu) / (sigma * sigma)) / theta[c, 0]


@jit.draw
def draw(rng, out, params):
    for c in range(out.shape[0]):
        out[c, 0] = np.exp(params[0] + params[1] * rng.standard_normal())


class LogNormal(Target):
    """LogNormal(μ, σ²): U(θ) = log θ + (log θ − μ)²/(2σ²), the stationary distribution of the geometric OU process."""

    key = "lognormal"
    title = "Log-normal"
    tex = r"U(\theta) = \log\theta + \frac{(\log\theta - \mu)^2}{2\sigma^2}"
    source = "Baker et al. 2018, section 2.3, corrected"
    support = POSITIVE
    provides = frozenset({FULL})
    process = "geometric_ou"
    potential, gradient, draw = potential, gradient, draw
    dim = 1

    mu = Real(
        0.0,
        bounds=(-5.0, 5.0),
        tex=r"\mu",
        label="Mean μ of log θ",
        doc="The mean of the logarithm; half of the mass lies below e to this power.",
    )
    sigma = Real(
        0.5,
        bounds=(0.05, 2.0),
        log=True,
        tex=r"\sigma",
        label="Standard deviation σ of log θ",
        doc="The spread of the logarithm. A large one gives a long tail to the right.",
    )

    def at_temperature(self, temperature: float) -> dict[str, Value]:
        # In x = log θ the Jacobian e^x is not divided by T: −x/T + x moves the mean.
        return {
            "mu": float(self.mu + self.sigma**2 * (temperature - 1)),
            "sigma": float(self.sigma * temperature**0.5),
        }

    def formula(self) -> str:
        return f"log(theta) + (log(theta) - {self.mu!r})^2/(2*{self.sigma!r}^2)"

    def start(self) -> Array:
        return np.array([np.exp(self.mu)])

    def log_density(self, theta: Array) -> Array:
        x = np.log(theta[..., 0])
        return -x - ((x - self.mu) / self.sigma) ** 2 / 2 - np.log(np.sqrt(2 * np.pi) * self.sigma)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        mu, sigma = self.mu, self.sigma
        mean = float(np.exp(mu + sigma**2 / 2))
        low, high, bulk_low, bulk_high = (float(np.exp(mu + z * sigma)) for z in (-7.5, 7.5, -3.6, 3.6))

        def cdf(x: Array) -> Array:
            # Columns are positive; 0 is where a value has underflowed.
            with np.errstate(divide="ignore"):
                return special.ndtr((np.log(x) - mu) / sigma)

        return (
            Column(
                "θ", low, high, cdf, mean, mean**2 * float(np.expm1(sigma**2)), log=True, shown=(bulk_low, bulk_high)
            ),
        )

    @property
    def moments(self) -> tuple[Moment, ...]:
        mu, sigma = self.mu, self.sigma
        return (
            Moment("E log θ", lambda v: np.log(v[..., 0]), mu),
            Moment("Var log θ", lambda v: (np.log(v[..., 0]) - mu) ** 2, sigma**2),
            Moment("E θ", lambda v: v[..., 0], self.columns[0].mean),
        )

    tried_at = ({"mu": -5.0, "sigma": 0.05}, {"mu": 5.0, "sigma": 2.0})
    drawn_at = {"mu": 0.4, "sigma": 0.9}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        return [exp(self.mu + self.sigma * rng.standard_normal())]
