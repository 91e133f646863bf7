"""The targets, one a file, in the order of the menu."""

from sgmcmc_lab.samplers.registry import Registry
from sgmcmc_lab.samplers.targets.banana import Banana
from sgmcmc_lab.samplers.targets.base import Target
from sgmcmc_lab.samplers.targets.bingham import Bingham
from sgmcmc_lab.samplers.targets.correlated_gaussian import CorrelatedGaussian
from sgmcmc_lab.samplers.targets.curve_network import CurveNetwork
from sgmcmc_lab.samplers.targets.dirichlet import DenseDirichlet, SparseDirichlet
from sgmcmc_lab.samplers.targets.double_well import DoubleWell
from sgmcmc_lab.samplers.targets.eight_schools import EightSchools
from sgmcmc_lab.samplers.targets.funnel import Funnel
from sgmcmc_lab.samplers.targets.gamma import Gamma
from sgmcmc_lab.samplers.targets.gaussian import Gaussian
from sgmcmc_lab.samplers.targets.gaussian_mixture import GaussianMixture
from sgmcmc_lab.samplers.targets.isotropic_gaussian import IsotropicGaussian
from sgmcmc_lab.samplers.targets.lasso import BayesianLasso
from sgmcmc_lab.samplers.targets.linear_regression import LinearRegression
from sgmcmc_lab.samplers.targets.linear_table import TableLinear
from sgmcmc_lab.samplers.targets.logistic_large import LargeLogistic
from sgmcmc_lab.samplers.targets.logistic_regression import LogisticRegression
from sgmcmc_lab.samplers.targets.logistic_table import TableLogistic
from sgmcmc_lab.samplers.targets.logistic_tumours import TumoursLogistic
from sgmcmc_lab.samplers.targets.lognormal import LogNormal
from sgmcmc_lab.samplers.targets.matrix_langevin import MatrixLangevin
from sgmcmc_lab.samplers.targets.poisson_regression import PoissonRegression
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior
from sgmcmc_lab.samplers.targets.probit_lasso import ProbitLasso
from sgmcmc_lab.samplers.targets.quartic import Quartic
from sgmcmc_lab.samplers.targets.ring import Ring
from sgmcmc_lab.samplers.targets.skew_normal import SkewNormal
from sgmcmc_lab.samplers.targets.sphere_dirichlet import SphereDirichlet
from sgmcmc_lab.samplers.targets.student_mean import StudentMean
from sgmcmc_lab.samplers.targets.tied_means import TiedMeans
from sgmcmc_lab.samplers.targets.typed import Typed
from sgmcmc_lab.samplers.targets.vmf import Fisher, VonMises
from sgmcmc_lab.samplers.targets.vmf_mixture import CircleMixture, SphereMixture
from sgmcmc_lab.samplers.targets.vmf_posterior import MisesPosterior

TARGETS: Registry[type[Target]] = Registry(
    "target",
    Gaussian,
    DoubleWell,
    SkewNormal,
    CorrelatedGaussian,
    IsotropicGaussian,
    Quartic,
    Banana,
    Ring,
    GaussianMixture,
    Funnel,
    EightSchools,
    Gamma,
    LogNormal,
    SparseDirichlet,
    DenseDirichlet,
    LinearRegression,
    TableLinear,
    LogisticRegression,
    TumoursLogistic,
    TableLogistic,
    LargeLogistic,
    PoissonRegression,
    StudentMean,
    TiedMeans,
    BayesianLasso,
    ProbitLasso,
    CurveNetwork,
    Typed,
    TypedPosterior,
    VonMises,
    CircleMixture,
    Fisher,
    SphereMixture,
    Bingham,
    MisesPosterior,
    MatrixLangevin,
    SphereDirichlet,
)
TARGETS.add_installed("sgmcmc_lab.targets", Target)
