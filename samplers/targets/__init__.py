"""The targets, one a file, in the order of the menu."""

from samplers.registry import Registry
from samplers.targets.banana import Banana
from samplers.targets.base import Target
from samplers.targets.bingham import Bingham
from samplers.targets.correlated_gaussian import CorrelatedGaussian
from samplers.targets.curve_network import CurveNetwork
from samplers.targets.dirichlet import DenseDirichlet, SparseDirichlet
from samplers.targets.double_well import DoubleWell
from samplers.targets.funnel import Funnel
from samplers.targets.gamma import Gamma
from samplers.targets.gaussian import Gaussian
from samplers.targets.gaussian_mixture import GaussianMixture
from samplers.targets.lasso import BayesianLasso
from samplers.targets.linear_regression import LinearRegression
from samplers.targets.linear_table import TableLinear
from samplers.targets.logistic_large import LargeLogistic
from samplers.targets.logistic_regression import LogisticRegression
from samplers.targets.logistic_table import TableLogistic
from samplers.targets.logistic_tumours import TumoursLogistic
from samplers.targets.lognormal import LogNormal
from samplers.targets.matrix_langevin import MatrixLangevin
from samplers.targets.poisson_regression import PoissonRegression
from samplers.targets.posterior import TypedPosterior
from samplers.targets.probit_lasso import ProbitLasso
from samplers.targets.quartic import Quartic
from samplers.targets.ring import Ring
from samplers.targets.skew_normal import SkewNormal
from samplers.targets.sphere_dirichlet import SphereDirichlet
from samplers.targets.student_mean import StudentMean
from samplers.targets.tied_means import TiedMeans
from samplers.targets.typed import Typed
from samplers.targets.vmf import Fisher, VonMises
from samplers.targets.vmf_mixture import CircleMixture, SphereMixture
from samplers.targets.vmf_posterior import MisesPosterior

TARGETS: Registry[type[Target]] = Registry(
    "target",
    Gaussian,
    DoubleWell,
    SkewNormal,
    CorrelatedGaussian,
    Quartic,
    Banana,
    Ring,
    GaussianMixture,
    Funnel,
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
