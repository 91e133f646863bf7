"""Von Mises–Fisher distributions on the circle and on S², and what their mixtures share."""

from functools import cached_property, partial
from math import cos, exp, log, pi, sin, sqrt

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.manifolds import Manifold, Sphere
from sgmcmc_lab.samplers.parameters import Real, Value
from sgmcmc_lab.samplers.targets.base import MANIFOLD, Array, Column, Moment, Target
from sgmcmc_lab.samplers.targets.expectations import sum_products, sum_waves
from sgmcmc_lab.samplers.targets.quadrature import density_cdf, integrate

# The packed parameters: the number of components, then of each its weight, the log of weight × normaliser, κ and μ (d).
_FIRST, _HEADER = 1, 3


@jit.helper
def _exponent(theta, c, j, params):
    """The log of the density of component j, weight included, at the point of chain c; and the index of its μ."""
    dim = theta.shape[1]
    at = _FIRST + j * (_HEADER + dim) + _HEADER
    cosine = 0.0
    for i in range(dim):
        cosine += params[at + i] * theta[c, i]
    return params[at - 2] + params[at - 1] * cosine, at


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        largest, _ = _exponent(theta, c, 0, params)
        total = 1.0
        for j in range(1, int(params[0])):
            exponent, _ = _exponent(theta, c, j, params)
            if exponent > largest:
                total *= np.exp(largest - exponent)
                largest = exponent
            total += np.exp(exponent - largest)
        out[c] = -largest - np.log(total)


@jit.gradient
def gradient(theta, out, params):
    dim, components = theta.shape[1], int(params[0])
    for c in range(theta.shape[0]):
        # The components' shares at x, relative to the largest of those met so far.
        largest, at = _exponent(theta, c, 0, params)
        total = 1.0
        for i in range(dim):
            out[c, i] = -params[at - 1] * params[at + i]
        for j in range(1, components):
            exponent, at = _exponent(theta, c, j, params)
            smaller = np.exp(-abs(exponent - largest))
            shrink, share = (smaller, 1.0) if exponent > largest else (1.0, smaller)
            largest = max(largest, exponent)
            total = total * shrink + share
            for i in range(dim):
                out[c, i] = out[c, i] * shrink - share * params[at - 1] * params[at + i]
        if components > 1:
            for i in range(dim):
                out[c, i] /= total


@jit.inlined
def _cosine(rng, concentration, dim):
    """The cosine of the angle to μ: on S² its CDF inverted, on the circle by Best & Fisher (1979)."""
    if dim == 3:
        u = rng.random()
        return 1 + np.log(u + (1 - u) * np.exp(-2 * concentration)) / concentration
    tau = 1 + np.sqrt(1 + 4 * concentration * concentration)
    rho = (tau - np.sqrt(2 * tau)) / (2 * concentration)
    r = (1 + rho * rho) / (2 * rho)
    while True:
        z = np.cos(np.pi * rng.random())
        f = (1 + r * z) / (r + z)
        c, u = concentration * (r - f), 1 - rng.random()
        if u < c * (2 - c) or np.log(c / u) + 1 - c >= 0:
            break
    return min(max(f, -1.0), 1.0)


@jit.draw
def draw(rng, out, params):
    dim = out.shape[1]
    last = int(params[0]) - 1
    for c in range(out.shape[0]):
        u = rng.random()
        j = 0
        while j < last and u >= params[_FIRST + j * (_HEADER + dim)]:
            u -= params[_FIRST + j * (_HEADER + dim)]
            j += 1
        at = _FIRST + j * (_HEADER + dim) + _HEADER
        cosine = _cosine(rng, params[at - 1], dim)
        # A direction across μ, uniform: a normal vector, projected.
        along = square = 0.0
        for i in range(dim):
            out[c, i] = rng.standard_normal()
            along += out[c, i] * params[at + i]
        for i in range(dim):
            out[c, i] -= along * params[at + i]
            square += out[c, i] * out[c, i]
        scale = np.sqrt((1 - cosine * cosine) / square)
        for i in range(dim):
            out[c, i] = cosine * params[at + i] + scale * out[c, i]


@jit.observe
def observe_angle(draws, n, out):
    """φ of x = (cos φ, sin φ)."""
    for c in range(draws.shape[1]):
        for t in range(n):
            out[0, c, t] = np.arctan2(draws[t, c, 1], draws[t, c, 0])


def log_normaliser(concentration: Array | float, dim: int) -> Array:
    """log c_d(κ) + κ, where c_d(κ) e^{κ μ·x} is the density on the circle (d = 2) or on S² (d = 3)."""
    kappa = np.asarray(concentration, dtype=float)
    if dim == 2:
        return -np.log(2 * np.pi * special.i0e(kappa))
    return np.log(kappa / (-2 * np.pi * np.expm1(-2 * kappa)))


