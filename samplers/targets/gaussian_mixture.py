"""A mixture of Gaussians on a circle."""

from collections.abc import Sequence
from functools import cached_property
from math import cos, pi, sin
from typing import Any

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Count, Real, RealVector, SpecError
from sgmcmc_lab.samplers.requirements import ADDED, LIPSCHITZ
from sgmcmc_lab.samplers.targets.base import Array, Column, Moment, Target
from sgmcmc_lab.samplers.targets.expectations import sum_products

# The packed parameters: the number of modes, their standard deviation, then weight, x and y of each mode.
_FIRST = 2


@jit.helper
def _exponent(x, y, j, params):
    """Log weight of mode j at (x, y), without the normaliser that all modes share."""
    at = _FIRST + 3 * j
    dx, dy = x - params[at + 1], y - params[at + 2]
    return np.log(params[at]) - (dx * dx + dy * dy) / (2 * params[1] * params[1])


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        x, y = theta[c, 0], theta[c, 1]
        largest, total = -np.inf, 0.0
        for j in range(int(params[0])):
            largest = max(largest, _exponent(x, y, j, params))
        for j in range(int(params[0])):
            total += np.exp(_exponent(x, y, j, params) - largest)
        out[c] = -largest - np.log(total)


@jit.gradient
def gradient(theta, out, params):
    precision = 1 / (params[1] * params[1])
    for c in range(theta.shape[0]):
        x, y = theta[c, 0], theta[c, 1]
        # The modes' weights at θ, relative to the largest of those met so far.
        largest, total, mean_x, mean_y = -np.inf, 0.0, 0.0, 0.0
        for j in range(int(params[0])):
            exponent = _exponent(x, y, j, params)
            if exponent > largest:
                shrink = np.exp(largest - exponent)
                total, mean_x, mean_y = total * shrink, mean_x * shrink, mean_y * shrink
                largest = exponent
            weight = np.exp(exponent - largest)
            total += weight
            mean_x += weight * params[_FIRST + 3 * j + 1]
            mean_y += weight * params[_FIRST + 3 * j + 2]
        out[c, 0] = (x - mean_x / total) * precision
        out[c, 1] = (y - mean_y / total) * precision


@jit.draw
def draw(rng, out, params):
    sd = params[1]
    last = int(params[0]) - 1
    for c in range(out.shape[0]):
        u = rng.random()
        j = 0
        while j < last and u >= params[_FIRST + 3 * j]:
            u -= params[_FIRST + 3 * j]
            j += 1
        out[c, 0] = params[_FIRST + 3 * j + 1] + sd * rng.standard_normal()
        out[c, 1] = params[_FIRST + 3 * j + 2] + sd * rng.standard_normal()


