"""Records are values: once made, nothing changes them, so threads, caches and lanes may share them."""

import importlib
import pkgutil
from dataclasses import is_dataclass

from sgmcmc_lab import app, lessons, samplers

CHANGING = {
    "Adaptation",
    "Averages",
    "Coupling",
    "Ensemble",
    "FileSource",
    "Found",
    "GammaState",
    "GibbsState",
    "HMCState",
    "IRMState",
    "LaneFrame",
    "MadeUpSource",
    "NetworkGammas",
    "NetworkNormals",
    "NormState",
    "Pairs",
    "PointState",
    "Replicas",
    "Run",
    "Rung",
    "State",
    "Statistics",
    "Work",
}
"""Records whose fields are meant to change."""


def records():
    for package in (app, lessons, samplers):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.rsplit(".", maxsplit=1)[-1] in {"__main__", "main", "app_hooks"}:
                continue
            for found in vars(importlib.import_module(module.name)).values():
                if is_dataclass(found) and isinstance(found, type) and found.__module__ == module.name:
                    yield found


def test_records_are_frozen():
    """Fails where a record loses ``frozen``; those that change are named above."""
    changing = {found.__qualname__ for found in records() if not found.__dataclass_params__.frozen}
    assert changing == CHANGING
