"""Gamma(a, 1) on (0, ∞)."""

from functools import cached_property

import numpy as np
from scipy import special, stats

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import FULL
from sgmcmc_lab.samplers.targets.at_temperature import AtTemperature, tempered_shape
from sgmcmc_lab.samplers.targets.base import POSITIVE, Array, Column, Target
from sgmcmc_lab.samplers.targets.ranges import TINY, log_range


@jit.potential
def potential(theta, out, params):
    a = params[0]
    for c in range(theta.shape[0]):
        out[c] = theta[c, 0] - (a - 1) * np.log(theta[c, 0])


@jit.gradient
def gradient(theta, out, params):
    a = params[0]
    for c in range(theta.shape[0]):
        out[c, 0] = 1 - (a - 1) / theta[c, 0]


@jit.draw
def draw(rng, out, params):
    for c in range(out.shape[0]):
        out[c, 0] = rng.standard_gamma(params[0])


class Gamma(Target):
    """Gamma(a, 1): U(θ) = θ − (a − 1) log θ, the stationary distribution of the Cox–Ingersoll–Ross process."""

    key = "gamma"
    title = "Gamma"
    tex = r"U(\theta) = \theta - (a-1)\log\theta"
    source = "Baker et al. 2018, eq (2.1)"
    support = POSITIVE
    provides = frozenset({FULL})
    process = "cir"
    potential, gradient, draw = potential, gradient, draw
    dim = 1

    shape = Real(
        0.5,
        bounds=(0.01, 1000.0),
        log=True,
        tex="a",
        label="Shape a",
        doc="The shape of the gamma distribution, which is also its mean and its variance. Below 1 the density is infinite at 0.",
    )

    def packed(self) -> Array:
        # The CIR kernels read prior shapes and counts; here there are no counts.
        return np.array([self.shape, 0.0])

    def family_at(self, temperature: float) -> "TemperedGamma":
        tempered_shape(self, self.shape, "a", temperature, type(self).param.shape.bounds[1])
        return TemperedGamma.made(self, temperature)

    def formula(self) -> str:
        return f"theta - ({self.shape!r} - 1)*log(theta)"

    def start(self) -> Array:
        return np.array([self.shape])

    def log_density(self, theta: Array) -> Array:
        return stats.gamma.logpdf(theta[..., 0], self.shape)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (self._column(self.shape, 1.0),)

    @staticmethod
    def _column(a: float, scale: float) -> Column:
        # The lowest quantiles of a small shape are below the smallest double.
        lowest, low, high, highest = scale * special.gammaincinv(a, [1e-6, 1e-3, 1 - 1e-4, 1 - 1e-6])
        edge_low, edge_high = log_range(float(lowest), a * scale, float(highest))
        return Column(
            "θ",
            edge_low,
            edge_high,
            lambda x: special.gammainc(a, x / scale),
            a * scale,
            a * scale**2,
            log=True,
            shown=(max(float(low), TINY), float(high)),
        )

    tried_at = ({"shape": 0.01}, {"shape": 1000.0})
    drawn_at = {"shape": 0.3}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        return [rng.standard_gamma(self.shape)]


@jit.potential
def tempered_potential(theta, out, params):
    a, temperature = params[0], params[2]
    for c in range(theta.shape[0]):
        out[c] = theta[c, 0] / temperature - (a - 1) * np.log(theta[c, 0])


@jit.gradient
def tempered_gradient(theta, out, params):
    a, temperature = params[0], params[2]
    for c in range(theta.shape[0]):
        out[c, 0] = 1 / temperature - (a - 1) / theta[c, 0]


@jit.draw
def tempered_draw(rng, out, params):
    for c in range(out.shape[0]):
        out[c, 0] = params[2] * rng.standard_gamma(params[0])


class TemperedGamma(AtTemperature, Gamma):
    """e^{−U/T} of Gamma(a, 1): the gamma distribution with the shape a′ = 1 + (a − 1)/T and the scale T, where a′ > 0.

    That is T > 1 − a: every T where a ≥ 1. The recipe with U/T, D = θ and Q = 0 is dθ = (a′ − θ/T) dt + √(2θ) dW, so
    that φ = θ/T has dφ = (a′ − φ) ds + √(2φ) dW in time s = t/T: the CIR process with the stationary distribution
    Gamma(a′, 1), from which the CIR sampler makes an exact transition of θ.
    """

    potential, gradient, draw = tempered_potential, tempered_gradient, tempered_draw

    @property
    def a(self) -> float:
        """The shape of the tempered distribution."""
        return 1 + (self.shape - 1) / self.temperature

    @property
    def process_scale(self) -> float:  # type: ignore[override]
        return self.temperature

    def packed(self) -> Array:
        # The CIR kernel reads the scale of θ behind shapes and counts.
        return np.array([self.a, 0.0, self.temperature])

    def formula(self) -> str:
        return f"theta/{self.temperature!r} - ({self.a!r} - 1)*log(theta)"

    def start(self) -> Array:
        return np.array([self.a * self.temperature])

    def log_density(self, theta: Array) -> Array:
        return stats.gamma.logpdf(theta[..., 0], self.a, scale=self.temperature)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (self._column(self.a, self.temperature),)

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        return [self.temperature * rng.standard_gamma(self.a)]
