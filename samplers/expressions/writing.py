"""The written forms of an expression: a text that can be read back, and LaTeX."""

from collections.abc import Mapping
from fractions import Fraction

from sgmcmc_lab.samplers.expressions.functions import FUNCTIONS
from sgmcmc_lab.samplers.expressions.limits import MAX_TEXT
from sgmcmc_lab.samplers.expressions.nodes import Kind, Node

_SUM, _LED, _PRODUCT, _SIGNED, _ATOM = range(5)
"""How tightly a text holds together; ``_LED`` is a product whose first factor is a sum."""

Written = tuple[str, int]


class _Plain:
    """The text that can be read back."""

    etc = "…"

    def number(self, value: float) -> Written:
        text = repr(int(value)) if value == int(value) and abs(value) <= 1e6 else repr(value)
        return text, _ATOM if value >= 0 else _SIGNED

    def name(self, label: str) -> Written:
        return label, _ATOM

    def call(self, function: str, *arguments: Written) -> Written:
        return f"{function}({', '.join(text for text, _ in arguments)})", _ATOM

    def power(self, base: Written, exponent: float) -> str:
        if exponent == 0.5:
            return f"sqrt({base[0]})"
        text = base[0] if base[1] == _ATOM else f"({base[0]})"
        return f"{text}^{self.number(exponent)[0]}"

    def product(self, factors: list[tuple[float, Written]]) -> Written:
        above = [(e, w) for e, w in factors if e > 0]
        below = [(-e, w) for e, w in factors if e < 0]
        text = "*".join(self.held(e, w) for e, w in above) or "1"
        text += "".join(f"/({self.power(w, e)})" if e != 1 else f"/{_bracketed(w)}" for e, w in below)
        return text, _LED if above and above[0][0] == 1 and above[0][1][1] == _SUM else _PRODUCT

    def held(self, exponent: float, base: Written) -> str:
        return _bracketed(base) if exponent == 1 else self.power(base, exponent)

    def scaled(self, coefficient: float, term: Written) -> str:
        text = term[0] if term[1] > _SUM else f"({term[0]})"
        if abs(coefficient) == 1:
            return text if coefficient > 0 else f"-{text}"
        # Read from the left, a number times a sum would be multiplied out, beyond the bounds perhaps.
        return f"{self.number(coefficient)[0]}*" + (f"({text})" if term[1] == _LED else text)

    def added(self, terms: list[str]) -> str:
        text = terms[0]
        for term in terms[1:]:
            text += f" - {term[1:]}" if term.startswith("-") else f" + {term}"
        return text


def _bracketed(written: Written) -> str:
    return written[0] if written[1] == _ATOM else f"({written[0]})"


