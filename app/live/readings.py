"""The compiled readings that a page waits for before it moves: those of its figures. Captions and
claims have theirs some seconds later on a machine's first start.
"""

from collections.abc import Iterable
from typing import Any

from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.samplers import convergence
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.diagnostics import bands, moments
from sgmcmc_lab.samplers.targets import expectations

LATER = frozenset(module.__name__ for module in (convergence, bands, moments, expectations))
"""The modules whose readings captions and claims call, and figures only where their view declares it in ``reads``."""


def of_figures(views: Iterable[str]) -> list[Any]:
    """The readings that the figures of these views call, with those that count the steps of any page."""
    wanted = {module.__name__ for key in views for module in VIEWS[key].reads}
    return [f for f in jit.readings() if f.py_func.__module__ not in LATER - wanted]
