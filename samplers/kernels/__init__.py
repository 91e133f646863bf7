"""The samplers, one a file, in the order of the menu."""

from sgmcmc_lab.samplers.kernels.adaptive_metropolis import AdaptiveMetropolis
from sgmcmc_lab.samplers.kernels.amagold import AMAGOLD
from sgmcmc_lab.samplers.kernels.asgld import ASGLD
from sgmcmc_lab.samplers.kernels.austerity import Austerity
from sgmcmc_lab.samplers.kernels.badodab import BADODAB
from sgmcmc_lab.samplers.kernels.baoab import BAOAB
from sgmcmc_lab.samplers.kernels.barker import Barker
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.bps import BouncyParticle
from sgmcmc_lab.samplers.kernels.chees import ChEES
from sgmcmc_lab.samplers.kernels.chmc import CHMC
from sgmcmc_lab.samplers.kernels.cir import CIR
from sgmcmc_lab.samplers.kernels.contour_sgld import ContourSGLD
from sgmcmc_lab.samplers.kernels.cyclical_sgld import CyclicalSGLD
from sgmcmc_lab.samplers.kernels.demcz import DEMCZ
from sgmcmc_lab.samplers.kernels.elliptical_slice import EllipticalSlice
from sgmcmc_lab.samplers.kernels.exact import Exact
from sgmcmc_lab.samplers.kernels.geodesic_sgld import GeodesicSGLD
from sgmcmc_lab.samplers.kernels.geometric_ou import GeometricOU
from sgmcmc_lab.samplers.kernels.gmc import GMC
from sgmcmc_lab.samplers.kernels.gsgnht import GSGNHT
from sgmcmc_lab.samplers.kernels.gsgnht_euler import GSGNHTEuler
from sgmcmc_lab.samplers.kernels.hmc import HMC
from sgmcmc_lab.samplers.kernels.hmc_ecs import HMCECS
from sgmcmc_lab.samplers.kernels.mala import MALA
from sgmcmc_lab.samplers.kernels.mclmc import MCLMC
from sgmcmc_lab.samplers.kernels.mirrored_langevin import MirroredLangevin
from sgmcmc_lab.samplers.kernels.msgnht import MSGNHT
from sgmcmc_lab.samplers.kernels.normalised_sgld import NormalisedSGLD
from sgmcmc_lab.samplers.kernels.nuts import NUTS
from sgmcmc_lab.samplers.kernels.obabo import OBABO
from sgmcmc_lab.samplers.kernels.parallel_tempering import ParallelTempering
from sgmcmc_lab.samplers.kernels.psgld import PSGLD
from sgmcmc_lab.samplers.kernels.recipe import RecipeSampler
from sgmcmc_lab.samplers.kernels.resgld import ReplicaExchangeSGLD
from sgmcmc_lab.samplers.kernels.rmhmc import RMHMC
from sgmcmc_lab.samplers.kernels.root_sgld import RootSGLD
from sgmcmc_lab.samplers.kernels.rwm import RWM
from sgmcmc_lab.samplers.kernels.scir import SCIR
from sgmcmc_lab.samplers.kernels.sg_barker import StochasticBarker
from sgmcmc_lab.samplers.kernels.sggmc import SGGMC
from sgmcmc_lab.samplers.kernels.sggmc_euler import SGGMCEuler
from sgmcmc_lab.samplers.kernels.sghmc import SGHMC
from sgmcmc_lab.samplers.kernels.sgld import SGLD
from sgmcmc_lab.samplers.kernels.sgrld import SGRLD
from sgmcmc_lab.samplers.kernels.slice import Slice
from sgmcmc_lab.samplers.kernels.svgd import SVGD
from sgmcmc_lab.samplers.kernels.tunamh import TunaMH
from sgmcmc_lab.samplers.kernels.zigzag import ZigZag
from sgmcmc_lab.samplers.registry import Registry

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
    ASGLD,
    ReplicaExchangeSGLD,
    ParallelTempering,
    ZigZag,
    BouncyParticle,
    OBABO,
    AMAGOLD,
    BADODAB,
    MirroredLangevin,
    MCLMC,
    AdaptiveMetropolis,
    DEMCZ,
    Slice,
    EllipticalSlice,
    Austerity,
    TunaMH,
    HMCECS,
    ChEES,
    ContourSGLD,
)
SAMPLERS.add_installed("sgmcmc_lab.samplers", Sampler)
