"""Mutants meet tests: every group is there, and every pattern of tests has files."""

import subprocess
import sys
from pathlib import Path

import pytest

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.diagnostics import ks, moments
from tests import mutants
from tests.helpers.cases import for_each

ROOT = Path(__file__).parents[1]


@for_each("group", mutants.GROUPS)
def test_every_group_has_files_and_tests(group):
    assert mutants._files(group) and len(mutants._tests(group)) >= len(mutants.GROUPS[group])


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("test_nothing_is_called_so", "no file of tests is called"),
        ("test_fair_executor::moments sits_in_no_name", "has a name with moments, sits_in_no_name"),
    ],
)
def test_a_pattern_that_nothing_has_is_an_error(entry, sentence, monkeypatch):
    """The planted faults: a file that was renamed, and words that no test has any more."""
    monkeypatch.setitem(mutants.GROUPS, "app/live/fair_executor.py", ("test_fair_executor", entry))
    with pytest.raises(ValueError, match=sentence):
        mutants._tests("app/live/fair_executor.py")


@pytest.mark.slow
@pytest.mark.parametrize("fault", [False, True])
def test_what_may_hold_the_fault_is_compiled_anew(fault):
    """Fails where a mutant meets the function that was compiled before it. Fault: the modules have other names."""
    stale = mutants._importers("samplers/diagnostics/moments.py")
    if fault:
        stale = {module.split(".")[-1] for module in stale}
    ours, other = (jit.kept_in(function).name for function in (moments.cir_means, ks.largest_gap))
    assert mutants._of(stale, [ours, other]) == (set() if fault else {ours})


RUN = """
from types import SimpleNamespace
from tests import mutants
watch = mutants.Watch(SimpleNamespace(switch_context=lambda name: None))
mutants._pytest([{entry!r}], watch)
raise SystemExit(len(watch.seconds))
"""


@pytest.mark.slow
@for_each(("entry", "n"), [("tests/lessons/test_glossary.py::", 1), ("tests/browser/test_back.py::", 0)])
def test_the_tests_of_a_file_run_in_this_process(entry, n):
    """Fails where a setting of pytest keeps them from it, and every mutant survives. Fault: a file of the browser's."""
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(entry=entry)], cwd=ROOT, stdout=subprocess.DEVNULL, check=False
    )
    assert min(done.returncode, 1) == n
