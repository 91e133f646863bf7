"""Mixtures of von Mises–Fisher distributions on the circle, with the toy of the geodesic paper, and on S²."""

from math import cos, sin

import numpy as np

from sgmcmc_lab.samplers.parameters import Count, Real
from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.targets.vmf import OnCircle, OnSphere, textbook_direction

_PI = 3.141592653589793


class CircleMixture(OnCircle):
    """Two von Mises distributions on the circle. The defaults are the toy of Liu, Zhu & Song 2016, section 5.1.

    There U(x) = −log(e^{5μ₁·x} + 2e^{5μ₂·x}) with μ₁ at the angle +π/3 and μ₂ at −π/3 (corrects the print, which lost
    the minus sign): weight 1/3 for the first. Then E cos φ = .44669, E sin φ = −.25790, E cos 2φ = −.32132.
    """

    key = "circle_mixture"
    title = "Von Mises mixture (circle)"
    tex = r"U(\theta) = -\log\sum_{j=1}^{2} \frac{w_j}{I_0(\kappa_j)}\,e^{\kappa_j\,\mu_j\cdot\theta},\quad \lVert\theta\rVert = 1"
    source = "Liu, Zhu & Song 2016, section 5.1, Fig 3"

    weight = Real(
        1 / 3,
        bounds=(0.01, 0.99),
        tex="w_1",
        label="Weight w₁",
        doc="The share of the first component; the second has the rest.",
    )
    angle1 = Real(
        _PI / 3,
        bounds=(-_PI, _PI),
        tex=r"\varphi_1",
        label="Centre φ₁",
        unit="rad",
        doc="The angle of the first component's centre.",
    )
    angle2 = Real(
        -_PI / 3,
        bounds=(-_PI, _PI),
        tex=r"\varphi_2",
        label="Centre φ₂",
        unit="rad",
        doc="The angle of the second component's centre.",
    )
    concentration1 = Real(
        5.0,
        bounds=(0.1, 100.0),
        log=True,
        tex=r"\kappa_1",
        label="Concentration κ₁",
        doc="How narrow the first component is.",
    )
    concentration2 = Real(
        5.0,
        bounds=(0.1, 100.0),
        log=True,
        tex=r"\kappa_2",
        label="Concentration κ₂",
        doc="How narrow the second component is.",
    )

    @property
    def weights(self) -> Array:
        return np.array([self.weight, 1 - self.weight])

    @property
    def angles(self) -> Array:
        return np.array([self.angle1, self.angle2])

    @property
    def concentrations(self) -> Array:
        return np.array([self.concentration1, self.concentration2])

    tried_at = (
        {"weight": 0.99, "angle1": np.pi, "angle2": 0.2, "concentration1": 0.1, "concentration2": 100.0},
        {"weight": 0.01, "angle1": -2.0, "angle2": 2.0, "concentration1": 100.0, "concentration2": 1.0},
    )
    drawn_at = {"weight": 0.6, "angle1": 2.0, "concentration1": 3.0}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        first = rng.random() < self.weight
        angle, kappa = (self.angle1, self.concentration1) if first else (self.angle2, self.concentration2)
        return textbook_direction(rng, np.array([cos(angle), sin(angle)]), kappa)


class SphereMixture(OnSphere):
    """k von Mises–Fisher distributions on S², their centres evenly around the axis at one colatitude.

    The first has weight w, each of the others (1 − w)/(k − 1).
    """

    key = "sphere_mixture"
    title = "Von Mises–Fisher mixture (sphere)"
    tex = r"U(\theta) = -\log\sum_{j=1}^{k} w_j\,e^{\kappa\,\mu_j\cdot\theta},\quad \lVert\theta\rVert = 1"
    source = "Banerjee et al. 2005"

    modes = Count(
        3, bounds=(2, 8), tex="k", label="Modes k", doc="How many components there are, evenly around the axis."
    )
    colatitude = Real(
        1.0,
        bounds=(0.0, _PI),
        tex=r"\alpha",
        label="Colatitude α",
        unit="rad",
        doc="How far the centres are from the north pole.",
    )
    weight = Real(
        0.5,
        bounds=(0.01, 0.99),
        tex="w",
        label="Weight w of the first mode",
        doc="The share of the first component; the others share the rest evenly.",
    )
    concentration = Real(
        6.0,
        bounds=(0.1, 100.0),
        log=True,
        tex=r"\kappa",
        label="Concentration κ",
        doc="How narrow every component is. Narrow ones are separated by high barriers.",
    )

    @property
    def weights(self) -> Array:
        return np.array([self.weight] + [(1 - self.weight) / (self.modes - 1)] * (self.modes - 1))

    @property
    def centres(self) -> Array:
        longitudes = 0.4 + 2 * np.pi * np.arange(self.modes) / self.modes
        sine, cosine = np.sin(self.colatitude), np.cos(self.colatitude)
        return np.stack([sine * np.cos(longitudes), sine * np.sin(longitudes), np.full(self.modes, cosine)], axis=-1)

    @property
    def concentrations(self) -> Array:
        return np.full(self.modes, self.concentration)

    tried_at = (
        {"modes": 2, "colatitude": np.pi / 2, "weight": 0.99, "concentration": 100.0},
        {"modes": 8, "colatitude": 0.0, "weight": 0.01, "concentration": 0.1},
    )
    drawn_at = {"modes": 4, "colatitude": 0.6, "weight": 0.1, "concentration": 3.0}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        rest = (1 - self.weight) / (self.modes - 1)
        j = int(np.searchsorted(np.cumsum([self.weight] + [rest] * (self.modes - 1)), rng.random(), side="right"))
        a, b = self.colatitude, 0.4 + 2 * np.pi * j / self.modes
        return textbook_direction(rng, np.array([sin(a) * cos(b), sin(a) * sin(b), cos(a)]), self.concentration)
