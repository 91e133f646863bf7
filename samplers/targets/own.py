"""Tables of numbers as the data of a regression: those that scikit-learn brings along, and somebody's own.

A table that a person brought lives as long as the page that holds it, and the spec names it by a digest of its numbers:
so two pages with the same file share it, and a saved experiment says whether a file is the one it was made with.
"""

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from samplers.files import FileError, csv_rows, decode, quoted, reading, short_name
from samplers.parameters import OWN, SpecError
from samplers.targets.base import Array, Target, subscript

MAX_BYTES = 5_000_000
MAX_NUMBERS = 200_000
"""In all rows and columns. A table is read while its page waits: so many take less than half a second."""
ROUNDING, TINY = 1e-9, 1e-100
"""Numbers that differ by so little, as a share of the largest or at all, are the same: squares of less are lost."""
MIN_ROWS = 10
MAX_COLUMNS = 98
"""Beside the answer. With an intercept and a scale they are 100 coordinates."""
MAX_NAME = 30
"""Characters of a column's name."""
MAX_SIZE = 1e6
"""Of a number. Squares of it, summed over all rows, are still told from each other."""
MAX_RATIO = 1e5
"""Between the longest and the shortest direction of the covariates: its square is the condition of the curvature."""
MAX_TARGETS = 8
"""Of one table, with other settings: what a target has found of its distribution is kept for who comes back to it."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers, and the answer that belongs to each."""

    names: tuple[str, ...]
    """Of the columns."""
    x: Array
    """(N, columns)."""
    answer: str
    """The name of what is explained."""
    y: Array
    """(N,)."""
    kinds: tuple[str, str] | None = None
    """What y = −1 and y = 1 stand for; None where y is a number."""
    _targets: dict[Any, Target] = field(default_factory=dict)

    def target(self, choice: Hashable, make: Callable[[], Target]) -> Target:
        """The target that was made of it for this choice in a spec."""
        found = self._targets.get(choice)
        if found is None:
            if len(self._targets) >= MAX_TARGETS:
                self._targets.clear()
            found = self._targets.setdefault(choice, make())
        return found

    @cached_property
    def key(self) -> str:
        """What a spec calls it."""
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


def delimiter(line: str) -> str:
    """What parts the columns of a CSV file, by its first line."""
    return max(",;\t", key=line.count)


def number(place: str, column: str, text: str) -> float:
    """The number in a cell. Raises :class:`~samplers.files.FileError`."""
    allowed = f"allowed is a number between −{MAX_SIZE:,.0f} and {MAX_SIZE:,.0f}"
    if not text.strip():
        raise FileError(place, f"has nothing in {column}", f"{allowed}; leave out rows that lack one")
    try:
        value = float(text)
    except ValueError:
        raise FileError(place, f"has {quoted(text)} in {column}", f"{allowed}, with a point for decimals; leave out columns of words") from None  # fmt: skip
    if not abs(value) <= MAX_SIZE:
        raise FileError(place, f"has {quoted(text)} in {column}", allowed)
    return value


def read(files: Mapping[str, bytes], two_kinds: bool) -> Table:
    """A table from one CSV file, whose first line names the columns and whose last column is the answer.

    The answer is a number, or with ``two_kinds`` one of two numbers or words. Commas, semicolons or tabs part the
    columns. Raises :class:`~samplers.files.FileError` with the line and the column.
    """
    name, content = one_file(files, "The data")
    with reading(name):
        return _read(name, decode(name, content), two_kinds)


def one_file(files: Mapping[str, bytes], what: str) -> tuple[str, bytes]:
    """The name and the content of the only file. Raises :class:`~samplers.files.FileError`, also where it is long."""
    if len(files) != 1:
        raise FileError(what, f"are {len(files)} files", "allowed is one CSV file")
    ((path, content),) = files.items()
    name = short_name(path)
    if len(content) > MAX_BYTES:
        raise FileError(name, f"has {len(content):,} bytes", f"allowed are at most {MAX_BYTES:,}")
    return name, content


def check_varies(name: str, columns: list[str], x: Array) -> None:
    """Raise :class:`~samplers.files.FileError` where a column of x (rows, columns) is constant, to rounding."""
    for k in np.flatnonzero(x.std(axis=0) <= np.maximum(ROUNDING * np.abs(x).max(axis=0), TINY)):
        raise FileError(name, f"has the same number in every row of {columns[k]}, to nine digits", "such a column says nothing; leave it out")  # fmt: skip


