"""Declarations are read: fields, class attributes, parameters and constants that nothing reads are found by name."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("samplers", "lessons", "app")
WORD = re.compile(r"[A-Za-z_]\w*")

READ_BY_PANEL = {"_esm", "_stylesheets", "_initialized"}
"""The attributes of a Panel component, and the declarations of a Bokeh model."""


READ_BY_NUMBA = {
    "_library_class",
    "_tm",
    "_tm_features",
    "_engine",
    "_target_data",
    "_data_layout",
    "_loopvect",
    "_opt_level",
    "_internal_codegen",
    "is32bit",
}
"""The attributes of a code generator of Numba, in samplers/compile/wasm/cross.py."""


READ_BY_TESTS = {
    "of_first",
    "tried_at",
    "drawn_at",
    "textbook_draw",
    "textbook_slope",
    "exact_at",
    "bias_order",
    "steps_to_test",
    "stationary_start",
    "textbook_step",
    "textbook_unknowns",
    "LIBRARIES",
    "WITHOUT",
}
"""The declarations of a file for the generic tests alone."""


class Declared(NamedTuple):
    """A name that is given a value or a type in the body of a class or a module."""

    name: str
    owner: str
    """The class; empty for a module's."""
    where: str
    parameter: bool
    """Whether its value is a parameter's declaration, ``Real(…)``."""


def names(statement: ast.stmt) -> list[str]:
    """The names that a statement of a body declares."""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return [statement.target.id]
    if isinstance(statement, ast.Assign):
        flat = [x for t in statement.targets for x in (t.elts if isinstance(t, ast.Tuple) else [t])]
        return [x.id for x in flat if isinstance(x, ast.Name)]
    return []


def declarations(tree: ast.Module, where: str) -> Iterator[Declared]:
    """Fields, attributes and parameters of the module's classes, and its constants."""
    for node in ast.walk(tree):
        for statement in node.body if isinstance(node, ast.ClassDef | ast.Module) else ():
            value = getattr(statement, "value", None)
            call = value.func if isinstance(value, ast.Call) else None
            parameter = isinstance(call, ast.Name) and call.id in PARAMETERS
            for name in names(statement):
                owner = node.name if isinstance(node, ast.ClassDef) else ""
                if (owner or name.isupper()) and not name.startswith("__"):
                    yield Declared(name, owner, f"{where}:{statement.lineno}", parameter)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield Declared(node.attr, "self", f"{where}:{node.lineno}", False)


PARAMETERS = {"Real", "Count", "Flag", "Option", "CountVector", "RealVector", "Formula", "Formulas"}
"""Every parameter of a class that a link may name is read by all that read a class's parameters one by one."""


@cache
def looked_at(text: str, where: str) -> tuple[list[Declared], set[str]]:
    """The declarations of a file, and the names that it reads; each file is looked at once."""
    tree = ast.parse(text)
    return list(declarations(tree, where)), set(reads(tree))


def reads(tree: ast.Module) -> Iterator[str]:
    """Names that are read: as an attribute, as a variable, or in a text that is a name or holds one in braces."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if WORD.fullmatch(node.value):
                yield node.value
            yield from re.findall(r"\{(\w+)", node.value)


def unread(sources: Iterable[tuple[str, str]], scripts: Iterable[str] = ()) -> list[str]:
    """Declared and never read, of (path, text); ``scripts`` are the page's, which read what a component has."""
    files = [looked_at(text, where) for where, text in sources]
    seen = READ_BY_PANEL | READ_BY_NUMBA | READ_BY_TESTS
    seen = seen.union(*(read for _, read in files))
    seen |= {name for script in scripts for name in re.findall(r"\bmodel\.(?:on\(\")?(\w+)", script)}
    return [
        f"{d.where}: {d.owner or 'module'} declares {d.name}, and nothing reads it"
        for declared, _ in files
        for d in declared
        if d.name not in seen and not d.parameter
    ]


def sources() -> list[tuple[str, str]]:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return [(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def scripts() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted((ROOT / "assets").rglob("*.js"))]


@pytest.mark.slow
def test_everything_declared_is_read():
    """Fails where a field, an attribute, a constant or a registry is declared in the project and only tests read it."""
    assert not unread(sources(), scripts())


PLANTED = [
    # An addition to the project, and the name that is then declared and not read.
    ("class Preset:\n    planted: ClassVar[bool] = False\n", "planted"),
    ("class Naive(Preset):\n    noise_of_planted = True\n", "noise_of_planted"),
    ("@dataclass(frozen=True)\nclass Change:\n    planted: int = 0\nChange(planted=2)\n", "planted"),
    ("class Info(NamedTuple):\n    planted: float\n", "planted"),
    ("PLANTED_LIMIT = 3\n", "PLANTED_LIMIT"),
    ("PLANTED, OTHERS = 1, 2\nprint(OTHERS)\n", "PLANTED"),
    ("class Run:\n    def go(self):\n        self.planted = 1\n", "planted"),
    ("class Run:\n    planted: int = 0\n    def go(self):\n        self.planted = 1\n", "planted"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("text", "name"), PLANTED)
def test_fault_a_name_that_nothing_reads(text, name):
    """The planted faults, each of which must be found in the whole project, and not where something reads the name."""
    found = unread([*sources(), ("planted.py", text)], scripts())
    assert found and all(f" declares {name}, " in line and line.startswith("planted.py") for line in found)
    assert not unread([*sources(), ("planted.py", f"{text}print(x.{name})\n")], scripts())
