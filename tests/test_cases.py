"""Tables of small cases in one test: what fails is named, nothing is left out, and no mark is lost."""

import contextlib
import inspect
import subprocess
import sys

import pytest

from tests.helpers import cases
from tests.helpers.cases import for_each, of_a_long_run


class Reported:
    """In the place of the fixture: the names of the cases that were reported, and why."""

    def __init__(self):
        self.cases = {}

    @contextlib.contextmanager
    def test(self, name):
        try:
            yield
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
            self.cases[name] = error


def test_a_case_that_fails_is_named_and_the_others_run():
    ran, reported = [], Reported()

    @for_each("a", [1, 2, 3])
    @for_each(("b", "c"), lambda: [("x", len), pytest.param("y", None, id="none")])
    def check(a, c, folder, b):
        ran.append((a, b, c, folder))
        assert (a, b) != (2, "x")
        if (a, b) == (3, "y"):
            pytest.skip("not here")

    assert list(inspect.signature(check).parameters) == ["subtests", "folder"]
    check(subtests=reported, folder="f")
    assert ran == [(a, *bc, "f") for a in (1, 2, 3) for bc in (("x", len), ("y", None))]
    assert {name: type(error).__name__ for name, error in reported.cases.items()} == {
        "2-x-len": "AssertionError",
        "3-none": "Skipped",
    }


def test_a_table_without_cases_fails():
    @for_each("a", [])
    def check(a):
        pass

    with pytest.raises(AssertionError, match="there is no case"):
        check(subtests=Reported())


def test_a_mark_on_one_case_is_refused():
    @for_each("a", [pytest.param(1, marks=pytest.mark.slow)])
    def check(a):
        pass

    with pytest.raises(TypeError, match="case 0 of a"):
        check(subtests=Reported())


@pytest.mark.parametrize(
    ("slow", "apart", "parts"),
    [
        (of_a_long_run, None, {"quick": ["gaussian", "ring"], "slow": ["curve_network"]}),
        (None, lambda t: len(t) > 4, {"True": ["gaussian", "curve_network"], "False": ["ring"]}),
        (lambda t: t != "ring", lambda t: t[0], {"g": ["gaussian"], "quick": ["ring"], "c": ["curve_network"]}),
    ],
    ids=["slow", "apart", "both"],
)
def test_each_case_is_in_one_part(slow, apart, parts):
    ran = []

    @for_each("t", ["gaussian", "ring", "curve_network"], slow=slow, apart=apart)
    def check(t):
        ran.append(t)

    (mark,) = check.pytestmark
    found = {}
    for param in mark.args[1]:
        ran.clear()
        check(subtests=Reported(), part=param.values[0])
        found[param.id] = list(ran)
        assert bool(param.marks) == (slow is not None and param.id != "quick")
    assert found == parts


@pytest.mark.parametrize(
    ("keyword", "ran"),
    [
        ("", ["asgld", "sgld", "hmc"]),
        ("SGLD", ["asgld", "sgld"]),
        ("sgld and not asgld", ["sgld"]),
        ("(asgld or hmc) and check", ["asgld", "hmc"]),
        ("check", ["asgld", "sgld", "hmc"]),
        ("test_cases", ["asgld", "sgld", "hmc"]),
        ("another", ["asgld", "sgld", "hmc"]),
    ],
)
def test_the_cases_that_fit_a_keyword_run(keyword, ran, monkeypatch):
    """All run where no name fits: fails where a test that pytest selects for another reason runs none."""
    found = []

    @for_each("key", ["asgld", "sgld", "hmc"])
    def check(key):
        found.append(key)

    monkeypatch.setattr(cases, "keyword", keyword)
    check(subtests=Reported())
    assert found == ran


@pytest.mark.slow
def test_a_test_is_found_by_the_name_of_a_case():
    command = [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", "-q", "tests/samplers/test_references.py"]
    for key, n in (("asgld", 2), ("nothing_like_it", 0)):
        found = subprocess.run([*command, "-k", key], capture_output=True, text=True, check=False).stdout
        assert found.count("::") == n, found
