"""Files that the lab writes for itself and reads back in another process: each is as it was written, or as if absent.

A file begins with a digest of what it is of and of its content. A file that was cut, emptied, overwritten or renamed
does not match its digest. It is written under another name and renamed, so that who reads meanwhile finds the old
content or the new one. A loss of power may still cut it: the digest shows that, and so no write waits for the disk.
"""

import hashlib
import math
import os
import re
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from sgmcmc_lab.samplers.files import read_file

DAY = 86_400.0
MAX_BYTES = 64_000_000
"""The largest size of one file; the engine's loop takes half a megabyte."""


def read(path: Path, of: str) -> bytes | None:
    """The content that :func:`write` has kept of ``of``; None where there is none, or another than was written."""
    try:
        digest, _, content = read_file(path, MAX_BYTES).partition(b"\n")
    except OSError:
        return None
    return content if digest == _digest(of, content) else None


def write(path: Path, of: str, content: bytes) -> None:
    """Keep a content instead of whatever is in its place. Raises OSError, and then leaves no part of it."""
    make_folder(path.parent)
    part = path.with_name(f".{uuid4().hex}.part")
    try:
        part.write_bytes(_digest(of, content) + b"\n" + content)
        make_way(path)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def keep_newest(folder: Path, pattern: str, number: int) -> None:
    """Remove the oldest of these files beyond so many. Another process may do so meanwhile."""
    with suppress(OSError):
        files = list(folder.glob(pattern))
        if len(files) > number:
            for old in sorted(files, key=lambda path: path.lstat().st_mtime_ns)[:-number]:
                old.unlink(missing_ok=True)


def mark_used(path: Path) -> None:
    """Let a file count as new: at most once a day, for a call that a page waits for."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)


def remove_unused(paths: Iterable[Path], days: float, max_bytes: float = math.inf) -> None:
    """Remove those of these files that :func:`write` has written and nobody has used for so many days, and the oldest
    beyond so many bytes. Any other file stays, and so does one that the system protects.
    """
    ages = []
    for path in paths:
        with suppress(OSError):
            if _is_written_here(path):
                seen = path.stat()
                ages.append((time.time() - seen.st_mtime, seen.st_size, path))
    total = 0
    for age, size, path in sorted(ages):
        total += size
        if age > days * DAY or total > max_bytes:
            with suppress(OSError):
                path.unlink()


def _is_written_here(path: Path) -> bool:
    """Whether a file begins as :func:`write` begins it. Raises OSError."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return re.fullmatch(rb"[0-9a-f]{64}\n", file.read(65)) is not None


def make_way(path: Path) -> None:
    """Remove what is in the place of a file of the lab's own and is no file. Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() and not path.is_file():
        path.unlink()


def make_folder(folder: Path) -> None:
    """Make a folder of the lab's own, instead of a file that is in its place. Raises OSError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        folder.unlink()
        folder.mkdir(exist_ok=True)


def _digest(of: str, content: bytes) -> bytes:
    return hashlib.sha256(of.encode() + b"\n" + content).hexdigest().encode()
