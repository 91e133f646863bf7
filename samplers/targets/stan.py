"""A typed posterior as a program in Stan (Stan Reference Manual 2.36)."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from sgmcmc_lab.samplers.expressions.densities import DENSITIES
from sgmcmc_lab.samplers.expressions.functions import FUNCTIONS
from sgmcmc_lab.samplers.expressions.grammar import tokens
from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.targets.bounded import Bounded

_RESERVED = frozenset(
    [
        "array",
        "auto",
        "break",
        "cholesky_factor_corr",
        "cholesky_factor_cov",
        "complex",
        "continue",
        "corr_matrix",
        "cov_matrix",
        "data",
        "else",
        "export",
        "extern",
        "false",
        "fatal_error",
        "for",
        "functions",
        "generated",
        "if",
        "in",
        "int",
        "jacobian",
        "lower",
        "matrix",
        "model",
        "multiplier",
        "offset",
        "ordered",
        "parameters",
        "positive_ordered",
        "print",
        "profile",
        "quantities",
        "real",
        "reject",
        "repeat",
        "return",
        "row_vector",
        "simplex",
        "static",
        "struct",
        "sum_to_zero_vector",
        "target",
        "then",
        "transformed",
        "true",
        "tuple",
        "typedef",
        "unit_vector",
        "until",
        "upper",
        "var",
        "vector",
        "void",
        "while",
        "N",
        "n",
        "pi",
    ]
)
"""Names that a Stan program reserves, and symbols with another meaning in it."""
_OF_TRIALS = "binomial_logit_lpmf"
"""Stan has it for whole y and trials only; here both can be formulas, so that it is written out."""
_NAMED = {"laplace_lpdf": "double_exponential_lpdf"}
_HELPERS = {
    "sign": ("sign_of", "real sign_of(real x) { return (x > 0) - (x < 0); }"),
    "log_i0": ("log_i0", "real log_i0(real x) { return log_modified_bessel_first_kind(0, abs(x)); }"),
    "i1_over_i0": ("i1_over_i0", "real i1_over_i0(real x) { return ((x > 0) - (x < 0)) * exp(log_modified_bessel_first_kind(1, abs(x)) - log_modified_bessel_first_kind(0, abs(x))); }"),
    "log1p_square": ("log1p_square", "real log1p_square(real x) { return log1p(square(x)); }"),
    "log_i0e": ("log_i0e", "real log_i0e(real x) { return log_modified_bessel_first_kind(0, abs(x)) - abs(x); }"),
    "log_i0e_slope": ("log_i0e_slope", "real log_i0e_slope(real x) { return ((x > 0) - (x < 0)) * (exp(log_modified_bessel_first_kind(1, abs(x)) - log_modified_bessel_first_kind(0, abs(x))) - 1); }"),
    "lgamma_half_step": ("lgamma_half_step", "real lgamma_half_step(real x) { return lgamma(x + 0.5) - lgamma(x) - 0.5 * log(x); }"),
    "lgamma_half_step_slope": ("lgamma_half_step_slope", "real lgamma_half_step_slope(real x) { return digamma(x + 0.5) - digamma(x) - 0.5 / x; }"),
    "log_gamma_density": ("log_gamma_density", "real log_gamma_density(real k, real eta) { return (k - 1) * eta - exp(eta) - lgamma(k); }"),
    "zero_times": ("zero_times", "real zero_times(real w, real u) { return w == 0 ? 0 : w * u; }"),
    "if_nonnegative": ("if_nonnegative", "real if_nonnegative(real c, real u) { return c < 0 ? negative_infinity() : u; }"),
    "bernoulli_logit_lpmf": ("bernoulli_logit_of", "real bernoulli_logit_of(real y, real logit_p) { return y == 0 || y == 1 ? -log1p_exp((1 - 2 * y) * logit_p) : negative_infinity(); }"),
    "binomial_logit_lpmf": ("binomial_logit_of", "real binomial_logit_of(real y, real n, real logit_p) { return y < 0 || y > n ? negative_infinity() : lgamma(n + 1) - lgamma(y + 1) - lgamma(n - y + 1) - y * log1p_exp(-logit_p) - (n - y) * log1p_exp(logit_p); }"),
    "neg_binomial_2_log_lpmf": ("neg_binomial_2_log_of", "real neg_binomial_2_log_of(real y, real log_mean, real phi) { return y < 0 ? negative_infinity() : lgamma(y + phi) - lgamma(phi) - lgamma(y + 1) - y * log1p_exp(log(phi) - log_mean) - phi * log1p_exp(log_mean - log(phi)); }"),
    "log_ndtr": ("log_ndtr", "real log_ndtr(real x) { return normal_lcdf(x | 0.0, 1.0); }"),
    "log_ndtr_slope": ("log_ndtr_slope", "real log_ndtr_slope(real x) { return exp(normal_lpdf(x | 0.0, 1.0) - normal_lcdf(x | 0.0, 1.0)); }"),
    "poisson_log_lpmf": ("poisson_log_of", "real poisson_log_of(real y, real log_rate) { return y < 0 ? negative_infinity() : y * log_rate - exp(log_rate) - lgamma(y + 1); }"),
}  # fmt: skip
"""Functions that Stan lacks, or has for whole numbers only: the name in the program, and its definition."""


class _Writer:
    """Writes formulas, and keeps what they need to be declared."""

    def __init__(self, names: Mapping[str, str], columns: Mapping[str, Array]):
        self.names, self.columns = names, columns
        self.used: dict[str, None] = {}
        """Columns in the order in which they come."""
        self.whole: set[str] = set()
        """Those of them that Stan must have as whole numbers."""
        self.helpers: dict[str, str] = {}

    def counted(self, typed: Sequence[tuple[str, str]], at: int) -> bool:
        """Whether the first argument of the function at this place is a column of whole numbers from 0, and no more."""
        inside = [word for _, word in typed[at + 2 : at + 4]]
        values = self.columns.get(inside[0])
        most = 1 if typed[at][1] == "bernoulli_logit_lpmf" else 2**31 - 1
        return (
            inside[1:] == [","]
            and values is not None
            and bool(((values == np.floor(values)) & (values >= 0) & (values <= most)).all())
        )

    def formula(self, text: str) -> str:
        """A text that the grammar has taken, as Stan writes it."""
        typed, out = list(tokens(text)), []
        counts = {
            at + 2
            for at, (_, word) in enumerate(typed)
            if word.endswith("_lpmf") and word not in {*self.names, _OF_TRIALS} and self.counted(typed, at)
        }
        self.whole |= {typed[at][1] for at in counts}
        bars: list[bool] = []  # of each bracket, whether its next comma is Stan's bar
        bar = False
        for at, (kind, typed_word) in enumerate(typed):
            word = typed_word
            if kind == "number":
                # 1/2 is 0 in Stan: each number is made real.
                word = f"{word}.0" if word.isdigit() else word
            elif word in self.columns:
                self.used[word] = None
                # Between two whole numbers / leaves out the remainder: where they are not counted they are made real.
                real = word in self.whole and at not in counts
                word = f"(1.0 * {self.names[word]}[n])" if real else f"{self.names[word]}[n]"
            elif word in self.names:
                word = self.names[word]
            elif word == "pi":
                word = "pi()"
            elif word in _HELPERS and at + 2 not in counts:
                called, definition = _HELPERS[word]
                self.helpers[called] = definition
                word, bar = called, False
            elif word in FUNCTIONS or word in DENSITIES:
                bar = word.endswith(("_lpdf", "_lpmf", "_lcdf", "_lccdf"))
                word = _NAMED.get(word, word)
            elif word == "(":
                bars.append(bar)
                bar = False
            elif word == ")":
                bars.pop()
            elif word == "," and bars[-1]:
                word, bars[-1] = "|", False
            out.append(word)
        line = " ".join(out)
        return re.sub(r"(?<=\w) \( ?|\( | (?=[,)])", lambda found: found[0].strip(), line)


def _named(names: Sequence[str]) -> dict[str, str]:
    """The names of a program for those of a model: others where Stan has another meaning for one."""
    taken = _RESERVED | FUNCTIONS.keys() | DENSITIES.keys() | {called for called, _ in _HELPERS.values()}
    made: dict[str, str] = {}
    for name in names:
        new = name.rstrip("_")
        while new in taken or new in made.values() or (new != name and new in names):
            new += "_x"
        made[name] = new
    return made


def program(bounded: Sequence[Bounded], columns: Mapping[str, Array], prior: str, row: str) -> str:
    """A program with the density of the typed prior and rows, (N,) each column.

    The Jacobians of bounds are Stan's own.
    """
    names = _named([*(each.name for each in bounded), *columns])
    writer = _Writer(names, columns)
    said = [writer.formula(prior), writer.formula(row)]
    lines = ["// Written by SG-MCMC Lab. The columns of the table, by their names here:"]
    lines += [f"//   {names[title]}: column {title}" for title in writer.used]
    if writer.helpers:
        lines += ["functions {", *(f"  {each}" for each in writer.helpers.values()), "}"]
    lines += ["data {", "  int<lower=0> N;"]
    lines += [
        f"  array[N] int {names[title]};" if title in writer.whole else f"  vector[N] {names[title]};"
        for title in writer.used
    ]
    lines += ["}", "parameters {"]
    for each in bounded:
        ends = [f"{word}={end!r}" for word, end in (("lower", each.low), ("upper", each.high)) if np.isfinite(end)]
        lines.append(f"  real{'<' + ', '.join(ends) + '>' if ends else ''} {names[each.name]};")
    lines += ["}", "model {", f"  target += {said[0]};", "  for (n in 1:N)", f"    target += {said[1]};", "}", ""]
    return "\n".join(lines)
