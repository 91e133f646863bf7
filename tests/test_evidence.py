"""The shares of the slow tests, and the tests that concern a change."""

import re

import pytest

from tests import changed, evidence
from tests.evidence import ROOT, SHARES, durations, files, shares
from tests.helpers.cases import for_each

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.test_evidence" name="test_one" time="1.25"/>
<testcase classname="tests.test_evidence.TestClass" name="test_two" time="2.5"/>
<testcase classname="tests.test_words" name="test_three" time="0.1"/>
</testsuite></testsuites>"""


def lengths(made):
    known = durations()
    return [sum(known.get(file, evidence.UNKNOWN) for file in share) for share in made]


def test_each_file_is_in_one_share():
    made = shares(durations(), files())
    assert len(made) == SHARES
    assert sorted(file for share in made for file in share) == files()


def test_shares_take_about_as_long_as_each_other():
    """The planted fault: the files in the order of their names, as many in each share."""
    made = lengths(shares(durations(), files()))
    assert max(made) < 1.1 * min(made)
    fault = lengths([files()[number::SHARES] for number in range(SHARES)])
    assert max(fault) > 1.1 * min(fault)


def test_a_new_file_moves_no_other():
    seconds, present = {"a": 9.0, "b": 5.0, "c": 4.0, "d": 1.0}, ["a", "b", "c", "d"]
    before, after = shares(seconds, present, 2), shares(seconds, [*present, "aa"], 2)
    assert [set(share) - {"aa"} for share in after] == [set(share) for share in before]
    # Nor does a file that is gone.
    assert shares(seconds, ["a", "c", "d"], 2) == [["a", "d"], ["c"]]


def test_the_record_is_of_the_files_that_are_here():
    known = durations()
    assert set(known) <= set(files()), "run it, and python -m tests.evidence --record"
    in_browser = {file for file in files() if file.startswith("tests/browser/")}
    assert in_browser <= set(known), "run it, and python -m tests.evidence --record"


def test_a_junit_file_is_recorded_beside_what_was(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "DURATIONS", tmp_path / "durations.json")
    evidence.DURATIONS.write_text('{"tests/test_gone.py": 1, "tests/test_words.py": 2, "tests/test_values.py": 3}')
    path = tmp_path / "all.xml"
    path.write_text(JUNIT, encoding="utf-8")
    evidence.record(path)
    assert durations() == {"tests/test_evidence.py": 3.8, "tests/test_values.py": 3, "tests/test_words.py": 0.1}


def test_ci_runs_the_core_and_a_share_after_the_quick_tests():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    ran = re.findall(r'^ *(?:bash .*"\$command"|.*-m core|.*tests\.evidence)$', script, re.MULTILINE)
    assert [line.split()[-1] for line in ran] == ['"$command"', "core", "tests.evidence"]


@for_each(
    ("file", "near", "far"),
    [
        ("samplers/kernels/sgld.py", "tests/samplers/kernels/test_samplers.py", "tests/app/room/test_rooms.py"),
        # Read by samplers/trace.py, which the test imports.
        ("samplers/convergence.py", "tests/samplers/test_engine.py", "tests/app/room/test_rooms.py"),
        ("app/live_page/document.py", "tests/browser/test_live_page.py", "tests/browser/test_rooms_browser.py"),
        ("assets/live/host.js", "tests/browser/test_live_page.py", "tests/browser/test_app.py"),
        ("app/room/hub.py", "tests/browser/test_rooms_browser.py", "tests/browser/test_live_page.py"),
        ("app/live/runner.py", "tests/browser/test_app.py", "tests/browser/test_live_page.py"),
        ("tests/samplers/test_engine.py", "tests/samplers/test_engine.py", "tests/samplers/kernels/test_samplers.py"),
    ],
)
def test_a_change_concerns_its_tests(file, near, far):
    found = changed.concerned([file], files())
    assert near in found
    assert far not in found


def test_a_base_that_is_no_revision_is_refused():
    with pytest.raises(SystemExit, match="BASE, nowhere, is no revision"):
        changed.changed("nowhere")
