"""The views, one a file, in the order of the page."""

from app.views.autocorrelation import Autocorrelation
from app.views.base import View
from app.views.components import Components
from app.views.ks import KS
from app.views.marginal import Marginal
from app.views.moments import Moments
from app.views.state import State
from app.views.trace import Trace
from samplers.registry import Registry

VIEWS: Registry[type[View]] = Registry(
    "view",
    State,
    Components,
    Marginal,
    KS,
    Trace,
    Autocorrelation,
    Moments,
)
