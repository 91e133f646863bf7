"""A lesson's texts as HTML: Markdown without HTML, and formulas that the page's MathJax draws."""

import re

from markdown_it import MarkdownIt

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_FORMULA = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
# Private characters, which no renderer changes, stand for the formulas meanwhile.
_HELD = re.compile("\ue000([0-9]+)\ue001")


def as_html(text: str) -> str:
    """A text of paragraphs. A formula that is a paragraph of its own is displayed, any other stands in its line."""
    formulas: list[tuple[str, bool]] = []

    def hold(match: re.Match[str]) -> str:
        alone = _alone(text, match.start(), match.end())
        formulas.append((match[1].strip(), alone))
        return f"\ue000{len(formulas) - 1}\ue001"

    held = _FORMULA.sub(hold, text.translate({0xE000: None, 0xE001: None}))
    return _HELD.sub(lambda match: _formula(*formulas[int(match[1])]), _MARKDOWN.render(held))


def in_line(text: str) -> str:
    """A sentence, without the paragraph around it."""
    return as_html(text).strip().removeprefix("<p>").removesuffix("</p>")


def as_words(text: str) -> str:
    """A text as an attribute may hold it: without marks."""
    return re.sub(r"[*_`\\]|\$\$", "", text)


def _alone(text: str, start: int, end: int) -> bool:
    before, after = text[:start].rstrip(" "), text[end:].lstrip(" ")
    return (not before or before.endswith("\n\n")) and (not after or after.startswith("\n\n"))


def _formula(tex: str, alone: bool) -> str:
    # A formula is text to the page before MathJax finds it: no sign in it may begin a tag.
    tex = tex.replace("<", r"\lt ").replace(">", r"\gt ")
    return f"$${_in_lines(tex)}$$" if alone else rf"\({tex}\)"


def _in_lines(tex: str) -> str:
    """A displayed formula of several parts, one below the other: the panel is narrow."""
    if r"\begin" in tex or r"\left" in tex:
        return tex
    depth, parts, start = 0, [], 0
    for match in re.finditer(r"[{}]|\\qquad(?![a-zA-Z])", tex):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if match[0] == r"\qquad" and depth == 0:
            parts.append(tex[start : match.start()])
            start = match.end()
    parts = [part.strip() for part in (*parts, tex[start:]) if part.strip()]
    return (
        parts[0]
        if len(parts) == 1
        else r"\begin{array}{l}" + r"\\[.5em] ".join(rf"\displaystyle {part}" for part in parts) + r"\end{array}"
    )
