"""Tables of numbers as the data of a regression: those that scikit-learn brings along, and somebody's own.

A table that a person brought lives as long as the page that holds it, and the spec names it by a digest of its numbers:
so two pages with the same file share it, and a saved experiment says whether a file is the one it was made with.
"""

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.file_format import GUESSED, Format, Sheet, Taken, counted, titles_of_numbers
from sgmcmc_lab.samplers.files import FileError, quoted, reading, short_name
from sgmcmc_lab.samplers.parameters import OWN, SpecError
from sgmcmc_lab.samplers.targets.base import Array, Target, subscript

MAX_BYTES = 5_000_000
MAX_NUMBERS = 200_000
"""In all rows and columns. A table is read while its page waits: so many take less than half a second."""
ROUNDING, TINY = 1e-9, 1e-100
"""Numbers that differ by so little, as a share of the largest or at all, are the same: squares of less are lost."""
MIN_ROWS = 3
MAX_COLUMNS = 98
"""Beside the answer. With an intercept and a scale they are 100 coordinates."""
MAX_NAME = 30
"""Characters of a column's name."""
MAX_LEVELS = 12
"""The most different words of a column that can become columns of 0 and 1."""
ROWS_A_LEVEL, ROWS_A_COLUMN = 5, 3
"""The fewest rows per word, and per column of the table, if words become columns: names of rows do not."""
MAX_SIZE = 1e9
"""The largest number. Squares of it, summed over all rows, are still told from each other."""
MAX_RATIO = 1e5
"""The largest ratio of the longest to the shortest direction of the covariates: its square is the condition of the
curvature."""
MAX_TARGETS = 8
"""Targets of one table with other settings whose answers are kept for the next visit."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers, and the answer that belongs to each."""

    names: tuple[str, ...]
    """The names of the columns."""
    x: Array
    """(N, columns)."""
    answer: str
    """The name of what is explained."""
    y: Array
    """(N,)."""
    kinds: tuple[str, str] | None = None
    """The meanings of y = −1 and y = 1; None where y is a number."""
    taken: Taken | None = None
    """The format of the file, if it is read from one."""
    _targets: dict[Any, Target] = field(default_factory=dict)

    def target(self, choice: Hashable, temperature: float, make: Callable[[], Target]) -> Target:
        """The target that was made of it for this choice in a spec, at this temperature."""
        key = (choice, temperature)
        found = self._targets.get(key)
        if found is None:
            if len(self._targets) >= MAX_TARGETS:
                self._targets.clear()
            found = self._targets.setdefault(key, make())
        return found

    @cached_property
    def key(self) -> str:
        """Its name in a spec."""
        found = hashlib.sha256(repr((self.names, self.answer, self.kinds)).encode())
        found.update(np.ascontiguousarray(self.x).tobytes() + self.y.tobytes())
        return OWN + found.hexdigest()[:16]


_HELD: WeakValueDictionary[str, Table] = WeakValueDictionary()
"""Tables of their own that persons brought, while anybody holds them."""


def keep(table: Table) -> Table:
    """Let targets find the table by its key while the caller holds what is returned."""
    return _HELD.setdefault(table.key, table)


def held(key: object) -> Table | None:
    """The table that somebody brought, where it is still there."""
    return _HELD.get(key) if isinstance(key, str) else None


def read(
    files: Mapping[str, bytes],
    two_kinds: bool,
    form: Format = GUESSED,
    least_columns: int = 2,
    least_rows: int = MIN_ROWS,
    every_level: bool = False,
) -> Table:
    """A table from one file. One column is the answer: the last that can be, unless another is chosen.

    The answer is a number, or with ``two_kinds`` one of two numbers or words. Elsewhere the second of two words in
    order counts as 1 and the first as 0. A column of up to :data:`MAX_LEVELS` words becomes columns of 0
    and 1, one per word. Without ``every_level`` the first word has none, and no word has one if the columns of the
    table would be linearly dependent. Other columns of words, those with one value in every row or with none in most,
    and rows that lack a value of a column in use, are left out. The table must have ``least_columns``, the answer
    included, and ``least_rows``. Raises :class:`~samplers.files.FileError` with the line and the column.
    """
    name, content = one_file(files, "The data")
    with reading(name):
        sheet = Sheet(name, content, form, titles=titles_of_numbers)
        return _read(sheet, two_kinds, least_columns, least_rows, every_level)


