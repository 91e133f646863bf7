"""The grammar: what a person types becomes an expression, or is refused with the place where it went wrong."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from operator import add, mul, neg, sub, truediv
from typing import Any, NoReturn

from sgmcmc_lab.samplers.expressions.densities import DENSITIES, NAMED, Density
from sgmcmc_lab.samplers.expressions.functions import FUNCTIONS
from sgmcmc_lab.samplers.expressions.limits import MAX_DEPTH, MAX_EXPONENT, MAX_LENGTH, MAX_NUMBER, work_limit
from sgmcmc_lab.samplers.expressions.normal_form import Expression, apply, constant, name
from sgmcmc_lab.samplers.parameters import SpecError

_SYNONYMS = {"θ": "theta", "ξ": "xi", **dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))}
_SIGNS = {"−": "-", "·": "*", "×": "*", "**": "^"}
_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-zθξ_][A-Za-z0-9_₀-₉]*)"
    r"|(?P<sign>\*\*|[-+*/^(),−·×])"
)
_BLANK = " \t\n\r"
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "sign": 3, "^": 4}


def _plain(raw: str) -> str:
    """A name in plain letters and digits."""
    return "".join(_SYNONYMS.get(character, character) for character in raw)


@dataclass(frozen=True)
class _Pending:
    """An operator or an opening bracket that waits for what comes after it."""

    what: str
    position: int
    function: str = ""
    commas: int = 0
    """That were read inside an opening bracket."""


class _Reader:
    """Reads one text with a stack of values and a stack of what is pending."""

    def __init__(self, text: str, names: frozenset[str], field: str, densities: Mapping[str, Density] = DENSITIES):
        self.text, self.names, self.field, self.densities = text, names, field, densities
        self.values: list[Expression] = []
        self.pending: list[_Pending] = []

    def refuse(self, position: int, why: str) -> NoReturn:
        raise SpecError(self.field, self.text[:80], f"at character {position + 1}: {why}")

    def tokens(self) -> Iterator[tuple[str, str, int]]:
        position = 0
        while position < len(self.text):
            if self.text[position] in _BLANK:
                position += 1
                continue
            match = _TOKEN.match(self.text, position)
            if match is None:
                self.refuse(position, self.stranger(self.text[position]))
            end = match.end()
            if (
                end < len(self.text)
                and not self.text[end].isascii()
                and match.lastgroup == "name"
                and self.text[end].isalnum()
            ):
                self.refuse(end, self.stranger(self.text[end]))  # a look-alike inside a word
            yield str(match.lastgroup), match.group(), position
            position = end

    @staticmethod
    def stranger(character: str) -> str:
        if character == "|":
            return "“|” has no meaning here; commas separate all arguments, as in normal_lpdf(x, 0, 1)"
        if character.isascii() and character.isprintable():
            return f"“{character}” has no meaning here; expected a number, a name, + - * / ^ or a bracket"
        called = unicodedata.name(character, f"the character U+{ord(character):04X}")
        return f"{called} is not accepted; expected plain letters, digits and + - * / ^ ( )"

    def read(self) -> Expression:
        wants_value = True
        opening: tuple[str, int] | None = None
        for kind, raw, position in self.tokens():
            if opening and raw != "(":
                self.refuse(position, f"expected an opening bracket after the function {opening[0]}")
            if len(self.pending) > MAX_DEPTH:
                self.refuse(position, f"brackets, signs and powers are nested more than {MAX_DEPTH} deep")
            word = _SIGNS.get(raw, raw)
            if word == ",":
                self.comma(position, wants_value)
                wants_value = True
                continue
            if not wants_value and (kind != "sign" or word == "("):
                self.refuse(position, "expected an operator + - * / ^, a closing bracket or the end")
            if kind == "number":
                self.values.append(constant(self.number(raw, position)))
                wants_value = False
            elif kind == "name":
                label = _plain(raw)
                if (label in FUNCTIONS or label in DENSITIES) and label not in self.names:
                    opening = (label, position)
                else:
                    self.values.append(self.named(label, raw, position))
                    wants_value = False
            elif word == "(":
                self.pending.append(_Pending("(", position, opening[0] if opening else ""))
                opening = None
            elif word == ")":
                if wants_value:
                    self.refuse(position, "expected a number, a name or an opening bracket before this bracket")
                self.close(position)
            elif wants_value:
                if word not in "+-":
                    self.refuse(position, f"expected a number, a name or an opening bracket before “{raw}”")
                self.pending.append(_Pending("sign", position, word))
            else:
                # ^ binds to the right: a^b^c is a^(b^c).
                while self.pending and self.binds(self.pending[-1].what, word):
                    self.work_out(self.pending.pop())
                self.pending.append(_Pending(word, position))
                wants_value = True
        end = len(self.text)
        if opening:
            self.refuse(end, f"expected an opening bracket after the function {opening[0]}")
        if wants_value:
            what = "nothing is typed; " if not self.text.strip() else "the text ends too early; "
            self.refuse(end, what + "expected a number, a name or an opening bracket")
        while self.pending:
            top = self.pending.pop()
            if top.what == "(":
                self.refuse(top.position, "this bracket is never closed; expected a closing bracket")
            self.work_out(top)
        return self.values[0]

    @staticmethod
    def binds(before: str, word: str) -> bool:
        if before == "(":
            return False
        return _PRECEDENCE[before] > _PRECEDENCE[word] or (before != "^" and _PRECEDENCE[before] == _PRECEDENCE[word])

    def number(self, raw: str, position: int) -> float:
        value = float(raw)
        if not value <= MAX_NUMBER:
            self.refuse(position, f"the number is too large; allowed are numbers up to {MAX_NUMBER:g}")
        return value

    def named(self, label: str, raw: str, position: int) -> Expression:
        if label == "pi" and label not in self.names:
            return constant(math.pi)
        if label not in self.names:
            known = ", ".join(sorted(self.names)) or "none"
            near = get_close_matches(raw[:40], [*self.names, "pi", *FUNCTIONS, *DENSITIES], 1)
            meant = f"; perhaps {near[0]} is meant" if near else ""
            self.refuse(
                position,
                f"there is no name “{raw[:20]}” here{meant}; the names are {known}, the number pi, "
                f"the functions {', '.join(key for key, function in FUNCTIONS.items() if function.listed)}, and densities as in normal_lpdf(x, 0, 1)",
            )
        return name(label)

    def comma(self, position: int, wants_value: bool) -> None:
        """End an argument of a density."""
        while not wants_value and self.pending and self.pending[-1].what != "(":
            self.work_out(self.pending.pop())
        if not self.pending or self.pending[-1].function not in DENSITIES:
            self.refuse(position, "a comma has no meaning here; decimals take a point, as in 0.5")
        if wants_value:
            self.refuse(position, "expected a number, a name or an opening bracket before this comma")
        top = self.pending.pop()
        if top.commas + 1 == len(DENSITIES[top.function].arguments):
            self.refuse(position, self.arguments(top.function))
        self.pending.append(replace(top, commas=top.commas + 1))

    @staticmethod
    def arguments(function: str) -> str:
        named = DENSITIES[function].arguments
        return f"{function} takes {len(named)} arguments: {', '.join(named)}"

    def close(self, position: int) -> None:
        while self.pending:
            top = self.pending.pop()
            if top.what == "(":
                if top.function in DENSITIES:
                    self.density(top, position)
                elif top.function:
                    self.guarded(top.position, partial(apply, top.function, self.values.pop()))
                return
            self.work_out(top)
        self.refuse(position, "this bracket closes nothing; expected an operator or the end")

    def density(self, top: _Pending, position: int) -> None:
        """Put a density in the place of its arguments."""
        density = self.densities[top.function]
        n = len(density.arguments)
        if top.commas + 1 != n:
            self.refuse(position, self.arguments(top.function))
        given = self.values[-n:]
        del self.values[-n:]
        self.guarded(top.position, partial(density.build, *given))

    def work_out(self, operator: _Pending) -> None:
        if operator.what == "sign":
            if operator.function == "-":
                self.guarded(operator.position, partial(neg, self.values.pop()))
            return
        right, left = self.values.pop(), self.values.pop()
        if operator.what == "^":
            exponent = right.constant
            if exponent is None:
                self.refuse(operator.position + 1, "the exponent must be a number; for a power of e use exp(…)")
            if abs(exponent) > MAX_EXPONENT:
                self.refuse(operator.position + 1, f"the exponent must be from -{MAX_EXPONENT:g} to {MAX_EXPONENT:g}")
            self.guarded(operator.position, partial(Expression.__pow__, left, exponent))
        else:
            self.guarded(operator.position, partial(_OPERATORS[operator.what], left, right))

    def guarded(self, position: int, operation: Callable[[], Expression]) -> None:
        """Give an error in working out numbers its place in the text."""
        try:
            self.values.append(operation())
        except SpecError as error:
            self.refuse(position, f"in {error.value} {error.allowed}" if error.value else error.allowed)


_OPERATORS: dict[str, Callable[[Expression, Expression], Expression]] = {"+": add, "-": sub, "*": mul, "/": truediv}


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """The kind (number, name or sign) and the plain form of each word of a text that :func:`parse` takes."""
    for kind, raw, _ in _Reader(text, frozenset(), "").tokens():
        yield kind, _plain(raw) if kind == "name" else _SIGNS.get(raw, raw)


def parse(text: Any, names: Iterable[str], field: str, densities: Mapping[str, Density] = DENSITIES) -> Expression:
    """The expression that a person typed, a function of ``names``.

    Raises :class:`SpecError` for ``field`` with the character (counted from 1) at which the text went wrong and what
    was expected there.
    """
    if not isinstance(text, str):
        raise SpecError(field, type(text).__name__, "expected a text with a formula")
    if len(text) > MAX_LENGTH:
        raise SpecError(
            field, text[:80], f"at character {MAX_LENGTH + 1}: a formula has at most {MAX_LENGTH} characters"
        )
    with work_limit():
        return _Reader(text, frozenset(names), field, densities).read()


def displayed(text: str, names: Iterable[str], field: str) -> str:
    """LaTeX of a typed expression, as in :func:`parse`, with densities by their names."""
    return parse(text, names, field, NAMED).tex()