_WRITTEN_OUT = {
    "exp": "e^{{{}}}",
    "expm1": r"\left(e^{{{}}} - 1\right)",
    "log1p_exp": r"\log\left(1 + e^{{{}}}\right)",
    "log1m_exp": r"\log\left(1 - e^{{{}}}\right)",
    "log_sum_exp": r"\log\left(e^{{{}}} + e^{{{}}}\right)",
    "log_gamma_density": r"\log\mathrm{{Gamma}}\left(e^{{{1}}};\, {0}\right)",
    "log_i0e": r"\log\left(e^{{-\left|{0}\right|}} I_0\left({0}\right)\right)",
    "log_i0e_slope": r"\left(\tfrac{{I_1}}{{I_0}}\left({0}\right) - \operatorname{{sign}}\left({0}\right)\right)",
    "log_ndtr": r"\log\Phi\left({0}\right)",
    "log_ndtr_slope": r"\tfrac{{\varphi}}{{\Phi}}\left({0}\right)",
    "lgamma_half_step": r"\log\frac{{\Gamma\left({0} + \frac{{1}}{{2}}\right)}}{{\Gamma\left({0}\right) \sqrt{{{0}}}}}",
    "lgamma_half_step_slope": r"\left(\psi\left({0} + \frac{{1}}{{2}}\right) - \psi\left({0}\right) - \frac{{1}}{{2 \left({0}\right)}}\right)",
}
"""The written forms of functions that have no symbol, with their arguments by number."""
DENSITIES = {
    "normal_lpdf": r"\log\mathcal N\left({0};\, {1},\, {2}\right)",
    "student_t_lpdf": r"\log\mathrm{{Student}}\left({0};\, {1},\, {2},\, {3}\right)",
    "cauchy_lpdf": r"\log\mathrm{{Cauchy}}\left({0};\, {1},\, {2}\right)",
    "laplace_lpdf": r"\log\mathrm{{Laplace}}\left({0};\, {1},\, {2}\right)",
    "exponential_lpdf": r"\log\mathrm{{Exp}}\left({0};\, {1}\right)",
    "gamma_lpdf": r"\log\mathrm{{Gamma}}\left({0};\, {1},\, {2}\right)",
    "beta_lpdf": r"\log\mathrm{{Beta}}\left({0};\, {1},\, {2}\right)",
    "lognormal_lpdf": r"\log\mathrm{{LogNormal}}\left({0};\, {1},\, {2}\right)",
    "weibull_lpdf": r"\log\mathrm{{Weibull}}\left({0};\, {1},\, {2}\right)",
    "bernoulli_logit_lpmf": r"\log\mathrm{{Bernoulli}}\left({0};\, \operatorname{{logit}}^{{-1}}\left({1}\right)\right)",
    "binomial_logit_lpmf": r"\log\mathrm{{Binomial}}\left({0};\, {1},\, \operatorname{{logit}}^{{-1}}\left({2}\right)\right)",
    "poisson_log_lpmf": r"\log\mathrm{{Poisson}}\left({0};\, e^{{{1}}}\right)",
    "neg_binomial_2_log_lpmf": r"\log\mathrm{{NegBinomial}}\left({0};\, e^{{{1}}},\, {2}\right)",
    "von_mises_lpdf": r"\log\mathrm{{vonMises}}\left({0};\, {1},\, {2}\right)",
    "normal_lcdf": r"\log F_{{\mathcal N}}\left({0};\, {1},\, {2}\right)",
    "normal_lccdf": r"\log S_{{\mathcal N}}\left({0};\, {1},\, {2}\right)",
    "lognormal_lcdf": r"\log F_{{\mathrm{{LogNormal}}}}\left({0};\, {1},\, {2}\right)",
    "lognormal_lccdf": r"\log S_{{\mathrm{{LogNormal}}}}\left({0};\, {1},\, {2}\right)",
    "exponential_lcdf": r"\log F_{{\mathrm{{Exp}}}}\left({0};\, {1}\right)",
    "exponential_lccdf": r"\log S_{{\mathrm{{Exp}}}}\left({0};\, {1}\right)",
    "weibull_lcdf": r"\log F_{{\mathrm{{Weibull}}}}\left({0};\, {1},\, {2}\right)",
    "weibull_lccdf": r"\log S_{{\mathrm{{Weibull}}}}\left({0};\, {1},\, {2}\right)",
}
"""Densities by name, in the order of their arguments; normal ones have the variance. F is the distribution function,
and S = 1 − F.
"""
_WRITTEN_OUT |= DENSITIES
_GREEK = {"theta": r"\theta", "xi": r"\xi", "pi": r"\pi"}


