"""The sphere S^{d−1} of unit vectors in ℝᵈ: great circles. The circle is d = 2."""

from dataclasses import dataclass
from math import cos, factorial, sin, sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.manifolds.base import Array, Manifold

# Taylor's coefficients of cos and of sin, after the first. Multiplications are several times faster than divisions.
_C = tuple((-1) ** k / factorial(2 * k) for k in range(1, 7))
_S = tuple((-1) ** k / factorial(2 * k + 1) for k in range(1, 7))


@jit.inlined
def project_part(x, v, c, first, size):
    """v − (x·v)x, for the part of chain ``c`` that lies on a sphere of its own."""
    if size == 2:
        x0, x1, v0, v1 = x[c, first], x[c, first + 1], v[c, first], v[c, first + 1]
        speed = x0 * v1 - x1 * v0
        v[c, first], v[c, first + 1] = -speed * x1, speed * x0
    else:
        along = 0.0
        for i in range(size):
            along += x[c, first + i] * v[c, first + i]
        for i in range(size):
            v[c, first + i] -= along * x[c, first + i]


@jit.inlined
def cosine_and_sine(angle):
    """cos and sin, by Taylor's series, to rounding, where the angle is as small as that of a step should be.

    A step on the circle turns twice; with the library's functions that took half of its time.
    """
    if abs(angle) > 0.35:
        cosine, sine = cos(angle), sin(angle)
    else:
        q = angle * angle
        cosine = 1 + q * (_C[0] + q * (_C[1] + q * (_C[2] + q * (_C[3] + q * (_C[4] + q * _C[5])))))
        sine = angle * (1 + q * (_S[0] + q * (_S[1] + q * (_S[2] + q * (_S[3] + q * (_S[4] + q * _S[5]))))))
    return cosine, sine


@jit.inlined
def flow_part(x, v, c, first, size, time):
    """Along the great circle, for the part of chain ``c`` that lies on a sphere of its own.

    The first-order term of 1/‖x‖ undoes each step's rounding, so that none adds up.
    """
    if size == 2:
        # On the circle the velocity is one number, ω = dφ/dt, and the flow turns by the angle ωt.
        x0, x1, v0, v1 = x[c, first], x[c, first + 1], v[c, first], v[c, first + 1]
        speed = x0 * v1 - x1 * v0
        cosine, sine = cosine_and_sine(speed * time)
        scale = 1.5 - 0.5 * (x0 * x0 + x1 * x1)
        cosine, sine = scale * cosine, scale * sine
        y0, y1 = x0 * cosine - x1 * sine, x0 * sine + x1 * cosine
        x[c, first], x[c, first + 1] = y0, y1
        v[c, first], v[c, first + 1] = -speed * y1, speed * y0
    else:
        square = 0.0
        for i in range(size):
            square += v[c, first + i] * v[c, first + i]
        speed = sqrt(square)
        cosine, sine = cosine_and_sine(speed * time)
        # sin(αt)/α, which is t where the momentum is zero.
        reach = sine / speed if speed > 0 else time
        length = along = 0.0
        for i in range(size):
            y = x[c, first + i] * cosine + v[c, first + i] * reach
            v[c, first + i] = v[c, first + i] * cosine - x[c, first + i] * speed * sine
            x[c, first + i] = y
            length += y * y
            along += y * v[c, first + i]
        scale = 1.5 - 0.5 * length
        for i in range(size):
            v[c, first + i] -= along * x[c, first + i]
            x[c, first + i] *= scale


@jit.project
def project(x, v, shape):
    for c in range(x.shape[0]):
        project_part(x, v, c, 0, x.shape[1])


@jit.flow
def flow(x, v, time, shape):
    for c in range(x.shape[0]):
        flow_part(x, v, c, 0, x.shape[1], time)


@dataclass(frozen=True)
class Sphere(Manifold):
    """S^{d−1} = {x ∈ ℝᵈ: ‖x‖ = 1}, of dimension m = d − 1.

    Λ(x) = I − xxᵀ. With α = ‖v‖: x(t) = x cos αt + (v/α) sin αt, v(t) = −αx sin αt + v cos αt. (Liu, Zhu & Song 2016,
    eq 7, whose print lost the minus sign.)
    """

    ambient: int = 2
    title = "Sphere"
    project, flow = project, flow

    @property
    def dim(self) -> int:
        return self.ambient - 1

    def shape(self) -> NDArray[np.int64]:
        """[m, d]."""
        return np.array([self.dim, self.ambient], dtype=np.int64)

    def defect(self, x: Array, v: Array) -> Array:
        return np.maximum(np.abs((x**2).sum(axis=-1) - 1), np.abs((x * v).sum(axis=-1)))

    def textbook_tangent(self, x: Array, v: Array) -> Array:
        return v - (x @ v) * x

    def textbook_geodesic(self, x: Array, v: Array, time: float) -> tuple[Array, Array]:
        speed = np.linalg.norm(v)
        c, s = np.cos(speed * time), np.sin(speed * time)
        return x * c + v / speed * s, v * c - speed * x * s
