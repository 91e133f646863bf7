"""The versions that ran: ``python -m tests.constraints PYTHON …`` writes ``assets/constraints.txt``.

Each argument is the interpreter of an environment with the lab in it, one for each minor version of Python, from the
oldest to the newest. A line holds a version on the Pythons that had it.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FILE = Path(__file__).parent.parent / "assets" / "constraints.txt"
HEAD = "# The newest versions that ran: pip install -c assets/constraints.txt -e .\n"


def installed(root: str = "sgmcmc-lab") -> dict[str, str]:
    """Name and version of every distribution that the lab needs here, with the extras of a class and of a build."""
    found: dict[str, str] = {}
    waiting: list[tuple[str, frozenset[str]]] = [(root, frozenset({"class", "build"}))]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        if name != root:
            found[name] = distribution(name).version
        for need in _needs(name, extras):
            one = (canonicalize_name(need.name), frozenset(need.extras))
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return dict(sorted(found.items()))


def _needs(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    for text in distribution(name).requires or ():
        need = Requirement(text)
        wanted = need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in ("", *extras))
        try:
            if wanted and distribution(need.name):
                yield need
        except PackageNotFoundError:
            # Of a system that is another one, or of an extra that the marker names in a way of its own.
            continue


def constraints(python: str) -> dict[str, str]:
    """Name and version of each line that holds on a minor version of Python."""
    lines = map(Requirement, filter(None, (line.partition("#")[0].strip() for line in FILE.read_text().splitlines())))
    return {
        canonicalize_name(one.name): next(iter(one.specifier)).version
        for one in lines
        if one.marker is None or one.marker.evaluate({"python_version": python})
    }


def lines(versions: dict[str, dict[str, str]]) -> str:
    """The file's text, of name and version of each distribution by minor version of Python, in their order."""
    pythons = list(versions)
    text = []
    for name in sorted({name for each in versions.values() for name in each}):
        begin = 0
        for end in range(1, len(pythons) + 1):
            version = versions[pythons[begin]].get(name)
            if end < len(pythons) and versions[pythons[end]].get(name) == version:
                continue
            if version is not None:
                bounds = [f'python_version >= "{pythons[begin]}"'] if begin else []
                bounds += [f'python_version < "{pythons[end]}"'] if end < len(pythons) else []
                text.append(f"{name}=={version}" + (f"; {' and '.join(bounds)}" if bounds else ""))
            begin = end
    return HEAD + "\n".join(text) + "\n"


def main() -> None:
    """Ask each interpreter, and write the file."""
    code = "import json, sys; from tests.constraints import installed; print(json.dumps(['%d.%d' % sys.version_info[:2], installed()]))"
    answers = (
        subprocess.run([one, "-c", code], check=True, capture_output=True, text=True).stdout for one in sys.argv[1:]
    )
    FILE.write_text(lines(dict(json.loads(answer) for answer in answers)), encoding="utf-8")


if __name__ == "__main__":
    main()
