"""The views, one a file, in the order of the page: those of densities here, those of models of data in ``models``."""

from app.views.autocorrelation import Autocorrelation
from app.views.base import AXIS_LABELS, View
from app.views.circle import Circle
from app.views.completeness import Completeness
from app.views.components import Components
from app.views.curl import Curl
from app.views.drift import Drift
from app.views.evolution import Evolution
from app.views.globe import Globe
from app.views.kl import KL
from app.views.ks import KS
from app.views.marginal import Marginal
from app.views.models import MODEL_VIEWS
from app.views.models.base import MODEL_AXES
from app.views.modes import Modes
from app.views.moments import Moments
from app.views.order import Order
from app.views.spectrum import SpectrumView
from app.views.state import State
from app.views.stationarity import Stationarity
from app.views.temperature import Temperature
from app.views.torus import Torus
from app.views.trace import Trace
from samplers import Experiment
from samplers.registry import Registry, Union

DENSITY_VIEWS: Registry[type[View]] = Registry(
    "view",
    State,
    Circle,
    Torus,
    Globe,
    Components,
    Drift,
    Marginal,
    KS,
    KL,
    Temperature,
    Stationarity,
    Evolution,
    Completeness,
    Trace,
    Autocorrelation,
    SpectrumView,
    Modes,
    Curl,
    Moments,
    Order,
)
VIEWS = Union("view", DENSITY_VIEWS, MODEL_VIEWS)


AXES = tuple(dict.fromkeys([*AXIS_LABELS, *MODEL_AXES]))
"""All that curves may be drawn against."""


def axes_of(experiment: Experiment) -> tuple[str, ...]:
    """What curves of an experiment may be drawn against; a page begins with the first."""
    return MODEL_AXES if experiment.of_model else tuple(AXIS_LABELS)


def fitting(experiment: Experiment) -> list[str]:
    """The keys of the views that have something to show of an experiment, in the order of the menu."""
    views = MODEL_VIEWS if experiment.of_model else DENSITY_VIEWS
    return [key for key, view in views.items() if view.fits(experiment)]
