"""No class with an abstract method can be made: what a new target, method, view or measure leaves out fails by name."""

import importlib
import inspect
from abc import ABC, abstractmethod
from pathlib import Path

import pytest

from sgmcmc_lab.samplers.models.base import Method
from sgmcmc_lab.samplers.targets.base import Target
from tests.helpers.cases import for_each

ROOT = Path(__file__).parent.parent

FILES = [
    path.relative_to(ROOT)
    for package in ("app", "lessons", "samplers")
    for path in sorted((ROOT / package).rglob("*.py"))
    if "@abstractmethod" in path.read_text(encoding="utf-8")
]


def made_incomplete(classes):
    """Those with abstract methods of which Python makes instances all the same."""
    return [
        one.__name__
        for one in classes
        if any(getattr(getattr(one, name, None), "__isabstractmethod__", False) for name in dir(one))
        and not inspect.isabstract(one)
    ]


@for_each("path", FILES, ids=str)
def test_no_class_can_be_made_incomplete(path):
    module = importlib.import_module(".".join(("sgmcmc_lab", *path.with_suffix("").parts)))
    found = [one for one in vars(module).values() if inspect.isclass(one) and one.__module__ == module.__name__]
    assert any(inspect.isabstract(one) for one in found)
    assert made_incomplete(found) == []


def test_a_class_that_is_no_abc_is_found():
    """The planted fault."""

    class Open:
        @abstractmethod
        def draw(self): ...

    class Closed(ABC):
        @abstractmethod
        def draw(self): ...

    assert made_incomplete([Open, Closed]) == ["Open"]


@pytest.mark.parametrize(("base", "missing"), [(Target, "dim"), (Method, "advance")])
def test_what_is_missing_is_named(base, missing):
    class Incomplete(base):
        pass

    with pytest.raises(TypeError, match=rf"\b{missing}\b"):
        Incomplete()
