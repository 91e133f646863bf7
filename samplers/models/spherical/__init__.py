"""Topics of documents that are unit vectors: the spherical admixture model."""

from samplers.models.spherical.gmc import SphericalGibbs, SphericalGMCApprox
from samplers.models.spherical.gsgnht import SphericalGSGNHT
from samplers.models.spherical.model import Spherical
from samplers.models.spherical.sggmc import SphericalSGGMC
from samplers.models.spherical.variational import SphericalStoVI, SphericalVI

SPHERICAL_METHODS = (
    SphericalSGGMC,
    SphericalGSGNHT,
    SphericalGibbs,
    SphericalGMCApprox,
    SphericalVI,
    SphericalStoVI,
)

__all__ = ["SPHERICAL_METHODS", "Spherical"]
