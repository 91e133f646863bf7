"""Expressions in normal form: sums and products, functions of them, and their derivatives."""

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike

from sgmcmc_lab.samplers.expressions.functions import FUNCTIONS, OF_TWO, Array
from sgmcmc_lab.samplers.expressions.limits import MAX_EXPONENT, MAX_NUMBER, MAX_RATIO, count, refuse, work_limit
from sgmcmc_lab.samplers.expressions.nodes import Kind, Node
from sgmcmc_lab.samplers.expressions.values import evaluate, is_whole
from sgmcmc_lab.samplers.expressions.writing import DENSITIES, latex, plain

Parts = tuple[tuple[float, "Expression"], ...]

_CANCELLED = 1e-14


@dataclass(frozen=True, eq=False, repr=False)
class Expression(Node):
    """A real function of named variables, in normal form. Made by :func:`parse` and by operators, never directly."""

    def __repr__(self) -> str:
        return f"Expression({str(self)!r})"

    def __add__(self, other: "Expression | float") -> "Expression":
        return _sum(0.0, ((1.0, self), (1.0, _expression(other))))

    def __radd__(self, other: float) -> "Expression":
        return self + other

    def __sub__(self, other: "Expression | float") -> "Expression":
        return _sum(0.0, ((1.0, self), (-1.0, _expression(other))))

    def __rsub__(self, other: float) -> "Expression":
        return _sum(float(other), ((-1.0, self),))

    def __mul__(self, other: "Expression | float") -> "Expression":
        return _product(((1.0, self), (1.0, _expression(other))))

    def __rmul__(self, other: float) -> "Expression":
        return self * other

    def __truediv__(self, other: "Expression | float") -> "Expression":
        return _product(((1.0, self), (-1.0, _expression(other))))

    def __rtruediv__(self, other: float) -> "Expression":
        return constant(other) / self

    def __pow__(self, exponent: float) -> "Expression":
        return _product(((float(exponent), self),))

    def __neg__(self) -> "Expression":
        return _sum(0.0, ((-1.0, self),))

    def diff(self, name: str) -> "Expression":
        """The partial derivative by ``name``. Subtrees are shared, with this one and in each other."""
        with work_limit():
            derivative: dict[Expression, Expression] = {}
            for node in self.postorder([self]):
                derivative[node] = _differentiate(node, name, derivative)
            return derivative[self]

    def substitute(self, replacements: Mapping[str, "Expression"]) -> "Expression":
        """This expression with names replaced, all at once."""
        return self._rebuilt(lambda node: replacements.get(node.label, node) if node.kind == Kind.NAME else None)

    def expanded(self) -> "Expression":
        """This expression with products of sums multiplied out, so that equal terms meet and cancel."""
        return self._rebuilt(lambda node: None, multiply_out=True)

    def _rebuilt(self, leaf: Callable[["Expression"], "Expression | None"], multiply_out: bool = False) -> "Expression":
        with work_limit():
            new: dict[Expression, Expression] = {}
            for node in self.postorder([self]):
                parts = [(number, new[part]) for number, part in node.parts]
                same = all(a is b for (_, a), (_, b) in zip(parts, node.parts, strict=True))
                if node.kind == Kind.PRODUCT and multiply_out:
                    new[node] = _multiplied_out(parts)
                elif node.kind in {Kind.CONSTANT, Kind.NAME} or same:
                    new[node] = leaf(node) or node
                elif node.kind == Kind.SUM:
                    new[node] = _sum(node.value, parts)
                elif node.kind == Kind.PRODUCT:
                    new[node] = _product(parts)
                else:
                    new[node] = apply(node.label, *(part for _, part in parts))
            return new[self]

    def evaluate(self, **values: ArrayLike) -> Array:
        """Its values, broadcast to the common shape of all that is given.

        An undefined value is inf or nan, as in NumPy, without a warning.
        """
        return evaluate([self], **values)[0]

    def __str__(self) -> str:
        """A text that :func:`parse` reads back as an equal expression, unless it is too long and holds a "…"."""
        return plain(self)

    def tex(self, symbols: Mapping[str, str] | None = None) -> str:
        r"""LaTeX. ``symbols`` gives a name's symbol where it is not the usual one (theta1 is \theta_1)."""
        return latex(self, symbols or {})


