"""Neal's funnel in two dimensions."""

from functools import cached_property
from math import exp

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.targets.at_temperature import Divided, divided
from sgmcmc_lab.samplers.targets.base import Array, Column, Moment, Target
from sgmcmc_lab.samplers.targets.quadrature import marginal_cdf


@jit.potential
def potential(theta, out, params):
    scale, centring = params[0], params[1]
    for c in range(theta.shape[0]):
        v, x = theta[c, 0], theta[c, 1]
        log_variance = centring * v
        out[c] = (v / scale) ** 2 / 2 + x * x * np.exp(-log_variance) / 2 + log_variance / 2


@jit.gradient
def gradient(theta, out, params):
    scale, centring = params[0], params[1]
    for c in range(theta.shape[0]):
        v, x = theta[c, 0], theta[c, 1]
        precision = np.exp(-centring * v)
        out[c, 0] = v / (scale * scale) - centring * x * x * precision / 2 + 0.5 * centring
        out[c, 1] = x * precision


@jit.draw
def draw(rng, out, params):
    for c in range(out.shape[0]):
        v = params[0] * rng.standard_normal()
        out[c, 0] = v
        out[c, 1] = np.exp(params[1] * v / 2) * rng.standard_normal()


class Funnel(Target):
    """θ₁ ~ N(0, s²) and θ₂ given θ₁ ~ N(0, e^{cθ₁}): at c = 1 a wide mouth, and a neck that no fixed step fits.

    With x the second coordinate of the centred funnel, c = 1, the chains move in θ₂ = x e^{−(1−c)θ₁/2}: partly centred,
    and at c = 0, not centred, θ₂ ~ N(0, 1) independent of θ₁. Var θ₂ = E e^{cθ₁} = e^{c²s²/2}. Powers of θ₂ are so
    heavy-tailed that their averages converge only after very many draws, exact ones too; the moments given here are
    those of θ₁ and of log |θ₂| = cθ₁/2 + log |Z| with E log |Z| = −(γ + log 2)/2 and Var log |Z| = π²/8.

    At a temperature, θ₁ ~ N(cs²(T − 1)/2, Ts²) and θ₂ given θ₁ ~ N(0, T e^{cθ₁}): the neck has the same energy at all
    θ₁, and θ₂ is wider there by √T.
    """

    key = "funnel"
    title = "Funnel"
    tex = r"U(\theta) = \frac{\theta_1^2}{2s^2} + \tfrac12\theta_2^2\,e^{-c\theta_1} + \tfrac c2\theta_1"
    source = "Neal 2003, section 8, with one coordinate beside the scale; Papaspiliopoulos, Roberts & Sköld 2007 for c"
    potential, gradient, draw = potential, gradient, draw
    dim = 2

    scale = Real(
        3.0,
        bounds=(0.5, 4.0),
        tex="s",
        label="Scale s",
        doc="The standard deviation of the first coordinate, which sets the width of the second. A large one makes the neck narrow and the mouth wide.",
    )

    centring = Real(
        1.0,
        bounds=(0.0, 1.0),
        tex="c",
        label="Centring c",
        doc="At 1 the width of the second coordinate follows the first, the funnel. At 0 the chains move in standardised coordinates, which are independent; between them the neck opens.",
    )

    def formula(self) -> str:
        log_variance = "theta1" if self.centring == 1 else f"({self.centring!r}*theta1)"
        return f"theta1^2/(2*{self.scale!r}^2) + theta2^2*exp(-{log_variance})/2 + {log_variance}/2"

    def family_at(self, temperature: float) -> "TemperedFunnel":
        return TemperedFunnel.made(self, temperature)

    def start(self) -> Array:
        return np.zeros(2)

    @property
    def first(self) -> tuple[float, float]:
        """Mean and standard deviation of θ₁."""
        s, heat = self.scale, self.temperature
        return self.centring * s**2 * (heat - 1) / 2, s * heat**0.5

    def log_density(self, theta: Array) -> Array:
        v, x = theta[..., 0], theta[..., 1]
        (mean, sd), heat = self.first, self.temperature
        log_variance = self.centring * v + np.log(heat)
        exponent = ((v - mean) / sd) ** 2 + x**2 * np.exp(-log_variance) + log_variance
        return -exponent / 2 - np.log(2 * np.pi * sd)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        (mean, sd), heat, c = self.first, self.temperature, self.centring
        width = float(np.exp(c * mean / 2) * heat**0.5)
        """The standard deviation of θ₂ where θ₁ is at its mean."""

        def density_given(z: Array, x: Array) -> Array:
            return np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * special.ndtr(x / width * np.exp(-c * sd * z / 2))

        second = marginal_cdf(density_given, -9.0, 9.0, panels=48)
        # The histogram's bins are of one width. Where 1e-6 of θ₂ lies outside, a bin would hold the whole neck;
        # at this reach it is 2e-4 for s = 3 and 4e-4 for s = 4.
        reach, bulk = float(5 * width * np.exp(1.25 * c * sd)), float(3.5 * width * np.exp(c * sd / 2))
        return (
            Column.gaussian("θ₁", mean, sd**2),
            Column(
                "θ₂", -reach, reach, second, 0.0, float((width * np.exp((c * sd) ** 2 / 4)) ** 2), shown=(-bulk, bulk)
            ),
        )

    @property
    def moments(self) -> tuple[Moment, ...]:
        (mean, sd), c = self.first, self.centring
        mean_log = (c * mean + np.log(self.temperature) - np.euler_gamma - np.log(2)) / 2
        return (
            Moment("E θ₁", lambda v: v[..., 0], mean),
            Moment("Var θ₁", lambda v: (v[..., 0] - mean) ** 2, sd**2),
            Moment("E log |θ₂|", lambda v: np.log(np.abs(v[..., 1])), mean_log),
            Moment(
                "Var log |θ₂|", lambda v: (np.log(np.abs(v[..., 1])) - mean_log) ** 2, (c * sd) ** 2 / 4 + np.pi**2 / 8
            ),
            Moment(
                "Cov(θ₁, log |θ₂|)",
                lambda v: (v[..., 0] - mean) * (np.log(np.abs(v[..., 1])) - mean_log),
                c * sd**2 / 2,
            ),
        )

    tried_at = ({"scale": 0.5}, {"scale": 4.0}, {"scale": 2.0, "centring": 0.5}, {"centring": 0.0})
    drawn_at = {"scale": 1.6, "centring": 0.7}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        v = self.scale * rng.standard_normal()
        return [v, exp(self.centring * v / 2) * rng.standard_normal()]


tempered_potential, tempered_gradient, _ = divided(Funnel)


@jit.draw
def tempered_draw(rng, out, params):
    scale, centring, temperature = params[0], params[1], params[2]
    mean, spread = centring * scale * scale * (temperature - 1) / 2, np.sqrt(temperature)
    for c in range(out.shape[0]):
        v = mean + scale * spread * rng.standard_normal()
        out[c, 0] = v
        out[c, 1] = spread * np.exp(centring * v / 2) * rng.standard_normal()


class TemperedFunnel(Divided, Funnel):
    """e^{−U/T} of the funnel: θ₁ ~ N(cs²(T − 1)/2, Ts²), and θ₂ given θ₁ ~ N(0, T e^{cθ₁})."""

    potential, gradient, draw = tempered_potential, tempered_gradient, tempered_draw

    def packed(self) -> Array:
        return np.array([self.scale, self.centring, self.temperature])

    def formula(self) -> str:
        return f"({super().formula()})/{self.temperature!r}"

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        mean, sd = self.first
        v = mean + sd * rng.standard_normal()
        return [v, (self.temperature * exp(self.centring * v)) ** 0.5 * rng.standard_normal()]
