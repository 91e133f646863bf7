"""The samplers, one a file, in the order of the menu."""

from samplers.kernels.baoab import BAOAB
from samplers.kernels.barker import Barker
from samplers.kernels.base import Sampler
from samplers.kernels.chmc import CHMC
from samplers.kernels.cir import CIR
from samplers.kernels.cyclical_sgld import CyclicalSGLD
from samplers.kernels.exact import Exact
from samplers.kernels.geodesic_sgld import GeodesicSGLD
from samplers.kernels.geometric_ou import GeometricOU
from samplers.kernels.gmc import GMC
from samplers.kernels.gsgnht import GSGNHT
from samplers.kernels.gsgnht_euler import GSGNHTEuler
from samplers.kernels.hmc import HMC
from samplers.kernels.mala import MALA
from samplers.kernels.msgnht import MSGNHT
from samplers.kernels.normalised_sgld import NormalisedSGLD
from samplers.kernels.nuts import NUTS
from samplers.kernels.psgld import PSGLD
from samplers.kernels.recipe import RecipeSampler
from samplers.kernels.rmhmc import RMHMC
from samplers.kernels.root_sgld import RootSGLD
from samplers.kernels.rwm import RWM
from samplers.kernels.scir import SCIR
from samplers.kernels.sg_barker import StochasticBarker
from samplers.kernels.sggmc import SGGMC
from samplers.kernels.sggmc_euler import SGGMCEuler
from samplers.kernels.sghmc import SGHMC
from samplers.kernels.sgld import SGLD
from samplers.kernels.sgrld import SGRLD
from samplers.kernels.svgd import SVGD
from samplers.registry import Registry

SAMPLERS: Registry[type[Sampler]] = Registry(
    "sampler",
    SGLD,
    SGHMC,
    HMC,
    SGRLD,
    SCIR,
    CIR,
    GeometricOU,
    SGGMC,
    GSGNHT,
    GMC,
    SGGMCEuler,
    GSGNHTEuler,
    GeodesicSGLD,
    NormalisedSGLD,
    Exact,
    RecipeSampler,
    BAOAB,
    MSGNHT,
    CyclicalSGLD,
    PSGLD,
    NUTS,
    MALA,
    Barker,
    StochasticBarker,
    RWM,
    SVGD,
    RootSGLD,
    CHMC,
    RMHMC,
)
SAMPLERS.add_installed("sgmcmc_lab.samplers", Sampler)
