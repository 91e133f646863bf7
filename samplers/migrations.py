"""The versions of the format of links and saved files. Each carries its version, and older ones open for ever.

Where a field is renamed or removed, ``VERSION`` grows by one, and the table gets a function that turns the version
before into the new one; the examples of every version so far, in ``tests/formats``, say whether that holds. What has no
version is of version 0: links and files made before there was a number, tables of lessons, and plain data written by
hand, which may be as new as the code. So a function leaves alone what is in the new form already.
"""

from collections.abc import Callable, Mapping
from typing import Any

from samplers.parameters import Count, SpecError, check

VERSION = 1


def _unchanged(data: Any) -> Any:
    """Version 1 is version 0 with its number."""
    return data


MIGRATIONS: dict[str, Mapping[int, Callable[[Any], Any]]] = {
    "link": {0: _unchanged},
    "experiment": {0: _unchanged},
    "study": {0: _unchanged},
}
"""By what is migrated and the version that it has: the fields of a link, as pairs of texts; and plain data of an
experiment or a study, as a dictionary, whose values are text where they come from a link.
"""


def version_of(given: Any) -> int:
    """The version that a link or a file names. Raises :class:`SpecError` where it is newer than this code."""
    try:
        return int(check(Count(0, bounds=(0, VERSION)), "version", given))  # type: ignore[arg-type]
    except SpecError:
        allowed = f"this lab reads the versions up to {VERSION}, and a newer lab is needed for a newer one"
        raise SpecError("version", given, allowed) from None


def migrated(kind: str, data: Any, version: int) -> Any:
    """The data in today's format."""
    for step in range(version, VERSION):
        data = MIGRATIONS[kind][step](data)
    return data
