r"""Formulas that are wider than their place, in lines: cut where their parts end, else before a sign of a sum."""

import re
from collections.abc import Iterable, Iterator, Sequence

MOST = 34.0
"""Letters of a displayed formula for which a card or a lesson's panel has room: each has about 10.7 pixels."""
LONGEST = 900
"""Characters of a formula of somebody's own that is shown: what is longer is not read by anybody."""
PARTS = r"\\qquad(?![a-zA-Z])|\\\\(?:\[[^\]]*\])?"
COMMAS = r",\s*\\q?quad(?![a-zA-Z])|(?<=;)\\quad(?![a-zA-Z])|\\\\|\s*\n"
"""Where a formula's parts end, in a lesson and in a card."""
_TOKEN = re.compile(r"\\begin\{\w+\}|\\end\{\w+\}|\\[a-zA-Z]+|\\.|\s+|.", re.DOTALL)
_NOTHING = re.compile(
    r"\\(?:[bB]igg?[lr]?|left|right|,|;|!|:|(?:text|display)style|operatorname|math\w+|text|tilde|hat|bar|dot|limits)|[{}\s&]"
)
_SIGNS = {"+", "-", "=", r"\leftarrow", r"\sim", r"\min", r"\exp"}
_WIDTHS = {
    r"\quad": 2.0,
    r"\qquad": 4.0,
    r"\log": 3.0,
    r"\exp": 3.0,
    r"\sum": 2.0,
    r"\leftarrow": 2.5,
    "=": 2.2,
    "+": 2.0,
    "-": 2.0,
}
_BRACKETS = frozenset("()[]")
_OPEN, _CLOSE = {"{", "(", "[", r"\left", r"\underbrace"}, {"}", ")", "]"}


def in_lines(tex: str, ends: str, most: float = MOST) -> str:
    """A displayed formula in lines: its parts, cut to the available width, one below the other."""
    rows = rows_of(tex, ends, most)
    if len(rows) == 1:
        return rows[0]
    return r"\begin{array}{l}" + r"\\[.5em] ".join(rf"\displaystyle {row}" for row in rows) + r"\end{array}"


def rows_of(tex: str, ends: str, most: float = MOST) -> list[str]:
    """The rows of a displayed formula, cut where its parts end, and before a sign where a part is too wide."""
    return [row for part in split_formula(tex, ends) for row in _fit(part, most)]


def split_formula(tex: str, ends: str) -> list[str]:
    """A displayed formula cut where its parts end."""
    return _split(_without_alignment(tex), ends)


def width(tex: str) -> float:
    """About how many letters wide a formula is."""
    out, at = 0.0, 0
    while at < len(tex):
        match = _TOKEN.match(tex, at)
        assert match is not None
        token, at = match[0], match.end()
        if token in (r"\frac", r"\tfrac"):
            above, at = _group(tex, at)
            below, at = _group(tex, at)
            out += max(width(above), width(below)) * (0.75 if token == r"\tfrac" else 1.0)
        elif token == r"\underbrace":
            held, at = _group(tex, at)
            at += tex.startswith("_", at)
            said, at = _group(tex, at)
            out += max(width(held), 0.7 * width(said))
        elif token in "_^":
            script, at = _group(tex, at)
            out += 0.7 * width(script)
        elif token.startswith(r"\begin"):
            # A person's own formula may have no end.
            end = tex.find(token.replace("begin", "end"), at) % (len(tex) + 1)
            out += 2 + max(width(row) + 2 * row.count("&") for row in tex[at:end].split(r"\\"))
            at = end + len(token) - 2
        elif not _NOTHING.fullmatch(token):
            out += _WIDTHS.get(token, 1.0)
    return out


def _group(tex: str, at: int) -> tuple[str, int]:
    """The argument of a command, which is the next token or a group in braces, and its end."""
    depth, start = 0, at
    for token, _, end in _tokens(tex, at):
        depth += {"{": 1, "}": -1}.get(token, 0)
        if depth == 0 and not token.isspace():
            return tex[start:end].strip().removeprefix("{").removesuffix("}"), end
    return tex[start:], len(tex)


def _tokens(tex: str, at: int = 0) -> Iterator[tuple[str, int, int]]:
    for match in _TOKEN.finditer(tex, at):
        yield match[0], match.start(), match.end()


def _top(tex: str, within: frozenset[str] = frozenset()) -> Iterator[tuple[str, int]]:
    """The tokens that are in nothing else, or only in the brackets that are given, and where they begin."""
    depth = 0
    for token, start, _ in _tokens(tex):
        if token in within:
            yield token, start
            continue
        depth -= token in _CLOSE or token.startswith(r"\end") or token == r"\right"
        if depth == 0:
            yield token, start
        depth += token in _OPEN - {r"\underbrace"} or token.startswith(r"\begin")


def _without_alignment(tex: str) -> str:
    tex = tex.replace(r"\begin{aligned}", "").replace(r"\end{aligned}", "")
    marks = {start for token, start in _top(tex) if token == "&"}
    return "".join(x for i, x in enumerate(tex) if i not in marks)


def _split(tex: str, ends: str) -> list[str]:
    at = {start for _, start in _top(tex)}
    cuts = [match for match in re.finditer(ends, tex) if match.start() in at]
    starts = [0, *(match.end() for match in cuts)]
    parts = [tex[a:b].strip() for a, b in zip(starts, [*(match.start() for match in cuts), len(tex)], strict=True)]
    return [part for part in parts if part]


def _fit(tex: str, most: float) -> Sequence[str]:
    """Rows of at most that width, where there are signs to cut before: first those that are in no brackets."""
    rows = _cut(tex, most)
    if not re.search(r"\\left(?![a-zA-Z])", tex):
        rows = [part for row in rows for part in (_cut(row, most, _BRACKETS) if width(row) > most else [row])]
    return [rows[0].strip(), *(rf"\quad {row.strip()}" for row in rows[1:])]


def _cut(tex: str, most: float, within: frozenset[str] = frozenset()) -> list[str]:
    rows, start, last, equal, before = [], 0, 0, 0, ""
    for token, at in [*_top(tex, within), ("=", len(tex))]:
        # A sign after another sign or a bracket, or at the beginning, is a number's own; a script is none.
        if token in _SIGNS and before and before not in _SIGNS and before not in "([_^":
            if width(tex[start:at]) > most and width(tex[start:last]) > most / 6:
                # Before a second equals sign a cut is read more easily than within what it follows.
                cut = equal if equal > start and width(tex[start:equal]) > most / 3 else last
                rows.append(tex[start:cut])
                start = cut
            last, equal = at, at if token == "=" else equal
        if not token.isspace() and token not in (r"\,", r"\;"):
            before = token
    return [*rows, tex[start:]]


def short(formulas: Iterable[str]) -> tuple[str, ...]:
    """The formulas without those that are too long to be read."""
    return tuple(tex for tex in formulas if len(tex) < LONGEST)
