"""A lesson's texts as HTML: Markdown without HTML, and formulas that the page's MathJax draws."""

import re
from collections.abc import Callable, Iterator
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.formulas import PARTS, in_lines
from lessons.glossary import Term, found
from lessons.live import LIVE

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_FORMULA = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
# Private characters, which no renderer changes, stand for the formulas meanwhile.
_HELD, _HELD_NUMBER = re.compile("\ue000([0-9]+)\ue001"), re.compile("\ue002([0-9]+)\ue003")


def as_html(text: str, explained: set[Term] | None = None, live: Callable[[str], str] | None = None) -> str:
    """A text of paragraphs. A formula that is a paragraph of its own is displayed, any other stands in its line.

    Terms of the glossary that are not among those ``explained`` are so here, where they first stand, and are added to
    them; None leaves all as they are. ``live`` gives the HTML of a number that follows the controls.
    """
    numbers: list[str] = []
    formulas: list[tuple[str, bool]] = []

    def hold(match: re.Match[str]) -> str:
        alone = _alone(text, match.start(), match.end())
        formulas.append((match[1].strip(), alone))
        return f"\ue000{len(formulas) - 1}\ue001"

    def hold_number(match: re.Match[str]) -> str:
        numbers.append(match[1].strip() if live is None else live(match[1].strip()))
        return f"\ue002{len(numbers) - 1}\ue003"

    held = _FORMULA.sub(hold, LIVE.sub(hold_number, text.translate(dict.fromkeys(range(0xE000, 0xE004)))))
    tokens = _MARKDOWN.parse(held)
    for token in tokens if explained is not None else ():
        if token.type == "inline" and token.children and explained is not None:
            token.children = list(_with_terms(token.children, explained))
    html = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    html = _HELD.sub(lambda match: _formula(*formulas[int(match[1])]), html)
    return _HELD_NUMBER.sub(lambda match: numbers[int(match[1])], html)


def in_line(text: str, explained: set[Term] | None = None, live: Callable[[str], str] | None = None) -> str:
    """A sentence, without the paragraph around it."""
    return as_html(text, explained, live).strip().removeprefix("<p>").removesuffix("</p>")


def as_words(text: str) -> str:
    """A text as an attribute may hold it: without marks."""
    return re.sub(r"[*_`\\]|\$\$", "", text)


def _with_terms(tokens: list[Token], explained: set[Term]) -> Iterator[Token]:
    """The parts of a line, with the terms that are new marked; a link is left as it is."""
    links = 0
    for token in tokens:
        links += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        if token.type != "text" or links:
            yield token
            continue
        at = 0
        for start, end, term in found(token.content):
            if term not in explained:
                explained.add(term)
                yield Token("text", "", 0, content=token.content[at:start])
                yield Token("html_inline", "", 0, content=_explained(token.content[start:end], term, len(explained)))
                at = end
        yield Token("text", "", 0, content=token.content[at:])


def _explained(text: str, term: Term, number: int) -> str:
    """A term that shows its sentence under the pointer and with the keyboard's focus."""
    said = f"{escape(term.says)} <a href='{escape(term.link)}'>Where it is introduced</a>"
    return f"<dfn class='term' tabindex='0' aria-describedby='term-{number}'>{escape(text)}<span class='tip' role='tooltip' id='term-{number}'>{said}</span></dfn>"


def _alone(text: str, start: int, end: int) -> bool:
    before, after = text[:start].rstrip(" "), text[end:].lstrip(" ")
    return (not before or before.endswith("\n\n")) and (not after or after.startswith("\n\n"))


def _formula(tex: str, alone: bool) -> str:
    # A formula is text to the page before MathJax finds it: no sign in it may begin a tag.
    tex = tex.replace("<", r"\lt ").replace(">", r"\gt ")
    return f"$${in_lines(tex, PARTS)}$$" if alone else rf"\({tex}\)"