class MisesFisher(Target):
    """A mixture Σ_j w_j c_d(κ_j) e^{κ_j μ_j·x} on S^{d−1}; a single distribution is a mixture of one."""

    support, geometry = MANIFOLD, Sphere
    potential, gradient, draw = potential, gradient, draw

    @property
    def weights(self) -> Array:
        """w_j, (k,)."""
        return np.ones(1)

    @property
    def concentrations(self) -> Array:
        """κ_j, (k,)."""
        raise NotImplementedError

    @property
    def centres(self) -> Array:
        """μ_j, (k, d)."""
        raise NotImplementedError

    @cached_property
    def manifold(self) -> Manifold:
        return Sphere(self.dim)

    def packed(self) -> Array:
        w, kappa, mu = self.weights, self.concentrations, self.centres
        heights = np.log(w) + log_normaliser(kappa, self.dim) - kappa
        return np.concatenate([[len(w)], np.column_stack([w, heights, kappa, mu]).ravel()])

    def start(self) -> Array:
        return np.array(self.centres[0])

    def log_density(self, theta: Array) -> Array:
        """With respect to the length of arc, or the area."""
        kappa = self.concentrations
        heights = np.log(self.weights) + log_normaliser(kappa, self.dim) - kappa
        return special.logsumexp(heights + kappa * (theta @ self.centres.T), axis=-1)


class OnCircle(MisesFisher):
    """The common part of the distributions on the circle: the column is the angle φ in [−π, π]."""

    dim = 2
    observe = observe_angle

    @property
    def angles(self) -> Array:
        """The angles of the centres, (k,)."""
        raise NotImplementedError

    @property
    def centres(self) -> Array:
        return np.stack([np.cos(self.angles), np.sin(self.angles)], axis=-1)

    def log_column_density(self, values: Array) -> Array:
        angle = values[..., 0]
        return self.log_density(np.stack([np.cos(angle), np.sin(angle)], axis=-1))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        def density(x: Array) -> Array:
            return np.asarray(np.exp(self.log_column_density(x[..., None])))

        mean = integrate(lambda x: x * density(x), -np.pi, np.pi)
        variance = integrate(lambda x: (x - mean) ** 2 * density(x), -np.pi, np.pi)
        return (Column("φ", -np.pi, np.pi, density_cdf(density, -np.pi, np.pi, 4096), mean, variance),)

    @property
    def moments(self) -> tuple[Moment, ...]:
        def expected(k: int, wave: float) -> float:
            ratios = special.ive(k, self.concentrations) / special.i0e(self.concentrations)
            return float(self.weights @ (ratios * np.cos(k * self.angles - wave)))

        return (
            *super().moments,
            Moment.compiled("E cos φ", sum_waves, (1.0, 0.0), expected(1, 0.0)),
            Moment.compiled("E sin φ", sum_waves, (1.0, np.pi / 2), expected(1, np.pi / 2)),
            Moment.compiled("E cos 2φ", sum_waves, (2.0, 0.0), expected(2, 0.0)),
        )


class OnSphere(MisesFisher):
    """The common part of the distributions on S²: the columns are the three coordinates."""

    dim = 3

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        w, kappa = self.weights, self.concentrations
        # E t = coth κ − 1/κ and E t² = 1 − 2 E t/κ of t = μ·x.
        first = 1 / np.tanh(kappa) - 1 / kappa
        second = 1 - 2 * first / kappa
        out = []
        for name, mu in zip("xyz", self.centres.T, strict=True):
            mean = float(w @ (first * mu))
            square = float(w @ (second * mu**2 + (1 - second) / 2 * (1 - mu**2)))
            cdf = density_cdf(partial(self._marginal, mu=mu), -1.0, 1.0, 8192)
            out.append(Column(name, -1.0, 1.0, cdf, mean, square - mean**2))
        return tuple(out)

    def _marginal(self, t: Array, mu: Array) -> Array:
        """The density of a coordinate, in which the centres have the coordinate ``mu`` (k,): around it, I₀."""
        kappa, height = self.concentrations, np.asarray(t)[..., None]
        across = kappa * np.sqrt(np.maximum(1 - mu**2, 0) * np.maximum(1 - height**2, 0))
        exponent = kappa * mu * height + across - kappa + log_normaliser(kappa, 3)
        return np.asarray((2 * np.pi * special.i0e(across) * np.exp(exponent)) @ self.weights)

    @property
    def moments(self) -> tuple[Moment, ...]:
        w, kappa, mu = self.weights, self.concentrations, self.centres
        first = 1 / np.tanh(kappa) - 1 / kappa
        second = 1 - 2 * first / kappa
        mean = (w * first) @ mu
        cross = (w * (second - (1 - second) / 2)) @ (mu[:, 0] * mu[:, 1]) - mean[0] * mean[1]
        return (
            *super().moments,
            Moment.compiled("Cov(x, y)", sum_products, (mean[0], mean[1]), float(cross)),
        )


