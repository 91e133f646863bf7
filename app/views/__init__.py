"""The views, one a file, in the order of the page; those of the inside of a model of data are in ``models``.

The theme, the formulas and the scripts that all parts of a page use stand beside them.
"""

from functools import lru_cache

from sgmcmc_lab.app.views.adaptation import Adaptation
from sgmcmc_lab.app.views.autocorrelation import Autocorrelation
from sgmcmc_lab.app.views.base import AXIS_LABELS, View, offers
from sgmcmc_lab.app.views.calibration import CalibrationView
from sgmcmc_lab.app.views.circle import Circle
from sgmcmc_lab.app.views.completeness import Completeness
from sgmcmc_lab.app.views.components import Components
from sgmcmc_lab.app.views.contour import Contour
from sgmcmc_lab.app.views.cost_curve import Bought
from sgmcmc_lab.app.views.coupling import CouplingView
from sgmcmc_lab.app.views.curl import Curl
from sgmcmc_lab.app.views.drift import Drift
from sgmcmc_lab.app.views.energies import Energies
from sgmcmc_lab.app.views.energy import Energy
from sgmcmc_lab.app.views.ess_growth import ESSGrowth
from sgmcmc_lab.app.views.evolution import Evolution
from sgmcmc_lab.app.views.fit import Fit
from sgmcmc_lab.app.views.frames import Frames
from sgmcmc_lab.app.views.globe import Globe
from sgmcmc_lab.app.views.gradient_noise import GradientNoise
from sgmcmc_lab.app.views.kl import KL
from sgmcmc_lab.app.views.ks import KS
from sgmcmc_lab.app.views.ksd import KSD
from sgmcmc_lab.app.views.marginal import Marginal
from sgmcmc_lab.app.views.mgf import MGF
from sgmcmc_lab.app.views.models.adjacency import Adjacency
from sgmcmc_lab.app.views.models.batch import Batch
from sgmcmc_lab.app.views.models.cluster_points import ClusterPoints
from sgmcmc_lab.app.views.models.cluster_sizes import ClusterSizes
from sgmcmc_lab.app.views.models.coherence import Coherence
from sgmcmc_lab.app.views.models.covariance import Covariance
from sgmcmc_lab.app.views.models.documents import Documents
from sgmcmc_lab.app.views.models.elbo import Elbo
from sgmcmc_lab.app.views.models.factor_rates import FactorRates
from sgmcmc_lab.app.views.models.graph import GraphView
from sgmcmc_lab.app.views.models.loadings import Loadings
from sgmcmc_lab.app.views.models.mixture_sizes import MixtureSizes
from sgmcmc_lab.app.views.models.mixture_together import MixtureTogether
from sgmcmc_lab.app.views.models.mixture_words import MixtureWords
from sgmcmc_lab.app.views.models.paths import Paths
from sgmcmc_lab.app.views.models.pictures import Pictures
from sgmcmc_lab.app.views.models.rates import Rates
from sgmcmc_lab.app.views.models.scores import Scores
from sgmcmc_lab.app.views.models.sparsity import Sparsity
from sgmcmc_lab.app.views.models.sphere_points import SpherePoints
from sgmcmc_lab.app.views.models.sphere_sizes import SphereSizes
from sgmcmc_lab.app.views.models.sphere_together import SphereTogether
from sgmcmc_lab.app.views.models.spherical_globe import SphericalGlobe
from sgmcmc_lab.app.views.models.spherical_words import SphericalWords
from sgmcmc_lab.app.views.models.together import Together
from sgmcmc_lab.app.views.models.weights import Weights
from sgmcmc_lab.app.views.models.words import Words
from sgmcmc_lab.app.views.modes import Modes
from sgmcmc_lab.app.views.moments import Moments
from sgmcmc_lab.app.views.order import Order
from sgmcmc_lab.app.views.pareto import Pareto
from sgmcmc_lab.app.views.phase import Phase
from sgmcmc_lab.app.views.posterior_predictive import PosteriorPredictive
from sgmcmc_lab.app.views.prior_predictive import PriorPredictive
from sgmcmc_lab.app.views.quantile_ess import QuantileESS
from sgmcmc_lab.app.views.ranks import Ranks
from sgmcmc_lab.app.views.rungs import Rungs
from sgmcmc_lab.app.views.spectrum import SpectrumView
from sgmcmc_lab.app.views.state import State
from sgmcmc_lab.app.views.stationarity import Stationarity
from sgmcmc_lab.app.views.temperature import Temperature
from sgmcmc_lab.app.views.thermostat import Thermostat
from sgmcmc_lab.app.views.torus import Torus
from sgmcmc_lab.app.views.trace import TraceView
from sgmcmc_lab.app.views.variational import Variational
from sgmcmc_lab.app.views.written import Written
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.choices import make_schedule
from sgmcmc_lab.samplers.models import MODELS
from sgmcmc_lab.samplers.registry import Registry
from sgmcmc_lab.samplers.requirements import BATCH
from sgmcmc_lab.samplers.targets import TARGETS

VIEWS: Registry[type[View]] = Registry(
    "view",
    Words,
    Pictures,
    GraphView,
    ClusterPoints,
    SpherePoints,
    MixtureWords,
    Loadings,
    SphericalWords,
    SphericalGlobe,
    Scores,
    Coherence,
    FactorRates,
    Covariance,
    ClusterSizes,
    Together,
    SphereSizes,
    SphereTogether,
    MixtureSizes,
    MixtureTogether,
    Sparsity,
    Batch,
    Paths,
    Documents,
    Adjacency,
    Rates,
    Elbo,
    Weights,
    State,
    Energy,
    Phase,
    Circle,
    Torus,
    Globe,
    Frames,
    Components,
    Fit,
    PriorPredictive,
    PosteriorPredictive,
    CalibrationView,
    CouplingView,
    Pareto,
    GradientNoise,
    Drift,
    Marginal,
    Variational,
    Energies,
    KS,
    KSD,
    KL,
    Bought,
    Temperature,
    Thermostat,
    Adaptation,
    Rungs,
    Contour,
    Stationarity,
    Written,
    Evolution,
    Completeness,
    TraceView,
    Autocorrelation,
    Ranks,
    QuantileESS,
    ESSGrowth,
    SpectrumView,
    Modes,
    Curl,
    Moments,
    MGF,
    Order,
)
VIEWS.add_installed("sgmcmc_lab.views", View)


AXES = tuple(AXIS_LABELS)
"""All that curves may be drawn against."""


def axes_of(experiment: Experiment) -> tuple[str, ...]:
    """The axes against which curves of an experiment may be drawn; a page begins with the first."""
    if experiment.of_model:
        # The method that is furthest behind on it makes the next step: for the same data, not for the same steps.
        return "data", "steps", "seconds"
    has_data = BATCH in TARGETS[experiment.target.key].provides
    return tuple(axis for axis in AXES if axis != "data" or has_data)


def coordinates(experiment: Experiment) -> list[str]:
    """The names of the coordinates that one-dimensional views can show."""
    if experiment.of_model:
        return list(MODELS[experiment.target.key].followed)
    return list(experiment.make_target().column_names)


# A page asks for them a dozen times when something is changed, and for those of the experiment before.
@lru_cache(maxsize=256)
def fitting(experiment: Experiment) -> tuple[str, ...]:
    """The keys of the views that have something to show of an experiment, in the order of the menu."""
    offered, falling = offers(experiment), any(make_schedule(lane.schedule).falls for lane in experiment.lanes)
    return tuple(
        key
        for key, view in VIEWS.items()
        if view.requires in offered and not (falling and view.constant_steps) and view.fits(experiment)
    )