class _Tex(_Plain):
    """LaTeX, for reading."""

    etc = r"\cdots"

    def __init__(self, symbols: Mapping[str, str]):
        self.symbols = symbols

    def number(self, value: float) -> Written:
        if value < 0:
            return f"-{self.number(-value)[0]}", _SIGNED
        fraction = Fraction(value).limit_denominator(12)
        if fraction.denominator > 1 and fraction.numerator < 100 and abs(float(fraction) - value) < 1e-12 * value:
            return rf"\frac{{{fraction.numerator}}}{{{fraction.denominator}}}", _ATOM
        mantissa, _, exponent = f"{value:.6g}".partition("e")
        return (rf"{mantissa} \cdot 10^{{{int(exponent)}}}", _PRODUCT) if exponent else (mantissa, _ATOM)

    def name(self, label: str) -> Written:
        if label in self.symbols:
            return self.symbols[label], _ATOM
        letters = label.rstrip("0123456789")
        symbol = _GREEK.get(letters, letters if len(letters) == 1 else rf"\mathrm{{{letters}}}")
        digits = label[len(letters) :]
        return f"{symbol}_{{{digits}}}" if len(digits) > 1 else f"{symbol}_{digits}" if digits else symbol, _ATOM

    def call(self, function: str, *arguments: Written) -> Written:
        if function == "abs":
            return rf"\left|{arguments[0][0]}\right|", _ATOM
        if function in _WRITTEN_OUT:
            return _WRITTEN_OUT[function].format(*(text for text, _ in arguments)), _PRODUCT
        if function == "log1p":
            text = arguments[0][0]
            return rf"\log\left(1 {f'- {text[1:]}' if text.startswith('-') else f'+ {text}'}\right)", _PRODUCT
        if function == "log1p_square":
            return rf"\log\left(1 + {self.power(arguments[0], 2.0)}\right)", _PRODUCT
        if function == "if_nonnegative":
            return arguments[1]  # that the density is 0 outside its support goes without saying
        if function == "zero_times":
            return self.product([(1.0, argument) for argument in arguments])
        return rf"{FUNCTIONS[function].tex}\left({arguments[0][0]}\right)", _PRODUCT

    def power(self, base: Written, exponent: float) -> str:
        if exponent == 0.5:
            return rf"\sqrt{{{base[0]}}}"
        text = base[0] if base[1] == _ATOM else rf"\left({base[0]}\right)"
        fraction = Fraction(exponent).limit_denominator(12)
        nice = fraction.denominator > 1 and abs(float(fraction) - exponent) < 1e-12
        return f"{text}^{{{fraction if nice else self.number(exponent)[0]}}}"

    def product(self, factors: list[tuple[float, Written]]) -> Written:
        above = [self.held(e, w) for e, w in factors if e > 0]
        below = [(-e, w) for e, w in factors if e < 0]
        if not below:
            return r" \, ".join(above), _PRODUCT
        alone = len(below) == 1 and below[0][0] == 1
        denominator = below[0][1][0] if alone else r" \, ".join(self.held(e, w) for e, w in below)
        # A single factor needs no brackets on the line of a fraction.
        lines = [w[0] for e, w in factors if e == 1] if len(above) == 1 and len(factors) > len(below) else []
        numerator = lines[0] if lines else (r" \, ".join(above) or "1")
        return rf"\frac{{{numerator}}}{{{denominator}}}", _ATOM

    def held(self, exponent: float, base: Written) -> str:
        if exponent != 1:
            return self.power(base, exponent)
        return base[0] if base[1] in (_PRODUCT, _ATOM) else rf"\left({base[0]}\right)"

    def scaled(self, coefficient: float, term: Written) -> str:
        text = term[0] if term[1] > _SUM else rf"\left({term[0]}\right)"
        if abs(coefficient) == 1:
            return text if coefficient > 0 else f"-{text}"
        return rf"{self.number(coefficient)[0]} \, {text}"


def _written(root: Node, style: _Plain) -> str:
    written: dict[Node, Written] = {}
    for node in Node.postorder([root]):
        if node.kind == Kind.CONSTANT:
            text = style.number(node.value)
        elif node.kind == Kind.NAME:
            text = style.name(node.label)
        elif node.kind == Kind.CALL:
            text = style.call(node.label, *(written[part] for _, part in node.parts))
        elif node.kind == Kind.PRODUCT:
            text = style.product([(e, written[b]) for e, b in node.parts])
        else:
            terms = [style.scaled(c, written[t]) for c, t in node.parts]
            if node.value:
                terms.append(style.number(node.value)[0])
            text = style.added(terms), _SUM if len(terms) > 1 else _SIGNED if node.parts[0][0] < 0 else _PRODUCT
        # A shared subtree is written out each time, which may double the text at every level.
        written[node] = text if len(text[0]) <= MAX_TEXT else (style.etc, _ATOM)
    return written[root][0]


def plain(node: Node) -> str:
    """The text that is read back as an equal expression, unless it is too long and holds a "…"."""
    return _written(node, _Plain())


def latex(node: Node, symbols: Mapping[str, str]) -> str:
    """LaTeX, with these symbols in place of the usual ones for their names."""
    return _written(node, _Tex(symbols))
