"""Files of a person's own: text of unknown make, and what is said of one that is wrong."""

from collections.abc import Callable
from typing import Any

from samplers.parameters import SpecError

Tell = Callable[[float], None]
"""Called while a file is read, with the share that is done; it may raise an error to end the work."""


class FileError(SpecError):
    """What is wrong with a file, as a sentence: the place, what is there, and what is allowed."""

    def __init__(self, place: str, found: str, allowed: str):
        """``place`` is a file, or ``file, line number``; ``found`` begins with a verb: ``has 3 fields``."""
        super().__init__(place, found, allowed)
        self.args = (f"{place}{',' if ', line ' in place else ''} {found}: {allowed}.",)


def untold(_share: float) -> None:
    """For who does not want to know how far it is."""


def quoted(value: Any) -> str:
    """What stands in a file, as far as it fits into a sentence."""
    shown = repr(value)
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
