"""Files of a person's own: text of unknown make, and what is said of one that is wrong."""

import csv
import errno
import io
import logging
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

from samplers.parameters import SpecError

log = logging.getLogger(__name__)

MAX_LINES = 1_000_000
"""Of one file. Each line is looked at by itself, so they are counted before."""
MAX_COMMAS = 100_000
"""Of one row of a CSV file, in its texts or between them: a row is read at one go."""
MAX_FIELD = 30_000_000
"""Characters of a field. A document may be longer than the 131,072 that Python allows."""
csv.field_size_limit(MAX_FIELD)  # of the whole process


def read_file(path: Path, most: int) -> bytes:
    """A file's content, with one byte more than the most that is allowed, so that a check of its length sees it.

    Raises OSError, also for what is no ordinary file: a pipe would wait for somebody who writes, a device has no end.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not an ordinary file")
        return file.read(most + 1)


Tell = Callable[[float], None]
"""Called while a file is read, with the share that is done; it may raise :class:`EndedError` to end the work."""


class EndedError(Exception):
    """Nobody waits for this work any more."""


class FileError(SpecError):
    """What is wrong with a file, as a sentence: the place, what is there, and what is allowed."""

    def __init__(self, place: str, found: str, allowed: str):
        """``place`` is a file, or ``file, line number``; ``found`` begins with a verb: ``has 3 fields``."""
        super().__init__(place, found, allowed)
        sentence = f"{place}{',' if ', line ' in place else ''} {found}: {allowed}."
        # What stands in a file may hold ends of lines and other signs that no sentence has.
        self.args = ("".join(character if character.isprintable() else " " for character in sentence),)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Makes a sentence about the file of any error that a reader did not expect; the error itself goes to the log."""
    try:
        yield
    except (SpecError, EndedError):
        raise
    except Exception as error:
        log.exception("An unexpected error while %s was read", name)
        raise FileError(name, "cannot be read", "something in it is not as the reader expects, and the server's log says more") from error  # fmt: skip


def short_name(name: str) -> str:
    """A file's name as a sentence may hold it: without folders, and not longer than 60 characters."""
    last = PurePath(name.replace("\\", "/")).name[-60:]
    return "".join(character if character.isprintable() else "?" for character in last) or "The file"


def count_lines(name: str, text: str) -> int:
    """How many lines a text has. Raises :class:`FileError` where they are too many to be looked at."""
    n = 1 + text.count("\n") + text.count("\r") - text.count("\r\n")
    if n > MAX_LINES:
        raise FileError(name, f"has {n:,} lines", f"allowed are at most {MAX_LINES:,}")
    return n


def lines_of(name: str, text: str) -> list[str]:
    """The lines of a text, counted as an editor counts them. Raises :class:`FileError`."""
    count_lines(name, text)
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def csv_rows(name: str, text: str, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file that are not empty, each with the line in which it ends. Raises :class:`FileError`."""
    count_lines(name, text)
    commas = 0

    def lines() -> Iterator[str]:
        nonlocal commas
        for line in io.StringIO(text, newline=""):
            commas += line.count(delimiter)
            if commas > MAX_COMMAS:
                raise FileError(f"{name}, line {reader.line_num + 1}", f"has a row of more than {MAX_COMMAS:,} commas", "so many are not allowed")  # fmt: skip
            yield line

    reader = csv.reader(lines(), strict=True, delimiter=delimiter)
    try:
        for row in reader:
            commas = 0
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise FileError(f"{name}, line {reader.line_num}", "is not CSV", str(error)) from None


def untold(_share: float) -> None:
    """For who does not want to know how far it is."""


def quoted(value: Any) -> str:
    """What stands in a file, as far as it fits into a sentence."""
    # What is cut is cut before it is written: a value may be as long as a file.
    shown = repr(value[:60] if isinstance(value, str) else value)
    return shown if len(shown) <= 60 else shown[:57] + "…" + shown[0]


def decode(name: str, content: bytes) -> str:
    """A text file's text. Raises :class:`FileError`, with the line, where it is not UTF-8 or holds zero bytes."""
    utf8 = "allowed is text in UTF-8; save the file with that encoding"
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FileError(f"{name}, line 1", "is text in UTF-16", utf8)
    zero = content.find(b"\0")
    if zero >= 0:
        raise FileError(_place(name, content, zero), "has a zero byte", "it is not a text file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[max(error.start - 20, 0) : error.start].rpartition(b"\n")[2].decode(errors="ignore")
        found = f"has the byte 0x{content[error.start]:02X} after {quoted(before)}"
        raise FileError(_place(name, content, error.start), found, utf8) from None


def _place(name: str, content: bytes, at: int) -> str:
    line = content.count(b"\n", 0, at) + 1
    return f"{name}, line {line}"
