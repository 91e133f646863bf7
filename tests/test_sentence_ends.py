"""No sentence of a Markdown file is cut off: paragraphs and items of lists end in a stop, and sentences are whole."""

import re
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.helpers.cases import for_each

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for paths in (
        ROOT.glob("*.md"),
        *((ROOT / folder).rglob("*.md") for folder in (".github", "app", "lessons", "samplers", "tests")),
    )
    for path in paths
)
MARKDOWN = MarkdownIt("commonmark").enable("table")
LEADS_TO = {"fence", "bullet_list_open", "ordered_list_open", "table_open", "blockquote_open"}
"""The blocks that may follow a colon at the end of a paragraph, besides a displayed formula."""
STOP = re.compile(r"[.?!:][)\]*”’\"]*$")
END_OF_SENTENCE = re.compile(r"(?<=[.?!])[)\]*”’\"]*\s+")
UNFINISHED = re.compile(
    r"(?:^|\s)(?:an?|the|of|and|or|nor|but|to|with|which|whose|from|into|than|its|their|his|our|your|every|if|when|"
    r"while|because|whether|between)[.?!:;,)\]*”’\"]*$",
    re.IGNORECASE,
)
"""A last word that another must follow. *In*, *for*, *by* and *at* are not here: an end can be what a thing is for."""
LOWER = re.compile(r"[a-z]+(?:['’-][a-z]+)*[,;:]?(?=\s|$)")
NAMES = {"pdmp-jax"}
"""Names in lower case that begin a sentence."""
FORMULA = re.compile(r"\$\$.+?\$\$", re.DOTALL)
RECORD = re.compile(r"\d{4}-\d\d-\d\d; \d+ cores")
"""The heading of a table that a command writes: date, machine and versions."""


def plain(inline: Token) -> str:
    """The words of a paragraph. Links have brackets; code and formulas, whose dots end no sentence, are left out."""
    marks = {"softbreak": " ", "hardbreak": " ", "link_open": "[", "link_close": "]"}
    marks |= {"code_inline": "`code`", "image": "[picture]"}
    return FORMULA.sub("$", "".join(marks.get(token.type, token.content) for token in inline.children)).strip()


def faults(text: str) -> Iterator[tuple[int, str, str]]:
    """The cut sentences of a Markdown text: the line of the paragraph, what is wrong, and the sentence."""
    text = re.sub(r"\A\+\+\+\n.*?^\+\+\+\n", lambda found: "\n" * found[0].count("\n"), text, flags=re.M | re.S)
    tokens = MARKDOWN.parse(text)
    before, continues = "", []
    for i, token in enumerate(tokens):
        if token.type in ("bullet_list_open", "ordered_list_open"):
            # Its items are parts of the sentence above it.
            continues.append(before.endswith(":"))
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            continues.pop()
        if token.type != "inline" or tokens[i - 1].type != "paragraph_open":
            continue
        said, after = plain(token), [token.type for token in tokens[i + 2 : i + 4]]
        begun, part = before == "$", bool(continues) and continues[-1]
        before = said
        if said == "$" or RECORD.search(token.content) or re.fullmatch(r"\[[^]]*\]", said):
            continue
        displays = after[:1] == ["paragraph_open"] and plain(tokens[i + 3]) == "$"
        semicolon = part and after == ["list_item_close", "list_item_open"] and said.endswith(";")
        if len(said.split()) < 2:
            yield token.map[0] + 1, "one word", said
        if not (displays or semicolon or STOP.search(said)):
            yield token.map[0] + 1, "no stop", said[-60:]
        elif said.endswith(":") and not (displays or LEADS_TO & set(after[:1])):
            yield token.map[0] + 1, "a colon before nothing", said[-60:]
        sentences = END_OF_SENTENCE.split(said)
        for j, sentence in enumerate(sentences):
            first = LOWER.match(sentence.lstrip('“"(*'))
            if first and first[0].rstrip(",;:") not in NAMES and not (j == 0 and (begun or part)):
                yield token.map[0] + 1, "no beginning", sentence[:60]
            if UNFINISHED.search(sentence) and not (displays and sentence is sentences[-1]):
                yield token.map[0] + 1, "no last word", sentence[-60:]


@for_each("name", FILES)
def test_every_sentence_has_both_ends(name):
    """Fails where an edit has left out the rest of a sentence, or its first words."""
    found = [
        f"{name}:{line}: {fault}: {said}" for line, fault, said in faults((ROOT / name).read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@for_each(
    ("planted", "fault"),
    [
        ("A page has a slider if its answers take less than a second; otherwise\n\n```sh\nx\n```", "no stop"),
        ("- **Slow step** draws the parts, one at each press. The recording holds the\n- It is whole.", "no stop"),
        ("- *Energies* shows U(θ), *Gamma SGVB* a fitted gamma, with KL(q‖p),\n- It is whole.", "no stop"),
        ("- It can adapt: always, or during burn-in only; a step\n- It is whole.", "no stop"),
        ("The mean distance is below .1. `tests/test_sights.py` repeats a part\n\n<!-- begin -->", "no stop"),
        ("It is the limit of\n\n$$x$$\n\nand nothing else", "no stop"),
        ("The parts are:\n\n- the first;\n- the last;", "no stop"),
        ("The parts are:\n\nThey are whole.", "a colon before nothing"),
        ("- The parts are:\n- They are whole.", "a colon before nothing"),
        ("All samplers accept a temperature except SCIR, whose.", "no last word"),
        ("The chain moves to the. It stops.", "no last word"),
        ("It is whole.\n\nsteps are those of temperature 1.", "no beginning"),
        ("- It is whole. of temperature 1.", "no beginning"),
        ("It is whole.\n\nMoves.", "one word"),
    ],
)
def test_a_cut_sentence_is_found(planted, fault):
    """The first five stood in the files; the others are of the same kinds."""
    assert fault in {kind for _, kind, _ in faults(planted)}


@for_each(
    "whole",
    [
        "The variance is\n\n$$\\sigma^2.$$\n\nwhere σ is given. Is it 1 (as in the *lesson*)?",
        "The parts are:\n\n- the first;\n- the last.",
        "- [The page](#the-page)\n- [Links](#links)",
        "`run` makes the draws. [README.md](README.md) says how (`a.b`: see Baker et al. 2018).",
        "Use this command:\n\n```sh\nx\n```",
        "It says what the list is for. θ is a vector, and f(m) a price.",
    ],
)
def test_a_whole_sentence_is_not_found(whole):
    assert list(faults(whole)) == []
