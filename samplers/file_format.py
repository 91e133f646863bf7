"""The format of a file of a person's own: guessed where it is not chosen, stated in a sentence, and open to change.

The format of a table is its encoding, separator, title row, decimal mark, missing values and columns. The format of
other files is their encoding.
"""

import argparse
import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.files import ENCODINGS, FileError, count_lines, csv_rows, decode, dialect, lines_for, quoted
from sgmcmc_lab.samplers.parameters import SpecError

NO_SEPARATOR = "\x1f"
"""The separator of a file of one column: no text has the unit separator."""
SEPARATORS = {"\t": "tab", ";": "semicolon", "|": "vertical bar", ",": "comma", " ": "space", NO_SEPARATOR: "none"}
"""The most telling first: a decimal mark or a sentence has commas, and a name has spaces."""
YES, NO = "yes", "no"
POINT, COMMA = ".", ","
LEFT_OUT, KEPT = "left out", "kept"
NONE = "none"
GROUPS = "known groups"
"""The role of a column that a table may lack."""
MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "missing", "?"})
"""The cells, in lower case, that mean a missing value."""
MARKS = frozenset({"-", "–", "—", ".", ".."})
"""Those that mean it among numbers; among words they may be a kind, as - and + are."""
SAMPLE_ROWS, SAMPLE_CHARACTERS = 100, 100_000
"""The first part of a table, from which its separator and its title row are guessed."""
SAMPLE_NUMBERS = 10_000
"""Cells with a comma or a point, from which the decimal mark is guessed."""
MAX_TITLE_WORDS = 6
"""A longer cell of the first row is a text, and no title."""
MAX_OFFERED = 100
"""Columns that a menu offers."""
SHOWN_TITLE = 30


@dataclass(frozen=True)
class Format:
    """How a file is written. An empty choice is guessed. Raises :class:`SpecError` for a value that is not allowed."""

    encoding: str = ""
    separator: str = ""
    title_row: str = ""
    decimal: str = ""
    missing: str = ""
    column: str = ""
    """The column of the texts, of the answer or of the known groups, by its title or its number from 1."""
    source: str = ""
    """The column of one end of each edge."""
    target: str = ""
    """The column of the other end."""

    def __post_init__(self) -> None:
        for name, allowed in ALLOWED.items():
            value = getattr(self, name)
            if value and value not in allowed:
                listed = ", ".join(SEPARATORS.values() if name == "separator" else allowed)
                raise SpecError(name, value, f"allowed is one of {listed}")


ALLOWED: dict[str, tuple[str, ...]] = {
    "encoding": tuple(ENCODINGS),
    "separator": tuple(SEPARATORS),
    "title_row": (YES, NO),
    "decimal": (POINT, COMMA),
    "missing": (LEFT_OUT, KEPT),
}
GUESSED = Format()


class Choice(NamedTuple):
    """A part of a format that a person may change."""

    field: str
    """The field of :class:`Format`."""
    label: str
    options: dict[str, str]
    """The allowed values, by what a menu calls them."""


@dataclass(frozen=True)
class Taken:
    """The format that was read from a file."""

    format: Format
    """With every choice that the reader made."""
    sentence: str
    choices: tuple[Choice, ...]


ENCODING = Choice("encoding", "Encoding", {title: key for key, title in ENCODINGS.items()})
SEPARATOR = Choice("separator", "Separator", {title: key for key, title in SEPARATORS.items()})
TITLE_ROW = Choice("title_row", "Title row", {"yes": YES, "no": NO})
DECIMAL = Choice("decimal", "Decimal mark", {"point": POINT, "comma": COMMA})
LACKING = Choice("missing", "Missing values", {"rows left out": LEFT_OUT, "read as they are": KEPT})
CHOICES = ENCODING, SEPARATOR, TITLE_ROW, DECIMAL, LACKING
"""Those that do not depend on what is in a file."""


def taken_text(what: str, encoding: str, *more: str) -> Taken:
    """The message about a file that is no table."""
    sentence = "; ".join((f"Read as {what}", f"encoding: {ENCODINGS[encoding]}", *filter(None, more)))
    return Taken(Format(encoding=encoding), sentence + ".", (ENCODING,))


def counted(n: int, what: str) -> str:
    """``1 row`` or ``2 rows``."""
    return f"{n:,} {what}{'s' * (n != 1)}"


# --- numbers ---------------------------------------------------------------------------------------------------------

