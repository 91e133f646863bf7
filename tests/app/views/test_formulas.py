"""Displayed formulas in lines: nothing of them is lost, and no line is wider than its place."""

import re

import pytest

from sgmcmc_lab.app.views.formulas import COMMAS, MOST, PARTS, in_lines, width
from sgmcmc_lab.samplers.settings import ANY_SAMPLER, ANY_TARGET
from tests.helpers.cases import for_each

BREAK = re.compile(r"\\\\\[\.5em\] ")


def rows(tex, ends=PARTS, most=MOST):
    made = in_lines(tex, ends, most).removeprefix(r"\begin{array}{l}").removesuffix(r"\end{array}")
    return [row.replace(r"\displaystyle ", "") for row in BREAK.split(made)]


@for_each(
    ("tex", "expected"),
    [
        (r"a = b", [r"a = b"]),
        (r"x_1 \qquad y_{\qquad}", ["x_1", r"y_{\qquad}"]),
        (
            r"D = \begin{pmatrix}1 & 0 \\ 0 & 1\end{pmatrix}, \qquad e",
            [r"D = \begin{pmatrix}1 & 0 \\ 0 & 1\end{pmatrix},", "e"],
        ),
        (r"\begin{aligned}a &= b\\c &= d\end{aligned}", ["a = b", "c = d"]),
        (r"aaaaaaaaaa = (b + c) - -d", ["aaaaaaaaaa", r"\quad = (b + c)", r"\quad - -d"]),
        (r"aaaaaaaa = \theta_+ + b", ["aaaaaaaa", r"\quad = \theta_+ + b"]),
        ("aaa = bb + c = dd + e", ["aaa = bb + c", r"\quad = dd + e"]),
        (r"\left(aaaaaa + bbbbbb\right)^2", [r"\left(aaaaaa + bbbbbb\right)^2"]),
    ],
)
def test_where_a_formula_is_cut(tex, expected):
    assert rows(tex, most=10.5) == expected


@for_each(
    ("tex", "letters"),
    [
        (r"\theta", 1),
        (r"\tilde U(\hat\theta)", 4),
        (r"x^{ab}", 2.4),
        (r"\frac{a}{bcd}", 3),
        (r"\operatorname{Var}", 3),
        (r"\underbrace{a}_{\text{said below}}", 6.3),
        (r"\bigl(a\bigr)", 3),
        (r"\begin{array}a", 3),
    ],
)
def test_how_wide_a_formula_is(tex, letters):
    assert width(tex) == pytest.approx(letters)


@pytest.mark.slow
def test_nothing_of_a_cards_formula_is_lost():
    """Fails where a part is left out, or stands in another order."""
    for one in (*ANY_SAMPLER.values(), *ANY_TARGET.values()):
        tex = getattr(one, "update", "") or one.tex
        if not isinstance(tex, str):
            continue  # of an energy that a person types
        whole = re.sub(r"\\(begin|end)\{aligned\}|,\s*\\q?quad(?![a-zA-Z])|\s", "", tex)
        made = "".join(rows(tex, COMMAS))
        kept = re.sub(r"\\quad(?![a-zA-Z])|\s", "", made)
        assert re.sub(r"&|\\\\", "", kept) == re.sub(r"&|\\\\|\\quad(?![a-zA-Z])", "", whole), one.key
