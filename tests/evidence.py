"""One share of the slow tests and of those in a browser, with each change: python -m tests.evidence

The share is chosen by the number of commits: eight commits, one after the other, run them all. A share has whole
files, since the tests of a file share servers, pages and long runs. ``durations.json`` has the seconds of each file,
from which the shares are made; ``--record`` takes those of the last share, or of a JUnit file of other tests, and
changes the shares.
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parent.parent
DURATIONS = Path(__file__).with_name("durations.json")
LAST = ROOT / ".pytest_cache" / "evidence.xml"
"""The JUnit file of the share that ran last."""
SHARES = 8
UNKNOWN = 5.0
"""The seconds of a file that has no record."""
SLOW = "not quick and not core"
"""The tests that a share is of: ``pytest`` alone runs the others."""


def durations() -> dict[str, float]:
    """The seconds of the slow tests of each file, as they were recorded."""
    return dict(json.loads(DURATIONS.read_text(encoding="utf-8")))


def files() -> list[str]:
    """The test files, relative to the root."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))


def shares(seconds: dict[str, float], present: list[str], n: int = SHARES) -> list[list[str]]:
    """The files of each share, of about equal length: the longest file first, each to the shortest share.

    Files without a record come last, so that a new file moves no other one.
    """
    lengths, made = [0.0] * n, [[] for _ in range(n)]
    known = sorted(seconds, key=lambda file: (-seconds[file], file))
    for file in (*known, *(file for file in sorted(present) if file not in seconds)):
        at = lengths.index(min(lengths))
        lengths[at] += seconds.get(file, UNKNOWN)
        if file in present:
            made[at].append(file)
    return made


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Ask git about this checkout, whoever owns it."""
    return subprocess.run(["git", "-c", "safe.directory=*", *arguments], cwd=ROOT, capture_output=True, text=True)


def commits() -> int:
    """The number of commits; 0 outside of a checkout."""
    counted = git("rev-list", "--count", "HEAD")
    return int(counted.stdout) if counted.returncode == 0 else 0


def record(junit: Path) -> None:
    """Write the seconds of the files in a JUnit file; the records of other files stay, if these are still here.

    Raises OSError where there is no such file.
    """
    modules = {file.removesuffix(".py").replace("/", "."): file for file in files()}
    measured: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(junit).iter("testcase"):
        name = case.get("classname", "")
        file = modules.get(name) or modules[name.rpartition(".")[0]]
        measured[file] += float(case.get("time", 0))
    seconds = {file: old for file, old in durations().items() if file in modules.values()} | measured
    kept = {file: round(seconds[file], 1) for file in sorted(seconds)}
    DURATIONS.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.evidence", description=__doc__.partition("\n")[0])
    parser.add_argument("--share", type=int, choices=range(SHARES), help="another share than that of the commit")
    parser.add_argument(
        "--record", type=Path, nargs="?", const=LAST, metavar="JUNIT", help="take the durations of what ran"
    )
    parsed = parser.parse_args()
    if parsed.record:
        record(parsed.record)
        return 0
    share = commits() % SHARES if parsed.share is None else parsed.share
    seconds = durations()
    made = shares(seconds, files())
    for number, these in enumerate(made):
        says = "run" if number == share else "left to another change"
        print(f"Share {number} of {SHARES}, {sum(seconds.get(file, UNKNOWN) for file in these):.0f} s: {says}")
        for file in these:
            if file in seconds:
                print(f"    {seconds[file]:6.1f} s  {file}")
    sys.stdout.flush()
    return pytest.main(["-m", SLOW, "--junitxml", str(LAST), *made[share]])


if __name__ == "__main__":
    sys.exit(main())