def _read(name: str, text: str, two_kinds: bool) -> Table:
    rows = csv_rows(name, text, delimiter(text.partition("\n")[0]))
    line, header = next(rows, (1, []))
    names = names_of(f"{name}, line {line}", header, "is explained by the others")
    columns = [f"the column {quoted(each)}" for each in names]
    numbers: list[list[float]] = []
    answers: list[str] = []
    places: list[str] = []
    for line, row in rows:
        place = f"{name}, line {line}"
        if len(row) != len(names):
            raise FileError(place, f"has {len(row)} fields", f"line 1 has {len(names)} names; allowed is as many fields in every line")  # fmt: skip
        if len(names) * (len(numbers) + 1) > MAX_NUMBERS:
            raise FileError(place, f"is one of more than {MAX_NUMBERS:,} numbers", "so many are not allowed")
        numbers.append([number(place, column, each) for column, each in zip(columns[:-1], row[:-1], strict=True)])
        answers.append(row[-1].strip())
        places.append(place)
    if len(numbers) < MIN_ROWS:
        raise FileError(name, f"has {len(numbers)} rows of data", f"allowed are {MIN_ROWS} or more")
    x = np.array(numbers)
    check_varies(name, columns, x)
    if two_kinds:
        kinds = sorted(set(answers))
        if len(kinds) != 2:
            found = f"has {len(kinds)} different {'value' if len(kinds) == 1 else 'values'} in {columns[-1]}"
            raise FileError(
                name, found, "it is what is explained, the last; allowed are two, which are then the two kinds"
            )
        return Table(tuple(names[:-1]), x, names[-1], np.array([1.0 if a == kinds[1] else -1.0 for a in answers]), (kinds[0][:MAX_NAME], kinds[1][:MAX_NAME]))  # fmt: skip
    y = np.array([number(place, columns[-1], each) for place, each in zip(places, answers, strict=True)])
    if (y == y[0]).all():
        raise FileError(name, f"has the same number in every row of {columns[-1]}", "there is nothing to explain")
    return Table(tuple(names[:-1]), x, names[-1], y)


def names_of(place: str, header: list[str], last: str) -> list[str]:
    """The names of the columns; ``last`` says what the last one is. Raises :class:`~samplers.files.FileError`."""
    names = ["".join(c if c.isprintable() else " " for c in each).strip()[:MAX_NAME].strip() for each in header]
    if not 2 <= len(names) <= MAX_COLUMNS + 1:
        raise FileError(place, f"has {len(names)} {'column' if len(names) == 1 else 'columns'}", f"allowed are 2 to {MAX_COLUMNS + 1}, parted by commas, semicolons or tabs, of which the last {last}")  # fmt: skip
    for k, each in enumerate(names, 1):
        if not each:
            raise FileError(place, f"has no name for column {k}", "the first line names the columns")
        if each in names[: k - 1]:
            raise FileError(place, f"has the name {quoted(each)} twice", "allowed are different names")
    if all(is_number(each) for each in names):
        raise FileError(place, "has numbers only", "the first line names the columns")
    return names


def is_number(text: str) -> bool:
    """Whether a cell holds a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


class OfTable(Target):
    """A regression on a table: one of those that are always there, or somebody's own."""

    data_parameter: ClassVar[str] = "table"
    """The parameter that names the table."""
    two_kinds: ClassVar[bool]
    """Whether the answer is one of two kinds, or a number."""
    built_in: ClassVar[Mapping[str, Callable[[], Table]]]
    """The tables that are always there."""
    table: str
    standardise: bool

    @classmethod
    def read(cls, files: Mapping[str, bytes]) -> Table:
        """Somebody's own table, which is there while the caller holds it. Raises :class:`~samplers.files.FileError`."""
        return keep(read(files, cls.two_kinds))

    def check(self) -> None:
        # Of columns that are multiples of each other, or of very different sizes, the curvature has no inverse.
        sizes = np.linalg.svd(self.covariates, compute_uv=False)
        if sizes[-1] < sizes[0] / MAX_RATIO:
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
        return np.asarray((values - values.mean(axis=0)) / values.std(axis=0)) if self.standardise else values

    def data(self) -> NDArray[np.int64]:
        return np.arange(len(self.contents.y))

    @property
    def names(self) -> list[str]:
        """Of the coefficients."""
        words = ["intercept", *self.contents.names]
        return [f"θ{subscript(k + 1)} {word}" for k, word in enumerate(words)]
