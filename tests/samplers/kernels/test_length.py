"""A kernel reads like the textbook: no function in its file has more than 60 lines."""

import ast
from pathlib import Path

from sgmcmc_lab.samplers import kernels

MAX_LINES = 60


def long_functions(text):
    """The functions of a source file that have more lines."""
    found = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [f"{node.name}: {n}" for node in found if (n := node.end_lineno - node.lineno + 1) > MAX_LINES]


def test_no_function_is_long():
    files = sorted(Path(kernels.__file__).parent.glob("*.py"))
    assert len(files) > 30
    assert {path.name: found for path in files if (found := long_functions(path.read_text(encoding="utf-8")))} == {}


def test_a_long_function_is_found():
    """The planted fault."""
    body = "\n".join("    x += 1" for _ in range(MAX_LINES))
    assert long_functions(f"def short(x):\n{body[11:]}\n\n\ndef long(x):\n{body}\n") == ["long: 61"]
