"""Measured figures as files: a record of each run, as JSON, and all of them in ``samplers/benchmarks/README.md``.

A record says which command ran, when, and on which machine and versions. Its body holds paragraphs, tables, and text as
a command printed it. ``python -m sgmcmc_lab.samplers.benchmarks.record`` writes the README again after a record was edited.
"""

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sgmcmc_lab.samplers.output import written
from sgmcmc_lab.samplers.parameters import SpecError

README = Path(__file__).with_name("README.md")
FOLDER = Path(__file__).with_name("results")
BEGIN, END = "<!-- begin: written by a command -->", "<!-- end: written by a command -->"
"""What a command writes stands between these lines of a file; the rest of the file is kept."""


def conditions(machine: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record that say when and where it was measured; of ``samplers.benchmarks.machine``."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{machine['cpu_count']} cores, {machine['processor']}",
        "versions": {"Python": machine["python"], **machine["versions"]},
    }


def in_words(record: Mapping[str, Any]) -> str:
    """When and where a record was measured."""
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    return f"{record['date']}; {record['machine']}; {versions}"


def kept() -> list[dict[str, Any]]:
    """All records, in the order of their files' names."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]


def check(path: Path) -> None:
    """Raise :class:`SpecError` where a file cannot be written: before a measurement, which may take hours."""
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise SpecError("out", str(path), f"the folder {path.parent} is not there, or cannot be written to")


def write_record(name: str, record: Mapping[str, Any]) -> None:
    """Write a record into the file ``name``, and then all into the README. Raises :class:`SpecError`."""
    write(FOLDER / name, json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    put(README, table(kept()))


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


def table(records: list[dict[str, Any]]) -> str:
    """The records as Markdown, a section each."""
    return "\n\n".join(part for record in records for part in _section(record))


def _section(record: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {record['title']}"
    yield f"`{record['command']}`<br>{in_words(record)}"
    for item in record["body"]:
        if isinstance(item, str):
            yield item
        elif "text" in item:
            yield f"```text\n{item['text'].rstrip()}\n```"
        else:
            yield "\n".join(_rows(item["columns"], item["rows"]))


def _rows(columns: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


if __name__ == "__main__":
    put(README, table(kept()))