def one_file(files: Mapping[str, bytes], what: str) -> tuple[str, bytes]:
    """The name and the content of the only file. Raises :class:`~samplers.files.FileError`, also where it is long."""
    if len(files) != 1:
        raise FileError(what, f"are {len(files)} files", "allowed is one table")
    ((path, content),) = files.items()
    name = short_name(path)
    if len(content) > MAX_BYTES:
        raise FileError(name, f"has {len(content):,} bytes", f"allowed are at most {MAX_BYTES:,}")
    return name, content


def check_varies(name: str, columns: list[str], x: Array) -> None:
    """Raise :class:`~samplers.files.FileError` where a column of x (rows, columns) is constant, to rounding."""
    for k in np.flatnonzero(~_varies(x)):
        raise FileError(
            name,
            f"has the same number in every row of {columns[k]}, to nine digits",
            "such a column says nothing; leave it out",
        )


def _varies(x: Array) -> NDArray[np.bool_]:
    """Whether the numbers of each column of x (rows, columns) differ by more than rounding."""
    return np.asarray(x.std(axis=0) > np.maximum(ROUNDING * np.abs(x).max(axis=0), TINY))


def _read(sheet: Sheet, two_kinds: bool, least: int, least_rows: int, every_level: bool) -> Table:
    name = sheet.name
    names = names_of(sheet, "is explained by the others", least)
    every = _bounded_rows(sheet, MAX_NUMBERS // len(names), f"{MAX_NUMBERS:,} numbers")
    numeric = [k for k in range(len(names)) if sheet.is_number_column(every, k)]
    values = {k: _values(sheet, every, k) for k in range(len(names))}
    pairs = {k: found for k, found in values.items() if len(found) == 2}
    varied = [k for k in numeric if len(values[k]) > 1]
    fit = list(pairs) if two_kinds else varied or list(pairs)
    at = sheet.column("column", fit[-1] if fit else len(names) - 1)
    assert at is not None
    words = {k: found[1:] for k, found in pairs.items() if k not in numeric}
    most = min(MAX_LEVELS, len(every) // ROWS_A_LEVEL)
    spread = {k: found for k, found in values.items() if 2 < len(found) <= most and k not in {*numeric, at}}
    levels = {k: found if every_level else found[1:] for k, found in spread.items()}
    wide = len({*numeric, *words, at}) + sum(map(len, levels.values()))
    if wide > MAX_COLUMNS or not ROWS_A_COLUMN * wide <= len(every) <= MAX_NUMBERS // wide:
        levels = {}
    taken = _columns(sheet, every, at, numeric, words | levels, least_rows, names)
    if levels and not every_level and are_dependent(standardised(taken.x)):
        levels = {}
        taken = _columns(sheet, every, at, numeric, words, least_rows, names)
    left_out = [
        *taken.left_out,
        *(_said(names[k], values[k], one) for k, one in (words | levels).items() if k in taken.used),
    ]
    answer = f"the column {quoted(names[at])}"
    if len(taken.titles) + 1 < least:
        more = "; ".join(filter(None, left_out))
        allowed = f"allowed is at least one of numbers or of two words{f'; {more}' if more else ''}"
        raise FileError(name, f"has no column beside {answer} that could explain it", allowed)
    read_as = sheet.taken(len(taken.rows), [("column", "answer", at)], *left_out)
    if not two_kinds:
        (title,), y = _numbers(sheet, taken.rows, [at], words, names)
        if (y == y[0]).all():
            raise FileError(name, f"has the same number in every row of {answer}", "there is nothing to explain")
        return Table(taken.titles, taken.x, title, y[:, 0], taken=read_as)
    answers = [row[at].strip() for _, row in taken.rows]
    kinds = sorted(set(answers))
    if len(kinds) != 2:
        found = f"has {len(kinds):,} different {'value' if len(kinds) == 1 else 'values'} in {answer}"
        raise FileError(name, found, "it is what is explained; allowed are two, which are then the two kinds")
    y = np.array([1.0 if each == kinds[1] else -1.0 for each in answers])
    return Table(taken.titles, taken.x, names[at], y, (kinds[0][:MAX_NAME], kinds[1][:MAX_NAME]), read_as)


class _Columns(NamedTuple):
    """The columns beside the answer, in the rows that lack no value."""

    rows: list[tuple[int, list[str]]]
    used: list[int]
    titles: tuple[str, ...]
    x: Array
    left_out: list[str]
    """A phrase for each kind of column, and for rows, that are left out."""


def _columns(
    sheet: Sheet,
    every: list[tuple[int, list[str]]],
    at: int,
    numeric: list[int],
    words: Mapping[int, list[str]],
    least_rows: int,
    names: list[str],
) -> _Columns:
    others = [k for k in range(len(names)) if k != at and (k in numeric or k in words)]
    lacks = {k: np.array([sheet.lacks(row, (k,)) for _, row in every], dtype=bool) for k in (*others, at)}
    empty = [k for k in others if 2 * lacks[k].sum() > len(every)]
    others = [k for k in others if k not in empty]
    rows, lacking = _complete(sheet, every, np.any([lacks[k] for k in (*others, at)], axis=0), least_rows)
    titles, x = _numbers(sheet, rows, others, words, names)
    varies = _varies(x)
    of_words = [names[k] for k in range(len(names)) if k not in {*others, *empty, at}]
    constant = [title for title, one in zip(titles, varies, strict=True) if not one]
    left_out = [lacking, _listed("of words or dates", of_words), _listed("with one value", constant)]
    left_out.append(_listed("without most values", [names[k] for k in empty]))
    kept = tuple(title for title, one in zip(titles, varies, strict=True) if one)
    return _Columns(rows, others, kept, x[:, varies], left_out)


def standardised(x: Array) -> Array:
    """The columns of x (rows, columns), each with mean 0 and standard deviation 1."""
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def are_dependent(x: Array) -> bool:
    """Whether 1 and the columns of x (rows, columns) are nearly linearly dependent, or of very different sizes."""
    sizes = np.linalg.svd(np.column_stack([np.ones(len(x)), x]), compute_uv=False)
    return bool(sizes[-1] < sizes[0] / MAX_RATIO)


def _values(sheet: Sheet, rows: list[tuple[int, list[str]]], k: int) -> list[str]:
    """The different values in a column, in order; not all of them if they are more than :data:`MAX_LEVELS`."""
    found = set[str]()
    for _, row in rows:
        if not sheet.lacks(row, [k]):
            found.add(row[k].strip())
        if len(found) > MAX_LEVELS:
            break
    return sorted(found)


def _numbers(
    sheet: Sheet,
    rows: list[tuple[int, list[str]]],
    columns: list[int],
    words: Mapping[int, list[str]],
    names: list[str],
) -> tuple[list[str], Array]:
    """The titles and the numbers (rows, titles); each of the ``words`` of a column has 1 in the rows that have it."""
    of_numbers = [k for k in columns if k not in words]
    found = dict(zip(of_numbers, sheet.numbers(rows, of_numbers, names, MAX_SIZE).T, strict=True)) if of_numbers else {}
    titles, x = list[str](), list[Array]()
    for k in columns:
        if k in words:
            # Two words may be one where their titles end.
            titles += [f"{names[k]}={word}"[:MAX_NAME].strip() for word in words[k]]
            x += [np.array([row[k].strip() == word for _, row in rows], dtype=float) for word in words[k]]
        else:
            titles.append(names[k])
            x.append(found[k])
    return titles, np.array(x).reshape(len(x), len(rows)).T


def _said(name: str, values: list[str], ones: list[str]) -> str:
    """The reading of a column of words, in words."""
    if len(ones) == 1:
        return f"{name} read as 1 for {quoted(ones[0])} and 0 for {quoted(values[0])}"
    rest = f", all 0 for {quoted(values[0])}" if len(ones) < len(values) else ""
    return f"{name} read as {len(ones)} columns of 0 and 1{rest}"


def _listed(what: str, titles: list[str]) -> str:
    """The columns that are left out, in words; nothing where there are none."""
    shown = ", ".join(titles[:5]) + (" …" if len(titles) > 5 else "")
    return f"{counted(len(titles), 'column')} {what} left out: {shown}" if titles else ""


def complete_rows(sheet: Sheet, least: int, most: int, what: str) -> tuple[list[tuple[int, list[str]]], str]:
    """The rows without missing values, and how many were left out, in words.

    Raises :class:`~samplers.files.FileError` for more than ``most`` rows, which is ``what`` is bounded, and for
    fewer than ``least``.
    """
    rows, columns = _bounded_rows(sheet, most, what), range(sheet.n_columns)
    return _complete(sheet, rows, [sheet.lacks(row, columns) for _, row in rows], least)


def _bounded_rows(sheet: Sheet, most: int, what: str) -> list[tuple[int, list[str]]]:
    rows: list[tuple[int, list[str]]] = []
    for line, row in sheet.rows():
        if len(rows) == most:
            raise FileError(f"{sheet.name}, line {line}", f"is one of more than {what}", "so many are not allowed")
        rows.append((line, row))
    return rows


def _complete(
    sheet: Sheet, every: list[tuple[int, list[str]]], lacks: Iterable[bool], least: int
) -> tuple[list[tuple[int, list[str]]], str]:
    """The rows that do not lack a value, and how many do, in words."""
    rows = [row for row, incomplete in zip(every, lacks, strict=True) if not incomplete]
    lacking = len(every) - len(rows)
    left_out = f"{counted(lacking, 'row')} with a missing value left out" if lacking else ""
    if len(rows) < least:
        more = f", and {left_out}" if lacking else ""
        raise FileError(sheet.name, f"has {counted(len(rows), 'row')} of data{more}", f"allowed are {least} or more")
    return rows, left_out


def names_of(sheet: Sheet, last: str, least: int = 2) -> list[str]:
    """The names of the columns, of which there must be so many; ``last`` says what the last one is.

    Raises :class:`~samplers.files.FileError`.
    """
    place = f"{sheet.name}, line {sheet.title_line}"
    names = ["".join(c if c.isprintable() else " " for c in each).strip()[:MAX_NAME].strip() for each in sheet.titles]
    if not least <= len(names) <= MAX_COLUMNS + 1:
        parts = "tabs, semicolons, vertical bars, commas or spaces between them"
        raise FileError(
            place,
            f"has {counted(len(names), 'column')}",
            f"allowed are {least} to {MAX_COLUMNS + 1}, {parts}, of which the last {last}",
        )
    seen = set[str]()
    for k, each in enumerate(names, 1):
        if not each:
            raise FileError(place, f"has no name for column {k}", "the title row names every column")
        if each in seen:
            raise FileError(place, f"has the name {quoted(each)} twice", "allowed are different names")
        seen.add(each)
    return names


class OfTable(Target):
    """A regression on a table: one of those that are always there, or somebody's own."""

    data_parameter: ClassVar[str] = "table"
    """The parameter that names the table."""
    least_columns: ClassVar[int] = 2
    """The columns that a table must have, the answer included."""
    every_level: ClassVar[bool] = False
    """Whether the first of several words also has a column of 0 and 1, which the intercept and the others determine."""
    two_kinds: ClassVar[bool]
    """Whether the answer is one of two kinds, or a number."""
    built_in: ClassVar[Mapping[str, Callable[[], Table]]]
    """The tables that are always there."""
    table: str
    standardise: bool

    @classmethod
    def read(cls, files: Mapping[str, bytes], form: Format = GUESSED) -> Table:
        """Somebody's own table, for :func:`keep`. Raises :class:`~samplers.files.FileError`."""
        return read(files, cls.two_kinds, form, cls.least_columns, every_level=cls.every_level)

    def __init__(self, **values: Any):
        super().__init__(**values)
        if self.table not in self.built_in:
            # The rest is the source of a table that is always there.
            self.source = self.source.partition("; data of")[0]

    def check(self) -> None:
        # Of columns that are multiples of each other, or of very different sizes, the curvature has no inverse.
        if are_dependent(self.scaled(self.contents.x)):
            allowed = "one column is nearly the sum of others, or their sizes are too different: leave columns out, or standardise them"
            raise SpecError(f"target.{self.data_parameter}", self.table, allowed)

    @cached_property
    def contents(self) -> Table:
        """The data. Raises :class:`SpecError` where they are somebody's own and nobody holds them any more."""
        if self.table in self.built_in:
            return self.built_in[self.table]()
        found = held(self.table)
        if found is None or (found.kinds is not None) != self.two_kinds:
            allowed = "it is somebody's own file, which neither a link nor a saved experiment holds: bring the file again, or give it with --data"
            raise SpecError(f"target.{self.data_parameter}", self.table, allowed)
        return found

    @cached_property
    def covariates(self) -> Array:
        """1 and the columns, standardised or not, (N, 1 + columns)."""
        x = self.contents.x
        return np.column_stack([np.ones(len(x)), self.scaled(x)])

    def scaled(self, values: Array) -> Array:
        """The columns, each with mean 0 and standard deviation 1 where that is chosen."""
        return standardised(values) if self.standardise else values

    def data(self) -> NDArray[np.int64]:
        return np.arange(len(self.contents.y))

    @property
    def names(self) -> list[str]:
        """The names of the coefficients."""
        words = ["intercept", *self.contents.names]
        return [f"θ{subscript(k + 1)} {word}" for k, word in enumerate(words)]