_SPACES = " \u00a0\u2009\u202f"
_NUMBER = r"""[+\-−]?
    (?:\d{{1,3}}(?P<group>[{group}'’{spaces}])\d{{3}}(?:(?P=group)\d{{3}})*  # in groups of three
       (?:{mark}\d*)? | \d+(?:{mark}\d*)? | {mark}\d+)
    (?:[eE][+\-−]?\d+)?[{spaces}]*(?P<percent>%)?"""
_NUMBERS = {
    mark: re.compile(_NUMBER.format(group=other, mark=re.escape(mark), spaces=_SPACES), re.ASCII | re.VERBOSE)
    for mark, other in ((POINT, COMMA), (COMMA, POINT))
}


def to_number(text: str, decimal: str) -> float | None:
    """The number in a cell, or None. Digits are 0 to 9; groups of three may be apart; 12 % is 0.12."""
    match = _NUMBERS[decimal].fullmatch(text.strip())
    if match is None:
        return None
    digits = match[0][:-1] if match["percent"] else match[0]
    if match["group"]:
        digits = digits.replace(match["group"], "")
    value = float(digits.strip().replace("−", "-").replace(decimal, "."))
    return value / 100 if match["percent"] else value


def is_missing(text: str, among_numbers: bool = True) -> bool:
    """Whether a cell means that its value is missing."""
    text = text.strip().lower()
    return text in MISSING or (among_numbers and text in MARKS)


def guess_decimal(cells: Iterable[str], separator: str) -> str:
    """The mark that makes more of the cells numbers. In 1,234 alone: a comma if semicolons separate the columns."""
    marked = list(islice((cell for cell in cells if "," in cell or "." in cell), SAMPLE_NUMBERS))
    points, commas = (sum(to_number(cell, mark) is not None for cell in marked) for mark in (POINT, COMMA))
    if points != commas:
        return POINT if points > commas else COMMA
    return COMMA if separator == ";" and any("," in cell for cell in marked) else POINT


# --- tables ----------------------------------------------------------------------------------------------------------

_SEP = re.compile(r"\ufeff?\"?sep=(.)\"?[ \t]*(?=\r\n|\n|\r|\Z)", re.IGNORECASE)
_COMMENTS = re.compile(r"(?:[ \t]*(?:[#%][^\r\n]*)?(?:\r\n|\n|\r))*+")
_COMMENT = re.compile(r"[#%](?:\s|\Z)")
TitleRow = Callable[[list[str], list[list[str]]], bool]
"""Whether the first row holds titles, by it and the rows after it."""


def titles_of_numbers(first: list[str], rest: list[list[str]]) -> bool:
    """A title row has a word above numbers, or years above numbers that are not years; without a column of numbers,
    anything but numbers.
    """
    numeric = _numeric_columns(rest, len(first))
    if len(first) > 1 and not first[0].strip() and all(cell.strip() and not _numeric(cell) for cell in first[1:]):
        return True  # of rows with names
    if numeric:
        words = any(not is_missing(first[k]) and not _numeric(first[k]) for k in numeric)
        return words or (_are_years(first, numeric) and not any(_are_years(row, numeric) for row in rest))
    return any(not _numeric(cell) for cell in first)


_YEARS_APART = (1, 2, 4, 5, 10)


def _are_years(row: list[str], columns: list[int]) -> bool:
    """Whether the cells in the columns are years in order, at equal distances."""
    cells = [row[k].strip() for k in columns if k < len(row)]
    if len(cells) < 2 or not all(re.fullmatch(r"(1[5-9]|2[01])[0-9]{2}", cell) for cell in cells):
        return False
    apart = {int(later) - int(earlier) for earlier, later in pairwise(cells)}
    return len(apart) == 1 and abs(*apart) in _YEARS_APART


def _numeric(cell: str) -> bool:
    return to_number(cell, POINT) is not None or to_number(cell, COMMA) is not None


def _numeric_columns(rows: list[list[str]], n: int) -> list[int]:
    """The columns of the rows in which most of the values that are there are numbers."""
    out = []
    for k in range(n):
        cells = [row[k] for row in rows if len(row) > k and not is_missing(row[k])]
        if cells and 2 * sum(map(_numeric, cells)) > len(cells):
            out.append(k)
    return out


