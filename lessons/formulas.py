"""Formulas in TeX as MathML, which browsers draw without a script and without a network."""

import re
from html import unescape
from xml.etree.ElementTree import Element, tostring

from latex2mathml.converter import convert_to_element

from sgmcmc_lab.lessons.prose import formula_parts
from sgmcmc_lab.samplers import SpecError

ELEMENTS = frozenset(
    [
        "math",
        "menclose",
        "mfrac",
        "mi",
        "mmultiscripts",
        "mn",
        "mo",
        "mover",
        "mpadded",
        "mphantom",
        "mprescripts",
        "mroot",
        "mrow",
        "mspace",
        "msqrt",
        "mstyle",
        "msub",
        "msubsup",
        "msup",
        "mtable",
        "mtd",
        "mtext",
        "mtr",
        "munder",
        "munderover",
        "none",
    ]
)
"""The elements of MathML in a formula: signs and their layout, without links, actions, or other texts."""
_WORD, _LENGTHS = (
    re.compile(r"[A-Za-z-]{1,30}"),
    re.compile(r"-?[0-9.]{1,10}(?:em|ex|px|pt|mu|%)?(?: -?[0-9.]{1,10}(?:em|ex|px|pt|mu|%)?)*"),
)
_WORDS = re.compile(r"[A-Za-z -]{1,100}")
_COLOUR = re.compile(r"[A-Za-z]{1,30}|#[0-9A-Fa-f]{3,8}")
ATTRIBUTES = {
    "xmlns": re.compile(r"http://www\.w3\.org/1998/Math/MathML"),
    **dict.fromkeys(("mathcolor", "mathbackground"), _COLOUR),
    **dict.fromkeys(("columnalign", "rowalign", "columnlines", "rowlines", "notation"), _WORDS),
    **dict.fromkeys(
        ["accent", "display", "displaystyle", "fence", "form", "largeop", "linebreak", "mathvariant", "movablelimits", "separator", "stretchy", "symmetric"], _WORD
    ),
    **dict.fromkeys(
        ["columnspacing", "depth", "height", "linethickness", "lspace", "maxsize", "minsize", "rowspacing", "rspace", "scriptlevel", "voffset", "width"], _LENGTHS
    ),
}  # fmt: skip
"""The attributes that they may have, each with its values."""
_SIGN = re.compile(r"\\[A-Za-z]+")
# A large bracket with an exponent is small, and below the line, unless it is in a row of its own.
_LARGE = re.compile(r"(<m(?:sup|sub|subsup)>)(<mo stretchy=\"true\"[^>]*>[^<]*</mo>)")
# A bar that stretches is set on the axis, and so below the line where it is alone under an exponent.
_BAR = re.compile(r"<mo>([‖|])</mo>")
# The sign of a prime is raised by itself, and twice so as an exponent.
_PRIME = re.compile(r"<msup>(<mi>[^<]*</mi>)(<mi>′</mi>)</msup>")


def mathml(tex: str, alone: bool) -> str:
    """A formula as HTML: displayed, its parts beside or below each other as there is room, or in its line.

    Raises :class:`SpecError` for one that cannot be drawn.
    """
    if not alone:
        return _drawn(tex, "inline")
    shown = "".join(f"<span>{_drawn(part, 'block')}</span>" for part in formula_parts(tex))
    return f"<span class='formula'>{shown}</span>"


def _drawn(tex: str, display: str) -> str:
    try:
        root = convert_to_element(tex, display=display)
    except Exception as error:
        # Each of its errors has a class of its own, without one that they share.
        raise SpecError("formula", tex[:80], f"it cannot be drawn: {type(error).__name__}") from None
    for element in root.iter():
        _check(element, tex)
        # The library writes signs as references. As characters they are text, whatever they are.
        element.text = unescape(element.text) if element.text else None
    found = tostring(root, encoding="unicode")
    found = _BAR.sub(r'<mo stretchy="false">\1</mo>', _LARGE.sub(r"\1<mrow>\2</mrow>", found))
    return _PRIME.sub(r"<mrow>\1\2</mrow>", found)


def _check(element: Element, tex: str) -> None:
    unknown = _SIGN.search(element.text or "")
    if unknown:
        raise SpecError("formula", tex[:80], f"{unknown[0]} is not a sign that can be drawn")
    for name, value in element.attrib.items():
        if name not in ATTRIBUTES or not ATTRIBUTES[name].fullmatch(value):
            raise SpecError(
                "formula",
                tex[:80],
                f"{name} = {value[:40]!r} is not allowed in one: it has signs and no links, styles or names",
            )
    if element.tag not in ELEMENTS:
        raise SpecError(
            "formula", tex[:80], f"{element.tag[:40]} is not allowed in one: it has signs and no links, styles or names"
        )
