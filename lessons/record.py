"""Measured figures in files: the conditions of a measurement, and text that a command writes between two lines."""

import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sgmcmc_lab.samplers.output import written
from sgmcmc_lab.samplers.parameters import SpecError

BEGIN, END = "<!-- begin: written by a command -->", "<!-- end: written by a command -->"
"""A command writes between these lines of a file; the rest of the file is kept."""


def conditions(machine: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record that say when and where it was measured; of :func:`samplers.machine.machine`."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{machine['cpu_count']} cores, {machine['processor']}",
        "versions": {"Python": machine["python"], **machine["versions"]},
    }


def in_words(record: Mapping[str, Any]) -> str:
    """When and where a record was measured."""
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    return f"{record['date']}; {record['machine']}; {versions}"


def plain(x: float | None) -> float | str | None:
    """A number as JSON has it, which has no infinity."""
    return x if x is None or math.isfinite(x) else str(x)


def check(path: Path) -> None:
    """Raise :class:`SpecError` where a file cannot be written: before a measurement, which may take hours."""
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise SpecError("out", str(path), f"the folder {path.parent} is not there, or cannot be written to")


def put(path: Path, text: str) -> None:
    """Write ``text`` between the two lines of a file, or as the whole of a file that lacks them.

    Raises :class:`SpecError`.
    """
    before, found, rest = path.read_text(encoding="utf-8").partition(BEGIN) if path.is_file() else ("", "", "")
    _, closed, after = rest.partition(END)
    write(path, f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{after}" if found and closed else f"{text.strip()}\n")


def write(path: Path, text: str) -> None:
    """Replace a file at one go. Raises :class:`SpecError`."""
    with written(path) as part:
        part.write_text(text, encoding="utf-8")
