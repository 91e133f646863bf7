"""Samplers and modules with a planted fault."""

import hashlib
import importlib.util
import sys
from pathlib import Path


def edited(module, right, wrong, folder):
    """A copy of the module, in a file of this folder, in which every ``right`` is ``wrong``."""
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert right in text, f"{module.__name__} has no {right!r}"
    text = text.replace(right, wrong)
    name = f"edited_{module.__name__.rsplit('.', 1)[-1]}_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    path = Path(folder) / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None and found.loader is not None
    out = importlib.util.module_from_spec(found)
    # Numba asks the module of a function for its globals by name.
    sys.modules[name] = out
    found.loader.exec_module(out)
    return out


def faulty(sampler, kernel):
    """The sampler with another kernel and its own parameters."""
    cls = type(f"Faulty{type(sampler).__name__}", (type(sampler),), {"advance": staticmethod(kernel)})
    return cls(**{name: getattr(sampler, name) for name in sampler.param.values() if name != "name"})