def _node(kind: Kind, value: float, label: str, parts: Parts, degree: float) -> Expression:
    digest = blake2b(struct.pack("<bd", kind, value), digest_size=16)
    digest.update(label.encode())
    for number, part in parts:
        digest.update(struct.pack("<d", number) + part.digest)
    return Expression(kind, value, label, parts, digest.digest(), degree)


def _reading_order(node: Expression) -> tuple[int, int, str]:
    """θ before r before ξ, and θ₂ before θ₁₀, as everywhere on the page; functions by their names, and
    displayed densities by their first argument.
    """
    if node.kind == Kind.PRODUCT or node.label in DENSITIES:
        node = node.parts[0][1]
    letters = node.label.rstrip("0123456789")
    return _ORDER.get(letters, len(_ORDER)), len(node.label) if letters in _ORDER else 0, node.label


_ORDER = {"theta": 0, "r": 1, "xi": 2}


def _checked(value: float) -> float:
    if not abs(value) <= MAX_NUMBER:
        refuse("", f"a result is not finite or beyond {MAX_NUMBER:g}")
    return value + 0.0  # −0 and 0 are one constant


def _short(value: float) -> float:
    """The number without a last digit of rounding, so that √1.5² is 1.5."""
    if value == round(value):
        return value
    short = float(f"{value:.13g}")
    return short if abs(short - value) <= 5e-16 * abs(value) else value


def constant(value: float) -> Expression:
    """A number."""
    return _node(Kind.CONSTANT, _short(_checked(float(value))), "", (), 0.0)


def name(label: str) -> Expression:
    """A variable."""
    return _node(Kind.NAME, 0.0, label, (), 1.0)


ZERO = constant(0.0)
ONE = constant(1.0)


def _expression(value: Expression | float) -> Expression:
    return value if isinstance(value, Expression) else constant(value)


def _sum(value: float, terms: Iterable[tuple[float, Expression]]) -> Expression:
    """``value`` + Σ c·t, collected."""
    # Beside each coefficient the sum of its magnitudes, which tells a remainder of rounding from a number.
    collected: dict[Expression, tuple[float, float]] = {}
    total, magnitude = value, abs(value)
    work = 1
    for coefficient, term in terms:
        if term.kind == Kind.CONSTANT:
            inner: Parts = ()
            extra = coefficient * term.value
        elif term.kind == Kind.SUM:
            inner = tuple((coefficient * c, t) for c, t in term.parts)
            extra = coefficient * term.value
        else:
            inner = ((coefficient, term),)
            extra = 0.0
        total, magnitude = total + extra, magnitude + abs(extra)
        work += 1 + len(inner)
        for c, t in inner:
            before, size = collected.get(t, (0.0, 0.0))
            collected[t] = (before + c, size + abs(c))
    count(work)
    parts = [(_short(_checked(c)), t) for t, (c, size) in collected.items() if abs(c) > _CANCELLED * size]
    total = 0.0 if abs(total) <= _CANCELLED * magnitude else _short(_checked(total))
    if not parts:
        return constant(total)
    if total == 0 and len(parts) == 1 and parts[0][0] == 1:
        return parts[0][1]
    whole = _joined(total, parts) if len(parts) > 1 else _complement(total, *parts[0]) if total else None
    if whole is not None:
        return whole
    parts.sort(key=lambda part: (-part[1].degree, part[1].kind, _reading_order(part[1]), part[1].digest))
    return _node(Kind.SUM, total, "", tuple(parts), max(0.0, *(t.degree for _, t in parts)))


def _is_minus(a: float, b: float) -> bool:
    """Whether a + b is 0, but for rounding."""
    return abs(a + b) <= _CANCELLED * abs(a)


def _complement(value: float, coefficient: float, term: Expression) -> Expression | None:
    """``value`` + c·t, where that is value·(1 − t), as a function that is exact where t is near 1."""
    label = term.label
    if _is_minus(value, coefficient):
        if label in {"inv_logit", "tanh"}:
            u = term.parts[0][1]
            return value * apply("inv_logit", -u) if label == "inv_logit" else 2 * value * apply("inv_logit", -2 * u)
        logarithm, rest = _logarithm(term)
        return -value * apply("expm1", logarithm) if rest == ONE else None
    if _is_minus(value, -coefficient):
        if label == "expm1":
            return value * apply("exp", term.parts[0][1])
        if label == "tanh":
            return 2 * value * apply("inv_logit", 2 * term.parts[0][1])
    return None


