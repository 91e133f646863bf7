"""Expressions that a person types: data, never code.

A text is read by the grammar below, in one pass without recursion, into an immutable :class:`Expression`::

    sum     = product { ("+" | "−") product }
    product = signed { ("*" | "/") signed }
    signed  = ("+" | "−") signed | power
    power   = atom [ "^" signed ]                       (the exponent must come out as a number)
    atom    = number | name | "pi" | function "(" sum ")" | density "(" sum { "," sum } ")" | "(" sum ")"

Nothing that is typed is executed, looked up as an attribute, or handed to another parser. The length, the depth of
nesting, exponents and numbers are bounded, and so is the work that derivatives make: every node that is built is
counted (:func:`work_limit`), so that no text holds the server.

Expressions are kept in a normal form: a sum is a constant and terms with coefficients, a product is factors with
constant exponents. Equal terms are collected where they are made, so that x − x is exactly 0, and a number times
a sum is a sum. Two expressions are equal when their normal forms are. The form is that of real analysis where both
sides are defined: x/x is 1, and (√x)² is x. Coefficients that cancel to 14 digits count as cancelled, and a
number within its last digit of a shorter one is that.

If a sum would cancel at the end of a parameter's range, the form has a function that does not: 1 − inv_logit(u) is
inv_logit(−u), 1 − eᵘ is −expm1(u), log(1 + u) is log1p(u), and the logarithm of a product holds the exponents of its
exponentials. So the complement of a bounded parameter, and its logarithm, have all their digits. −∞ is a log density
like others, that of what is impossible; +∞ and nan are failures.
"""

from sgmcmc_lab.samplers.expressions.functions import Array
from sgmcmc_lab.samplers.expressions.grammar import displayed, parse
from sgmcmc_lab.samplers.expressions.limits import work_limit
from sgmcmc_lab.samplers.expressions.normal_form import ONE, ZERO, Expression, apply, constant, name
from sgmcmc_lab.samplers.expressions.program import postfix
from sgmcmc_lab.samplers.expressions.values import evaluate

__all__ = [
    "ONE",
    "ZERO",
    "Array",
    "Expression",
    "apply",
    "constant",
    "displayed",
    "evaluate",
    "name",
    "parse",
    "postfix",
    "work_limit",
]
