"""A product of equal spheres: each part moves along its own great circle. The torus is two circles."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.manifolds.base import Array, Manifold
from sgmcmc_lab.samplers.manifolds.sphere import Sphere, flow_part, project_part


@jit.project
def project(x, v, shape):
    size = shape[1]
    for c in range(x.shape[0]):
        for first in range(0, x.shape[1], size):
            project_part(x, v, c, first, size)


@jit.flow
def flow(x, v, time, shape):
    size = shape[1]
    for c in range(x.shape[0]):
        for first in range(0, x.shape[1], size):
            flow_part(x, v, c, first, size, time)


@dataclass(frozen=True)
class Spheres(Manifold):
    """(S^{n−1})ᵏ in ℝ^{kn}: k unit vectors of n coordinates, one after the other, of dimension m = k(n − 1)."""

    count: int = 2
    size: int = 2
    title = "Product of spheres"
    project, flow = project, flow

    @property
    def ambient(self) -> int:
        return self.count * self.size

    @property
    def dim(self) -> int:
        return self.count * (self.size - 1)

    def shape(self) -> NDArray[np.int64]:
        """[m, n]."""
        return np.array([self.dim, self.size], dtype=np.int64)

    def defect(self, x: Array, v: Array) -> Array:
        x, v = (a.reshape(*a.shape[:-1], self.count, self.size) for a in (x, v))
        worst = np.maximum(np.abs((x**2).sum(axis=-1) - 1), np.abs((x * v).sum(axis=-1)))
        return np.asarray(worst.max(axis=-1))

    def textbook_tangent(self, x: Array, v: Array) -> Array:
        return np.concatenate([Sphere(self.size).textbook_tangent(*part) for part in self._parts(x, v)])

    def textbook_geodesic(self, x: Array, v: Array, time: float) -> tuple[Array, Array]:
        moved = [Sphere(self.size).textbook_geodesic(*part, time) for part in self._parts(x, v)]
        return np.concatenate([y for y, _ in moved]), np.concatenate([w for _, w in moved])

    def _parts(self, x: Array, v: Array) -> list[tuple[Array, Array]]:
        return list(zip(x.reshape(self.count, self.size), v.reshape(self.count, self.size), strict=True))
