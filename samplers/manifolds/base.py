"""The declarations of every manifold: the projection of a momentum, the geodesic flow, the dimension.

A manifold lies in a space around it, ℝᵈ, and a point has that space's d coordinates. Its two compiled functions have
the signatures of ``jit.py`` and reach the kernels as pointers, like the energy of a target: one compiled splitting
serves all manifolds, and a new manifold is one file. (Measured for SGGMC on the 2-D quartic with four chains: the three
calls of a step take 10 of its 24 ns; on the circle, where they turn, 23 of 44.)

In the literature on geodesic Monte Carlo the momentum in these coordinates is the velocity v = dx/dt.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit

Array = NDArray[np.float64]


class Manifold(ABC):
    """A Riemannian manifold, isometrically embedded, whose geodesics are known."""

    title: ClassVar[str]
    project: ClassVar[Any]
    """Λ(x)v, the orthogonal projection onto the tangent space at x."""
    flow: ClassVar[Any]
    """The solution of the geodesic equation after a time, from (x, v)."""

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        jit.keep_plain(cls, "project", "flow")

    @property
    @abstractmethod
    def ambient(self) -> int:
        """d, the number of coordinates of a point."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """m, the dimension: the degrees of freedom of a momentum, and what a thermostat compares ‖v‖² with."""

    def shape(self) -> NDArray[np.int64]:
        """The argument of the compiled functions: the dimension, then what the manifold's own file says."""
        return np.array([self.dim], dtype=np.int64)

    @abstractmethod
    def defect(self, x: Array, v: Array) -> Array:
        """How far x (..., d) is from the manifold, and v from its tangent space at x; the larger of both."""

    @abstractmethod
    def textbook_tangent(self, x: Array, v: Array) -> Array:
        """Λ(x)v of one point (d,), as the textbook has it; the tests hold the compiled one against it."""

    @abstractmethod
    def textbook_geodesic(self, x: Array, v: Array, time: float) -> tuple[Array, Array]:
        """(x, v) of one point (d,) after a time, as the textbook has it."""

    def projected(self, x: Array, v: Array) -> Array:
        """Λ(x)v of many points and momenta (n, d)."""
        jit.prepare([self.project])
        out = np.array(v, dtype=float, order="C")
        self.project(np.ascontiguousarray(x), out, self.shape())
        return out

    def moved(self, x: Array, v: Array, time: float) -> tuple[Array, Array]:
        """(x, v) (n, d) after a time along their geodesics."""
        jit.prepare([self.flow])
        x, v = np.array(x, dtype=float, order="C"), np.array(v, dtype=float, order="C")
        self.flow(x, v, time, self.shape())
        return x, v
