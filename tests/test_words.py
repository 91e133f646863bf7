"""The field's words, on the page and in the source: distribution, burn-in, invariant; and plain sentences."""

import ast
import io
import re
import tokenize
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


@pytest.mark.slow
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


# Sentences

COUNT = r"(?:a|one|two|three|four|five|six|seven|eight|nine|ten|many|few|fewer|several|each|every|\d+)"
SENTENCES = {
    "a clause as the subject": re.compile(r"^(?:What|Who|Whose|Which|Whoever|Whatever)\b.*[^?]$"),
    "a place as the subject": re.compile(r"^Where\b[^,]*[^?,]$"),
    "as … as there is": re.compile(
        r"\bas (?:many|much|long|often|far|large|small|few|little)\b[^.;]{0,40}\bas there (?:is|are)\b"
    ),
    "is had": re.compile(r"\b(?:is|are|was|were|be|been) had\b"),
    "lets … go": re.compile(r"\b(?:lets?|letting)\b[^.;]{0,30}\bgo\b"),
    "data counted one by one": re.compile(
        rf"\b{COUNT} data\b(?=[.,;:)]|$| (?:a|are|at|each|in|is|of|that|which|were)\b)|\bdatum\b(?!\)`)"
    ),
}
"""Kinds of sentences that a reader of the field stops at. The subject is a noun, and the verb says what it does."""

FRAGMENT = re.compile(r"^Of\b(?! course\b)(?!$| the$)")
"""The beginning of a docstring that leaves out its noun: the name above it is not a part of its sentence."""


def prose(path):
    """The comments, docstrings and messages of a program, each with its line. Lines of one comment are one text."""
    source = path.read_text(encoding="utf-8")
    begins, above, block = 0, -1, []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(?:fmt|type|ruff|noqa|mypy)\b", token.string):
            if token.start[0] != above + 1:
                yield begins, " ".join(block)
                begins, block = token.start[0], []
            block.append(token.string.lstrip("#: "))
            above = token.start[0]
    yield begins, " ".join(block)
    yield from ((line, text) for line, text in texts(path) if " " in text)


def sentences(text):
    """The sentences of a text; a blank line ends one."""
    for part in re.split(r"\n\s*\n", text):
        yield from re.split(r"(?<=[.:;!?])\s+", " ".join(part.split()))


def stumbles(paths):
    """The sentences of these kinds, each with its file, line and kind."""
    return [
        f"{path.name}:{line}: {kind}: {sentence}"
        for path in paths
        for line, text in prose(path)
        for sentence in sentences(text)
        for kind, pattern in SENTENCES.items()
        if pattern.search(sentence)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("package", ["app", "lessons", "samplers", "tests"])
def test_sentences_have_a_subject_that_acts(package):
    found = stumbles(path for path in (ROOT / package).rglob("*.py") if path != Path(__file__).resolve())
    assert not found, "\n".join(found)


def without_noun(paths):
    """The docstrings that begin with *Of*, each with its file."""
    # To read all files as Python takes ten times as long.
    sources = {path: source for path in paths if '"""Of' in (source := path.read_text(encoding="utf-8"))}
    return [
        f"{path.name}: {text[:60]}"
        for path, source in sources.items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(text := node.value.value, str) and FRAGMENT.match(text)
    ]


def test_docstrings_begin_with_their_noun(tmp_path):
    packages = ("app", "lessons", "samplers", "tests")
    assert without_noun(path for package in packages for path in (ROOT / package).rglob("*.py")) == []
    file = tmp_path / "planted.py"
    file.write_text('MOST = 5\n"""Of the lanes."""\nFEWEST = 1\n"""Of course."""\n', encoding="utf-8")
    assert without_noun([file]) == ["planted.py: Of the lanes."]


@pytest.mark.parametrize(
    ("planted", "kind"),
    [
        ('"""What a view declares."""', "a clause as the subject"),
        ("# Who is in the room decides.", "a clause as the subject"),
        ("# A comment of two lines.\n# What comes of it is kept.", "a clause as the subject"),
        ('"""One sentence.\n\nWhere the density is largest."""', "a place as the subject"),
        ('x = "the run has as many steps as there are rows"', "as … as there is"),
        ("# No more is to be had of it.", "is had"),
        ("# The loop lets the page go first.", "lets … go"),
        ('"""The gradients of ten data at a time."""', "data counted one by one"),
        ('"""The gradient of one datum."""', "data counted one by one"),
    ],
)
def test_a_sentence_of_each_kind_is_found(planted, kind, tmp_path):
    file = tmp_path / "planted.py"
    file.write_text(planted + "\n", encoding="utf-8")
    assert [line.split(": ")[1] for line in stumbles([file])] == [kind]


@pytest.mark.parametrize(
    "plain",
    [
        '"""The target, where it is known."""',
        '"""Where a field is renamed, the version grows."""',
        "# What is the stationary distribution? It is the target.",
        '"""Ten data points, many data sets, and one data source."""',
    ],
)
def test_other_sentences_are_not_found(plain, tmp_path):
    file = tmp_path / "plain.py"
    file.write_text(plain + "\n", encoding="utf-8")
    assert stumbles([file]) == []
