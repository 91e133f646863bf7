"""Work that is counted, where a clock would measure what else the machine does."""

import sys
from collections.abc import Callable
from typing import Any


def calls_of(operation: Callable[[], Any]) -> int:
    """How many functions an operation calls, Python's and C's: at about .1 µs each on an idle core."""
    count = 0

    def seen(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        operation()
    finally:
        sys.setprofile(before)
    return count
