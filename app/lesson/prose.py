"""A lesson's texts as HTML on the page: its MathJax draws the formulas, and terms are explained under the pointer."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from html import escape

from markdown_it.token import Token

from sgmcmc_lab.app.views.formulas import PARTS, in_lines
from sgmcmc_lab.lessons import Claim, prose
from sgmcmc_lab.lessons.glossary import Term, found


def as_html(text: str, explained: set[Term] | None = None, live: Callable[[str], str] | None = None) -> str:
    """A text of paragraphs. A formula that is a paragraph of its own is displayed, any other stands in its line.

    Terms of the glossary that are not among those ``explained`` are so here, where they first stand, and are added to
    them; None leaves all as they are. ``live`` gives the HTML of a number that follows the controls.
    """
    change = partial(_with_terms, explained=explained) if explained is not None else None
    return prose.as_html(text, _formula, live, change)


def in_line(text: str, explained: set[Term] | None = None, live: Callable[[str], str] | None = None) -> str:
    """A sentence, without the paragraph around it."""
    return prose.without_paragraph(as_html(text, explained, live))


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
    said = f"{escape(term.says)} <a href='{escape(term.link)}'>See its introduction</a>"
    return f"<dfn class='term' tabindex='0' aria-describedby='term-{number}'>{escape(text)}<span class='tip' role='tooltip' id='term-{number}'>{said}</span></dfn>"


def _formula(tex: str, alone: bool) -> str:
    # A formula is text to the page before MathJax finds it: no sign in it may begin a tag.
    tex = tex.replace("<", r"\lt ").replace(">", r"\gt ")
    return f"$${in_lines(tex, PARTS)}$$" if alone else rf"\({tex}\)"


def paper(claim: Claim, words: Callable[[str], str]) -> str:
    """The number beside ours as HTML, below a claim, and where it comes from; ``words`` makes HTML of its texts."""
    found = claim.paper
    if found is None:
        return ""
    ours = f", ours {found.ours:g}" if found.ours is not None else ""
    reason = f" {words(found.reason)}" if found.reason else ""
    return f"<br><span class='small'>{words(found.figure)}: {words(found.with_source)}{ours}.{reason}</span>"
