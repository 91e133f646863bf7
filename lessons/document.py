"""A lesson's file as text: front matter, sections and settings, each with its line. Nothing in it is executed.

A document is ``+++``, TOML, ``+++``, and then sections. A section begins with ``## Title``; its text is Markdown,
and at its end there may be one block of settings, between ```` ```toml ```` and ```` ``` ````.
"""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgmcmc_lab.lessons.formulas import mathml
from sgmcmc_lab.lessons.prose import ADDRESSES, markup_problem, placed_formulas
from sgmcmc_lab.samplers.files import read_file
from sgmcmc_lab.samplers.parameters import SpecError

MAX_BYTES = 200_000
"""The largest size of a file."""
MAX_SECTIONS = 40
MAX_PROSE = 8_000
"""Characters of one text."""
MAX_LINE = 400
"""Characters of a text that is one line: a title, an option, a sentence."""
MAX_FORMULA = 2_000
"""Characters of a formula."""
_FRONT, _FENCE = "+++", re.compile(r"\s{0,3}(```+|~~~+)\s*(\S*)\s*$")
_MAX_FENCE = 200
"""Characters of a line that begins or ends a block; in a longer one the pattern would look for ever."""

Path_ = tuple[str | int, ...]
"""The place of a value in a TOML document: names of tables, numbers in lists."""


class LessonError(ValueError):
    """The fault of a lesson's file, with its line."""

    def __init__(self, file: str, line: int, message: str):
        super().__init__(f"{file}:{line}: {message}")
        self.file, self.line, self.message = file, line, message


