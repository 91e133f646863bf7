"""The skew normal in one dimension."""

from functools import cached_property
from math import erfc, sqrt

import numpy as np
from scipy import special

from samplers import jit
from samplers.parameters import Real
from samplers.targets.base import Array, Column, Moment, Target

_ROOT_HALF = np.sqrt(0.5)
_ROOT_2PI = np.sqrt(2 * np.pi)
# Below it Φ(t) is taken from its asymptotic series, whose first term left out is then 10395/t¹² < 2e-14.
# Above it erfc is far from underflow, which comes at t = −37.
_FAR = -30.0


@jit.helper
def _tail(t):
    """−t Φ(t)/φ(t) for t far below 0: 1 − 1/t² + 3/t⁴ − 15/t⁶ + 105/t⁸ − 945/t¹⁰."""
    w = 1 / (t * t)
    return 1 - w * (1 - w * (3 - w * (15 - w * (105 - w * 945))))


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        x = theta[c, 0]
        t = params[0] * x
        if t > _FAR:
            log_phi = np.log(erfc(-t * _ROOT_HALF) / 2)
        else:
            log_phi = -t * t / 2 - np.log(-t * _ROOT_2PI) + np.log(_tail(t))
        out[c] = x * x / 2 - log_phi


@jit.gradient
def gradient(theta, out, params):
    slant = params[0]
    for c in range(theta.shape[0]):
        x = theta[c, 0]
        t = slant * x
        if t > _FAR:
            ratio = np.exp(-t * t / 2) / (_ROOT_2PI * erfc(-t * _ROOT_HALF) / 2)
        else:
            ratio = -t / _tail(t)
        out[c, 0] = x - slant * ratio


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
    potential, gradient, draw = potential, gradient, draw
    dim = 1

    slant = Real(5.0, bounds=(-20.0, 20.0), tex="s", label="Slant s",
                 doc="How lopsided the law is; 0 is the symmetric bell. A biased sampler shows here what symmetry would hide.")  # fmt: skip

    @property
    def _delta(self) -> float:
        return float(self.slant / np.sqrt(1 + self.slant**2))

    @property
    def _mean(self) -> float:
        return float(self._delta * np.sqrt(2 / np.pi))

    def start(self) -> Array:
        return np.array([self._mean])

    def log_density(self, theta: Array) -> Array:
        x = theta[..., 0]
        return np.log(2 / _ROOT_2PI) - x**2 / 2 + special.log_ndtr(self.slant * x)

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
