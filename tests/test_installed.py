"""The parts in other packages are in every list, without a line here: the files of ``new_things``."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FILES = Path(__file__).with_name("new_things")
POINTS = """
[sgmcmc_lab.targets]
logistic = new_things.logistic:Logistic
[sgmcmc_lab.samplers]
unadjusted = new_things.unadjusted:Unadjusted
[sgmcmc_lab.gradients]
uniform = new_things.uniform:Uniform
[sgmcmc_lab.views]
means = new_things.means:Means
"""
FAULTY = """
[sgmcmc_lab.targets]
gone = new_things.gone:Gone
none = new_things.logistic:draw
again = sgmcmc_lab.samplers.targets.gaussian:Gaussian
bare = sgmcmc_lab.samplers.targets.base:Target
[sgmcmc_lab.views]
none = new_things.logistic:Logistic
"""


def install(folder, points):
    """The package as an installer would have put it there."""
    shutil.copytree(FILES, folder / "new_things", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "new_things" / "__init__.py").touch()
    about = folder / "new_things-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: new-things\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(points, encoding="utf-8")


pytestmark = pytest.mark.slow


def python(folder, *arguments, **more):
    """The output of a process that finds this folder's packages."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
        **more,
    )


def test_an_installed_package_is_in_the_lists_and_runs(tmp_path):
    install(tmp_path, POINTS)
    listed = python(tmp_path, "-m", "sgmcmc_lab.samplers", "list", "--json")
    assert not listed.stderr
    found = json.loads(listed.stdout)
    for kind, key in (("targets", "logistic"), ("samplers", "unadjusted"), ("gradients", "uniform")):
        assert key in [each["key"] for each in found[kind]]
    offered = {tuple(each[kind] for kind in ("target", "sampler", "gradient")) for each in found["combinations"]}
    assert {
        ("logistic", "unadjusted", "uniform"),
        ("logistic", "sgld", "full"),
        ("gaussian", "sgld", "uniform"),
    } <= offered
    spec = tmp_path / "spec.json"
    spec.write_text(
        json.dumps({"target": "logistic", "sampler": "unadjusted", "gradient": "uniform", "n_steps": 50}),
        encoding="utf-8",
    )
    ran = python(tmp_path, "-m", "sgmcmc_lab.samplers", "run", str(spec), "--out", str(tmp_path / "draws.csv"))
    assert ran.returncode == 0, ran.stderr
    assert len((tmp_path / "draws.csv").read_text(encoding="utf-8").splitlines()) > 200


def test_an_installed_view_is_on_the_page(tmp_path):
    install(tmp_path, POINTS)
    code = "from sgmcmc_lab.app.state import AppState; from sgmcmc_lab.app.link import read_query; from sgmcmc_lab.app.views import fitting; s = AppState(); read_query(s, 'target=logistic()&views=means'); print(s.experiment.target.key, s.views, 'means' in fitting(s.experiment))"
    shown = python(tmp_path, "-c", code, cwd=Path(__file__).parent.parent)
    assert shown.stdout.split("\n")[0] == "logistic ['means'] True", shown.stderr


def test_a_faulty_package_is_left_out_with_a_line_of_the_log(tmp_path):
    """Nothing is said of a package that brings nothing along."""
    counted = "import sgmcmc_lab.app.views as v, sgmcmc_lab.samplers.targets as t; print(len(t.TARGETS), len(v.VIEWS))"
    found = []
    for name, points in (("faulty", FAULTY), ("bare", "")):
        (tmp_path / name).mkdir()
        install(tmp_path / name, points)
        found.append(python(tmp_path / name, "-c", counted, cwd=Path(__file__).parent.parent))
    listed, without = found
    assert listed.stdout == without.stdout
    assert re.fullmatch(r"\d+ \d+\n", listed.stdout)
    assert not without.stderr
    lines = listed.stderr.splitlines()
    assert len(lines) == 5
    for what, why in (
        ("gone:Gone", "No module named"),
        ("logistic:draw", "no subclass of sgmcmc_lab.samplers.targets.base.Target"),
        ("gaussian:Gaussian", "two targets are called gaussian"),
        ("base:Target", "declares no key"),
        ("logistic:Logistic", "no subclass of sgmcmc_lab.app.views.base.View"),
    ):
        assert sum(what in line and why in line for line in lines) == 1, (what, lines)
