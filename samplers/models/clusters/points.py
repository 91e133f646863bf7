"""Points with columns, some with known groups: built in, made up, or from a file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.file_format import GROUPS, GUESSED, Format, Sheet, Taken, titles_of_numbers
from sgmcmc_lab.samplers.files import FileError, quoted, reading
from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.targets.own import MAX_NAME, MAX_SIZE, check_varies, complete_rows, names_of, one_file
from sgmcmc_lab.samplers.targets.tables import table

MAX_POINTS = 20_000
"""With so many a sweep over all of them takes some hundredths of a second a cluster."""

MIN_POINTS = 10
MAX_GROUPS = 100
"""Known groups: a column with more different words names each row, not its group."""


@dataclass(frozen=True, eq=False)
class Points:
    """Rows of numbers, and the group that each is known to belong to, where one is known."""

    names: tuple[str, ...]
    """The names of the columns."""
    x: Array
    """(N, columns)."""
    groups: NDArray[np.int64] | None = None
    """(N,), counted from 0."""
    group_names: tuple[str, ...] = ()
    taken: Taken | None = None
    """The format of the file, if they are read from one."""


def five() -> Points:
    """1,250 points of five Gaussian clusters of different sizes and shapes."""
    rng = np.random.default_rng(5)
    shares = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
    means = np.array([[-3.8, -1.9], [4.0, -2.5], [0.0, 3.6], [-4.2, 3.6], [4.2, 3.2]])
    angles, lengths = (
        np.array([0.5, -0.6, 0.0, 1.2, 0.8]),
        np.array([[1.0, 0.45], [0.9, 0.5], [1.1, 0.5], [0.5, 0.5], [0.75, 0.35]]),
    )
    groups = np.sort(rng.choice(5, 1250, p=shares))
    turned = np.array([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]]).transpose(2, 0, 1)
    x = means[groups] + np.einsum("nij,nj->ni", turned[groups], lengths[groups] * rng.standard_normal((1250, 2)))
    return Points(("first", "second"), x, groups, tuple(f"cluster {k + 1}" for k in range(5)))


def iris() -> Points:
    """150 irises of three species, by two columns of four (Fisher 1936)."""
    rows = table("clusters", "iris.csv", ",")
    names = "sepal length", "sepal width", "petal length", "petal width"
    return Points(names, rows[:, :4], rows[:, 4].astype(np.int64), ("setosa", "versicolor", "virginica"))


def wine() -> Points:
    """178 wines of three growers, by thirteen measurements (Forina et al. 1988)."""
    rows = table("clusters", "wine_data.csv", ",")
    names = (
        "alcohol",
        "malic acid",
        "ash",
        "alkalinity",
        "magnesium",
        "phenols",
        "flavonoids",
        "other phenols",
        "proanthocyanins",
        "colour",
        "hue",
        "OD280",
        "proline",
    )
    return Points(names, rows[:, :13], rows[:, 13].astype(np.int64), ("grower 1", "grower 2", "grower 3"))


BUILT_IN: Mapping[str, Callable[[], Points]] = {"five": five, "iris": iris, "wine": wine}


def read(files: Mapping[str, bytes], form: Format = GUESSED) -> Points:
    """Points from one table of numbers; one column may hold the known groups.

    That column is the last where most of its values are words, unless another is chosen. Rows with a missing value are
    left out. Raises :class:`~samplers.files.FileError` with the line and the column.
    """
    name, content = one_file(files, "The points")
    with reading(name):
        return _read(Sheet(name, content, form, titles=titles_of_numbers))


def _read(sheet: Sheet) -> Points:
    name = sheet.name
    names = names_of(sheet, "may hold words, the known groups")
    rows, left_out = complete_rows(sheet, MIN_POINTS, MAX_POINTS, f"{MAX_POINTS:,} rows")
    last = len(names) - 1
    at = sheet.column("column", None if sheet.is_number_column(rows, last) else last)
    columns = [k for k in range(len(names)) if k != at]
    if len(columns) < 2:
        raise FileError(name, "has one column of numbers", "allowed are two or more")
    x = sheet.numbers(rows, columns, names, MAX_SIZE)
    check_varies(name, [f"the column {quoted(names[k])}" for k in columns], x)
    of_x, taken = tuple(names[k] for k in columns), sheet.taken(len(rows), [("column", GROUPS, at)], left_out)
    if at is None:
        return Points(of_x, x, taken=taken)
    group_names, groups = np.unique([row[at].strip()[:MAX_NAME] for _, row in rows], return_inverse=True)
    if len(group_names) > MAX_GROUPS:
        raise FileError(
            name,
            f"has {len(group_names):,} different values in the column {quoted(names[at])}",
            f"it holds the known groups, of which at most {MAX_GROUPS} are allowed; leave it out, or choose another column",
        )
    return Points(of_x, x, groups.astype(np.int64), tuple(str(each) for each in group_names), taken)
