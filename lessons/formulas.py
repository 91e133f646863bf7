"""Formulas in TeX as MathML, which browsers draw without a script and without a network."""

import re

from latex2mathml.converter import convert

from lessons.prose import parts
from samplers import SpecError

_UNKNOWN = re.compile(r"\\[A-Za-z]+")
# A large bracket with an exponent is small, and below the line, unless it is in a row of its own.
_LARGE = re.compile(r"(<m(?:sup|sub|subsup)>)(<mo stretchy=\"true\"[^>]*>[^<]*</mo>)")
# A bar that stretches is set on the axis, and so below the line where it is alone under an exponent.
_BAR = re.compile(r"<mo>(&#x0(?:2016|007C);)</mo>")
# The sign of a prime is raised by itself, and twice so as an exponent.
_PRIME = re.compile(r"<msup>(<mi>[^<]*</mi>)(<mi>&#x02032;</mi>)</msup>")


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
    found = _BAR.sub(r'<mo stretchy="false">\1</mo>', _LARGE.sub(r"\1<mrow>\2</mrow>", found))
    return _PRIME.sub(r"<mrow>\1\2</mrow>", found)
