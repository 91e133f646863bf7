"""JavaScript modules as one script: neither a file on a disk nor a Panel component can import another file."""

import re
from pathlib import Path

ASSETS = Path(__file__).parent.parent.parent / "assets"
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "(\.[^"]+)"$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:async )?(?:const|class|function) (\[[^\]]*\]|\w+)", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*//[^\n]*\n|/\*\*(?:(?!\*/).)*\*/", re.MULTILINE | re.DOTALL)
"""A comment with a line of its own, and one with a type: a quarter of what a page would hold of its script."""
_SPACE = re.compile(r"\n\s+")
"""The indentation of lines, and empty lines; texts of several lines are sheets of styles."""
_FROM = re.compile(r"^export (?=(?:async |const|class|function))", re.MULTILINE)


def bundle(entry: str) -> str:
    """A module of the assets and everything that it imports as one classic script; each module keeps its own names."""
    seen: dict[Path, str] = {}
    _add((ASSETS / entry).resolve(), seen)
    return "\n".join(['"use strict"', *seen.values()])


def component(entry: str) -> str:
    """A module of the assets and everything that it imports as one module with its ``render``."""
    return f"{bundle(entry)}\nexport const {{ render }} = {_name((ASSETS / entry).resolve())}"


def _add(path: Path, seen: dict[Path, str]) -> None:
    text = _SPACE.sub("\n", _COMMENT.sub("", path.read_text(encoding="utf-8")))
    imported = {(path.parent / found[2]).resolve() for found in _IMPORT.finditer(text)}
    for other in sorted(imported - seen.keys()):
        if other not in seen:
            _add(other, seen)
    names = ", ".join(found[1].strip("[]") for found in _EXPORT.finditer(text))
    body = _IMPORT.sub(lambda found: f"const {found[1]} = {_name((path.parent / found[2]).resolve())}", text)
    seen[path] = f"const {_name(path)} = (() => {{\n{_FROM.sub('', body)}\nreturn {{ {names} }}\n}})()"


def _name(path: Path) -> str:
    """The constant that holds what a module exports."""
    return "module_" + re.sub(r"\W", "_", path.relative_to(ASSETS.resolve()).with_suffix("").as_posix())