def _joined(value: float, parts: list[tuple[float, Expression]]) -> Expression | None:
    """The sum with p + (1 − p) put as 1, log p − log(1 − p) as logit p, (eᵘ − 1) + 1 as eᵘ; None where it has none."""
    coefficients = {t: c for c, t in parts if t.label in {"inv_logit", "log1p_exp", "expm1"}}
    for t, c in coefficients.items():
        u = t.parts[0][1]
        if t.label == "expm1":
            if value and _is_minus(value, -c):
                return _sum(0.0, [*(part for part in parts if part[1] != t), (c, apply("exp", u))])
            continue
        mirrored = coefficients.get(apply(t.label, -u)) if len(coefficients) > 1 else None
        if mirrored is not None and _is_minus(mirrored, -c if t.label == "inv_logit" else c):
            kept = [part for part in parts if part[1] not in {t, apply(t.label, -u)}]
            return _sum(value, [*kept, (c, ONE if t.label == "inv_logit" else u)])
    return None


def _power(base: float, exponent: float) -> float:
    try:
        value = base**exponent
    except (ZeroDivisionError, OverflowError):
        value = math.nan
    if isinstance(value, complex) or not math.isfinite(value):
        why = "a number is divided by zero" if base == 0 else "the value is not a real number within bounds"
        refuse(f"({base:g})^({exponent:g})", why)
    return _checked(value)


def _leading(node: Expression) -> float:
    """The number by which a sum is divided where it is a factor."""
    leading = node.parts[0][0]
    # Divided by so small a number the others would leave the bounds.
    return 1.0 if max(abs(c) for c, _ in node.parts) > MAX_RATIO * abs(leading) else leading


def _nonnegative(node: Expression) -> bool:
    """Whether the node is certainly not negative wherever it is defined."""
    return node.kind == Kind.CALL and node.label in {"abs", "exp", "cosh", "inv_logit"}


def _product(factors: Iterable[tuple[float, Expression]]) -> Expression:
    """Π bᵉ, collected."""
    coefficient = 1.0
    collected: dict[Expression, float] = {}
    factors = list(factors)
    if len(factors) == 2 and factors[0][0] == factors[1][0] == 1:
        # A number times a sum, without dividing the sum by its leading coefficient on the way.
        for (_, a), (_, b) in (factors, factors[::-1]):
            if a.kind == Kind.CONSTANT:
                return _sum(0.0, ((a.value, b),))
    if len(factors) == 1 and factors[0][0] == 1:
        return factors[0][1]
    stack = factors[::-1]
    work = 1
    while stack:
        exponent, base = stack.pop()
        work += 1
        if exponent == 0:
            continue
        if base.kind == Kind.CONSTANT:
            coefficient = _checked(coefficient * _power(base.value, exponent))
        elif base.kind == Kind.PRODUCT:
            # (bᵖ)ᵉ is bᵖᵉ for whole e, and where b cannot be negative; √(x²) stays what it is.
            kept = []
            for p, b in base.parts:
                if is_whole(exponent) or not is_whole(p) or _nonnegative(b):
                    stack.append((p * exponent, b))
                else:
                    kept.append((p, b))
            if len(kept) == 1 and kept[0][0] == 1:
                stack.append((exponent, kept[0][1]))
            elif kept:
                inner = base if len(kept) == len(base.parts) else make_product(kept)
                collected[inner] = collected.get(inner, 0.0) + exponent
        elif base.kind == Kind.SUM and base.value == 0 and len(base.parts) == 1:
            ((c, term),) = base.parts
            if is_whole(exponent) or c > 0:
                coefficient = _checked(coefficient * _power(c, exponent))
                stack.append((exponent, term))
            else:
                coefficient = _checked(coefficient * _power(-c, exponent))
                minus = _sum(0.0, ((-1.0, term),))
                collected[minus] = collected.get(minus, 0.0) + exponent
        elif base.kind == Kind.SUM and is_whole(exponent):
            # 2x + 2 and x + 1 are one factor up to a number.
            leading = _leading(base)
            if leading != 1:
                coefficient = _checked(coefficient * _power(leading, exponent))
                base = _sum(0.0, ((1 / leading, base),))
            collected[base] = collected.get(base, 0.0) + exponent
        else:
            collected[base] = collected.get(base, 0.0) + exponent
    parts: list[tuple[float, Expression]] = []
    again: list[tuple[float, Expression]] = []
    for base, merged in collected.items():
        nearest = round(merged)
        exponent = float(nearest) if abs(merged - nearest) < 1e-12 else _short(merged)
        if abs(exponent) > MAX_EXPONENT:
            refuse("", f"powers come to the exponent {exponent:g}, beyond {MAX_EXPONENT:g}")
        even = exponent % 2 == 0
        if exponent == 0 or (base.label == "sign" and even):
            continue  # sign² is 1 but for one point
        if base.kind == Kind.CALL and base.label == "abs" and even:
            again.append((exponent, base.parts[0][1]))
        elif base.kind == Kind.CALL and base.label == "sign" and is_whole(exponent):
            parts.append((1.0, base))
        elif is_whole(exponent) and (base.kind == Kind.PRODUCT or (base.kind == Kind.SUM and _leading(base) != 1)):
            again.append((exponent, base))  # (x²)^½ twice, or (2x + 2)^½
        else:
            parts.append((exponent, base))
    count(work + len(parts))
    if again:
        return _product([(1.0, constant(coefficient)), *parts, *again])
    if coefficient == 0:
        return ZERO
    coefficient = _short(coefficient)
    if not parts:
        return constant(coefficient)
    body = make_product(parts)
    return body if coefficient == 1 else _sum(0.0, ((coefficient, body),))