class GaussianMixture(Target):
    """Σ_j w_j N(m_j, σ²I) with k modes m_j evenly on a circle of radius ρ, the first of them at (ρ, 0), or at given
    positions.

    The first mode has weight w, each of the others (1 − w)/(k − 1).
    """

    key = "gaussian_mixture"
    title = "Gaussian mixture"
    tex = (
        r"U(\theta) = -\log\sum_{j=1}^{k} w_j\,e^{-\lVert\theta - m_j\rVert^2/2\sigma^2},\quad "
        r"m_j = \rho\,\bigl(\cos\tfrac{2\pi(j-1)}{k}, \sin\tfrac{2\pi(j-1)}{k}\bigr)\ \text{unless given}"
    )
    source = "A standard test of how samplers find and weigh separate modes"
    provides = ADDED | {LIPSCHITZ}
    potential, gradient, draw = potential, gradient, draw
    tempers = True
    dim = 2

    modes = Count(
        4, bounds=(2, 8), tex="k", label="Modes k", doc="How many bells there are, evenly spaced on a circle."
    )
    radius = Real(
        2.5,
        bounds=(0.0, 6.0),
        tex=r"\rho",
        label="Distance ρ",
        doc="How far the bells are from the centre. The farther apart, the rarer the jumps between them.",
    )
    sd = Real(
        0.7,
        bounds=(0.1, 2.0),
        log=True,
        tex=r"\sigma",
        label="Standard deviation σ",
        doc="The width of every bell. Narrow bells are separated by high barriers.",
    )
    weight = Real(
        0.25,
        bounds=(0.01, 0.99),
        tex="w",
        label="Weight w of the first mode",
        doc="The share of the bell on the right; the others share the rest evenly. A sampler that rarely jumps gets it wrong.",
    )

    positions = RealVector(
        max_length=16,
        max_value=12.0,
        tex="m",
        label="Centres",
        doc="The positions of the first modes, two numbers for each, separated by commas. Those without are on the circle; numbers beyond the last mode wait for more modes.",
    )
    dragged = "positions"

    def check(self) -> None:
        if len(self.positions) % 2:
            raise SpecError("target.positions", list(self.positions), "allowed are two numbers for each mode")

    @property
    def weights(self) -> Array:
        """w_j, (k,)."""
        return np.array([self.weight] + [(1 - self.weight) / (self.modes - 1)] * (self.modes - 1))

    @property
    def centres(self) -> Array:
        """m_j, (k, 2)."""
        angles = 2 * np.pi * np.arange(self.modes) / self.modes
        centres = self.radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        given = np.reshape(self.positions, (-1, 2))[: self.modes]
        centres[: len(given)] = given
        return np.asarray(centres)

    @property
    def handles(self) -> Array:
        """The centres of all modes."""
        return self.centres

    def with_handle(self, number: float, point: Sequence[float]) -> tuple[float, ...]:
        centres = self.centres
        if number not in range(len(centres)):
            raise SpecError("target.positions", number, f"allowed is the number of one of the {len(centres)} modes")
        centres[int(number)] = point
        return tuple(float(x) + 0.0 for x in centres.ravel().round(4))

    def packed(self) -> Array:
        modes = np.concatenate([self.weights[:, None], self.centres], axis=1)
        return np.concatenate([[self.modes, self.sd], modes.ravel()])

    def start(self) -> Array:
        return np.array(self.centres[0])

    @property
    def lipschitz(self) -> Array:
        """U″ = I/σ² − Cov(m)/σ⁴, m a random centre. A covariance is at most a quarter of the product of the ranges."""
        spread = np.ptp(self.centres, axis=0)
        largest = np.outer(spread, spread) / (4 * self.sd**4)
        np.fill_diagonal(largest, np.maximum(self.sd**-2, np.diag(largest) - self.sd**-2))
        return np.linalg.norm(largest, axis=1)

    def log_density(self, theta: Array) -> Array:
        squares = ((theta[..., None, :] - self.centres) ** 2).sum(axis=-1)
        terms = np.log(self.weights) - squares / (2 * self.sd**2)
        return special.logsumexp(terms, axis=-1) - np.log(2 * np.pi * self.sd**2)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return self._column("θ₁", 0), self._column("θ₂", 1)

    def _column(self, name: str, axis: int) -> Column:
        w, m, sd = self.weights, self.centres[:, axis], self.sd
        mean = float(w @ m)
        far = float(np.abs(self.centres).max()) if np.size(self.positions) else self.radius
        reach, bulk = far + 7.5 * sd, far + 3.4 * sd
        return Column(
            name,
            -reach,
            reach,
            lambda x: special.ndtr((np.asarray(x)[..., None] - m) / sd) @ w,
            mean,
            float(w @ (m - mean) ** 2) + sd**2,
            shown=(-bulk, bulk),
        )

    @property
    def moments(self) -> tuple[Moment, ...]:
        w, m = self.weights, self.centres
        mean = w @ m
        exact = float(w @ ((m[:, 0] - mean[0]) * (m[:, 1] - mean[1])))
        cross = Moment.compiled("Cov(θ₁, θ₂)", sum_products, (mean[0], mean[1]), exact)
        return (*super().moments, cross)

    tried_at = (
        {"modes": 2, "radius": 6.0, "sd": 0.1, "weight": 0.99},
        {"modes": 8, "radius": 1.0, "sd": 2.0, "weight": 0.01},
        {"modes": 3, "positions": (3.0, 1.0, -1.0, 2.0)},
    )
    drawn_at = {"modes": 3, "weight": 0.2, "radius": 1.4, "sd": 0.5, "positions": (0.5, -2.0)}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        rest = (1 - self.weight) / (self.modes - 1)
        shares = np.cumsum([self.weight] + [rest] * (self.modes - 1))
        j = int(np.searchsorted(shares, rng.random(), side="right"))
        on_circle = [self.radius * f(2 * pi * j / self.modes) for f in (cos, sin)]
        return [m + self.sd * rng.standard_normal() for m in self.positions[2 * j : 2 * j + 2] or on_circle]

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        rest = (1 - self.weight) / (self.modes - 1)
        weights = np.array([self.weight] + [rest] * (self.modes - 1))
        if not list(self.positions):
            return {"w": weights}
        angles = 2 * pi * np.arange(self.modes) / self.modes
        centres = self.radius * np.column_stack([np.cos(angles), np.sin(angles)])
        given = np.reshape(self.positions, (-1, 2))
        return {"w": weights, "m": np.concatenate([given, centres[len(given) :]])}
