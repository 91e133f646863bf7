"""A lesson's texts as HTML: Markdown without HTML, with formulas as whoever shows it draws them."""

import re
from collections.abc import Callable, Iterable

from markdown_it import MarkdownIt
from markdown_it.token import Token

from sgmcmc_lab.lessons.live import LIVE

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_FORMULA = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
# Private characters, which no renderer changes, stand for the formulas meanwhile.
_HELD, _HELD_NUMBER = re.compile("([(\\[]*)\ue000([0-9]+)\ue001([.,;:!?)\\]]*)"), re.compile("\ue002([0-9]+)\ue003")

ADDRESSES = ("https://", "http://", "?")
"""How the address of a link begins: of a web page, or within the lab."""

Formula = Callable[[str, bool], str]
"""The HTML of a formula in TeX, which is displayed, or else stands in its line."""


def as_html(
    text: str,
    formula: Formula,
    live: Callable[[str], str] | None = None,
    change: Callable[[list[Token]], Iterable[Token]] | None = None,
) -> str:
    """A text of paragraphs. A formula that is a paragraph of its own is displayed; any other stands in its line,
    together with the punctuation beside it.

    ``live`` gives the HTML of a number that follows the controls; ``change`` the parts of a line in place of these.
    """
    numbers: list[str] = []
    held_formulas: list[tuple[str, bool]] = []

    def hold(match: re.Match[str]) -> str:
        alone = _alone(text, match.start(), match.end())
        held_formulas.append((match[1].strip(), alone))
        return f"\ue000{len(held_formulas) - 1}\ue001"

    def hold_number(match: re.Match[str]) -> str:
        numbers.append(match[1].strip() if live is None else live(match[1].strip()))
        return f"\ue002{len(numbers) - 1}\ue003"

    held = _FORMULA.sub(hold, LIVE.sub(hold_number, text.translate(dict.fromkeys(range(0xE000, 0xE004)))))
    tokens = _MARKDOWN.parse(held)
    for token in tokens if change is not None else ():
        if token.type == "inline" and token.children and change is not None:
            token.children = list(change(token.children))
    html = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})

    def shown(match: re.Match[str]) -> str:
        drawn = f"{match[1]}{formula(*held_formulas[int(match[2])])}{match[3]}"
        return f"<span style='white-space:nowrap'>{drawn}</span>" if match[1] or match[3] else drawn

    html = _HELD.sub(shown, html)
    return _HELD_NUMBER.sub(lambda match: numbers[int(match[1])], html)


def markup_problem(text: str) -> tuple[int, str] | None:
    """The markup of a text that a page may not show, with its line, from 0; None for a good one."""
    # A formula is as long as its lines are many, and the numbers of lines stay.
    held = _FORMULA.sub(lambda match: "x" + "\n" * match[0].count("\n"), LIVE.sub("1", text))
    for token in _MARKDOWN.parse(held):
        line = token.map[0] if token.map else 0
        for part in (token, *(token.children or ())):
            if part.type in ("html_block", "html_inline"):
                return line, "HTML is not allowed in a text"
            if part.type == "image":
                return line, "pictures are not allowed in a text"
            if part.type == "link_open" and not str(part.attrGet("href")).startswith(ADDRESSES):
                return line, f"a link begins with {', '.join(ADDRESSES[:2])} or, within the lab, with {ADDRESSES[2]}"
    return None


def placed_formulas(text: str) -> list[tuple[int, str]]:
    """The formulas of a text, each with its line, from 0; a number that follows the controls is 1 in it."""
    plain = LIVE.sub("1", text)
    return [(plain.count("\n", 0, match.start()), match[1].strip()) for match in _FORMULA.finditer(plain)]


def without_paragraph(html: str) -> str:
    """The HTML of a sentence, without the paragraph around it."""
    return html.strip().removeprefix("<p>").removesuffix("</p>")


def formulas(text: str) -> list[str]:
    """The formulas of a text in TeX, in their order."""
    return [match[1].strip() for match in _FORMULA.finditer(text)]


def formula_parts(tex: str) -> list[str]:
    r"""The parts of a displayed formula, between which it has a ``\qquad``; just itself where it cannot be split."""
    if re.search(r"\\(?:begin|left)(?![a-zA-Z])", tex):
        return [tex]
    depth, found, start = 0, [], 0
    for match in re.finditer(r"[{}]|\\qquad(?![a-zA-Z])", tex):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if match[0] == r"\qquad" and depth == 0:
            found.append(tex[start : match.start()])
            start = match.end()
    return [part.strip() for part in (*found, tex[start:]) if part.strip()] or [tex]


def _alone(text: str, start: int, end: int) -> bool:
    before, after = text[:start].rstrip(" "), text[end:].lstrip(" ")
    return (not before or before.endswith("\n\n")) and (not after or after.startswith("\n\n"))
