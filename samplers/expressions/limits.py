"""The bounds on what is typed and worked out, and the meter that counts the work."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn

from sgmcmc_lab.samplers.parameters import SpecError

MAX_LENGTH = 400
"""Characters of a typed expression."""
MAX_DEPTH = 40
"""Brackets, functions, signs and powers inside each other."""
MAX_EXPONENT = 400.0
"""The largest exponent, typed or come to by products of powers: what is written can be read back."""
MAX_NUMBER = 1e12
"""The largest number, typed or computed."""
MAX_RATIO = 1e6
"""A sum in a product is divided by its first coefficient unless another one is so many times larger."""
MAX_WORK = 15_000
"""Terms and factors that one operation on expressions may handle."""
MAX_INSTRUCTIONS = 2_000
"""Instructions of a program: what each step of a chain and each point of a grid may cost."""
MAX_TEXT = 10_000
"""Characters of a text or a formula of which more is not shown."""


class _Meter:
    """The remaining work that an operation may make."""

    __slots__ = ("left",)

    def __init__(self, left: int):
        self.left = left


_METER: ContextVar[_Meter | None] = ContextVar("_METER", default=None)


@contextmanager
def work_limit(work: int = MAX_WORK) -> Iterator[None]:
    """Bound the expressions made inside; where there is a bound already, that one holds.

    Raises :class:`SpecError` in whatever operation exceeds it.
    """
    if _METER.get() is not None:
        yield
        return
    token = _METER.set(_Meter(work))
    try:
        yield
    finally:
        _METER.reset(token)


def count(work: int) -> None:
    """Take so many terms and factors from what is left of the work, where there is a bound."""
    meter = _METER.get()
    if meter is not None:
        meter.left -= work
        if meter.left < 0:
            refuse("", "its expanded form is too large; a simpler one is needed")


def refuse(value: str, why: str) -> NoReturn:
    """Raise the :class:`SpecError` of an operation on expressions."""
    raise SpecError("expression", value, why)