@dataclass(frozen=True)
class Location:
    """The position of a TOML document in its file."""

    file: str
    first: int
    """The line of the file that is the document's first."""
    source: str
    lines: Mapping[Path_, int]
    """The line of the document, from 0, in which a value is given."""

    def line(self, path: Path_) -> int:
        """The line of the file that gives this value, or the value that contains it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.first + self.lines.get(path, 0)

    def error(self, path: Path_, value: Any, allowed: str) -> LessonError:
        """The value at this place is not allowed."""
        field = ".".join(str(part + 1 if isinstance(part, int) else part) for part in path)
        return LessonError(self.file, self.line(path), str(SpecError(field, value, allowed)))

    def wrapped(self, path: Path_, error: SpecError) -> LessonError:
        """A problem that was found in what stands at this place: in the line there that names its field."""
        exact = (*path, *error.field.split("."))
        if exact in self.lines:
            return LessonError(self.file, self.line(exact), str(error))
        start, rows = self.line(path), self.source.splitlines()
        name, value = error.field.rpartition(".")[2], str(error.value)
        after = (self.first + n for p, n in self.lines.items() if p[: len(path)] != path)
        end = min((n for n in after if n > start), default=self.first + len(rows))
        for wanted in ((name, value), (value,), (name,)):
            words = [re.compile(rf"(?<!\w){re.escape(word)}(?!\w)") for word in wanted]
            for n in range(start, max(end, start + 1)):
                if all(word.search(rows[n - self.first]) for word in words):
                    return LessonError(self.file, n, str(error))
        return LessonError(self.file, start, str(error))


class Fields:
    """The named values of a table, each taken out once and checked; :meth:`done` refuses what is left."""

    def __init__(self, data: Any, location: Location, path: Path_ = ()):
        if not isinstance(data, Mapping):
            raise location.error(path, data, "allowed is a table with named values")
        self.data, self.location, self.path = dict(data), location, path
        self._names: list[str] = []

    def __contains__(self, name: str) -> bool:
        self._names.append(name)
        return name in self.data

    def error(self, name: str, value: Any, allowed: str) -> LessonError:
        """This value is not allowed."""
        return self.location.error((*self.path, name), value, allowed)

    def take(self, name: str, default: Any = None) -> Any:
        """The value as it is."""
        self._names.append(name)
        return self.data.pop(name, default)

    def needed(self, name: str) -> None:
        """Refuse a table without this value."""
        if name not in self.data:
            raise self.error(name, None, "it is needed")

    def text(self, name: str, default: str = "", limit: int = MAX_LINE) -> str:
        """A text that is shown: Markdown without HTML."""
        return self.prose((name,), self.take(name, default), limit)

    def prose(self, path: Path_, value: Any, limit: int = MAX_LINE) -> str:
        """The value at a path below this table, as a text that is shown."""
        if not isinstance(value, str) or len(value) > limit:
            raise self.location.error((*self.path, *path), value, f"allowed is a text of up to {limit:,} characters")
        problem = prose_problem(value)
        if problem is not None:
            raise self.location.error((*self.path, *path), value, problem[1])
        return value.strip()

    def key(self, name: str, options: Sequence[str], default: str) -> str:
        """One of some names."""
        value = self.take(name, default)
        if value not in options:
            raise self.error(name, value, f"allowed is one of {', '.join(options)}")
        return str(value)

    def number(self, name: str, low: float = -math.inf, high: float = math.inf) -> float | None:
        """A finite number within bounds, or None where none is given."""
        value = self.take(name)
        if value is None:
            return None
        if not is_number(value) or not low <= value <= high:
            span = "" if math.isinf(low) and math.isinf(high) else f" from {low:g} to {high:g}"
            raise self.error(name, value, f"allowed is a finite number{span}")
        return float(value)

    def count(self, name: str, default: int | None, low: int, high: int) -> int | None:
        """A whole number within bounds."""
        value = self.take(name, default)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.error(name, value, f"allowed is a whole number from {low} to {high:,}")
        return value

    def keys(self, name: str, most: int) -> tuple[str, ...] | None:
        """A list of names, or None where none is given."""
        value = self.take(name)
        if value is None:
            return None
        if (
            not isinstance(value, list)
            or len(value) > most
            or not all(isinstance(x, str) and len(x) <= 80 for x in value)
        ):
            raise self.error(name, value, f"allowed is a list of up to {most} names")
        if len(set(value)) < len(value):
            raise self.error(name, value, "a name is given more than once")
        return tuple(value)

    def table(self, name: str) -> "Fields | None":
        """A table in this one, or None."""
        value = self.take(name)
        return None if value is None else Fields(value, self.location, (*self.path, name))

    def tables(self, name: str, most: int) -> "Iterator[Fields]":
        """A list of tables."""
        value = self.take(name, [])
        if not isinstance(value, list) or len(value) > most:
            raise self.error(name, value, f"allowed is a list of up to {most} tables")
        for i, entry in enumerate(value):
            yield Fields(entry, self.location, (*self.path, name, i))

    def done(self) -> None:
        """Refuse values that nothing asked for."""
        for name, value in self.data.items():
            raise self.error(
                name, value, f"there is no such field here; there are: {', '.join(sorted(set(self._names)))}"
            )


@dataclass(frozen=True)
class Section:
    """A titled text with its settings."""

    title: str
    line: int
    text: str
    settings: Fields


@dataclass(frozen=True)
class Document:
    """A whole file."""

    front: Fields
    sections: tuple[Section, ...]


def text_of(path: Path) -> str:
    """The text of a file. Raises :class:`LessonError`."""
    try:
        raw = read_file(path, MAX_BYTES)
    except OSError as error:
        raise LessonError(path.name, 1, f"it cannot be read: {(error.strerror or str(error)).lower()}.") from None
    if len(raw) > MAX_BYTES:
        raise LessonError(path.name, 1, f"the file is too large; allowed are {MAX_BYTES:,} bytes.")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise LessonError(path.name, line, "it is not a text file in UTF-8.") from None


def parse(text: str, file: str) -> Document:
    """The document in a text. Raises :class:`LessonError`."""
    rows = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if rows[0].strip() != _FRONT:
        raise LessonError(file, 1, f"the first line must be {_FRONT}, and then the title in TOML.")
    end = next((n for n in range(1, len(rows)) if rows[n].strip() == _FRONT), None)
    if end is None:
        raise LessonError(file, 1, f"the front matter has no end: a second line with {_FRONT} is missing.")
    front = _settings(rows[1:end], file, 2)
    sections = tuple(_sections(rows, end + 1, file))
    if not 1 <= len(sections) <= MAX_SECTIONS:
        raise LessonError(
            file,
            end + 1,
            f"it has {len(sections)} steps; allowed are 1 to {MAX_SECTIONS}, each a line “## Title” and a text.",
        )
    return Document(front, sections)


def _sections(rows: Sequence[str], start: int, file: str) -> Iterator[Section]:
    title, opened, settings = "", 0, None
    text: list[str] = []
    fence = ""  # of a block of the text, in which a heading is none
    n = start
    while n < len(rows):
        row = rows[n]
        mark = _FENCE.match(row) if len(row) <= _MAX_FENCE else None
        heading = None if fence else _heading(row)
        if heading is not None:
            if opened:
                yield _section(title, opened, text, settings, file)
            title, opened, text, settings = heading, n + 1, [], None
        elif mark and not fence and mark[2] == "toml":
            if not opened:
                raise LessonError(file, n + 1, "settings stand at the end of a step, and no step has begun.")
            end = next((m for m in range(n + 1, len(rows)) if rows[m].strip() == mark[1]), None)
            if end is None:
                raise LessonError(file, n + 1, "the block of settings has no end: a line with ``` is missing.")
            if settings is not None:
                raise LessonError(file, n + 1, f"the step “{title}” has two blocks of settings; allowed is one.")
            settings = _settings(rows[n + 1 : end], file, n + 2)
            n = end
        else:
            if row.strip():
                if not opened:
                    raise LessonError(file, n + 1, "text stands in a step, and none has begun: “## Title” is missing.")
                if settings is not None:
                    raise LessonError(file, n + 1, "text follows the block of settings, which is the end of a step.")
            if mark:
                fence = mark[1] if not fence else "" if row.strip() == fence else fence
            text.append(row)
        n += 1
    if opened:
        yield _section(title, opened, text, settings, file)


def _heading(row: str) -> str | None:
    """The title in a line that begins a section."""
    return row[2:].strip().rstrip("#").rstrip() if row.startswith("##") and row[2:3].isspace() else None


def _section(title: str, line: int, rows: list[str], settings: Fields | None, file: str) -> Section:
    text = "\n".join(rows)
    if not title or len(title) > MAX_LINE:
        raise LessonError(file, line, f"a step has a title of up to {MAX_LINE} characters.")
    if len(text) > MAX_PROSE:
        raise LessonError(file, line, f"the text has {len(text):,} characters; allowed are {MAX_PROSE:,}.")
    for part, first in ((title, line), (text, line + 1)):
        problem = prose_problem(part)
        if problem is not None:
            raise LessonError(file, first + problem[0], f"{problem[1]}.")
    return Section(title, line, text.strip(), settings or Fields({}, Location(file, line, "", {})))


# --- prose -----------------------------------------------------------------------------------------------------------

# A bracket inside begins a match of its own: to look past it from every one before costs the square of the length.
_LINK = re.compile(r"\]\(\s*([^)\s]*)|\[[^\[\]\n]+\]:\s*(\S*)")
_ATTRIBUTES = re.compile(r"\{\s*:|\{[^{}\n]*\bon[A-Za-z]+\s*=")


def prose_problem(text: str) -> tuple[int, str] | None:
    """Why a text is not one that a page may show: the line in it, from 0, and what is allowed; None for a good one.

    A page renders Markdown, and Markdown passes HTML on: a text has none, no pictures, no links but to web pages, and
    formulas of signs alone.
    """

    def at(position: int) -> int:
        return text.count("\n", 0, position)

    html = re.search(r"<[A-Za-z/!?]", text)
    if html:
        return at(html.start()), "HTML is not allowed in a text; put a space after a < that means less"
    attributes = _ATTRIBUTES.search(text)
    if attributes:
        return at(attributes.start()), "attributes in braces are not allowed in a text"
    picture = re.search(r"!\[", text)
    if picture:
        return at(picture.start()), "pictures are not allowed in a text"
    for link in _LINK.finditer(text):
        if not (link[1] or link[2] or "").startswith(ADDRESSES):
            return at(link.start()), "a link begins with https://, http:// or, within the lab, with ?"
    if text.count("$$") % 2:
        return at(text.rindex("$$")), "a formula is not closed: the number of $$ is odd"
    control = re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)
    if control:
        return at(control.start()), "control characters are not allowed"
    # The result of a text is checked, too: a text can be written in more ways than a pattern has.
    problem = markup_problem(text)
    return _formula_problem(text) if problem is None else problem


def _formula_problem(text: str) -> tuple[int, str] | None:
    """As above, for a formula that cannot be drawn of signs alone."""
    for line, tex in placed_formulas(text):
        if len(tex) > MAX_FORMULA:
            return line, f"a formula has up to {MAX_FORMULA:,} characters"
        try:
            mathml(tex, alone=False)
        except SpecError as error:
            return line, str(error).rstrip(".")
    return None


def is_number(value: Any) -> bool:
    """Whether it is a finite number, and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


