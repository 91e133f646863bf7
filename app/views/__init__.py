"""The views, one a file, in the order of the page; those of the inside of a model of data are in ``models``."""

from functools import lru_cache

from app.views.autocorrelation import Autocorrelation
from app.views.base import AXIS_LABELS, View, offers
from app.views.calibration import CalibrationView
from app.views.circle import Circle
from app.views.completeness import Completeness
from app.views.components import Components
from app.views.cost_curve import Bought
from app.views.curl import Curl
from app.views.drift import Drift
from app.views.energy import Energy
from app.views.evolution import Evolution
from app.views.fit import Fit
from app.views.frames import Frames
from app.views.globe import Globe
from app.views.gradient_noise import GradientNoise
from app.views.kl import KL
from app.views.ks import KS
from app.views.marginal import Marginal
from app.views.mgf import MGF
from app.views.models.adjacency import Adjacency
from app.views.models.batch import Batch
from app.views.models.cluster_points import ClusterPoints
from app.views.models.cluster_sizes import ClusterSizes
from app.views.models.covariance import Covariance
from app.views.models.documents import Documents
from app.views.models.elbo import Elbo
from app.views.models.factor_rates import FactorRates
from app.views.models.graph import GraphView
from app.views.models.loadings import Loadings
from app.views.models.mixture_sizes import MixtureSizes
from app.views.models.mixture_together import MixtureTogether
from app.views.models.mixture_words import MixtureWords
from app.views.models.paths import Paths
from app.views.models.pictures import Pictures
from app.views.models.rates import Rates
from app.views.models.scores import Scores
from app.views.models.sparsity import Sparsity
from app.views.models.spherical_globe import SphericalGlobe
from app.views.models.spherical_words import SphericalWords
from app.views.models.together import Together
from app.views.models.weights import Weights
from app.views.models.words import Words
from app.views.modes import Modes
from app.views.moments import Moments
from app.views.order import Order
from app.views.phase import Phase
from app.views.posterior_predictive import PosteriorPredictive
from app.views.prior_predictive import PriorPredictive
from app.views.spectrum import SpectrumView
from app.views.state import State
from app.views.stationarity import Stationarity
from app.views.temperature import Temperature
from app.views.thermostat import Thermostat
from app.views.torus import Torus
from app.views.trace import TraceView
from app.views.written import Written
from samplers import Experiment
from samplers.models import MODELS
from samplers.registry import Registry
from samplers.requirements import BATCH
from samplers.targets import TARGETS

VIEWS: Registry[type[View]] = Registry(
    "view",
    Words,
    Pictures,
    GraphView,
    ClusterPoints,
    MixtureWords,
    Loadings,
    SphericalWords,
    SphericalGlobe,
    Scores,
    FactorRates,
    Covariance,
    ClusterSizes,
    Together,
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
    GradientNoise,
    Drift,
    Marginal,
    KS,
    KL,
    Bought,
    Temperature,
    Thermostat,
    Stationarity,
    Written,
    Evolution,
    Completeness,
    TraceView,
    Autocorrelation,
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
    """What curves of an experiment may be drawn against; a page begins with the first."""
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
    offered = offers(experiment)
    return tuple(key for key, view in VIEWS.items() if view.requires in offered and view.fits(experiment))
