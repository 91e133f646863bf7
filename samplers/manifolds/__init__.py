"""The manifolds that samplers move on, one a file."""

from sgmcmc_lab.samplers.manifolds.base import Manifold
from sgmcmc_lab.samplers.manifolds.euclidean import Euclidean
from sgmcmc_lab.samplers.manifolds.product import Spheres
from sgmcmc_lab.samplers.manifolds.simplex import Simplex
from sgmcmc_lab.samplers.manifolds.sphere import Sphere
from sgmcmc_lab.samplers.manifolds.stiefel import Stiefel

__all__ = ["Euclidean", "Manifold", "Simplex", "Sphere", "Spheres", "Stiefel"]
