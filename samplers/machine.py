"""The machine and the versions that a measurement depends on."""

import importlib.util
import os
import platform
from importlib.metadata import version
from typing import Any


def machine() -> dict[str, Any]:
    """The conditions of the figures."""
    packages = ("numba", "numpy", "scipy", "blackjax", "jax", "lda", "mici", "tomotopy")
    return {
        "platform": platform.platform(),
        "processor": _processor(),
        "cpu_count": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages if importlib.util.find_spec(name)},
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