class Sheet:
    """A table as text: its titles, and its rows one after the other, with the line in which each ends."""

    def __init__(
        self,
        name: str,
        content: bytes,
        form: Format,
        *,
        titles: TitleRow,
        comments: bool = True,
        spaces: bool = True,
        named: Sequence[str] = (),
        row_names: bool = True,
    ):
        """``comments`` begin with # or %; ``spaces`` may part columns; ``named`` are titles that tell a separator.

        A first column without a title holds the rows' names, as R and pandas write them. A first line can hold
        the numbers of rows and columns, as scikit-learn writes it. With ``row_names`` both are left out.

        Raises :class:`~samplers.files.FileError`.
        """
        self.name = name
        text, encoding = decode(name, content, form.encoding)
        self.n_lines = count_lines(name, text)
        self.n_comments = 0
        first, commented, self.line = "", list[str](), 1
        declared = _SEP.match(text)
        if declared is not None:
            text, self.line = text[declared.end() :], 1
            first = declared[1] if declared[1] in SEPARATORS else ""
        elif comments:
            block = _COMMENTS.match(text)
            if block is not None and text[block.end() :].strip():
                commented = re.findall(r"[#%][^\r\n]*", block[0])
                self.n_comments = len(commented)
                self.line, text = count_lines(name, block[0]), text[block.end() :]
        self._counts = row_names and _begins_with_counts(text)
        if self._counts:
            self.line, text = self.line + 1, text.partition("\n")[2]
        self.text, self._comments = text, comments
        candidates = [each for each in SEPARATORS if each != NO_SEPARATOR and (spaces or each != " ")]
        separator = form.separator or first or guess_separator(text, candidates, named, row_names)
        sample = _sample(text, separator)
        at_top = _first_comment(commented, separator, sample)
        rows = ([at_top] if at_top else []) + sample
        short = row_names and _lacks_a_title(rows)
        if short:
            rows = [["", *rows[0]], *rows[1:]]
        self.n_columns = _width(rows)
        rows = [row[: self.n_columns] for row in rows if len(row) >= self.n_columns]
        has_titles = bool(rows) and (form.title_row == YES if form.title_row else titles(rows[0], rows[1:]))
        above = rows[0] if has_titles and at_top else []
        self.n_comments -= bool(above)
        self.format = replace(
            form,
            encoding=encoding,
            separator=separator,
            title_row=YES if has_titles else NO,
            missing=form.missing or LEFT_OUT,
        )
        # write.table of R gives them no title at all, write.csv and pandas an empty one.
        self.row_names = row_names and has_titles and self.n_columns > 1 and not rows[0][0].strip()
        if self.row_names:
            rows = [row[1:] for row in rows]
        body = rows[has_titles:]
        self._n_fields = self.n_columns
        self.n_columns -= self.row_names
        self._of_numbers = set(_numeric_columns(body, self.n_columns))
        self.longest = max(range(self.n_columns), key=lambda k: sum(len(row[k]) for row in body), default=0)
        """The column with the longest texts in the first rows."""
        self._rows = self._read(short)
        self.titles = [f"column {k + 1}" for k in range(self.n_columns)]
        self.title_line = self.line
        if has_titles:
            self.title_line, found = (self.line, above) if above else next(self._rows, (self.line, []))
            if above and self.row_names:
                found = found[1:]
            self.titles = [cell.strip().removeprefix("#").strip() for cell in found]
            self.n_columns = len(found)

    def _read(self, short: bool) -> Iterator[tuple[int, list[str]]]:
        """The rows; the first one is ``short`` where it has titles of all columns but the first."""
        n = self._n_fields
        for line, fields_ in csv_rows(self.name, self.text, self.format.separator, self.line - 1):
            if self._comments and fields_[0][:1] in ("#", "%") and (len(fields_) != n or _COMMENT.match(fields_[0])):
                self.n_comments += 1
                continue
            row = _fitted(["", *fields_] if short else fields_, n)
            short = False
            if len(row) != n:
                found = "one field" if len(row) == 1 else f"{len(row)} fields"
                of = "names" if self.format.title_row == YES else "fields"
                raise FileError(
                    f"{self.name}, line {line}",
                    f"has {found}",
                    f"line {self.title_line} has {n} {of}; allowed is as many fields in every line, with {self.parted} between them",
                )
            yield line, row[self.row_names :]

    @property
    def parted(self) -> str:
        """The separator of the columns."""
        return "nothing" if self.format.separator == NO_SEPARATOR else f"a {SEPARATORS[self.format.separator]}"

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The rows after the title row, once. Raises :class:`~samplers.files.FileError`."""
        return self._rows

    def column(self, field: str, default: int | None) -> int | None:
        """The number, from 0, of the column that is chosen by its title or its number from 1; None for no column."""
        chosen = getattr(self.format, field)
        if not chosen:
            return default
        if re.fullmatch(r"[0-9]{1,6}", chosen) and 1 <= int(chosen) <= self.n_columns:
            return int(chosen) - 1
        lower = [title.lower() for title in self.titles]
        if chosen.lower() in lower:
            return lower.index(chosen.lower())
        if chosen == NONE and default is None:
            return None
        raise FileError(
            f"{self.name}, line {self.title_line}",
            f"names no column {chosen[:60]}",
            f"there are {', '.join(self.titles[:40])[:200]}",
        )

    def lacks(self, row: list[str], columns: Iterable[int]) -> bool:
        """Whether a value of the row is missing, and such rows are left out."""
        return self.format.missing == LEFT_OUT and any(is_missing(row[k], k in self._of_numbers) for k in columns)

    def is_number_column(self, rows: list[tuple[int, list[str]]], k: int) -> bool:
        """Whether most values of a column are numbers."""
        return bool(_numeric_columns([[row[k]] for _, row in rows], 1))

    def choose_decimal(self, rows: list[tuple[int, list[str]]], columns: Sequence[int]) -> str:
        """The decimal mark of the numbers in the columns."""
        found = self.format.decimal or guess_decimal(
            (row[k] for _, row in rows for k in columns), self.format.separator
        )
        self.format = replace(self.format, decimal=found)
        return found

    def numbers(
        self, rows: list[tuple[int, list[str]]], columns: Sequence[int], titles: Sequence[str], largest: float
    ) -> NDArray[np.float64]:
        """The numbers in the columns, (rows, columns).

        Raises :class:`~samplers.files.FileError` with the line and the column.
        """
        mark = self.choose_decimal(rows, columns)
        out = np.empty((len(rows), len(columns)))
        for j, k in enumerate(columns):
            read = partial(self._number, f"the column {quoted(titles[k])}", mark, largest)
            out[:, j] = [read(line, row[k]) for line, row in rows]
            percent = [row[k].rstrip().endswith("%") for _, row in rows]
            if any(percent) and not all(percent):
                at = percent.index(not percent[0])
                line, row = rows[at]
                raise FileError(
                    f"{self.name}, line {line}",
                    f"has {quoted(row[k])} in the column {quoted(titles[k])}",
                    "allowed are numbers all with % or all without",
                )
        return out

    def _number(self, column: str, mark: str, largest: float, line: int, text: str) -> float:
        value = to_number(text, mark)
        if value is not None and abs(value) <= largest:
            return value
        location = f"{self.name}, line {line}"
        allowed = f"allowed is a number between −{largest:,.0f} and {largest:,.0f}"
        if not text.strip():
            raise FileError(location, f"has nothing in {column}", f"{allowed}; leave out rows that lack one")
        if value is None:
            allowed += f", with a {'point' if mark == POINT else 'comma'} for decimals; leave out columns of words"
        raise FileError(location, f"has {quoted(text)} in {column}", allowed)

    def taken(self, n_rows: int, roles: Sequence[tuple[str, str, int | None]] = (), *more: str) -> Taken:
        """The format that was read from the file. ``roles`` are fields of the format, what they are called, and their
        columns.
        """
        form = self.format
        header = "yes" if form.title_row == YES else "no"
        parts = [
            f"Read as a table of {counted(self.n_columns, 'column')} and {counted(n_rows, 'row')}",
            f"separator: {SEPARATORS[form.separator]}",
            f"title row: {header}",
            {POINT: "decimal point", COMMA: "decimal comma"}.get(form.decimal, ""),
            f"encoding: {ENCODINGS[form.encoding]}",
            *(f"{what}: {self.called(k)}" for _, what, k in roles),
            "names of the rows left out" if self.row_names else "",
            "first line with the numbers of rows and columns left out" if self._counts else "",
            *more,
            counted(self.n_comments, "comment line") + " left out" if self.n_comments else "",
        ]
        form = replace(form, **{field: NONE if k is None else str(k + 1) for field, _, k in roles})
        choices = [ENCODING, SEPARATOR, TITLE_ROW, *[DECIMAL] * bool(form.decimal), LACKING]
        offered = {k for *_, k in roles if k is not None}.union(range(min(self.n_columns, MAX_OFFERED)))
        columns = {self.called(k): str(k + 1) for k in sorted(offered)}
        for field, what, _ in roles:
            choices.append(Choice(field, f"Column: {what}", {**({NONE: NONE} if what == GROUPS else {}), **columns}))
        return Taken(form, "; ".join(filter(None, parts)) + ".", tuple(choices))

    def called(self, k: int | None) -> str:
        """A column's number and title."""
        if k is None:
            return NONE
        title = "".join(c if c.isprintable() else " " for c in self.titles[k])[:SHOWN_TITLE].strip()
        return f"column {k + 1} ({title})" if self.format.title_row == YES and title else f"column {k + 1}"


