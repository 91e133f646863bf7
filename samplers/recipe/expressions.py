"""Expressions that a person types: data, never code.

A text is read by the grammar below, in one pass without recursion, into an immutable :class:`Expression`::

    sum     = product { ("+" | "−") product }
    product = signed { ("*" | "/") signed }
    signed  = ("+" | "−") signed | power
    power   = atom [ "^" signed ]                       (the exponent must come out as a number)
    atom    = number | name | "pi" | function "(" sum ")" | "(" sum ")"

Nothing that is typed is executed, looked up as an attribute, or handed to another parser. The length, the depth of
nesting, exponents and numbers are bounded, and so is the work that derivatives make: every node that is built is
counted (:func:`work_limit`), so that no text holds the server.

Expressions are kept in a normal form: a sum is a constant and terms with coefficients, a product is factors with
constant exponents. Equal terms are collected where they are made, so that x − x is exactly 0, and a number times
a sum is a sum. Two expressions are equal when their normal forms are. The form is that of real analysis where both
sides are defined: x/x is 1, and (√x)² is x. Coefficients that cancel to 14 digits count as cancelled, and a
number within its last digit of a shorter one is that.
"""

import math
import re
import struct
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from functools import cached_property, partial
from hashlib import blake2b
from operator import add, mul, neg, sub, truediv
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samplers.parameters import SpecError

Array = NDArray[np.float64]

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

_CANCELLED = 1e-14


class Kind(IntEnum):
    """What a node is."""

    CONSTANT = 0
    NAME = 1
    SUM = 2
    PRODUCT = 3
    CALL = 4


# ---------------------------------------------------------------- the bound on work


class _Meter:
    """What is left of the work that an operation may make."""

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


def _count(work: int) -> None:
    meter = _METER.get()
    if meter is not None:
        meter.left -= work
        if meter.left < 0:
            _refuse("", "it grows too large when it is worked out; a simpler one is needed")


def _refuse(value: str, why: str) -> NoReturn:
    raise SpecError("expression", value, why)


# ---------------------------------------------------------------- nodes

