"""Flat space ℝᵈ: straight lines."""

from dataclasses import dataclass

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.manifolds.base import Array, Manifold


@jit.project
def project(x, v, shape):
    pass


@jit.flow
def flow(x, v, time, shape):
    for c in range(x.shape[0]):
        for i in range(x.shape[1]):
            x[c, i] += time * v[c, i]


@dataclass(frozen=True)
class Euclidean(Manifold):
    """ℝᵈ: Λ = I, x(t) = x + tv, v(t) = v, m = d."""

    ambient: int = 1
    title = "ℝᵈ"
    project, flow = project, flow

    @property
    def dim(self) -> int:
        return self.ambient

    def defect(self, x: Array, v: Array) -> Array:
        return np.zeros(x.shape[:-1])

    def textbook_tangent(self, x: Array, v: Array) -> Array:
        return v.copy()

    def textbook_geodesic(self, x: Array, v: Array, time: float) -> tuple[Array, Array]:
        return x + time * v, v.copy()