def _begins_with_counts(text: str) -> bool:
    """Whether the first line is as in scikit-learn's files: the number of rows, the number of columns without the last,
    and the names of the classes.
    """
    first, _, rest = text.partition("\n")
    counts = re.fullmatch(r"([0-9]{1,7}),([0-9]{1,4})(?:,[^,]*)*", first.strip())
    if counts is None or rest.partition("\n")[0].count(",") != int(counts[2]):
        return False
    return sum(not line.isspace() for line in rest.splitlines() if line) == int(counts[1])


def _lacks_a_title(rows: list[list[str]]) -> bool:
    """Whether every row has one field more than the first: names without a title, as R writes them by write.table."""
    n = _width(rows)
    return len(rows) > 1 and all(_filled(row) == len(row) == n + 1 for row in rows[1:])


def guess_separator(text: str, candidates: Sequence[str], named: Sequence[str], row_names: bool = False) -> str:
    """The separator that gives every row of the sample as many fields as the first one has, and more than one.

    It is counted outside quotes. A title among ``named`` tells it also where rows differ; else most rows must agree.
    """
    best, most = NO_SEPARATOR, 0.5
    for each in candidates:
        rows = [row for row in _sample(text, each) if row[0][:1] not in ("#", "%")] or _sample(text, each)
        if not rows or len(rows[0]) < 1 + (not row_names):
            continue
        n = _width(rows)
        share = sum(len(_fitted(row, n)) == n for row in rows) / len(rows)
        if row_names and _lacks_a_title(rows):
            share = 1.0
        elif len(rows[0]) < 2:
            continue
        if not set(named).isdisjoint(map(str.lower, map(str.strip, rows[0]))):
            share = 1.0 + share
        if share > most:
            best, most = each, share
    return best