Parts = tuple[tuple[float, "Expression"], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Expression:
    """A real function of named variables, in normal form. Made by :func:`parse` and by operators, never directly.

    ============ ========================== ==========================================
    kind         value, label               parts
    ============ ========================== ==========================================
    CONSTANT     value                      none
    NAME         label: the name            none
    SUM          value + Σ c·t              (c, t), t neither a constant nor a sum
    PRODUCT      Π bᵉ                       (e, b), b neither a constant nor a product
    CALL         label: the function        (1, argument)
    ============ ========================== ==========================================
    """

    kind: Kind
    value: float
    label: str
    parts: Parts
    digest: bytes
    """Of the whole normal form: two expressions with one digest are equal."""
    degree: float
    """As a polynomial; it orders the terms of a sum."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

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

    @property
    def constant(self) -> float | None:
        """The number that this expression is, or None."""
        return self.value if self.kind == Kind.CONSTANT else None

    @property
    def is_zero(self) -> bool:
        """Whether this is the number 0."""
        return self.kind == Kind.CONSTANT and self.value == 0

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that it depends on."""
        return frozenset(node.label for node in _postorder([self]) if node.kind == Kind.NAME)

    @property
    def size(self) -> int:
        """Its different nodes, and the terms, factors and arguments in them."""
        return sum(1 + len(node.parts) for node in _postorder([self]))

    def diff(self, name: str) -> "Expression":
        """The partial derivative by ``name``. Subtrees are shared, with this one and in each other."""
        with work_limit():
            derivative: dict[Expression, Expression] = {}
            for node in _postorder([self]):
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
            for node in _postorder([self]):
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
                    new[node] = apply(node.label, parts[0][1])
            return new[self]

    def evaluate(self, **values: ArrayLike) -> Array:
        """Its values, broadcast to the common shape of all that is given.

        What has no value is inf or nan, as in NumPy, without a warning.
        """
        return evaluate([self], **values)[0]

    def __str__(self) -> str:
        """A text that :func:`parse` reads back as an equal expression, unless it is too long and holds a "…"."""
        return _written([self], _PLAIN)[0]

    def tex(self, symbols: Mapping[str, str] | None = None) -> str:
        r"""LaTeX. ``symbols`` gives a name's symbol where it is not the usual one (theta1 is \theta_1)."""
        return _written([self], _Tex(symbols or {}))[0]


def _postorder(roots: Iterable[Expression]) -> list[Expression]:
    """All different nodes, each after its parts."""
    done: dict[Expression, None] = {}
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, ready = stack.pop()
        if ready:
            done[node] = None
        elif node not in done:
            stack.append((node, True))
            stack.extend((part, False) for _, part in reversed(node.parts) if part not in done)
    return list(done)


def _node(kind: Kind, value: float, label: str, parts: Parts, degree: float) -> Expression:
    digest = blake2b(struct.pack("<bd", kind, value), digest_size=16)
    digest.update(label.encode())
    for number, part in parts:
        digest.update(struct.pack("<d", number) + part.digest)
    return Expression(kind, value, label, parts, digest.digest(), degree)


def _reading_order(node: Expression) -> tuple[int, str]:
    """θ before r before ξ, as everywhere on the page; functions by their names."""
    if node.kind == Kind.PRODUCT:
        node = node.parts[0][1]
    letters = node.label.rstrip("0123456789")
    return _ORDER.get(letters, len(_ORDER)), node.label


_ORDER = {"theta": 0, "r": 1, "xi": 2}


def _checked(value: float) -> float:
    if not abs(value) <= MAX_NUMBER:
        _refuse("", f"a number comes out that is not finite or beyond {MAX_NUMBER:g}")
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
    _count(work)
    parts = [(_short(_checked(c)), t) for t, (c, size) in collected.items() if abs(c) > _CANCELLED * size]
    total = 0.0 if abs(total) <= _CANCELLED * magnitude else _short(_checked(total))
    if not parts:
        return constant(total)
    if total == 0 and len(parts) == 1 and parts[0][0] == 1:
        return parts[0][1]
    parts.sort(key=lambda part: (-part[1].degree, part[1].kind, _reading_order(part[1]), part[1].digest))
    return _node(Kind.SUM, total, "", tuple(parts), max(0.0, *(t.degree for _, t in parts)))


def _whole(exponent: float) -> bool:
    return exponent == math.floor(exponent)


def _power(base: float, exponent: float) -> float:
    try:
        value = base**exponent
    except (ZeroDivisionError, OverflowError):
        value = math.nan
    if isinstance(value, complex) or not math.isfinite(value):
        why = "a number is divided by zero" if base == 0 else "the value is not a real number within bounds"
        _refuse(f"({base:g})^({exponent:g})", why)
    return _checked(value)


def _leading(node: Expression) -> float:
    """The number by which a sum is divided where it is a factor."""
    leading = node.parts[0][0]
    # Divided by so small a number the others would leave the bounds.
    return 1.0 if max(abs(c) for c, _ in node.parts) > MAX_RATIO * abs(leading) else leading


def _nonnegative(node: Expression) -> bool:
    """Whether the node is certainly not negative wherever it is defined."""
    return node.kind == Kind.CALL and node.label in {"abs", "exp", "cosh"}


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
                if _whole(exponent) or not _whole(p) or _nonnegative(b):
                    stack.append((p * exponent, b))
                else:
                    kept.append((p, b))
            if len(kept) == 1 and kept[0][0] == 1:
                stack.append((exponent, kept[0][1]))
            elif kept:
                inner = base if len(kept) == len(base.parts) else _make_product(kept)
                collected[inner] = collected.get(inner, 0.0) + exponent
        elif base.kind == Kind.SUM and base.value == 0 and len(base.parts) == 1:
            ((c, term),) = base.parts
            if _whole(exponent) or c > 0:
                coefficient = _checked(coefficient * _power(c, exponent))
                stack.append((exponent, term))
            else:
                coefficient = _checked(coefficient * _power(-c, exponent))
                minus = _sum(0.0, ((-1.0, term),))
                collected[minus] = collected.get(minus, 0.0) + exponent
        elif base.kind == Kind.SUM and _whole(exponent):
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
            _refuse("", f"powers come to the exponent {exponent:g}, beyond {MAX_EXPONENT:g}")
        even = exponent % 2 == 0
        if exponent == 0 or (base.label == "sign" and even):
            continue  # sign² is 1 but for one point
        if base.kind == Kind.CALL and base.label == "abs" and even:
            again.append((exponent, base.parts[0][1]))
        elif base.kind == Kind.CALL and base.label == "sign" and _whole(exponent):
            parts.append((1.0, base))
        elif _whole(exponent) and (base.kind == Kind.PRODUCT or (base.kind == Kind.SUM and _leading(base) != 1)):
            again.append((exponent, base))  # (x²)^½ twice, or (2x + 2)^½
        else:
            parts.append((exponent, base))
    _count(work + len(parts))
    if again:
        return _product([(1.0, constant(coefficient)), *parts, *again])
    if coefficient == 0:
        return ZERO
    coefficient = _short(coefficient)
    if not parts:
        return constant(coefficient)
    body = _make_product(parts)
    return body if coefficient == 1 else _sum(0.0, ((coefficient, body),))


def _make_product(parts: list[tuple[float, Expression]]) -> Expression:
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
    sums = [(e, b) for e, b in flat.parts if b.kind == Kind.SUM and e > 0 and _whole(e)]
    if not sums:
        return _sum(0.0, ((scale, flat),))
    result = _product([(e, b) for e, b in flat.parts if not (b.kind == Kind.SUM and e > 0 and _whole(e))])
    for exponent, base in sums:
        for _ in range(int(exponent)):
            terms = _terms(result)
            _count(len(terms) * (len(base.parts) + 1))
            result = _sum(0.0, [(a * b, _product(((1.0, s), (1.0, t)))) for a, s in terms for b, t in _terms(base)])
    return _sum(0.0, ((scale, result),))


def _terms(node: Expression) -> list[tuple[float, Expression]]:
    if node.kind != Kind.SUM:
        return [(1.0, node)]
    return [*node.parts, *([(node.value, ONE)] if node.value else [])]


# ---------------------------------------------------------------- functions


@dataclass(frozen=True)
class Function:
    """A function of one variable that may be typed."""

    evaluate: Callable[[Array], Array]
    derivative: Callable[[Expression], Expression]
    """f′(u), as an expression of u."""
    tex: str


FUNCTIONS: dict[str, Function] = {
    "exp": Function(np.exp, lambda u: apply("exp", u), r"\exp"),
    "log": Function(np.log, lambda u: 1 / u, r"\log"),
    "sqrt": Function(np.sqrt, lambda u: 0.5 * u**-0.5, r"\sqrt"),
    "sin": Function(np.sin, lambda u: apply("cos", u), r"\sin"),
    "cos": Function(np.cos, lambda u: -apply("sin", u), r"\cos"),
    "tan": Function(np.tan, lambda u: 1 + apply("tan", u) ** 2, r"\tan"),
    "sinh": Function(np.sinh, lambda u: apply("cosh", u), r"\sinh"),
    "cosh": Function(np.cosh, lambda u: apply("sinh", u), r"\cosh"),
    "tanh": Function(np.tanh, lambda u: 1 - apply("tanh", u) ** 2, r"\tanh"),
    "atan": Function(np.arctan, lambda u: 1 / (1 + u**2), r"\arctan"),
    "abs": Function(np.abs, lambda u: apply("sign", u), ""),
    "sign": Function(np.sign, lambda u: ZERO, r"\operatorname{sign}"),
}
"""What may be typed, with derivatives; those of abs and sign leave out the one point where there is none."""

_ODD = {"sin", "tan", "sinh", "tanh", "atan", "sign"}
_EVEN = {"cos", "cosh", "abs"}


def apply(function: str, argument: Expression) -> Expression:
    """``function`` of an expression."""
    _count(2)
    if function == "sqrt":
        return argument**0.5
    if argument.kind == Kind.CONSTANT:
        with np.errstate(all="ignore"):
            value = float(FUNCTIONS[function].evaluate(np.asarray(argument.value)))
        if not math.isfinite(value):
            _refuse(f"{function}({argument.value:g})", "the value is not a real number within bounds")
        return constant(value)
    if function in _ODD | _EVEN and argument.kind == Kind.SUM and argument.parts[0][0] < 0:
        inner = apply(function, -argument)
        return inner if function in _EVEN else -inner
    if function in {"abs", "sign"} and argument.kind == Kind.SUM and argument.value == 0 and len(argument.parts) == 1:
        ((scale, term),) = argument.parts
        inner = apply(function, term)
        return scale * inner if function == "abs" else inner
    if function == "abs" and _nonnegative(argument):
        return argument
    return _node(Kind.CALL, 0.0, function, ((1.0, argument),), 0.0)


def _differentiate(node: Expression, by: str, derivative: Mapping[Expression, Expression]) -> Expression:
    """The derivative of a node, given those of its parts."""
    if node.kind == Kind.NAME:
        return ONE if node.label == by else ZERO
    if node.kind == Kind.SUM:
        return _sum(0.0, [(c, derivative[t]) for c, t in node.parts])
    if node.kind == Kind.CALL:
        ((_, u),) = node.parts
        return ZERO if derivative[u].is_zero else FUNCTIONS[node.label].derivative(u) * derivative[u]
    terms = []
    for i, (e, b) in enumerate(node.parts):
        if not derivative[b].is_zero:
            others = [*node.parts[:i], (e - 1, b), *node.parts[i + 1 :]]
            terms.append((e, _product([*others, (1.0, derivative[b])])))
    return _sum(0.0, terms)


# ---------------------------------------------------------------- values


def _roots(exponent: float) -> tuple[int, float]:
    """A positive exponent as (square roots to take, exponent that is left): roots are faster than powers."""
    if _whole(4 * exponent) and not _whole(exponent) and exponent < 5:
        return (1, 2 * exponent) if _whole(2 * exponent) else (2, 4 * exponent)
    return 0, exponent


def _raised(base: Array, exponent: float) -> Array:
    if exponent < 0:
        return np.asarray(1 / _raised(base, -exponent))
    roots, left = _roots(exponent)
    for _ in range(roots):
        base = np.sqrt(base)
    return np.asarray(base if left == 1 else base * base if left == 2 else np.power(base, left))


def evaluate(expressions: Sequence[Expression], **values: ArrayLike) -> list[Array]:
    """The values of several expressions; what they share is computed once."""
    given = {label: np.asarray(value, dtype=np.float64) for label, value in values.items()}
    shape = np.broadcast_shapes(*(value.shape for value in given.values()))
    nodes = _postorder(expressions)
    for node in nodes:
        if node.kind == Kind.NAME and node.label not in given:
            raise KeyError(f"no value is given for {node.label}")
    block = max(1, _BLOCK // max(1, len(nodes)))
    size = math.prod(shape)
    with np.errstate(all="ignore"):
        if size <= block:
            return [np.array(np.broadcast_to(value, shape)) for value in _values(expressions, nodes, given)]
        # In blocks, so that a large expression on a fine grid does not hold an array for each of its nodes.
        flat = {label: np.broadcast_to(value, shape).ravel() for label, value in given.items()}
        out = [np.empty(size) for _ in expressions]
        for begin in range(0, size, block):
            piece = slice(begin, begin + block)
            part = {label: value[piece] for label, value in flat.items()}
            for whole, value in zip(out, _values(expressions, nodes, part), strict=True):
                whole[piece] = value
        return [whole.reshape(shape) for whole in out]


_BLOCK = 2_000_000
"""Numbers that are held at once while expressions are evaluated, 16 MB."""


def _values(expressions: Sequence[Expression], nodes: Sequence[Expression], given: Mapping[str, Array]) -> list[Array]:
    computed: dict[Expression, Array] = {}
    for node in nodes:
        if node.kind == Kind.CONSTANT:
            value = np.asarray(node.value)
        elif node.kind == Kind.NAME:
            value = given[node.label]
        elif node.kind == Kind.SUM:
            value = np.asarray(node.value)
            for c, t in node.parts:
                value = value + c * computed[t]
        elif node.kind == Kind.PRODUCT:
            value = np.asarray(1.0)
            for e, b in node.parts:
                value = value * _raised(computed[b], e)
        else:
            value = np.asarray(FUNCTIONS[node.label].evaluate(computed[node.parts[0][1]]))
        computed[node] = value
    return [computed[expression] for expression in expressions]


# ---------------------------------------------------------------- the program of the stack machine


class Op(IntEnum):
    """An instruction of the stack machine: what it does with the top of the stack and with its argument."""

    CONST = 0
    """Push the argument."""
    NAME = 1
    """Push the variable with this number."""
    STORE = 2
    """Keep the top in this slot, and leave it on the stack."""
    LOAD = 3
    """Push what this slot keeps."""
    OUT = 4
    """Pop the top: it is the output with this number."""
    ADD = 5
    """Pop b, pop a, push a + b; so too the next three."""
    SUB = 6
    MUL = 7
    DIV = 8
    ADDC = 9
    """Add the argument to the top."""
    MULC = 10
    """Multiply the top by the argument."""
    NEG = 11
    SQUARE = 12
    POW_INT = 13
    """Raise the top to the argument, a whole number of at least 3."""
    POW = 14
    """Raise the top to the argument, a positive number."""
    SQRT = 15
    EXP = 16
    LOG = 17
    SIN = 18
    COS = 19
    TAN = 20
    SINH = 21
    COSH = 22
    TANH = 23
    ATAN = 24
    ABS = 25
    SIGN = 26
    ADDM = 27
    """Pop b, pop a, push a + argument·b."""


_PUSHES = {Op.CONST, Op.NAME, Op.LOAD}
_POPS = {Op.OUT, Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.ADDM}


@dataclass(frozen=True, eq=False)
class Program:
    """Expressions as instructions of a stack machine."""

    code: Array
    """Rows (op, argument), (instructions, 2)."""
    depth: int
    """The highest that the stack gets."""
    slots: int
    """Values kept for use in several places."""
    outputs: int


def postfix(expressions: Sequence[Expression], names: Sequence[str]) -> Program:
    """The program that computes all expressions; ``names`` gives the order of the variables.

    What occurs several times, in one expression or in several, is computed once and kept in a slot. Raises
    :class:`SpecError` for a program of more than MAX_INSTRUCTIONS.
    """
    with work_limit():
        needed: dict[Expression, list[Expression]] = {}
        stack = list(expressions)
        uses: dict[Expression, int] = {}
        for root in expressions:
            uses[root] = uses.get(root, 0) + 1
        while stack:
            node = stack.pop()
            if node not in needed:
                needed[node] = [part for part in _steps(node) if isinstance(part, Expression)]
                _count(2 * len(needed[node]))
                for part in needed[node]:
                    uses[part] = uses.get(part, 0) + 1
                stack.extend(needed[node])
    index = {label: i for i, label in enumerate(names)}
    slot: dict[Expression, int] = {}
    rows: list[tuple[float, float]] = []
    todo: list[Expression | tuple[Op, float]] = []
    for k in reversed(range(len(expressions))):
        todo += [(Op.OUT, float(k)), expressions[k]]
    height = depth = 0
    while todo:
        step = todo.pop()
        if isinstance(step, Expression):
            if step in slot:
                todo.append((Op.LOAD, float(slot[step])))
                continue
            if uses[step] > 1 and step.kind not in {Kind.CONSTANT, Kind.NAME}:
                slot[step] = len(slot)
                todo.append((Op.STORE, float(slot[step])))
            if step.kind == Kind.NAME:
                todo.append((Op.NAME, float(index[step.label])))
            else:
                todo.extend(reversed(_steps(step)))
            continue
        rows.append((float(step[0]), step[1]))
        if len(rows) > MAX_INSTRUCTIONS:
            _refuse("", "it grows too large when it is worked out; a simpler one is needed")
        height += 1 if step[0] in _PUSHES else -1 if step[0] in _POPS else 0
        depth = max(depth, height)
    return Program(np.array(rows).reshape(-1, 2), depth, len(slot), len(expressions))


def _steps(node: Expression) -> list[Expression | tuple[Op, float]]:
    """How a node comes out of its parts: each part is a push of its value."""
    if node.kind == Kind.CONSTANT:
        return [(Op.CONST, node.value)]
    if node.kind == Kind.NAME:
        return []
    if node.kind == Kind.CALL:
        return [node.parts[0][1], (Op[node.label.upper()], 0.0)]
    steps: list[Expression | tuple[Op, float]] = []
    if node.kind == Kind.SUM:
        # To begin with a positive term saves a change of sign.
        for i, (c, t) in enumerate(sorted(node.parts, key=lambda part: part[0] < 0)):
            steps.append(t)
            if i > 0:
                steps.append((Op.ADD, 0.0) if c == 1 else (Op.SUB, 0.0) if c == -1 else (Op.ADDM, c))
            elif c == -1:
                steps.append((Op.NEG, 0.0))
            elif c != 1:
                steps.append((Op.MULC, c))
        return [*steps, (Op.ADDC, node.value)] if node.value else steps
    if len(node.parts) == 1 and node.parts[0][0] > 0:
        ((exponent, base),) = node.parts
        roots, left = _roots(exponent)
        steps = [base, *[(Op.SQRT, 0.0)] * roots]
        if left == 2:
            steps.append((Op.SQUARE, 0.0))
        elif left != 1:
            steps.append((Op.POW_INT if _whole(left) else Op.POW, left))
        return steps
    for e, b in node.parts:
        if e > 0:
            first = not steps
            steps.append(_make_product([(e, b)]))
            if not first:
                steps.append((Op.MUL, 0.0))
    if not steps:
        steps.append((Op.CONST, 1.0))
    for e, b in node.parts:
        if e < 0:
            steps += [_make_product([(-e, b)]), (Op.DIV, 0.0)]
    return steps


# ---------------------------------------------------------------- writing

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

    def call(self, function: str, argument: Written) -> Written:
        return f"{function}({argument[0]})", _ATOM

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

    def call(self, function: str, argument: Written) -> Written:
        if function == "abs":
            return rf"\left|{argument[0]}\right|", _ATOM
        if function == "exp":
            return f"e^{{{argument[0]}}}", _PRODUCT
        return rf"{FUNCTIONS[function].tex}\left({argument[0]}\right)", _PRODUCT

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
        return base[0] if base[1] >= _PRODUCT else rf"\left({base[0]}\right)"

    def scaled(self, coefficient: float, term: Written) -> str:
        text = term[0] if term[1] > _SUM else rf"\left({term[0]}\right)"
        if abs(coefficient) == 1:
            return text if coefficient > 0 else f"-{text}"
        return rf"{self.number(coefficient)[0]} \, {text}"


_PLAIN = _Plain()


def _written(roots: Sequence[Expression], style: _Plain) -> list[str]:
    written: dict[Expression, Written] = {}
    for node in _postorder(roots):
        if node.kind == Kind.CONSTANT:
            text = style.number(node.value)
        elif node.kind == Kind.NAME:
            text = style.name(node.label)
        elif node.kind == Kind.CALL:
            text = style.call(node.label, written[node.parts[0][1]])
        elif node.kind == Kind.PRODUCT:
            text = style.product([(e, written[b]) for e, b in node.parts])
        else:
            terms = [style.scaled(c, written[t]) for c, t in node.parts]
            if node.value:
                terms.append(style.number(node.value)[0])
            text = style.added(terms), _SUM if len(terms) > 1 else _SIGNED if node.parts[0][0] < 0 else _PRODUCT
        # What is shared in the tree is written out each time, which may double at every level.
        written[node] = text if len(text[0]) <= MAX_TEXT else (style.etc, _ATOM)
    return [written[root][0] for root in roots]


# ---------------------------------------------------------------- reading

_SYNONYMS = {"θ": "theta", "ξ": "xi", "₁": "1", "₂": "2"}
_SIGNS = {"−": "-", "·": "*", "×": "*", "**": "^"}
_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-zθξ_][A-Za-z0-9_₁₂]*)"
    r"|(?P<sign>\*\*|[-+*/^()−·×])"
)
_BLANK = " \t\n\r"
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "sign": 3, "^": 4}


