"""The sphere S^{d−1} of unit vectors in ℝᵈ: great circles. The circle is d = 2."""

from dataclasses import dataclass
from math import cos, sin, sqrt

import numpy as np
from numpy.typing import NDArray

from samplers import jit
from samplers.manifolds.base import Array, Manifold


@jit.helper
def project_part(x, v, c, first, size):
    """v − (x·v)x, for the part of chain ``c`` that lies on a sphere of its own."""
    along = 0.0
    for i in range(first, first + size):
        along += x[c, i] * v[c, i]
    for i in range(first, first + size):
        v[c, i] -= along * x[c, i]


@jit.helper
def flow_part(x, v, c, first, size, time):
    """Along the great circle, for the part of chain ``c`` that lies on a sphere of its own.

    The first-order term of 1/‖x‖ undoes each step's rounding, so that none adds up.
    """
    if size == 2:
        # On the circle the velocity is one number, ω = dφ/dt, and the flow turns by the angle ωt.
        x0, x1 = x[c, first], x[c, first + 1]
        speed = x0 * v[c, first + 1] - x1 * v[c, first]
        cosine, sine = cos(speed * time), sin(speed * time)
        scale = 1.5 - 0.5 * (x0 * x0 + x1 * x1)
        y0, y1 = scale * (x0 * cosine - x1 * sine), scale * (x0 * sine + x1 * cosine)
        x[c, first], x[c, first + 1] = y0, y1
        v[c, first], v[c, first + 1] = -speed * y1, speed * y0
        return
    square = 0.0
    for i in range(first, first + size):
        square += v[c, i] * v[c, i]
    speed = sqrt(square)
    if speed == 0:
        return
    cosine, sine = cos(speed * time), sin(speed * time)
    length = along = 0.0
    for i in range(first, first + size):
        y = x[c, i] * cosine + v[c, i] / speed * sine
        v[c, i] = v[c, i] * cosine - x[c, i] * speed * sine
        x[c, i] = y
        length += y * y
        along += y * v[c, i]
    scale = 1.5 - 0.5 * length
    for i in range(first, first + size):
        v[c, i] -= along * x[c, i]
        x[c, i] *= scale


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

    ambient: int = 2  # type: ignore[assignment]
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
