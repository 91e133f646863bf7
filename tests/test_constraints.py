"""The versions that are recommended are those that ran."""

import json
import subprocess
import sys

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests import constraints
from tests.constraints import FILE

PYTHON = "{}.{}".format(*sys.version_info)
HERE = constraints.constraints(PYTHON)


@pytest.mark.core
def test_every_library_that_runs_here_has_a_line_and_is_no_older():
    """Fails where a dependency is missing from the file, or where a test ran with less than is recommended."""
    here = constraints.installed()
    assert here.keys() == HERE.keys()
    assert {name for name, version in here.items() if Version(version) < Version(HERE[name])} == set()


@pytest.mark.slow
def test_pip_installs_what_the_file_says():
    """Fails where the lines cannot be installed together, or where a library comes that no line holds."""

    def chosen(file):
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--ignore-installed",
            "--quiet",
            "--report",
            "-",
        ]
        done = subprocess.run(
            [*command, "-c", str(file), f"{FILE.parent.parent}[class,build]"],
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        found = (one["metadata"] for one in json.loads(done.stdout)["install"])
        return {canonicalize_name(one["name"]): one["version"] for one in found if one["name"] != "sgmcmc-lab"}

    assert chosen(FILE) == HERE


def test_a_version_of_some_pythons_has_a_marker():
    """Fails where a line holds on a Python that did not run with it. Fault: versions of one Python taken for all."""
    some = {"3.11": {"a": "1", "b": "1"}, "3.12": {"a": "1", "b": "2"}, "3.13": {"a": "2", "c": "1"}}
    assert constraints.lines(some).splitlines()[1:] == [
        'a==1; python_version < "3.13"',
        'a==2; python_version >= "3.13"',
        'b==1; python_version < "3.12"',
        'b==2; python_version >= "3.12" and python_version < "3.13"',
        'c==1; python_version >= "3.13"',
    ]
