"""The cases of slow tables that run with every change, and those that run each week."""

from collections.abc import Container, Iterable
from typing import Any

import pytest


def weekly(cases: Iterable[Any], often: Container[Any]) -> list[Any]:
    """The cases of a table, with the mark ``weekly`` on all but those to run ``often``, with every change."""
    return [case if case in often else pytest.param(case, marks=pytest.mark.weekly) for case in cases]
