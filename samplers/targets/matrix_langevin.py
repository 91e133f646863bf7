"""A matrix Langevin distribution of frames: n × p matrices with orthonormal columns, the Stiefel manifold."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.manifolds import Manifold, Stiefel
from sgmcmc_lab.samplers.parameters import Count, Real, SpecError, Value
from sgmcmc_lab.samplers.targets.base import MANIFOLD, Array, Column, Moment, Target
from sgmcmc_lab.samplers.targets.quadrature import density_cdf, integrate

# The packed parameters: κ, then n and p. A frame is stored row by row.

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        out[c] = -params[0] * theta[c, 0]


@jit.gradient
def gradient(theta, out, params):
    for c in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            out[c, i] = 0.0
        out[c, 0] = -params[0]


@jit.inlined
def _cosine(rng, concentration, n):
    """The cosine of the angle between a von Mises–Fisher direction in ℝⁿ and its centre, by Wood (1994)."""
    b = (n - 1) / (2 * concentration + np.sqrt(4 * concentration**2 + (n - 1) ** 2))
    x = (1 - b) / (1 + b)
    largest = concentration * x + (n - 1) * np.log(1 - x * x)
    while True:
        z = rng.beta((n - 1) / 2, (n - 1) / 2)
        cosine = (1 - (1 + b) * z) / (1 - (1 - b) * z)
        if concentration * cosine + (n - 1) * np.log(1 - x * cosine) - largest >= np.log(1 - rng.random()):
            break
    return cosine


@jit.draw
def draw(rng, out, params):
    n, p = int(params[1]), int(params[2])
    for c in range(out.shape[0]):
        cosine = _cosine(rng, params[0], n)
        for j in range(p):
            # A direction across the columns before it, uniform: a normal vector, projected. Of the first column it is
            # the part across e₁.
            square = 0.0
            for i in range(n):
                out[c, i * p + j] = rng.standard_normal()
            if j == 0:
                out[c, 0] = 0.0
            for k in range(j):
                along = 0.0
                for i in range(n):
                    along += out[c, i * p + j] * out[c, i * p + k]
                for i in range(n):
                    out[c, i * p + j] -= along * out[c, i * p + k]
            for i in range(n):
                square += out[c, i * p + j] ** 2
            scale = np.sqrt(((1 - cosine * cosine) if j == 0 else 1.0) / square)
            for i in range(n):
                out[c, i * p + j] *= scale
            if j == 0:
                out[c, 0] = cosine


class MatrixLangevin(Target):
    """Density ∝ e^{tr FᵀX} on V_{n,p} = {X ∈ ℝ^{n×p}: XᵀX = I} with F = κ e₁e₁ᵀ.

    The first column is von Mises–Fisher around e₁ with concentration κ; given it, the others are a uniform frame of the
    space across it. So draws, CDFs and moments are exact. The columns that are shown are the entries, row by row.
    """

    key = "matrix_langevin"
    title = "Matrix Langevin (Stiefel)"
    tex = r"U(\theta) = -\kappa\,\theta_{11},\quad \theta \in \mathbb{R}^{n\times p},\ \theta^\top\theta = I"
    source = "Downs 1972; Chikuse 2003; draws of the first column by Wood 1994"
    support, geometry = MANIFOLD, Stiefel
    potential, gradient, draw = potential, gradient, draw

    rows = Count(
        3, bounds=(3, 6), tex="n", label="Rows n", doc="The dimension of the space that the frame's vectors lie in."
    )
    vectors = Count(
        2,
        bounds=(1, 5),
        tex="p",
        label="Columns p",
        doc="How many vectors of length 1, each at a right angle to the others; fewer than n.",
    )
    concentration = Real(
        4.0,
        bounds=(0.1, 100.0),
        log=True,
        tex=r"\kappa",
        label="Concentration κ",
        doc="How close the first vector keeps to the first axis.",
    )

    def check(self) -> None:
        if self.vectors >= self.rows:
            # With p = n there are two separate parts, of determinant 1 and −1.
            raise SpecError("target.vectors", self.vectors, f"allowed are fewer than the {self.rows} rows")

    def at_temperature(self, temperature: float) -> dict[str, Value]:
        return {"concentration": float(self.concentration / temperature)}

    @property
    def dim(self) -> int:
        return self.rows * self.vectors

    @cached_property
    def manifold(self) -> Manifold:
        return Stiefel(self.rows, self.vectors)

    def packed(self) -> Array:
        return np.array([self.concentration, self.rows, self.vectors], dtype=float)

    def start(self) -> Array:
        return np.eye(self.rows, self.vectors).ravel()

    def log_density(self, theta: Array) -> Array:
        """With respect to the product of the areas of the spheres that the columns lie on, each across those before."""
        areas = [_log_area(k) for k in range(self.rows, self.rows - self.vectors, -1)]
        return np.asarray(self.concentration * theta[..., 0] - self._log_mean - sum(areas))

    def log_vector_density(self, points: Array) -> Array:
        return np.asarray(self.concentration * points[..., 0] - self._log_mean - _log_area(self.rows))

    @property
    def _log_mean(self) -> float:
        """The log of the mean of e^{κx₁} over the sphere, ₀F₁(n/2; κ²/4), which is a Bessel function."""
        n, kappa = self.rows, self.concentration
        scaled = np.log(special.ive(n / 2 - 1, kappa))
        return float(special.gammaln(n / 2) + (1 - n / 2) * np.log(kappa / 2) + scaled + kappa)

    def _first(self, t: Array) -> Array:
        """The density of θ₁₁."""
        n, kappa = self.rows, self.concentration
        log_scale = (n / 2 - 1) * np.log(kappa / 2) - special.gammaln((n - 1) / 2) - 0.5 * np.log(np.pi)
        scale = np.exp(log_scale) / special.ive(n / 2 - 1, kappa)
        return np.asarray(scale * np.exp(kappa * (t - 1)) * np.maximum(1 - t * t, 0) ** ((n - 3) / 2))

    def _other(self, t: Array) -> Array:
        """The density of θ_{i1}, i > 1: that of θ₁₁ over the circles of latitude around it leaves a Bessel function."""
        n, kappa = self.rows, self.concentration
        across = np.sqrt(np.maximum(1 - t * t, 0))
        order = (n - 3) / 2
        # I_q(z)/z^q = ₀F₁(q + 1; z²/4)/(2^q Γ(q + 1)), which has no pole at z = 0.
        bessel = special.hyp0f1(order + 1, (kappa * across) ** 2 / 4) / (2**order * special.gamma(order + 1))
        log_scale = (
            (n / 2 - 1) * np.log(kappa) - 0.5 * np.log(2 * np.pi) - np.log(special.ive(n / 2 - 1, kappa)) - kappa
        )
        return np.asarray(np.exp(log_scale) * bessel * across ** (n - 3))

    def _later(self, t: Array, density: Callable[[Array], Array], cdf: Callable[[Array], Array]) -> Array:
        """The CDF of θ_{ij}, j > 1, from the density and the CDF of u = θ_{i1}.

        Given u it is √(1 − u²) times a coordinate of a uniform direction in ℝⁿ⁻¹, whose CDF is a beta function's. With
        u = √(1 − t²) sin φ the integrand is smooth to both ends; beyond them |θ_{ij}| < |t|.
        """
        t = np.asarray(t, dtype=float)[..., None]
        widest = np.sqrt(np.maximum(1 - t * t, 0))
        angle = np.pi / 2 * _NODES
        u = widest * np.sin(angle)
        s = np.clip(t / np.sqrt(np.maximum(1 - u * u, 1e-300)), -1, 1)
        half = (self.rows - 2) / 2
        below = special.betainc(half, half, (1 + s) / 2)
        inside = (density(u) * below * np.cos(angle) * _WEIGHTS).sum(axis=-1) * np.pi / 2 * widest[..., 0]
        beyond = 1 - cdf(widest[..., 0]) + cdf(-widest[..., 0])
        return np.asarray(inside + np.where(t[..., 0] > 0, beyond, 0.0))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        n = self.rows
        mean = integrate(lambda a: np.cos(a) * np.sin(a) * self._first(np.cos(a)), 0.0, np.pi)
        square = 1 - (n - 1) * mean / self.concentration
        kinds = ((self._first, mean, square), (self._other, 0.0, (1 - square) / (n - 1)))
        out: list[tuple[Any, Any]] = []
        grid = -np.cos(np.linspace(0, np.pi, 2049))
        for density, first, second in kinds:
            cdf = partial(_beyond, density_cdf(partial(_in_angle, density), 0.0, np.pi, 4096))
            later = partial(np.interp, xp=grid, fp=self._later(grid, density, cdf))
            out.append(((cdf, first, second - first**2), (later, 0.0, (1 - second) / (n - 1))))
        digits = "₁₂₃₄₅₆"
        return tuple(
            Column(f"θ{digits[i]}{digits[j]}", -1.0, 1.0, *out[min(i, 1)][min(j, 1)])
            for i in range(n)
            for j in range(self.vectors)
        )

    @property
    def moments(self) -> tuple[Moment, ...]:
        if self.vectors == 1:
            return super().moments
        # The columns are at a right angle, whatever the distribution.
        return (*super().moments, Moment("E first · second column", partial(_product, p=self.vectors), 0.0))

    tried_at = ({"rows": 4, "vectors": 3, "concentration": 0.1}, {"rows": 6, "vectors": 1, "concentration": 100.0})
    drawn_at = {"rows": 5, "vectors": 3, "concentration": 2.0}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        n, kappa = self.rows, self.concentration
        b = (n - 1) / (2 * kappa + np.sqrt(4 * kappa**2 + (n - 1) ** 2))
        x = (1 - b) / (1 + b)
        while True:
            z = rng.beta((n - 1) / 2, (n - 1) / 2)
            cosine = (1 - (1 + b) * z) / (1 - (1 - b) * z)
            height = kappa * (cosine - x) + (n - 1) * np.log((1 - x * cosine) / (1 - x * x))
            if np.log(1 - rng.random()) <= height:
                break
        frame = np.zeros((n, self.vectors))
        across = rng.standard_normal(n)[1:]
        frame[:, 0] = np.concatenate([[cosine], np.sqrt(1 - cosine**2) * across / np.linalg.norm(across)])
        for j in range(1, self.vectors):
            y = rng.standard_normal(n)
            y = y - frame[:, :j] @ (frame[:, :j].T @ y)
            frame[:, j] = y / np.linalg.norm(y)
        return frame.ravel()

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        return {r"\theta": theta.reshape(self.rows, self.vectors)}


def _log_area(n: int) -> float:
    """The log of the area of the unit sphere in ℝⁿ."""
    return float(np.log(2) + n / 2 * np.log(np.pi) - special.gammaln(n / 2))


def _in_angle(density: Callable[[Array], Array], angle: Array) -> Array:
    """The density of the angle whose cosine has this density: smooth also where the sphere ends."""
    return density(np.cos(angle)) * np.sin(angle)


def _beyond(cdf: Callable[[Array], Array], t: Array) -> Array:
    """P(cos a ≤ t) from the CDF of a."""
    return 1 - cdf(np.arccos(np.clip(t, -1, 1)))


def _product(values: Array, p: int) -> Array:
    return np.asarray((values[..., ::p] * values[..., 1::p]).sum(axis=-1))