def make_product(parts: list[tuple[float, Expression]]) -> Expression:
    """The product of factors that are collected already."""
    if len(parts) == 1 and parts[0][0] == 1:
        return parts[0][1]
    parts.sort(key=lambda part: (_FACTOR_ORDER[part[1].kind], _reading_order(part[1]), part[1].digest, part[0]))
    return _node(Kind.PRODUCT, 1.0, "", tuple(parts), sum(e * b.degree for e, b in parts))


_FACTOR_ORDER = {Kind.NAME: 0, Kind.SUM: 1, Kind.PRODUCT: 2, Kind.CALL: 3, Kind.CONSTANT: 4}


def _multiplied_out(factors: Sequence[tuple[float, Expression]]) -> Expression:
    """The product of factors, sums among them with whole positive exponents multiplied out."""
    flat = _product(factors)
    scale = 1.0
    if flat.kind == Kind.SUM and flat.value == 0 and len(flat.parts) == 1:
        ((scale, flat),) = flat.parts
    if flat.kind != Kind.PRODUCT:
        return _sum(0.0, ((scale, flat),))
    sums = [(e, b) for e, b in flat.parts if b.kind == Kind.SUM and e > 0 and is_whole(e)]
    if not sums:
        return _sum(0.0, ((scale, flat),))
    result = _product([(e, b) for e, b in flat.parts if not (b.kind == Kind.SUM and e > 0 and is_whole(e))])
    for exponent, base in sums:
        for _ in range(int(exponent)):
            terms = _terms(result)
            count(len(terms) * (len(base.parts) + 1))
            result = _sum(0.0, [(a * b, _product(((1.0, s), (1.0, t)))) for a, s in terms for b, t in _terms(base)])
    return _sum(0.0, ((scale, result),))


def _terms(node: Expression) -> list[tuple[float, Expression]]:
    if node.kind != Kind.SUM:
        return [(1.0, node)]
    return [*node.parts, *([(node.value, ONE)] if node.value else [])]


# ---------------------------------------------------------------- functions


_ODD = {"sin", "tan", "sinh", "tanh", "atan", "sign", "i1_over_i0", "log_i0e_slope"}
_EVEN = {"cos", "cosh", "abs", "log_i0", "log_i0e"}


def _positive(node: Expression) -> bool:
    """Whether the node is not negative wherever it is defined, as far as is seen at once."""
    if node.kind == Kind.SUM:
        return node.value >= 0 and all(c > 0 and _positive(t) for c, t in node.parts)
    if node.kind == Kind.PRODUCT:
        return all(e % 2 == 0 or _positive(b) for e, b in node.parts)
    return _nonnegative(node) or (node.kind == Kind.CONSTANT and node.value >= 0)


