"""The laws that samplers on the circle really have at a step size: stationary laws of one step, by linear algebra.

A state is the angle φ and, where the sampler has them, the velocity ω = dφ/dt and the thermostat ξ. Its density lives
on a grid: φ and ξ periodic, so that flows shift exactly by Fourier series; over ω the normal kick is integrated by the
trapezoidal rule. Both converge faster than any power of the spacing, so that biases far below what a simulation
resolves come out without noise. Nothing here is shared with the kernels.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.sparse.linalg import LinearOperator, gmres

Array = NDArray[np.float64]
Slope = Callable[[Array], Array]
"""dU/dφ."""

REACH = 8.0
"""Standard deviations of ω on each side of 0, and of ξ about C, that the grid holds: all mass but 1e-15."""
TOY_BIAS = 1e-3
"""The bound of the tests on the bias of SGGMC on the toy at ε = .005, C = 2.5: (Cε)²/6 = 3e-5 of the temperature and
(εω)²/8 with ω² ≈ 5 are far below it."""


class Law(NamedTuple):
    """A stationary law: grids, and the mass of each point, (φ,), (φ, ω) or (φ, ω, ξ)."""

    angle: Array
    velocity: Array
    mass: Array

    def mean(self, function: Callable[[Array], Array]) -> float:
        """E f(φ)."""
        return float(function(self.angle) @ self.mass.reshape(len(self.angle), -1).sum(axis=1))

    @property
    def temperature(self) -> float:
        """E ω²."""
        return float((self.velocity**2) @ self.mass.reshape(*self.mass.shape[:2], -1).sum(axis=(0, 2)))

    def drift(self, function: Callable[[Array], Array]) -> float:
        """E ω f(φ), which is 0 for a law that does not know the direction of time."""
        return float(function(self.angle) @ self.mass.reshape(*self.mass.shape[:2], -1).sum(axis=2) @ self.velocity)


def _stationary(step: Callable[[Array], Array], first: Array) -> Array:
    """The fixed point of a linear map of masses: p − step(p) + u Σp = u, with u any mass, here ``first``."""
    n, shape = first.size, first.shape
    u = first.ravel() / first.sum()
    operator = LinearOperator((n, n), matvec=lambda p: p - step(p.reshape(shape)).ravel() + u * p.sum(), dtype=float)
    mass, left = gmres(operator, u, x0=u, rtol=1e-10, restart=100, maxiter=50)
    if left or abs(mass.sum() - 1) > 1e-6:
        raise ArithmeticError(f"no stationary law: mass {mass.sum()}")
    return np.asarray(mass.reshape(shape))


def _normal(mean: Array, sigma: Array | float, grid: Array) -> Array:
    """Masses on ``grid`` (its last axis is new) of N(mean, sigma²)."""
    z = (grid - np.asarray(mean)[..., None]) / np.asarray(sigma)[..., None]
    return np.asarray(np.exp(-(z**2) / 2) * (grid[1] - grid[0]) / np.sqrt(2 * np.pi) / np.asarray(sigma)[..., None])


def splitting_law(
    slope: Slope,
    eps: float,
    friction: float,
    *,
    thermostat: bool = False,
    euler: bool = False,
    fault: str = "",
    n_angles: int = 48,
) -> Law:
    """The law of SGGMC or, with ``thermostat``, gSGNHT: ABOBA, or explicit Euler along geodesics.

    ``fault`` leaves out a half step of ABOBA, whose other half is then a whole one: ``A`` the flow after the kick,
    ``B`` the damping after it.
    """
    narrowest = np.sqrt(2 * friction * eps) * (0.9 if euler else np.exp(-friction * eps / 2))
    if thermostat:
        narrowest *= np.exp(-2 * eps)
    # A normal kernel of 1.3 spacings is integrated to 1e-14.
    spacing = min(narrowest / 1.3, 0.5)
    velocity = np.arange(-np.ceil(REACH / spacing), np.ceil(REACH / spacing) + 1) * spacing
    angle = np.arange(n_angles) * 2 * np.pi / n_angles
    xi = np.arange(32) / 32 * 2 * REACH + friction - REACH if thermostat else np.array([friction])
    waves = np.arange(n_angles // 2 + 1)[:, None, None]
    xi_waves = np.fft.fftfreq(len(xi), 1 / len(xi)) * np.pi / REACH
    heat = np.sqrt(2 * friction * eps)

    def flow(p: Array, time: float) -> Array:
        turn = np.exp(-1j * waves * time * velocity[:, None])
        if not thermostat:
            return np.fft.irfft(np.fft.rfft(p, axis=0) * turn, n_angles, axis=0)
        warm = np.exp(-1j * xi_waves * (velocity[:, None] ** 2 - 1) * time)
        spectrum = np.fft.fft(np.fft.rfft(p, axis=0), axis=2) * turn * warm
        return np.fft.irfft(np.fft.ifft(spectrum, axis=2), n_angles, axis=0)

    def kick(p: Array) -> Array:
        return np.asarray(np.matmul(p.transpose(0, 2, 1)[:, :, None, :], kernel)[:, :, 0].transpose(0, 2, 1))

    if euler:
        # The old gradient, taken to the new tangent: its cosine is that of the angle between them.
        before = angle[:, None] - eps * velocity
        cosine = np.cos(eps * velocity)
        mean = (1 - xi * eps) * velocity[:, None] - eps * (cosine * slope(before))[..., None]
        sigma = np.broadcast_to(np.maximum(heat * np.abs(cosine), spacing * 0.8)[:, None], mean.shape)
        kernel = np.ascontiguousarray(_normal(mean, sigma, velocity).transpose(0, 2, 1, 3))

        def step(p: Array) -> Array:
            return kick(flow(p, eps))

    else:
        damp = np.exp(-xi * eps / 2)
        after = np.ones_like(damp) if fault == "B" else damp
        mean = damp**2 * velocity[:, None] - after * eps * slope(angle)[:, None, None]
        kernel = np.ascontiguousarray(_normal(mean, after * heat, velocity).transpose(0, 2, 1, 3))

        def step(p: Array) -> Array:
            kicked = kick(flow(p, eps if fault == "A" else eps / 2))
            return kicked if fault == "A" else flow(kicked, eps / 2)

    first = np.exp(-(velocity**2) / 2)[:, None] * np.exp(-((xi - friction) ** 2) / 2)
    mass = _stationary(step, np.tile(first, (n_angles, 1, 1)))
    return Law(angle, velocity, mass)


def overdamped_law(slope: Slope, radial: Slope, eps: float, *, normalise: bool = False, n_angles: int = 256) -> Law:
    """The law of SGLD in the angle, φ ← φ − εU'(φ) + N(0, 2ε), or of a step in the plane that is then normalised.

    ``radial`` is ∂U/∂r on the circle: in the plane the step's end is normal about (1 − ε∂U/∂r, −εU'), whose direction
    has the projected normal law (Mardia & Jupp 2000, section 3.5.6).
    """
    angle = np.arange(n_angles) * 2 * np.pi / n_angles
    sigma = np.sqrt(2 * eps)
    turned = angle[None, :] - angle[:, None]
    if normalise:
        ahead, aside = 1 - eps * radial(angle)[:, None], -eps * slope(angle)[:, None]
        along = (ahead * np.cos(turned) + aside * np.sin(turned)) / sigma
        square = (ahead**2 + aside**2) / sigma**2
        density = np.exp(-square / 2) + np.sqrt(2 * np.pi) * along * special.ndtr(along) * np.exp(
            (along**2 - square) / 2
        )
    else:
        around = 2 * np.pi * np.arange(-2, 3)[:, None, None]
        density = np.exp(-((turned + eps * slope(angle)[:, None] + around) ** 2) / (4 * eps)).sum(axis=0)
    move = density / density.sum(axis=1, keepdims=True)
    mass = _stationary(lambda p: p @ move, np.ones(n_angles))
    return Law(angle, np.zeros(0), mass)
