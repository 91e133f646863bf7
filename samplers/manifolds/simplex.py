"""The simplex through its square root: the part of a sphere where all coordinates are positive, with reflection."""

from dataclasses import dataclass

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.manifolds.base import Array, Manifold
from sgmcmc_lab.samplers.manifolds.sphere import Sphere, flow_part, project_part


@jit.project
def project(x, v, shape):
    for c in range(x.shape[0]):
        project_part(x, v, c, 0, x.shape[1])


@jit.flow
def flow(x, v, time, shape):
    for c in range(x.shape[0]):
        flow_part(x, v, c, 0, x.shape[1], time)
        # Changing the sign of a coordinate maps the sphere onto itself. So a path that is reflected at every wall
        # it meets is the free path, folded: no wall needs to be found.
        for i in range(x.shape[1]):
            if x[c, i] < 0:
                x[c, i] = -x[c, i]
                v[c, i] = -v[c, i]


@dataclass(frozen=True)
class Simplex(Manifold):
    """{y ∈ S^{d−1}: y ≥ 0} with ω = y² on the simplex, of dimension m = d − 1.

    Great circles, reflected at the walls y_i = 0, where v_i changes its sign. y ↦ y² takes the sphere's metric to a
    quarter of Fisher's; a density p(ω) on the simplex becomes p(y²) Π y_i, up to a constant, on the sphere.
    """

    ambient: int = 3
    title = "Simplex"
    project, flow = project, flow

    @property
    def dim(self) -> int:
        return self.ambient - 1

    def defect(self, x: Array, v: Array) -> Array:
        on_sphere = np.maximum(np.abs((x**2).sum(axis=-1) - 1), np.abs((x * v).sum(axis=-1)))
        return np.maximum(on_sphere, np.maximum(-x, 0).max(axis=-1))

    def textbook_tangent(self, x: Array, v: Array) -> Array:
        return Sphere(self.ambient).textbook_tangent(x, v)

    def textbook_geodesic(self, x: Array, v: Array, time: float) -> tuple[Array, Array]:
        y, w = Sphere(self.ambient).textbook_geodesic(x, v, time)
        return np.abs(y), np.where(y < 0, -w, w)