@dataclass(frozen=True)
class _Pending:
    """An operator or an opening bracket that waits for what comes after it."""

    what: str
    position: int
    function: str = ""


class _Reader:
    """Reads one text with a stack of values and a stack of what is pending."""

    def __init__(self, text: str, names: frozenset[str], field: str):
        self.text, self.names, self.field = text, names, field
        self.values: list[Expression] = []
        self.pending: list[_Pending] = []

    def refuse(self, position: int, why: str) -> NoReturn:
        raise SpecError(self.field, self.text[:80], f"at character {position + 1}: {why}")

    def tokens(self) -> Iterator[tuple[str, str, int]]:
        position = 0
        while position < len(self.text):
            if self.text[position] in _BLANK:
                position += 1
                continue
            match = _TOKEN.match(self.text, position)
            if match is None:
                self.refuse(position, self.stranger(self.text[position]))
            end = match.end()
            if (
                end < len(self.text)
                and not self.text[end].isascii()
                and match.lastgroup == "name"
                and self.text[end].isalnum()
            ):
                self.refuse(end, self.stranger(self.text[end]))  # a look-alike inside a word
            yield str(match.lastgroup), match.group(), position
            position = end

    @staticmethod
    def stranger(character: str) -> str:
        if character == ",":
            return "a comma has no meaning here; decimals take a point, as in 0.5"
        if character.isascii() and character.isprintable():
            return f"“{character}” has no meaning here; expected a number, a name, + - * / ^ or a bracket"
        called = unicodedata.name(character, f"the character U+{ord(character):04X}")
        return f"{called} is not accepted; expected plain letters, digits and + - * / ^ ( )"

    def read(self) -> Expression:
        wants_value = True
        opening: tuple[str, int] | None = None
        for kind, raw, position in self.tokens():
            if opening and raw != "(":
                self.refuse(position, f"expected an opening bracket after the function {opening[0]}")
            if len(self.pending) > MAX_DEPTH:
                self.refuse(position, f"brackets, signs and powers are nested more than {MAX_DEPTH} deep")
            word = _SIGNS.get(raw, raw)
            if not wants_value and (kind != "sign" or word == "("):
                self.refuse(position, "expected an operator + - * / ^, a closing bracket or the end")
            if kind == "number":
                self.values.append(constant(self.number(raw, position)))
                wants_value = False
            elif kind == "name":
                label = "".join(_SYNONYMS.get(character, character) for character in raw)
                if label in FUNCTIONS and label not in self.names:
                    opening = (label, position)
                else:
                    self.values.append(self.named(label, raw, position))
                    wants_value = False
            elif word == "(":
                self.pending.append(_Pending("(", position, opening[0] if opening else ""))
                opening = None
            elif word == ")":
                if wants_value:
                    self.refuse(position, "expected a number, a name or an opening bracket before this bracket")
                self.close(position)
            elif wants_value:
                if word not in "+-":
                    self.refuse(position, f"expected a number, a name or an opening bracket before “{raw}”")
                self.pending.append(_Pending("sign", position, word))
            else:
                # ^ binds to the right: a^b^c is a^(b^c).
                while self.pending and self.binds(self.pending[-1].what, word):
                    self.work_out(self.pending.pop())
                self.pending.append(_Pending(word, position))
                wants_value = True
        end = len(self.text)
        if opening:
            self.refuse(end, f"expected an opening bracket after the function {opening[0]}")
        if wants_value:
            what = "nothing is typed; " if not self.text.strip() else "the text ends too early; "
            self.refuse(end, what + "expected a number, a name or an opening bracket")
        while self.pending:
            top = self.pending.pop()
            if top.what == "(":
                self.refuse(top.position, "this bracket is never closed; expected a closing bracket")
            self.work_out(top)
        return self.values[0]

    @staticmethod
    def binds(before: str, word: str) -> bool:
        if before == "(":
            return False
        return _PRECEDENCE[before] > _PRECEDENCE[word] or (before != "^" and _PRECEDENCE[before] == _PRECEDENCE[word])

    def number(self, raw: str, position: int) -> float:
        value = float(raw)
        if not value <= MAX_NUMBER:
            self.refuse(position, f"the number is too large; allowed are numbers up to {MAX_NUMBER:g}")
        return value

    def named(self, label: str, raw: str, position: int) -> Expression:
        if label == "pi" and label not in self.names:
            return constant(math.pi)
        if label not in self.names:
            known = ", ".join(sorted(self.names)) or "none"
            self.refuse(
                position,
                f"there is no name “{raw[:20]}” here; the names are {known}, the number pi, "
                f"and the functions {', '.join(FUNCTIONS)}",
            )
        return name(label)

    def close(self, position: int) -> None:
        while self.pending:
            top = self.pending.pop()
            if top.what == "(":
                if top.function:
                    self.guarded(top.position, partial(apply, top.function, self.values.pop()))
                return
            self.work_out(top)
        self.refuse(position, "this bracket closes nothing; expected an operator or the end")

    def work_out(self, operator: _Pending) -> None:
        if operator.what == "sign":
            if operator.function == "-":
                self.guarded(operator.position, partial(neg, self.values.pop()))
            return
        right, left = self.values.pop(), self.values.pop()
        if operator.what == "^":
            exponent = right.constant
            if exponent is None:
                self.refuse(operator.position + 1, "the exponent must be a number; for a power of e use exp(…)")
            if abs(exponent) > MAX_EXPONENT:
                self.refuse(operator.position + 1, f"the exponent must be from -{MAX_EXPONENT:g} to {MAX_EXPONENT:g}")
            self.guarded(operator.position, partial(Expression.__pow__, left, exponent))
        else:
            self.guarded(operator.position, partial(_OPERATORS[operator.what], left, right))

    def guarded(self, position: int, operation: Callable[[], Expression]) -> None:
        """Give an error in working out numbers its place in the text."""
        try:
            self.values.append(operation())
        except SpecError as error:
            self.refuse(position, f"in {error.value} {error.allowed}" if error.value else error.allowed)


_OPERATORS: dict[str, Callable[[Expression, Expression], Expression]] = {"+": add, "-": sub, "*": mul, "/": truediv}


def parse(text: Any, names: Iterable[str], field: str) -> Expression:
    """The expression that a person typed, a function of ``names``.

    Raises :class:`SpecError` for ``field`` with the character (counted from 1) at which the text went wrong and what
    was expected there.
    """
    if not isinstance(text, str):
        raise SpecError(field, type(text).__name__, "expected a text with a formula")
    if len(text) > MAX_LENGTH:
        raise SpecError(
            field, text[:80], f"at character {MAX_LENGTH + 1}: a formula has at most {MAX_LENGTH} characters"
        )
    with work_limit():
        return _Reader(text, frozenset(names), field).read()
