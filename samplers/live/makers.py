"""Live pages for commands: the app makes them, which this package does not import, and names them as entry points."""

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from sgmcmc_lab.samplers.parameters import SpecError

GROUP = "sgmcmc_lab.live"


def maker(name: str) -> Callable[..., Any]:
    """The maker of a ``page``, ``lesson`` or ``contact_sheets``. Raises
    :class:`SpecError` without the app.
    """
    for point in entry_points(group=GROUP, name=name):
        found: Callable[..., Any] = point.load()
        return found
    raise SpecError("live", name, "it needs the lab itself: pip install sgmcmc-lab")
