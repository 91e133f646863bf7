"""The cases of slow tables that run with every change, and those that run each week."""

from collections.abc import Container, Iterable, Sequence
from typing import Any

import pytest


def weekly(cases: Iterable[Any], often: Container[Any]) -> list[Any]:
    """The cases of a table, with the mark ``weekly`` on all but those to run ``often``, with every change."""
    return [case if case in often else pytest.param(case, marks=pytest.mark.weekly) for case in cases]


def weekly_but_first(cases: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The cases of a table of several columns, with the mark ``weekly`` on all but the first."""
    return [cases[0], *(pytest.param(*case, marks=pytest.mark.weekly) for case in cases[1:])]
