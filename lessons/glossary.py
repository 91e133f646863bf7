"""The glossary: terms as data, and where they stand in a text. ``glossary.toml`` has them."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("glossary.toml")
_FORMULA = re.compile(r"\$\$.*?\$\$", re.DOTALL)


@dataclass(frozen=True)
class Term:
    """A term, and the sentence that explains it."""

    name: str
    says: str
    lesson: str
    """The key of the lesson that introduces it."""
    step: int
    also: tuple[str, ...] = ()
    """Its other forms: abbreviations, plurals."""
    long: str = ""
    """The expansion of an abbreviation, as a text spells it out."""
    formula: str = ""
    """How a formula has it, where the step that introduces it does so in a formula."""

    @property
    def link(self) -> str:
        """The step that introduces it."""
        return f"?lesson={self.lesson}&step={self.step}"


@cache
def glossary() -> tuple[Term, ...]:
    """All terms, in alphabetical order."""
    listed = tomllib.loads(FILE.read_text(encoding="utf-8"))["term"]
    terms = [Term(**{**entry, "also": tuple(entry.get("also", ()))}) for entry in listed]
    return tuple(sorted(terms, key=lambda term: term.name.lower()))


@cache
def _pattern() -> tuple[re.Pattern[str], dict[str, Term]]:
    """The pattern that finds a term: the longest form that begins at a place; and the term of each form."""
    forms = {form: term for term in glossary() for form in (term.name, *term.also)}
    longest = sorted(forms, key=len, reverse=True)
    # Words may begin a sentence, abbreviations and symbols are as they are.
    listed = [rf"(?i:{re.escape(form)})" if form.islower() and len(form) > 1 else re.escape(form) for form in longest]
    return re.compile(rf"(?<![\w\-])(?:{'|'.join(listed)})(?![\w\-])"), forms


def found(text: str) -> Iterator[tuple[int, int, Term]]:
    """The first and last positions of the terms in a text without formulas."""
    pattern, forms = _pattern()
    for match in pattern.finditer(text):
        yield match.start(), match.end(), forms.get(match[0]) or forms[match[0].lower()]


def used(texts: Sequence[str]) -> set[Term]:
    """The terms in some texts, in whose formulas they are not looked for."""
    return {term for text in texts for _, _, term in found(_FORMULA.sub(" ", text))}
