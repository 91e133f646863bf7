"""The slow tests, and those in a browser, that concern a change: python -m tests.changed [BASE]

The change is what differs from BASE, or from the last commit, and files that git does not track yet. It concerns the
test files that it edits, those in the folder that mirrors a changed file's, those that import a changed module, or a
module that imports one, by name, and for the page's parts those of tests/browser that open them.
"""

import argparse
import re
import sys
from collections.abc import Iterable
from functools import cache

import pytest

from tests.evidence import ROOT, SLOW, files, git

LAB = ""
"""All browser tests but those of live pages."""
BROWSER = {
    "app/live_page/": "live",
    "assets/live/": "live",
    "app/room/": "room",
    "app/lesson/": "lesson",
    "lessons/": "lesson",
    "samplers/models/": "model",
    "app/": LAB,
    "assets/": LAB,
}
"""By the beginning of a changed file's path: the part of the names of the browser tests that it concerns."""


def changed(base: str) -> list[str]:
    """The files that differ from a revision, relative to the root. Raises SystemExit where git knows none such."""
    listed: set[str] = set()
    for done in (git("diff", "--name-only", base, "--"), git("ls-files", "--others", "--exclude-standard")):
        if done.returncode:
            raise SystemExit(f"BASE, {base}, is no revision of this checkout: {done.stderr.strip()}")
        listed.update(done.stdout.splitlines())
    return sorted(listed)


@cache
def imports(file: str) -> frozenset[str]:
    """The files of the project that a file imports, relative to the root."""
    text = (ROOT / file).read_text(encoding="utf-8")
    names = set(re.findall(r"^ *import ([\w.]+)", text, re.MULTILINE))
    # The names in parentheses may stand in lines of their own.
    for module, several, one in re.findall(r"^ *from ([\w.]+) import (?:\(([^)]*)\)|(.*))", text, re.MULTILINE):
        names |= {module, *(f"{module}.{name}" for name in re.findall(r"\w+", several or one))}
    paths = (name.removeprefix("sgmcmc_lab.").replace(".", "/") for name in names)
    return frozenset(f"{path}.py" for path in paths) & _sources()


@cache
def _sources() -> frozenset[str]:
    tops = ("app", "lessons", "samplers", "tests")
    return frozenset(path.relative_to(ROOT).as_posix() for top in tops for path in (ROOT / top).rglob("*.py"))


def concerned(change: Iterable[str], tests: Iterable[str]) -> list[str]:
    """The test files that concern the changed files."""
    change, tests = set(change), list(tests)
    near = change | {file for file in _sources() if imports(file) & change}
    folders = {f"tests/{file.rpartition('/')[0]}" for file in change}
    parts = {next((part for start, part in BROWSER.items() if file.startswith(start)), None) for file in change}

    def concerns(test: str) -> bool:
        folder, _, name = test.rpartition("/")
        opened = {part in name if part else "live" not in name for part in parts if part is not None}
        in_browser = folder == "tests/browser" and any(opened)
        return test in change or folder in folders or in_browser or bool(imports(test) & near)

    return [test for test in tests if concerns(test)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.changed", description=__doc__.partition("\n")[0])
    parser.add_argument("base", nargs="?", default="HEAD", help="the revision that the change is against")
    found = concerned(changed(parser.parse_args().base), files())
    if not found:
        print("No test file concerns the change.")
        return 0
    print(*found, sep="\n", flush=True)
    return pytest.main(["-m", SLOW, *found])


if __name__ == "__main__":
    sys.exit(main())
