"""Points with columns, some with known groups: built in, made up, or from a CSV file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from samplers.files import FileError, csv_rows, decode, quoted, reading
from samplers.targets.base import Array
from samplers.targets.own import MAX_NAME, MIN_ROWS, check_varies, delimiter, is_number, names_of, number, one_file
from samplers.targets.tables import table

MAX_POINTS = 20_000
"""With so many a sweep over all of them takes some hundredths of a second a cluster."""


@dataclass(frozen=True, eq=False)
class Points:
    """Rows of numbers, and the group that each is known to belong to, where one is known."""

    names: tuple[str, ...]
    """Of the columns."""
    x: Array
    """(N, columns)."""
    groups: NDArray[np.int64] | None = None
    """(N,), counted from 0."""
    group_names: tuple[str, ...] = ()


def five() -> Points:
    """1,250 points of five Gaussian clusters of different sizes and shapes."""
    rng = np.random.default_rng(5)
    shares = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
    means = np.array([[-3.8, -1.9], [4.0, -2.5], [0.0, 3.6], [-4.2, 3.6], [4.2, 3.2]])
    angles, lengths = np.array([0.5, -0.6, 0.0, 1.2, 0.8]), np.array([[1.0, 0.45], [0.9, 0.5], [1.1, 0.5], [0.5, 0.5], [0.75, 0.35]])  # fmt: skip
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
        "alcohol", "malic acid", "ash", "alkalinity", "magnesium", "phenols", "flavonoids", "other phenols",
        "proanthocyanins", "colour", "hue", "OD280", "proline",
    )  # fmt: skip
    return Points(names, rows[:, :13], rows[:, 13].astype(np.int64), ("grower 1", "grower 2", "grower 3"))


BUILT_IN: Mapping[str, Callable[[], Points]] = {"five": five, "iris": iris, "wine": wine}


def read(files: Mapping[str, bytes]) -> Points:
    """Points from one CSV file, whose first line names the columns; a last column of words holds the known groups.

    Raises :class:`~samplers.files.FileError` with the line and the column.
    """
    name, content = one_file(files, "The points")
    with reading(name):
        return _read(name, decode(name, content))


def _read(name: str, text: str) -> Points:
    rows = csv_rows(name, text, delimiter(text.partition("\n")[0]))
    line, header = next(rows, (1, []))
    names = names_of(f"{name}, line {line}", header, "may hold words, the known groups")
    kept: list[tuple[str, list[str]]] = []
    for line, row in rows:
        place = f"{name}, line {line}"
        if len(row) != len(names):
            raise FileError(place, f"has {len(row)} fields", f"line 1 has {len(names)} names; allowed is as many fields in every line")  # fmt: skip
        if len(kept) == MAX_POINTS:
            raise FileError(place, f"is one of more than {MAX_POINTS:,} rows", "so many are not allowed")
        kept.append((place, row))
    if len(kept) < MIN_ROWS:
        few = ("no row", "one row")[len(kept)] if len(kept) < 2 else f"{len(kept)} rows"
        raise FileError(name, f"has {few}", f"allowed are {MIN_ROWS} or more")
    words = any(not is_number(row[-1]) for _, row in kept)
    columns = names[:-1] if words else names
    if len(columns) < 2:
        raise FileError(name, "has one column of numbers", "allowed are two or more")
    said = [f"the column {quoted(each)}" for each in columns]
    x = np.array([[number(place, each, cell) for each, cell in zip(said, row, strict=False)] for place, row in kept])  # fmt: skip
    check_varies(name, said, x)
    if not words:
        return Points(tuple(columns), x)
    group_names, groups = np.unique([row[-1].strip()[:MAX_NAME] for _, row in kept], return_inverse=True)
    return Points(tuple(columns), x, groups.astype(np.int64), tuple(str(each) for each in group_names))
