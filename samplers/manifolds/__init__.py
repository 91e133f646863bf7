"""The manifolds that samplers move on, one a file."""

from samplers.manifolds.base import Manifold
from samplers.manifolds.euclidean import Euclidean
from samplers.manifolds.product import Spheres
from samplers.manifolds.simplex import Simplex
from samplers.manifolds.sphere import Sphere
from samplers.manifolds.stiefel import Stiefel

__all__ = ["Euclidean", "Manifold", "Simplex", "Sphere", "Spheres", "Stiefel"]