def _logarithm(node: Expression) -> tuple[Expression, Expression]:
    """(a, b) with node = eᵃ·b, where all exponentials and probabilities of a product are in a."""
    if node.kind != Kind.PRODUCT and node.label not in {"exp", "inv_logit"}:
        return ZERO, node
    logarithm, rest = ZERO, []
    for e, b in node.parts if node.kind == Kind.PRODUCT else ((1.0, node),):
        if b.label == "exp":
            logarithm += e * b.parts[0][1]
        elif b.label == "inv_logit":
            logarithm -= e * apply("log1p_exp", -b.parts[0][1])
        else:
            rest.append((e, b))
    return logarithm, _product(rest)


def _log(node: Expression) -> Expression | None:
    """log of a node without the exponentials in it, so that it holds where they are no numbers; None where it has none.

    With log(1 + u) as log1p(u), which is exact where u is small.
    """
    if node.kind != Kind.SUM:
        logarithm, rest = _logarithm(node)
        return None if rest == node else logarithm if rest == ONE else logarithm + apply("log", rest)
    if node.value == 0 and len(node.parts) == 1:
        ((c, term),) = node.parts
        if term.label == "expm1":
            u = term.parts[0][1]
            return math.log(abs(c)) + (apply("log1m_exp", u) if c < 0 else u + apply("log1m_exp", -u))
        logarithm, rest = _logarithm(term)
        return None if rest == term or (rest == ONE and c < 0) else logarithm + apply("log", c * rest)
    terms = [(c, *_logarithm(t)) for c, t in node.parts]
    if node.value >= 0 and all(rest == ONE for _, _, rest in terms):
        logs = [math.log(abs(c)) + logarithm for c, logarithm, _ in terms]
        if node.value and len(logs) == 1:
            ends = math.log(node.value)
            return ends + apply("log1p_exp" if terms[0][0] > 0 else "log1m_exp", logs[0] - ends)
        if all(c > 0 for c, _, _ in terms):
            return reduce(
                partial(apply, "log_sum_exp"), [*([constant(math.log(node.value))] if node.value else []), *logs]
            )
    if node.value != 1:
        return None
    c, term = node.parts[0]
    if len(node.parts) == 1 and c > 0 and term.kind == Kind.PRODUCT:
        squares = [e % 2 == 0 and not _positive(b) for e, b in term.parts]
        if any(squares) and all(square or _positive(b) for square, (_, b) in zip(squares, term.parts, strict=True)):
            return call("log1p_square", c**0.5 * _product([(e / 2, b) for e, b in term.parts]))
    return call("log1p", _sum(0.0, node.parts))


def call(function: str, *arguments: Expression) -> Expression:
    """A call of ``function``, without simplification."""
    return _node(Kind.CALL, 0.0, function, tuple((1.0, argument) for argument in arguments), 0.0)


def _apply_to_two(function: str, a: Expression, b: Expression) -> Expression:
    """A function of two expressions."""
    if function == "zero_times" and Kind.CONSTANT in {a.kind, b.kind}:
        return a * b
    if function == "if_nonnegative" and _positive(a):
        return b
    if function == "log_sum_exp" and a == b:
        return a + math.log(2)
    if function == "log_sum_exp" and a.is_zero:
        return apply("log1p_exp", b)
    return call(function, a, b)


def apply(function: str, *arguments: Expression) -> Expression:
    """``function`` of an expression, or of two."""
    count(1 + len(arguments))
    if function == "sqrt":
        return arguments[0] ** 0.5
    values = [argument.constant for argument in arguments]
    if all(value is not None for value in values):
        with np.errstate(all="ignore"):
            value = float((FUNCTIONS.get(function) or OF_TWO[function]).evaluate(*map(np.asarray, values)))
        if not math.isfinite(value):
            shown = ", ".join(f"{given:g}" for given in values)
            refuse(f"{function}({shown})", "the value is not a real number within bounds")
        return constant(value)
    if len(arguments) == 2:
        return _apply_to_two(function, *arguments)
    (argument,) = arguments
    if function in {"log", "log1p"}:
        inner = argument if function == "log" else 1 + argument
        return _log(inner) or call("log", inner)
    if function == "log1p_square":
        return apply("log1p", argument**2)
    if function in _ODD | _EVEN and argument.kind == Kind.SUM and argument.parts[0][0] < 0:
        inner = apply(function, -argument)
        return inner if function in _EVEN else -inner
    if function in {"abs", "sign"} and argument.kind == Kind.SUM and argument.value == 0 and len(argument.parts) == 1:
        ((scale, term),) = argument.parts
        inner = apply(function, term)
        return scale * inner if function == "abs" else inner
    if function == "abs" and _nonnegative(argument):
        return argument
    return call(function, argument)


