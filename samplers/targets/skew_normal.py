"""The skew normal in one dimension."""

from functools import cached_property
from math import sqrt

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import ADDED, LIPSCHITZ
from sgmcmc_lab.samplers.targets.base import Array, Column, Moment, Target
from sgmcmc_lab.samplers.targets.normal_tail import log_phi, slope_of_log_phi


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        x = theta[c, 0]
        out[c] = x * x / 2 - log_phi(params[0] * x)


@jit.gradient
def gradient(theta, out, params):
    slant = params[0]
    for c in range(theta.shape[0]):
        x = theta[c, 0]
        out[c, 0] = x - slant * slope_of_log_phi(slant * x)


@jit.draw
def draw(rng, out, params):
    # δ|Z₀| + √(1 − δ²) Z₁ with δ = s/√(1 + s²) (Azzalini 1985).
    slant = params[0]
    rest = 1 / np.sqrt(1 + slant * slant)
    delta = slant * rest
    for c in range(out.shape[0]):
        out[c, 0] = delta * abs(rng.standard_normal()) + rest * rng.standard_normal()


class SkewNormal(Target):
    """Density 2φ(θ)Φ(sθ): U(θ) = θ²/2 − log Φ(sθ). A gentle tail on one side, and a steep one on the other.

    With δ = s/√(1 + s²): mean δ√(2/π), variance 1 − 2δ²/π, third central moment (4 − π)/2 · mean³, and
    CDF Φ(θ) − 2T(θ, s) with Owen's T. The even moments of θ are those of N(0, 1), whatever s is.
    """

    key = "skew_normal"
    title = "Skew normal"
    tex = r"U(\theta) = \tfrac12\theta^2 - \log\Phi(s\,\theta)"
    source = "Azzalini 1985"
    provides = ADDED | {LIPSCHITZ}
    potential, gradient, draw = potential, gradient, draw
    tempers = True
    dim = 1

    slant = Real(
        5.0,
        bounds=(-20.0, 20.0),
        tex="s",
        label="Slant s",
        doc="How lopsided the distribution is; 0 is the symmetric bell. A biased sampler shows here what symmetry would hide.",
    )

    @property
    def _delta(self) -> float:
        return float(self.slant / np.sqrt(1 + self.slant**2))

    @property
    def _mean(self) -> float:
        return float(self._delta * np.sqrt(2 / np.pi))

    @property
    def lipschitz(self) -> Array:
        """U″ is between 1 and 1 + s², as (−log Φ)″ is between 0 and 1: it is one less a truncated normal's variance."""
        return np.array([1 + self.slant**2])

    def start(self) -> Array:
        return np.array([self._mean])

    def log_density(self, theta: Array) -> Array:
        x = theta[..., 0]
        return np.log(2 / np.pi) / 2 - x**2 / 2 + special.log_ndtr(self.slant * x)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        slant, mean = self.slant, self._mean
        variance = 1 - mean**2
        sd = float(np.sqrt(variance))

        def cdf(x: Array) -> Array:
            return np.clip(special.ndtr(x) - 2 * special.owens_t(x, slant), 0.0, 1.0)

        return (Column("θ", -7.5, 7.5, cdf, mean, variance, shown=(mean - 4.2 * sd, mean + 4.2 * sd)),)

    @property
    def moments(self) -> tuple[Moment, ...]:
        mean = self._mean
        third = Moment("E (θ − E θ)³", lambda v: (v[..., 0] - mean) ** 3, (4 - np.pi) / 2 * mean**3)
        return (*super().moments, third)

    tried_at = ({"slant": -20.0}, {"slant": 0.0})
    drawn_at = {"slant": -3.0}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        delta = self.slant / sqrt(1 + self.slant**2)
        return [delta * abs(rng.standard_normal()) + sqrt(1 - delta**2) * rng.standard_normal()]
