"""Files of a person's own: text of unknown make, and what is said of one that is wrong."""

import csv
import errno
import io
import logging
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

from sgmcmc_lab.samplers.parameters import SpecError

log = logging.getLogger(__name__)

MAX_LINES = 1_000_000
"""The most lines of a file. Each line is examined by itself, so they are counted first."""
MAX_SEPARATORS = 100_000
"""The most separators of one row of a CSV file, inside its texts or between them: a row is read at once."""
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
    """The fault of a file, as a sentence: the place, what is there, and what is allowed."""

    def __init__(self, place: str, found: str, allowed: str):
        """``place`` is a file, or ``file, line number``; ``found`` begins with a verb: ``has 3 fields``."""
        super().__init__(place, found, allowed)
        sentence = f"{place}{',' if ', line ' in place else ''} {found}: {allowed}."
        # The contents of a file may have line ends and other characters that no sentence has.
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
        raise FileError(
            name, "cannot be read", "its contents are not as the reader expects; the server's log has the details"
        ) from error


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


def dialect(delimiter: str) -> dict[str, Any]:
    """How the standard library's reader takes a CSV file; spaces after a separator are none of a field's."""
    return {"delimiter": delimiter, "skipinitialspace": True, "strict": True}


def lines_for(text: str, delimiter: str) -> Iterable[str]:
    """The lines for that reader, with their ends. Where spaces part the fields, tabs do so, too."""
    return io.StringIO(text.replace("\t", " ") if delimiter == " " else text, newline="")


def csv_rows(name: str, text: str, delimiter: str = ",", before: int = 0) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file that are not empty, each with the line in which it ends; ``before`` are lines above them.

    Raises :class:`FileError`.
    """
    count_lines(name, text)
    separators = 0

    def lines() -> Iterator[str]:
        nonlocal separators
        for line in lines_for(text, delimiter):
            separators += line.count(delimiter)
            if separators > MAX_SEPARATORS:
                raise FileError(
                    f"{name}, line {before + reader.line_num + 1}",
                    f"has a row of more than {MAX_SEPARATORS:,} separators",
                    "so many are not allowed",
                )
            yield line

    reader = csv.reader(lines(), **dialect(delimiter))
    try:
        for row in reader:
            separators = 0
            if row:
                yield before + reader.line_num, row
    except csv.Error as error:
        raise FileError(f"{name}, line {before + reader.line_num}", "is not CSV", str(error)) from None


def untold(_share: float) -> None:
    """For who does not want to know how far it is."""


def quoted(value: Any) -> str:
    """The contents of a file, as far as they fit into a sentence."""
    # A text is cut before it is written: a value may be as long as a file.
    shown = repr(value[:60] if isinstance(value, str) else value)
    return shown if len(shown) <= 60 else shown[:57] + "…" + shown[0]


_END_OF_DOS_FILE = re.compile(r'\x1a(?="?\s*\Z)')
"""The end-of-file character of DOS, which R's tables can have inside the last quotes."""
ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "utf-32": "UTF-32",
    "windows-1252": "windows-1252 (western Europe)",
    "mac-roman": "Mac Roman",
    "windows-1250": "windows-1250 (central Europe)",
    "windows-1251": "windows-1251 (Cyrillic)",
    "windows-1253": "windows-1253 (Greek)",
    "windows-1254": "windows-1254 (Turkish)",
    "windows-1255": "windows-1255 (Hebrew)",
    "windows-1256": "windows-1256 (Arabic)",
    "koi8-r": "KOI8-R",
    "gb18030": "GB 18030",
    "shift_jis": "Shift JIS",
    "euc-kr": "EUC-KR",
}
"""The encodings that are read, and their titles."""
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
"""Byte order marks; the first two bytes of one are another."""
_NO_TEXT = {
    b"PK\x03\x04": "is a zip archive, as workbooks of Excel are",
    b"\xd0\xcf\x11\xe0": "is a workbook of Excel or a document of Word",
    b"%PDF": "is a PDF",
    b"\x1f\x8b": "is packed by gzip",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x7f]")
_BEYOND_ASCII = re.compile("[^\x00-\x7f]")
_WESTERN = "àâäáãåæçèéêëìíîïñòóôöõøùúûüýÿßœ"
_WITHIN = re.compile(f"[a-z][{_WESTERN}]")
LOOKED_AT = 1_000_000
"""Bytes of a file from which its encoding is guessed."""


def decode(name: str, content: bytes, encoding: str = "") -> tuple[str, str]:
    """A file's text, and its encoding: the one that is chosen, or guessed from byte order marks and bytes.

    Raises :class:`FileError`, with the line, where it is no text of that encoding or holds zero characters.
    """
    for start, found in _NO_TEXT.items():
        if content.startswith(start):
            raise FileError(name, found, "allowed is text; save a table as CSV")
    encoding = encoding or _guess_encoding(name, content)
    codec = encoding
    if encoding == "utf-8":
        codec = "utf-8-sig"
    elif encoding == "utf-16" and content[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        codec = "utf-16-le" if _zeros(content, 1) >= _zeros(content, 0) else "utf-16-be"
    try:
        text = _END_OF_DOS_FILE.sub("", content.decode(codec))
    except UnicodeDecodeError as error:
        before = content[max(error.start - 20, 0) : error.start].rpartition(b"\n")[2].decode(errors="ignore")
        found = f"has the byte 0x{content[error.start]:02X} after {quoted(before)}"
        allowed = f"allowed is text in {ENCODINGS[encoding]}; choose another encoding, or save the file in UTF-8"
        raise FileError(_place(name, content, error.start), found, allowed) from None
    zero = text.find("\0")
    if zero >= 0:
        raise FileError(f"{name}, line {1 + text.count(chr(10), 0, zero)}", "has a zero byte", "it is not a text file")
    return text, encoding


def _guess_encoding(name: str, content: bytes) -> str:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    even, odd = _zeros(content, 0), _zeros(content, 1)
    if max(even, odd) > 0.3 and min(even, odd) < 0.1:
        return "utf-16"
    text = content.decode("utf-8", "replace")
    wrong = text.count("\ufffd")
    if not wrong:
        return "utf-8"
    control = _CONTROL.search(content)
    if control is not None:
        what = f"the byte 0x{content[control.start()]:02X}" if content[control.start()] else "a zero byte"
        raise FileError(_place(name, content, control.start()), f"has {what}", "it is not a text file")
    # Where most of the other characters are UTF-8, a wrong byte is a fault in the file, not another encoding.
    return "utf-8" if len(_BEYOND_ASCII.findall(text)) > 2 * wrong else _western(content)


def _western(content: bytes) -> str:
    """windows-1252 or Mac Roman: in the right one more small letters with accents stand behind small letters."""
    scores = {}
    for encoding in ("windows-1252", "mac-roman"):
        text = content[:LOOKED_AT].decode(encoding, "replace")
        scores[encoding] = len(_WITHIN.findall(text)) - 1_000_000 * text.count("\ufffd")
    return max(scores, key=lambda encoding: scores[encoding])


def _zeros(content: bytes, first: int) -> float:
    """The share of zeros among every second byte of the beginning, as Latin text in UTF-16 has them."""
    part = content[first:2000:2]
    return part.count(0) / max(len(part), 1)


def _place(name: str, content: bytes, at: int) -> str:
    line = content.count(b"\n", 0, at) + 1
    return f"{name}, line {line}"
