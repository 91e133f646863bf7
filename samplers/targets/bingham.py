"""The Bingham distribution on S²."""

from collections.abc import Callable
from functools import cached_property, partial
from math import exp

import numpy as np
from scipy import optimize, special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.manifolds import Manifold, Sphere
from sgmcmc_lab.samplers.parameters import Real, Value
from sgmcmc_lab.samplers.targets.base import MANIFOLD, Array, Column, Moment, Target
from sgmcmc_lab.samplers.targets.expectations import sum_products
from sgmcmc_lab.samplers.targets.quadrature import density_cdf, integrate

# The packed parameters: a (3), then for the exact draws b and, with the smallest a taken away, 1 + 2a/b (3).
_B, _OMEGA = 3, 4


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        out[c] = 0.0
        for i in range(3):
            out[c] += params[i] * theta[c, i] * theta[c, i]


@jit.gradient
def gradient(theta, out, params):
    for c in range(theta.shape[0]):
        for i in range(3):
            out[c, i] = 2 * params[i] * theta[c, i]


@jit.draw
def draw(rng, out, params):
    # Kent, Ganeiber & Mardia 2013: draws y/|y| of y ~ N(0, Ω⁻¹), whose density is ∝ (xᵀΩx)^{−3/2}. As
    # xᵀΩx = 1 + 2xᵀAx/b, the ratio e^{−xᵀAx}(xᵀΩx)^{3/2} is largest where xᵀΩx = 3/b.
    b = params[_B]
    largest = -(3 - b) / 2 + 1.5 * np.log(3 / b)
    for c in range(out.shape[0]):
        while True:
            square = 0.0
            for i in range(3):
                out[c, i] = rng.standard_normal() / np.sqrt(params[_OMEGA + i])
                square += out[c, i] * out[c, i]
            form = 0.0
            for i in range(3):
                out[c, i] /= np.sqrt(square)
                form += params[_OMEGA + i] * out[c, i] * out[c, i]
            if np.log(1 - rng.random()) < -(form - 1) * b / 2 + 1.5 * np.log(form) - largest:
                break


class Bingham(Target):
    """Density ∝ e^{κz² − β(x² − y²)} on S²: the same at x and −x.

    κ > 0 gathers it at the two poles, κ < 0 around the equator; β ≥ 0 pulls it away from the x axis, to the y axis.
    """

    key = "bingham"
    title = "Bingham (sphere)"
    tex = r"U(\theta) = \beta\,(\theta_1^2 - \theta_2^2) - \kappa\,\theta_3^2,\quad \lVert\theta\rVert = 1"
    source = "Bingham 1974; exact draws by Kent, Ganeiber & Mardia 2013"
    support, geometry = MANIFOLD, Sphere
    potential, gradient, draw = potential, gradient, draw
    dim = 3

    concentration = Real(
        4.0,
        bounds=(-50.0, 50.0),
        tex=r"\kappa",
        label="Concentration κ",
        doc="Above 0 the distribution gathers at the two poles, below 0 around the equator.",
    )
    asymmetry = Real(
        1.5,
        bounds=(0.0, 20.0),
        tex=r"\beta",
        label="Asymmetry β",
        doc="How much the distribution avoids the x axis and favours the y axis.",
    )

    @cached_property
    def manifold(self) -> Manifold:
        return Sphere(3)

    def at_temperature(self, temperature: float) -> dict[str, Value]:
        return {
            "concentration": float(self.concentration / temperature),
            "asymmetry": float(self.asymmetry / temperature),
        }

    @property
    def form(self) -> Array:
        """The a_i of U = Σ a_i x_i²."""
        return np.array([self.asymmetry, -self.asymmetry, -self.concentration])

    def packed(self) -> Array:
        a = self.form - self.form.min()
        # Σ 1/(b + 2a_i) = 1 gives the envelope that fits best; b is between 1 and 3.
        b = float(optimize.brentq(lambda b: (1 / (b + 2 * a)).sum() - 1, 1.0 - 1e-12, 3.0 + 1e-12, xtol=1e-14))
        return np.concatenate([self.form, [b], 1 + 2 * a / b])

    def start(self) -> Array:
        return np.array([0.6, 0.0, 0.8])

    def log_density(self, theta: Array) -> Array:
        """With respect to the area."""
        return -(theta**2 @ self.form) - self._log_normaliser

    def _unnormalised(self, t: Array, i: int) -> Array:
        """∫ e^{−U + min a} over the circle x_i = t: around it the other two coordinates make an I₀."""
        lowest, (one, two) = self.form.min(), np.delete(self.form, i)
        across = np.maximum(1 - t**2, 0)
        half = abs(one - two) / 2 * across
        return np.asarray(
            2 * np.pi * special.i0e(half) * np.exp(lowest - self.form[i] * t**2 - (one + two) / 2 * across + half)
        )

    @cached_property
    def _log_normaliser(self) -> float:
        return float(np.log(integrate(lambda t: self._unnormalised(t, 2), -1.0, 1.0)) - self.form.min())

    def _marginal(self, t: Array, i: int) -> Array:
        """The density of the coordinate x_i."""
        return np.asarray(self._unnormalised(t, i) * np.exp(-self._log_normaliser - self.form.min()))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        out = []
        for i, name in enumerate("xyz"):
            density = partial(self._marginal, i=i)
            square = integrate(partial(_square_times, density), -1.0, 1.0)
            out.append(Column(name, -1.0, 1.0, density_cdf(density, -1.0, 1.0, 8192), 0.0, square))
        return tuple(out)

    @property
    def moments(self) -> tuple[Moment, ...]:
        return (*super().moments, Moment.compiled("Cov(x, y)", sum_products, (0.0, 0.0), 0.0))

    tried_at = ({"concentration": -50.0, "asymmetry": 0.0}, {"concentration": 50.0, "asymmetry": 20.0})
    drawn_at = {"concentration": 2.0, "asymmetry": 0.8}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        a = np.array([self.asymmetry, -self.asymmetry, -self.concentration])
        a = a - a.min()
        low, high, b = 1.0, 3.0, 2.0
        for _ in range(200):
            low, high = (b, high) if (1 / (b + 2 * a)).sum() > 1 else (low, b)
            b = (low + high) / 2
        omega = 1 + 2 * a / b
        while True:
            y = rng.standard_normal(3) / np.sqrt(omega)
            x = y / np.linalg.norm(y)
            # e^{−xᵀAx} over the angular Gaussian's (xᵀΩx)^{−3/2}, and the largest value of that, at xᵀΩx = 3/b.
            share = exp(-(a * x**2).sum()) * (omega * x**2).sum() ** 1.5 / (exp(-(3 - b) / 2) * (3 / b) ** 1.5)
            if 1 - rng.random() < share:
                return np.asarray(x)


def _square_times(density: Callable[[Array], Array], t: Array) -> Array:
    return t * t * density(t)
