"""The ring in two dimensions."""

from functools import cached_property
from math import cos, exp, pi, sin, sqrt

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.targets.base import Array, Column, Moment, Target
from sgmcmc_lab.samplers.targets.quadrature import in_blocks, rule


@jit.potential
def potential(theta, out, params):
    radius, width = params[0], params[1]
    for c in range(theta.shape[0]):
        a = (np.hypot(theta[c, 0], theta[c, 1]) - radius) / width
        out[c] = a * a / 2


@jit.gradient
def gradient(theta, out, params):
    radius, width = params[0], params[1]
    for c in range(theta.shape[0]):
        r = np.hypot(theta[c, 0], theta[c, 1])
        # At the centre, where the energy has a tip, every direction is as good as its opposite.
        slope = (r - radius) / (width * width * r) if r > 0 else 0.0
        out[c, 0] = slope * theta[c, 0]
        out[c, 1] = slope * theta[c, 1]


@jit.draw
def draw(rng, out, params):
    # The distance r has density ∝ r e^{−(r−R)²/2w²}. As log r ≤ log m + r/m − 1, that is at most a constant
    # times the density of N(R + w²/m, w²), and r/m · e^{1 − r/m} is the ratio. The best m makes the two modes
    # the same: m = R + w²/m. At R = 0 a share √(e/2π) = 0.66 is accepted, at R ≫ w all.
    radius, width = params[0], params[1]
    mode = (radius + np.sqrt(radius * radius + 4 * width * width)) / 2
    for c in range(out.shape[0]):
        while True:
            ratio = 1 + width / mode * rng.standard_normal()
            if ratio > 0 and rng.random() < ratio * np.exp(1 - ratio):
                break
        angle = 2 * np.pi * rng.random()
        out[c, 0] = mode * ratio * np.cos(angle)
        out[c, 1] = mode * ratio * np.sin(angle)


class Ring(Target):
    """U(θ) = (|θ| − R)²/(2w²): a ridge that closes on itself, of radius R and width w.

    The angle is uniform, the distance r from the centre has density ∝ r e^{−(r−R)²/2w²}.
    """

    key = "ring"
    title = "Ring"
    tex = r"U(\theta) = \frac{(\lVert\theta\rVert - R)^2}{2w^2}"
    source = "A standard test of samplers on curved ridges"
    potential, gradient, draw = potential, gradient, draw
    tempers = True
    dim = 2

    radius = Real(
        2.0,
        bounds=(0.0, 5.0),
        tex="R",
        label="Radius R",
        doc="How far the crest of the ring is from the centre. At 0 the distribution is a Gaussian.",
    )
    width = Real(
        0.3,
        bounds=(0.1, 2.0),
        log=True,
        tex="w",
        label="Width w",
        doc="How thick the ring is. A thin ring asks for small steps across, and a long way around remains.",
    )

    def formula(self) -> str:
        return f"(sqrt(theta1^2 + theta2^2) - {self.radius!r})^2/(2*{self.width!r}^2)"

    def start(self) -> Array:
        return np.array([self.radius, 0.0])

    @cached_property
    def _integrals(self) -> tuple[float, float, float]:
        """∫ rᵏ e^{−(r−R)²/2w²} dr over r > 0 for k = 1, 2, 3."""
        centre, variance = self.radius, self.width**2
        # By parts: m_k = R m_{k−1} + (k − 1) w² m_{k−2}, with a term more at 0 for k = 1.
        m0 = self.width * np.sqrt(2 * np.pi) * special.ndtr(centre / self.width)
        m1 = centre * m0 + variance * np.exp(-(centre**2) / (2 * variance))
        m2 = centre * m1 + variance * m0
        return float(m1), float(m2), float(centre * m2 + 2 * variance * m1)

    def log_density(self, theta: Array) -> Array:
        r = np.hypot(theta[..., 0], theta[..., 1])
        return -(((r - self.radius) / self.width) ** 2) / 2 - np.log(2 * np.pi * self._integrals[0])

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        centre, width = self.radius, self.width
        m1, _, m3 = self._integrals

        def cdf(x: Array) -> Array:
            # P(θ₁ > a) = ∫_a^∞ arccos(a/r)/π p(r) dr for a = |x|. With r = a + t² the root at r = a is gone; the
            # mass of r lies within 9w of R, or of 0.
            a = np.abs(x)
            low = np.sqrt(np.maximum(centre - 9 * width - a, 0.0))
            high = np.sqrt(np.maximum(centre + 9 * width - a, 0.0))
            t, weights = rule(low, high, 32)
            r = a[..., None] + t**2
            density = r * np.exp(-(((r - centre) / width) ** 2) / 2) / m1
            # arccos(a/r) = arctan2(√(r² − a²), a), which keeps its digits near r = a.
            angle = np.arctan2(t * np.sqrt(r + a[..., None]), a[..., None])
            beyond = (angle / np.pi * density * 2 * t * weights).sum(axis=-1)
            return np.where(x < 0, beyond, 1 - beyond)

        blocked = in_blocks(cdf, -centre - 9 * width, centre + 9 * width)
        reach, bulk = centre + 7.5 * width, centre + 3.8 * width
        first, second = (
            Column(name, -reach, reach, blocked, 0.0, m3 / (2 * m1), shown=(-bulk, bulk)) for name in ("θ₁", "θ₂")
        )
        return first, second

    @property
    def moments(self) -> tuple[Moment, ...]:
        m1, m2, m3 = self._integrals
        mean, square = m2 / m1, m3 / m1
        return (
            *super().moments,
            Moment("E |θ|", lambda v: np.hypot(v[..., 0], v[..., 1]), mean),
            Moment("Var |θ|", lambda v: (np.hypot(v[..., 0], v[..., 1]) - mean) ** 2, square - mean**2),
        )

    tried_at = ({"radius": 0.0, "width": 2.0}, {"radius": 5.0, "width": 0.1}, {"radius": 0.5, "width": 0.5})
    drawn_at = {"radius": 1.7, "width": 0.6}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        # Proposals N(m, w⁴/m²) with m = R + w²/m; a share r/m·e^{1−r/m} of them is accepted.
        mode = (self.radius + sqrt(self.radius**2 + 4 * self.width**2)) / 2
        while True:
            r = mode + self.width * rng.standard_normal()
            if r > 0 and rng.random() < r / mode * exp(1 - r / mode):
                break
        angle = 2 * pi * rng.random()
        return [r * cos(angle), r * sin(angle)]
