"""The standard Gaussian in d dimensions, seen by its radius."""

from functools import cached_property
from math import sqrt

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Count
from sgmcmc_lab.samplers.targets.base import Array, Column, Target


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        square = 0.0
        for i in range(theta.shape[1]):
            square += theta[c, i] * theta[c, i]
        out[c] = square / 2


@jit.gradient
def gradient(theta, out, params):
    for c in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            out[c, i] = theta[c, i]


@jit.draw
def draw(rng, out, params):
    for c in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[c, i] = rng.standard_normal()


@jit.observe
def observe_radius(draws, n, out):
    """‖θ‖ and θ₁."""
    for c in range(draws.shape[1]):
        for t in range(n):
            square = 0.0
            for i in range(draws.shape[2]):
                square += draws[t, c, i] * draws[t, c, i]
            out[0, c, t] = np.sqrt(square)
            out[1, c, t] = draws[t, c, 0]


class IsotropicGaussian(Target):
    """N(0, I) in d dimensions: U(θ) = ‖θ‖²/2.

    The density is largest at 0, and no draw is near it: ‖θ‖² ~ χ²(d), so that ‖θ‖ is √d, give or take 1/√2. This shell
    is the typical set. U has the mean d/2 and the standard deviation √(d/2), which an accept step has to live with: the
    best step sizes fall as d^{−1/2} for random walks, d^{−1/3} for MALA and d^{−1/4} for HMC.
    """

    key = "isotropic_gaussian"
    title = "Gaussian in d dimensions"
    tex = r"U(\theta) = \tfrac12\,\lVert\theta\rVert^2,\quad \theta \in \mathbb R^d"
    source = "Betancourt 2017, section 1, on typical sets"
    potential, gradient, draw, observe = potential, gradient, draw, observe_radius
    tempers = True

    dimension = Count(
        10,
        bounds=(2, 100),
        log=True,
        tex="d",
        label="Dimension d",
        doc="The number of coordinates. The more there are, the farther from the mode all draws are, and the smaller the steps must be.",
    )

    @property
    def dim(self) -> int:
        return self.dimension

    @property
    def planar(self) -> bool:
        """Its two columns are no coordinates of a plane in which chains move."""
        return False

    def start(self) -> Array:
        return np.zeros(self.dim)

    def log_density(self, theta: Array) -> Array:
        return -(theta**2).sum(axis=-1) / 2 - self.dim * np.log(2 * np.pi) / 2

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        d = self.dimension
        mean = sqrt(2) * float(np.exp(special.gammaln((d + 1) / 2) - special.gammaln(d / 2)))
        # The standard deviation is .65 to .71 for every d.
        low, high = max(mean - 6.0, 0.0), mean + 6.0
        radius = Column(
            "‖θ‖",
            low,
            high,
            lambda r: special.gammainc(d / 2, np.maximum(r, 0.0) ** 2 / 2),
            mean,
            d - mean**2,
            shown=(max(mean - 2.6, 0.0), mean + 2.6),
        )
        return radius, Column.gaussian("θ₁", 0.0, 1.0)

    tried_at = ({"dimension": 2}, {"dimension": 100})
    drawn_at = {"dimension": 3}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        return [rng.standard_normal() for _ in range(self.dimension)]