def _sample(text: str, separator: str) -> list[list[str]]:
    """The first rows that are not empty, up to one that is not CSV or that the sample cuts."""
    part = text[:SAMPLE_CHARACTERS]
    rows: list[list[str]] = []
    try:
        rows.extend(islice(csv.reader(lines_for(part, separator), **dialect(separator)), SAMPLE_ROWS))
    except csv.Error:
        return [row for row in rows if row]
    if len(part) < len(text) and 1 < len(rows) < SAMPLE_ROWS:
        rows.pop()
    return [row for row in rows if row]


def _filled(row: list[str]) -> int:
    """The number of fields up to the last one that is not empty. A row may be as long as the file: no loop is here."""
    return bytes(map(bool, map(str.strip, row))).rfind(1) + 1


def _width(rows: list[list[str]]) -> int:
    """The number of columns: of the first row, without columns at the end that are empty in the whole sample."""
    return max(1, min(len(rows[0]), max(map(_filled, rows)))) if rows else 0


def _fitted(row: list[str], n: int) -> list[str]:
    """The row without empty fields beyond n."""
    return row if _filled(row) > n else row[:n]


def _first_comment(commented: list[str], separator: str, sample: list[list[str]]) -> list[str]:
    """The fields of the last comment above a table, where they are as many as a row has: they may be its titles."""
    if not commented or not sample:
        return []
    rows = _sample(commented[-1].lstrip(" \t#%"), separator)
    return rows[0] if rows and len(rows[0]) == len(sample[0]) > 1 else []


# --- the command line ------------------------------------------------------------------------------------------------

_HELP = {
    "encoding": f"one of {', '.join(ENCODINGS)}",
    "separator": f"one of {', '.join(SEPARATORS.values())}, or the character",
    "title_row": "yes or no",
    "decimal": "point or comma",
    "missing": "'left out' or 'kept': rows with a missing value",
    "column": "of texts, of the answer or of known groups, by title or number; 'none' for no groups",
    "source": "of one end of each edge, by title or number",
    "target": "of the other end of each edge, by title or number",
}
_WORDS = {
    "separator": {title.replace("vertical ", ""): key for key, title in SEPARATORS.items()} | {"vertical bar": "|"},
    "decimal": {"point": POINT, "comma": COMMA},
}


def add_options(parser: argparse.ArgumentParser, leave_out: Sequence[str] = ()) -> None:
    """Let a command take a file's format; what is not given is guessed."""
    group = parser.add_argument_group("format of the file", "Choices that are not given are guessed, and printed.")
    for field in fields(Format):
        if field.name not in leave_out:
            group.add_argument(f"--{field.name.replace('_', '-')}", default="", help=_HELP[field.name])


def of_options(options: argparse.Namespace) -> Format:
    """The format that a command was given. Raises :class:`SpecError`."""
    given = {field.name: getattr(options, field.name, "") for field in fields(Format)}
    return Format(**{name: _WORDS.get(name, {}).get(value, value) for name, value in given.items()})
