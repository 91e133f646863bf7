"""Records of benchmarks: a file of JSON for each run, and all of them in ``tests/benchmarks/README.md``.

A record says which command ran, when, and on which machine and versions. Its body holds paragraphs, tables, and text as
a command printed it. ``python -m tests.benchmarks.record`` writes the README again after a record was edited.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sgmcmc_lab.lessons.record import in_words, put, write

README = Path(__file__).with_name("README.md")
FOLDER = Path(__file__).with_name("results")


def kept() -> list[dict[str, Any]]:
    """All records, in the order of their files' names."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]


def write_record(name: str, record: Mapping[str, Any]) -> None:
    """Write a record into the file ``name``, and then all into the README. Raises :class:`SpecError`."""
    write(FOLDER / name, json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    put(README, table(kept()))


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
