"""The views, one a file, in the order of the page."""

from app.views.autocorrelation import Autocorrelation
from app.views.base import View
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
from app.views.modes import Modes
from app.views.moments import Moments
from app.views.order import Order
from app.views.spectrum import SpectrumView
from app.views.state import State
from app.views.stationarity import Stationarity
from app.views.temperature import Temperature
from app.views.torus import Torus
from app.views.trace import Trace
from samplers.registry import Registry

VIEWS: Registry[type[View]] = Registry(
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