class VonMises(OnCircle):
    """The von Mises distribution on the circle: density e^{κ cos(φ − φ₀)}/(2π I₀(κ))."""

    key = "von_mises"
    title = "Von Mises (circle)"
    tex = r"U(\theta) = -\kappa\,\mu\cdot\theta,\quad \mu = (\cos\varphi_0, \sin\varphi_0),\ \lVert\theta\rVert = 1"
    source = "Mardia & Jupp 2000, section 3.5"

    angle = Real(
        1.0,
        bounds=(-3.141592653589793, 3.141592653589793),
        tex=r"\varphi_0",
        label="Centre φ₀",
        doc="The angle at which the density is largest.",
        unit="rad",
    )
    concentration = Real(
        4.0,
        bounds=(0.1, 100.0),
        log=True,
        tex=r"\kappa",
        label="Concentration κ",
        doc="How narrow the distribution is; like the inverse of a variance.",
    )

    @property
    def angles(self) -> Array:
        return np.array([self.angle])

    def at_temperature(self, temperature: float) -> dict[str, Value]:
        return {"concentration": float(self.concentration / temperature)}

    @property
    def concentrations(self) -> Array:
        return np.array([self.concentration])

    tried_at = ({"angle": -np.pi, "concentration": 100.0}, {"angle": 3.0, "concentration": 0.1})
    drawn_at = {"angle": -2.0, "concentration": 1.5}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        rng.random()
        return textbook_direction(rng, np.array([cos(self.angle), sin(self.angle)]), self.concentration)


class Fisher(OnSphere):
    """The von Mises–Fisher distribution on S²: density κ e^{κ μ·x}/(4π sinh κ)."""

    key = "fisher"
    title = "Von Mises–Fisher (sphere)"
    tex = r"U(\theta) = -\kappa\,\mu\cdot\theta,\quad \mu = (\sin\alpha\cos\beta, \sin\alpha\sin\beta, \cos\alpha),\ \lVert\theta\rVert = 1"
    source = "Fisher 1953; Mardia & Jupp 2000, section 9.3"

    colatitude = Real(
        1.0,
        bounds=(0.0, 3.141592653589793),
        tex=r"\alpha",
        label="Colatitude α",
        doc="How far the centre is from the north pole.",
        unit="rad",
    )
    longitude = Real(
        0.7,
        bounds=(-3.141592653589793, 3.141592653589793),
        tex=r"\beta",
        label="Longitude β",
        doc="The angle of the centre around the axis.",
        unit="rad",
    )
    concentration = Real(
        4.0,
        bounds=(0.1, 100.0),
        log=True,
        tex=r"\kappa",
        label="Concentration κ",
        doc="How narrow the distribution is; like the inverse of a variance.",
    )

    @property
    def centres(self) -> Array:
        sine = np.sin(self.colatitude)
        return np.array([[sine * np.cos(self.longitude), sine * np.sin(self.longitude), np.cos(self.colatitude)]])

    def at_temperature(self, temperature: float) -> dict[str, Value]:
        return {"concentration": float(self.concentration / temperature)}

    @property
    def concentrations(self) -> Array:
        return np.array([self.concentration])

    tried_at = ({"colatitude": 0.0, "concentration": 100.0}, {"colatitude": np.pi / 2, "concentration": 0.1})
    drawn_at = {"colatitude": 2.0, "longitude": -1.0, "concentration": 2.5}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        rng.random()
        a, b = self.colatitude, self.longitude
        return textbook_direction(rng, np.array([sin(a) * cos(b), sin(a) * sin(b), cos(a)]), self.concentration)


def textbook_direction(rng: np.random.Generator, centre: Array, kappa: float) -> Array:
    """A von Mises–Fisher draw about a unit vector, in plain Python.

    The cosine is drawn on S² by inverting its CDF, on the circle by Best and Fisher's rejection.
    """
    if len(centre) == 3:
        u = rng.random()
        cosine = 1 + log(u + (1 - u) * exp(-2 * kappa)) / kappa
    else:
        tau = 1 + sqrt(1 + 4 * kappa**2)
        rho = (tau - sqrt(2 * tau)) / (2 * kappa)
        r = (1 + rho**2) / (2 * rho)
        while True:
            z = cos(pi * rng.random())
            cosine = (1 + r * z) / (r + z)
            c, u = kappa * (r - cosine), 1 - rng.random()
            if c * (2 - c) > u or log(c / u) + 1 >= c:
                break
    across = rng.standard_normal(len(centre))
    across -= (across @ centre) * centre
    return np.asarray(cosine * centre + sqrt(1 - cosine**2) * across / np.linalg.norm(across))
