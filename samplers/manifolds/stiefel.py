"""The Stiefel manifold V_{n,p}: n × p matrices whose columns are orthonormal."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.manifolds.base import Array, Manifold


@jit.helper
def _times(a, b):
    """ab of small matrices."""
    out = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                out[i, j] += a[i, k] * b[k, j]
    return out


@jit.helper
def _exponential(a):
    """exp(a): Taylor's series of a/2ˢ with ‖a/2ˢ‖ ≤ ½, whose 15th term is below rounding, then s squarings."""
    norm = 0.0
    for i in range(a.shape[0]):
        row = 0.0
        for j in range(a.shape[1]):
            row += abs(a[i, j])
        norm = max(norm, row)
    squarings = 0
    while norm > 0.5 and squarings < 60:
        norm /= 2
        squarings += 1
    scaled = a / 2.0**squarings
    out = np.eye(a.shape[0])
    for k in range(14, 0, -1):
        out = _times(scaled, out) / k
        for i in range(a.shape[0]):
            out[i, i] += 1
    for _ in range(squarings):
        out = _times(out, out)
    return out


@jit.helper
def _make_tangent(x, v):
    """v ← v − x(xᵀv + vᵀx)/2, for matrices (n, p)."""
    n, p = x.shape
    for a in range(p):
        for b in range(a + 1):
            along = 0.0
            for i in range(n):
                along += x[i, a] * v[i, b] + v[i, a] * x[i, b]
            # The part removed for (a, b) lies along x and is symmetric: it leaves the other pairs as they are.
            for i in range(n):
                v[i, b] -= along / 2 * x[i, a]
                if a != b:
                    v[i, a] -= along / 2 * x[i, b]


@jit.project
def project(x, v, shape):
    n, p = shape[1], shape[2]
    for c in range(x.shape[0]):
        _make_tangent(x[c].reshape((n, p)), v[c, : n * p].reshape((n, p)))


@jit.flow
def flow(x, v, time, shape):
    n, p = shape[1], shape[2]
    generator = np.zeros((2 * p, 2 * p))
    for c in range(x.shape[0]):
        point, velocity = x[c].reshape((n, p)), v[c, : n * p].reshape((n, p))
        turn, stretch = _times(point.T, velocity), _times(velocity.T, velocity)
        for a in range(p):
            for b in range(p):
                # A = xᵀv is skew; the rounding that makes it otherwise would grow.
                skew = (turn[a, b] - turn[b, a]) / 2 * time
                generator[a, b] = generator[p + a, p + b] = skew
                generator[a, p + b] = -stretch[a, b] * time
                generator[p + a, b] = time if a == b else 0.0
        ahead = _exponential(generator)
        back = _exponential(-generator[:p, :p])
        both = np.empty((n, 2 * p))
        both[:, :p], both[:, p:] = point, velocity
        both = _times(both, ahead)
        y, w = _times(both[:, :p].copy(), back), _times(both[:, p:].copy(), back)
        # One step of Newton's iteration for the nearest orthonormal columns undoes the rounding.
        gram = -_times(y.T, y) / 2
        for a in range(p):
            gram[a, a] += 1.5
        point[:] = _times(y, gram)
        velocity[:] = w
        _make_tangent(point, velocity)


@dataclass(frozen=True)
class Stiefel(Manifold):
    """V_{n,p} = {x ∈ ℝ^{n×p}: xᵀx = I}, of dimension m = np − p(p + 1)/2, with the metric of ℝ^{n×p}.

    Λ(x)v = v − x(xᵀv + vᵀx)/2. With A = xᵀv and S = vᵀv:
    [x(t), v(t)] = [x, v] exp(t[[A, −S], [I, A]]) diag(e^{−tA}, e^{−tA}) (Edelman, Arias & Smith 1998; Byrne & Girolami
    2013, section 4.3). Cost ~ np² + p³, so small p. A point is stored row by row. V_{n,1} is the sphere.
    """

    rows: int = 3
    columns: int = 2
    title = "Stiefel manifold"
    project, flow = project, flow

    @property
    def ambient(self) -> int:
        return self.rows * self.columns

    @property
    def dim(self) -> int:
        return self.rows * self.columns - self.columns * (self.columns + 1) // 2

    def shape(self) -> NDArray[np.int64]:
        """[m, n, p]."""
        return np.array([self.dim, self.rows, self.columns], dtype=np.int64)

    def defect(self, x: Array, v: Array) -> Array:
        x, v = (a.reshape(*a.shape[:-1], self.rows, self.columns) for a in (x, v))
        gram = np.swapaxes(x, -1, -2) @ x - np.eye(self.columns)
        turn = np.swapaxes(x, -1, -2) @ v
        return np.maximum(np.abs(gram), np.abs(turn + np.swapaxes(turn, -1, -2))).max(axis=(-1, -2))

    def textbook_tangent(self, x: Array, v: Array) -> Array:
        x, v = x.reshape(self.rows, self.columns), v.reshape(self.rows, self.columns)
        return np.asarray(v - x @ (x.T @ v + v.T @ x) / 2).ravel()

    def textbook_geodesic(self, x: Array, v: Array, time: float) -> tuple[Array, Array]:
        x, v = x.reshape(self.rows, self.columns), v.reshape(self.rows, self.columns)
        turn, stretch = x.T @ v, v.T @ v
        both = np.hstack([x, v]) @ expm(time * np.block([[turn, -stretch], [np.eye(self.columns), turn]]))
        back = expm(-time * turn)
        return (both[:, : self.columns] @ back).ravel(), (both[:, self.columns :] @ back).ravel()
