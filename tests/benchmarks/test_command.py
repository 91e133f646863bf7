"""The command of the benchmarks: its options, and the records that it keeps."""

import importlib.util
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sgmcmc_lab.lessons.record import BEGIN, END, write
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.targets import TARGETS
from tests.benchmarks import record
from tests.benchmarks.__main__ import main
from tests.benchmarks.closed import ClosedReport

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--over", "60"], "allowed beside --pages N"),
        (["--page", "--minutes", "nan"], "allowed beside --pages N"),
        (["--class", "30", "--minutes", "1"], "allowed beside --pages N"),
        (["--closed", "30", "--quick"], "have no short form"),
        (["--class", "30", "--quick"], "have no short form"),
        (["--table", "--quick"], "keeps full measurements alone"),
    ],
)
def test_a_benchmark_takes_no_option_of_another(options, says, capsys, monkeypatch):
    """Fails where another benchmark runs for minutes in place of the one that was meant."""
    for kind in ("classroom", "closed", "page"):
        monkeypatch.setattr(f"tests.benchmarks.{kind}.measure", lambda *given, **named: pytest.fail("it runs"))
    monkeypatch.setattr("tests.benchmarks.measure", lambda *given, **named: pytest.fail("it runs"))
    assert main(options) == 2
    assert says in capsys.readouterr().err


def test_a_benchmark_keeps_its_figures(tmp_path, monkeypatch, capsys):
    """Fails where a record loses its figures or its conditions, or the README of all another record."""
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    monkeypatch.setattr(record, "README", tmp_path / "README.md")
    other = {
        "title": "Other",
        "command": "python -m x",
        "date": "2026-01-02",
        "machine": "m",
        "versions": {"Python": "3"},
    }
    table = {"columns": ["a", "b"], "rows": [["1", "2"]]}
    write(tmp_path / "a.json", json.dumps({**other, "body": ["Read.", table]}))
    (tmp_path / "README.md").write_text(f"Before.\n\n{BEGIN}\n{END}\n", encoding="utf-8")
    monkeypatch.setattr("tests.benchmarks.closed.measure", lambda pages, say: ClosedReport(pages, 100.0, 104.0, 0.25))
    assert main(["--closed", "30", "--table"]) == 0
    kept = json.loads((tmp_path / "bench-closed-30.json").read_text(encoding="utf-8"))
    assert kept["command"] == "python -m tests.benchmarks --closed 30"
    assert kept["report"] == {"pages": 30, "first": 100.0, "last": 104.0, "seconds": 0.25, "growth": 1.04}
    assert kept["date"] == datetime.now(UTC).date().isoformat()
    assert kept["versions"]["Python"] == platform.python_version() and kept["machine"].startswith(
        f"{os.cpu_count()} cores, "
    )
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"Before.\n\n{BEGIN}\n\n## Other\n\n`python -m x`<br>2026-01-02; m; Python 3\n\nRead.\n\n")
    assert "| a | b |\n|---|---|\n| 1 | 2 |\n\n## Measured by `python -m tests.benchmarks --closed 30`" in text
    assert "104.0 MB   1.040 of it" in text and text.endswith(f"```\n\n{END}\n")


def test_a_folder_that_takes_no_figures_is_said_before_they_are_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "FOLDER", tmp_path / "gone")
    monkeypatch.setattr("tests.benchmarks.measure", lambda *given, **named: pytest.fail("it runs"))
    assert main(["--table"]) == 2
    assert "is not there, or cannot be written to" in capsys.readouterr().err


HASTY = """
import sys
from tests import benchmarks
from tests.benchmarks.__main__ import main
benchmarks.QUICK = benchmarks.QUICK.__class__(0.001, 1)
sys.exit(main(["--quick", "--json"]))
"""
"""The quick benchmark, and a thousandth of a second of each figure: only that they are there is looked at."""


@pytest.mark.slow
def test_the_quick_benchmark_has_all_figures():
    done = subprocess.run(
        [sys.executable, "-c", HASTY],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert set(data) == {"machine", "samplers", "peers", "tokens", "requirements"}
    assert {"cpu_count", "python", "versions", "platform"} <= set(data["machine"])
    fitting = {key for key, cls in SAMPLERS.items() if any(cls.fits(t) for t in TARGETS.values())}
    assert {(x["sampler"], x["n_chains"]) for x in data["samplers"]} == {(key, n) for key in fitting for n in (1, 4)}
    for x in data["samplers"]:
        assert x["kernel"] > 0
        assert x["counted"] > 0
    assert {(x["program"], x["n_chains"]) for x in data["peers"]} == {
        *((p, n) for p in ("NumPy", "blackjax") for n in (1, 4)),
        ("mici", 1),
    }
    if importlib.util.find_spec("lda"):
        assert {(x["program"], x["n_topics"]) for x in data["tokens"]} == {
            (p, n) for p in ("engine", "lda", "tomotopy") for n in (20, 50)
        }
        assert all(x["ratio"] == 1 for x in data["tokens"] if x["program"] == "engine")
    assert all({"name", "measured", "needed", "met"} <= set(x) for x in data["requirements"])
