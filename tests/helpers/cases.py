"""Many small cases in one test: a case that fails is reported by its name, and the next ones still run."""

import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Sequence

import pytest

keyword = ""
"""The expression after ``-k``, which ``conftest.py`` sets."""
LONG_RUNS = ("curve_network", "logistic_tumours", "logistic_table", "posterior-table")
"""Targets whose exact answers take a long run: a test of one is a slow test."""


def fits(expression: str, *names: str) -> bool:
    """Whether these names together fit an expression of ``-k``: words with ``and``, ``or``, ``not`` and parentheses."""
    text = " ".join(names).lower()

    def truth(word: re.Match) -> str:
        return word[0] if word[0] in ("and", "or", "not") else str(word[0].lower() in text)

    return bool(eval(re.sub(r"[^\s()]+", truth, expression) or "True"))  # noqa: S307 - no name is left in it


def of_a_long_run(*values) -> bool:
    """Whether a case names a target of a long run."""
    return any(target in str(value) for value in values for target in LONG_RUNS)


def for_each(
    names: str | Sequence[str],
    cases: Iterable | Callable[[], Iterable],
    *,
    ids: Callable | Iterable[str] | None = None,
    slow: Callable[..., bool] | None = None,
    apart: Callable[..., object] | None = None,
):
    """The test runs once for each of ``cases``, as with ``pytest.mark.parametrize``, and is collected as one test.

    For cases of milliseconds, of which collecting and reporting each would cost more than running it. ``cases`` is a
    function where to make them is slow: it is called when the test runs. Two decorators make all pairs. A test that
    asks for a fixture of its own for each case needs ``pytest.mark.parametrize``: here fixtures are made once.

    ``-k`` finds a test by the names of its cases, and those run whose own names fit; all run where none does.

    The cases of whose values ``slow`` is true are a slow test, and those of which ``apart`` is the same are a test of
    their own, which another process may run. With both, the quick cases are one test.
    """
    names = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)

    def decorate(test):
        tables = [(names, cases, ids), *getattr(test, "tables", ())]
        of_one_case = getattr(test, "of_one_case", test)
        own = [name for table in tables for name in table[0]]
        parameters = inspect.signature(of_one_case).parameters
        fixtures = [parameter for name, parameter in parameters.items() if name not in own]

        def part_of(values):
            is_slow = slow is not None and bool(slow(*values.values()))
            return is_slow, str(apart(*values.values())) if apart is not None and (is_slow or slow is None) else ""

        def rows(part):
            return (row for row in _rows(tables) if part is None or part_of(row[1]) == part)

        @functools.wraps(of_one_case)
        def all_cases(subtests, part=None, **given):
            ran = 0
            table = list(rows(part))
            names = of_one_case.__module__, of_one_case.__name__
            fitting = [row for row in table if fits(keyword, row[0], *names)]
            for label, values in fitting or table:
                ran += 1
                # A report of each case would cost more than most cases.
                try:
                    of_one_case(**given, **values)
                except (Exception, pytest.fail.Exception, pytest.skip.Exception):
                    with subtests.test(label):
                        raise
            assert ran, "there is no case"

        all_cases.tables, all_cases.of_one_case = tables, of_one_case
        all_cases.labels = lambda part: [label for label, _ in rows(part)]
        asked = ["subtests"] if slow is None and apart is None else ["subtests", "part"]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        all_cases.__signature__ = inspect.Signature([*(inspect.Parameter(name, kind) for name in asked), *fixtures])
        if "part" not in asked:
            return all_cases
        parts = dict.fromkeys(part_of(values) for _, values in _rows(tables))
        marked = [
            pytest.param(part, id=part[1] or ("slow" if part[0] else "quick"), marks=[pytest.mark.slow] * part[0])
            for part in parts
        ]
        return pytest.mark.parametrize("part", marked)(all_cases)

    return decorate


def _rows(tables):
    """The name of each case in a report, and its values by parameter."""
    for rows in itertools.product(*(list(_table(*table)) for table in tables)):
        yield "-".join(label for label, _ in rows), {name: value for _, row in rows for name, value in row.items()}


def _table(names, cases, ids):
    """One decorator's cases, named."""
    for i, case in enumerate(cases() if callable(cases) else cases):
        label = None if ids is None or callable(ids) else list(ids)[i]
        values = case if len(names) > 1 else (case,)
        if isinstance(case, type(pytest.param())):
            if case.marks:
                raise TypeError(f"case {i} of {', '.join(names)}: a mark on one case needs pytest.mark.parametrize")
            values, label = case.values, case.id or label
        row = dict(zip(names, values, strict=True))
        yield label or "-".join(_name(value, name, i, ids) for name, value in row.items()), row


def _name(value, name, i, ids):
    if callable(ids) and (label := ids(value)) is not None:
        return str(label)
    if isinstance(value, str | int | float | bool | None):
        return str(value)
    return getattr(value, "__name__", f"{name}{i}")
