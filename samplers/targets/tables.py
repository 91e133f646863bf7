"""The data files that scikit-learn brings along."""

import importlib.util
from pathlib import Path

import numpy as np

from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import Array


def table(target: str, name: str, delimiter: str | None = None, skip: int = 1) -> Array:
    """The numbers of a file, (rows, columns), without its first lines.

    Raises :class:`SpecError` for that target where scikit-learn is not installed.
    """
    # Only the file is of interest: to import the package takes longer than all else of a start.
    spec = importlib.util.find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise SpecError("target", target, "the package scikit-learn, which has its data, is not installed")
    path = Path(spec.submodule_search_locations[0]) / "datasets" / "data" / name
    return np.asarray(np.loadtxt(path, delimiter=delimiter, skiprows=skip))
