"""The parser of the commands, whose words and numbers every console takes."""

import argparse
import sys
from contextlib import suppress
from typing import Any


class Parser(argparse.ArgumentParser):
    r"""Python's, of a command that may write any sign: one that a code page lacks is written as ``\u03b5``.

    A Windows console whose output is redirected, and a bare container, have code pages without Greek letters.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for stream in (sys.stdout, sys.stderr):
            # A test or a notebook may have put a stream without a code page there.
            with suppress(AttributeError):
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