DERIVATIVES: dict[str, Callable[[Expression], Expression]] = {
    "exp": lambda u: apply("exp", u),
    "expm1": lambda u: apply("exp", u),
    "log": lambda u: 1 / u,
    "log1p": lambda u: 1 / (1 + u),
    "log1p_square": lambda u: 2 / (u + 1 / u),
    "log1m_exp": lambda u: -1 / apply("expm1", -u),
    "sqrt": lambda u: 0.5 * u**-0.5,
    "sin": lambda u: apply("cos", u),
    "cos": lambda u: -apply("sin", u),
    "tan": lambda u: 1 + apply("tan", u) ** 2,
    "sinh": lambda u: apply("cosh", u),
    "cosh": lambda u: apply("sinh", u),
    "tanh": lambda u: 4 * apply("inv_logit", 2 * u) * apply("inv_logit", -2 * u),
    "atan": lambda u: 1 / (1 + u**2),
    "abs": lambda u: apply("sign", u),
    "sign": lambda u: ZERO,
    "log1p_exp": lambda u: apply("inv_logit", u),
    "inv_logit": lambda u: apply("inv_logit", u) * apply("inv_logit", -u),
    "lgamma": lambda u: apply("digamma", u),
    "digamma": lambda u: apply("trigamma", u),
    "trigamma": lambda u: refuse(f"trigamma({u})", "its derivative is not known here"),
    "lgamma_half_step": lambda u: apply("lgamma_half_step_slope", u),
    "lgamma_half_step_slope": lambda u: apply("trigamma", u + 0.5) - apply("trigamma", u) + 0.5 / u**2,
    "log_i0": lambda u: apply("i1_over_i0", u),
    "log_i0e": lambda u: apply("log_i0e_slope", u),
    "log_i0e_slope": lambda u: 1 - apply("i1_over_i0", u) / u - apply("i1_over_i0", u) ** 2,
    "log_ndtr": lambda u: apply("log_ndtr_slope", u),
    "log_ndtr_slope": lambda u: -apply("log_ndtr_slope", u) * (u + apply("log_ndtr_slope", u)),
    # From I₁′ = I₀ − I₁/u.
    "i1_over_i0": lambda u: 1 - apply("i1_over_i0", u) / u - apply("i1_over_i0", u) ** 2,
}
"""f′(u) of each function, as an expression of u; those of abs and sign leave out the one point where there is none."""


def _slope_of_two(node: Expression, derivative: Mapping[Expression, Expression]) -> Expression:
    """The derivative of a function of two, given those of its arguments."""
    (_, a), (_, b) = node.parts
    if node.label == "if_nonnegative":
        return derivative[b]
    if node.label == "zero_times":
        return apply("zero_times", derivative[a], b) + apply("zero_times", a, derivative[b])
    if node.label == "log_gamma_density":
        return (b - apply("digamma", a)) * derivative[a] + (a - 1 - apply("exp", b)) * derivative[b]
    # An impossible component contributes nothing to the slope, whatever its own slope is.
    share, other = apply("inv_logit", a - b), apply("inv_logit", b - a)
    return apply("zero_times", share, derivative[a]) + apply("zero_times", other, derivative[b])


def _differentiate(node: Expression, by: str, derivative: Mapping[Expression, Expression]) -> Expression:
    """The derivative of a node, given those of its parts."""
    if node.kind == Kind.NAME:
        return ONE if node.label == by else ZERO
    if node.kind == Kind.SUM:
        return _sum(0.0, [(c, derivative[t]) for c, t in node.parts])
    if node.kind == Kind.CALL and len(node.parts) == 2:
        return _slope_of_two(node, derivative)
    if node.kind == Kind.CALL:
        ((_, u),) = node.parts
        return ZERO if derivative[u].is_zero else DERIVATIVES[node.label](u) * derivative[u]
    terms = []
    for i, (e, b) in enumerate(node.parts):
        if not derivative[b].is_zero:
            others = [*node.parts[:i], (e - 1, b), *node.parts[i + 1 :]]
            terms.append((e, _product([*others, (1.0, derivative[b])])))
    return _sum(0.0, terms)