# --- TOML with lines -------------------------------------------------------------------------------------------------

_DEEPEST = 8
_KEY = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_KEYS = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_MAX_PARTS = 64
_LONG_KEY = re.compile(
    rf"(?<![A-Za-z0-9_-])(?:(?:[A-Za-z0-9_-]++|\"(?:[^\"\\\n]++|\\.)*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_MAX_PARTS}}}"
)
"""So many names with points between them: the parser of TOML takes more than the square of their number."""
_TABLE = re.compile(rf"\s*\[(\[?)\s*({_KEYS})\s*\]\]?\s*(?:#.*)?$")
_VALUE = re.compile(rf"\s*({_KEYS})\s*=")


def _settings(rows: Sequence[str], file: str, first: int) -> Fields:
    source = "\n".join(rows)
    long = _LONG_KEY.search(source)
    if long:
        line = first + source.count("\n", 0, long.start())
        raise LessonError(
            file, line, f"it has {_MAX_PARTS} or more names in a row with points between them; that is no setting."
        )
    location = Location(file, first, source, _lines(rows))
    try:
        data = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line = int(found[1]) - 1 if found else max(len(rows) - 1, 0)
        message = re.sub(r"\s*\(at .*\)$", "", str(error))
        raise LessonError(file, first + line, f"it is not TOML: {message[:1].lower()}{message[1:]}.") from None
    except RecursionError:
        raise LessonError(file, first, "it is not TOML: its brackets are nested too deeply.") from None
    except ValueError:
        raise LessonError(file, first, "it holds a number of thousands of digits.") from None
    return Fields(data, location)


