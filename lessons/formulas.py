"""Formulas in TeX as MathML, which browsers draw without a script and without a network."""

import re

from latex2mathml.converter import convert

from lessons.prose import parts
from samplers import SpecError

_UNKNOWN = re.compile(r"\\[A-Za-z]+")


def mathml(tex: str, alone: bool) -> str:
    """A formula as HTML: displayed, its parts beside or below each other as there is room, or in its line.

    Raises :class:`SpecError` for one that cannot be drawn.
    """
    if not alone:
        return _drawn(tex, "inline")
    shown = "".join(f"<span>{_drawn(part, 'block')}</span>" for part in parts(tex))
    return f"<span class='formula'>{shown}</span>"


def _drawn(tex: str, display: str) -> str:
    try:
        found = convert(tex, display=display)
    except Exception as error:
        # Each of its errors has a class of its own, without one that they share.
        raise SpecError("formula", tex[:80], f"it cannot be drawn: {type(error).__name__}") from None
    unknown = _UNKNOWN.search(found)
    if unknown:
        raise SpecError("formula", tex[:80], f"{unknown[0]} is not a sign that can be drawn")
    return found
