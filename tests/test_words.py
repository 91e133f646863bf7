"""The field's words: what is read, on the page and in the source, says distribution, burn-in, invariant."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INSTEAD = {
    r"\blaws?\b": "distribution",
    r"\bsteps a frame\b": "steps per frame",
    r"\bthat are not counted\b": "burn-in",
    r"\bas many exact draws\b": "i.i.d. draws, same n",
    r"\bfresh draws?\b": "effective sample",
    r"\bnobody knows\b": "unknown",
    r"\bdo(es)? the sum\b": "compute directly",
    r"\btakes it down by\b": "divides by",
    r"\b(goes|go) with (ε|\$\$\\epsilon)": "is O(ε)",
    r"\bleaves? e\S* alone\b": "invariant",
    r"< 0 was clipped": "injected noise set to 0",
    r"\bruns of (its|their) own\b": "separate runs",
    r"\bdatum a minibatch\b": "batch size",
    r"\bmade to order\b": "synthetic",
    r"\bslow worm\b": "barely moves",
    r"(?-i:\bNot so\.)": "Not quite.",
    r"\blane is gone\b": "removed",
    r"\bas it was used\b": "its estimate",
}
UNKNOWN = re.compile("|".join(INSTEAD), re.IGNORECASE)


def texts(path):
    """Each text of a file with its line: all of a prose file, the strings of a program."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(text.split("\n"), 1)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def faults(paths):
    return [
        f"{path.name}:{line}: {found.group()}"
        for path in paths
        for line, text in texts(path)
        for found in UNKNOWN.finditer(text)
    ]


def test_what_is_read_is_in_the_words_of_the_field():
    paths = [ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md", "lessons/glossary.toml")]
    paths += [*(ROOT / "lessons").rglob("*.md"), *(ROOT / folder / "README.md" for folder in ("app", "tests"))]
    paths += (ROOT / "samplers").rglob("*.md")
    paths += [path for folder in ("app", "lessons", "samplers") for path in (ROOT / folder).rglob("*.py")]
    assert faults(paths) == []


@pytest.mark.parametrize("name", ["planted.py", "planted.md"])
def test_another_word_is_found(name, tmp_path):
    planted = tmp_path / name
    planted.write_text('law = f"by the exact law {1}"\n', encoding="utf-8")
    assert {line.rpartition(":")[2] for line in faults([planted])} == {" law"}