def _lines(rows: Sequence[str]) -> dict[Path_, int]:
    """The line of every value that begins a line; those inside lists and inline tables are part of it."""
    lines: dict[Path_, int] = {}
    table: Path_ = ()
    counts: dict[Path_, int] = {}
    depth, quote = 0, ""
    for n, row in enumerate(rows):
        rest = row
        if not quote and depth <= 0:
            depth = 0
            header, value = _TABLE.match(row), _VALUE.match(row)
            if header:
                table = _inside(_names(header[2]), counts)
                if header[1]:
                    counts[table] = counts.get(table, -1) + 1
                    table = (*table, counts[table])
                for end in range(1, len(table) + 1):
                    lines.setdefault(table[:end], n)
                continue
            if value:
                path = table
                for part in _names(value[1]):
                    path = (*path, part)
                    lines.setdefault(path, n)
                rest = row[value.end() :]
        quote, depth = _open(rest, quote, depth)
    return lines


def _names(text: str) -> Path_:
    # Deeper than any setting there is no line to tell; a key of thousands of parts is an attack on the reader.
    return tuple(part.strip("\"'") for part in re.findall(_KEY, text)[:_DEEPEST])


def _inside(names: Path_, counts: Mapping[Path_, int]) -> Path_:
    """The path of a table, with the number of the last entry for every list of tables that it is in."""
    path: Path_ = ()
    for i, part in enumerate(names):
        path = (*path, part)
        if path in counts and i < len(names) - 1:
            path = (*path, counts[path])
    return path


def _open(row: str, quote: str, depth: int) -> tuple[str, int]:
    """The long string, and the number of brackets, that are still open at the end of a row."""
    i = 0
    while i < len(row):
        three = row[i : i + 3]
        if quote:
            if row[i] == "\\" and quote == '"""':
                i += 2
                continue
            if three == quote:
                quote, i = "", i + 3
                continue
            i += 1
        elif three in ('"""', "'''"):
            quote, i = three, i + 3
        elif row[i] in "\"'":
            end = re.compile(r'"(?:\\.|[^"\\])*"' if row[i] == '"' else r"'[^']*'").match(row, i)
            i = end.end() if end else len(row)
        elif row[i] == "#":
            break
        else:
            depth += (row[i] in "[{") - (row[i] in "]}")
            i += 1
    return quote, depth
