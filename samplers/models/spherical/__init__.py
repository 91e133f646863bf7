"""Topics of documents that are unit vectors: the spherical admixture model."""

from sgmcmc_lab.samplers.models.spherical.gmc import SphericalGibbs, SphericalGMCApprox
from sgmcmc_lab.samplers.models.spherical.gsgnht import SphericalGSGNHT
from sgmcmc_lab.samplers.models.spherical.model import Spherical
from sgmcmc_lab.samplers.models.spherical.sggmc import SphericalSGGMC
from sgmcmc_lab.samplers.models.spherical.variational import SphericalStoVI, SphericalVI

SPHERICAL_METHODS = (
    SphericalSGGMC,
    SphericalGSGNHT,
    SphericalGibbs,
    SphericalGMCApprox,
    SphericalVI,
    SphericalStoVI,
)

__all__ = ["SPHERICAL_METHODS", "Spherical"]
