"""The values of expressions on arrays."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from sgmcmc_lab.samplers.expressions.functions import FUNCTIONS, OF_TWO, Array
from sgmcmc_lab.samplers.expressions.nodes import Kind, Node


def is_whole(exponent: float) -> bool:
    """Whether an exponent is a whole number."""
    return exponent == math.floor(exponent)


def as_roots(exponent: float) -> tuple[int, float]:
    """A positive exponent as (square roots to take, exponent that is left): roots are faster than powers."""
    if is_whole(4 * exponent) and not is_whole(exponent) and exponent < 5:
        return (1, 2 * exponent) if is_whole(2 * exponent) else (2, 4 * exponent)
    return 0, exponent


def as_quotients(exponent: float) -> tuple[int, float]:
    """A positive exponent of a denominator as (times to divide by it, exponent of what is divided by).

    To divide by s twice gives a number where s² is too large or too small for one.
    """
    return (int(exponent), 1.0) if exponent in (2, 3) else (1, exponent)


def common_power(parts: Sequence[tuple[float, Node]]) -> int:
    """The largest whole number of which all exponents of a quotient are multiples; 1 where there is none."""
    exponents = [e for e, _ in parts]
    if min(exponents) > 0 or max(exponents) < 0 or not all(map(is_whole, exponents)):
        return 1
    return math.gcd(*map(int, exponents))


def _raised(base: Array, exponent: float) -> Array:
    roots, left = as_roots(exponent)
    for _ in range(roots):
        base = np.sqrt(base)
    return np.asarray(base if left == 1 else base * base if left == 2 else np.power(base, left))


def evaluate(expressions: Sequence[Node], **values: ArrayLike) -> list[Array]:
    """The values of several expressions; what they share is computed once."""
    given = {label: np.asarray(value, dtype=np.float64) for label, value in values.items()}
    shape = np.broadcast_shapes(*(value.shape for value in given.values()))
    nodes = Node.postorder(expressions)
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


def _values(expressions: Sequence[Node], nodes: Sequence[Node], given: Mapping[str, Array]) -> list[Array]:
    computed: dict[Node, Array] = {}
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
            value, root = np.asarray(1.0), common_power(node.parts)
            for e, b in node.parts:
                if e > 0:
                    value = value * _raised(computed[b], e / root)
            alone = all(e < 0 for e, _ in node.parts)
            for e, b in node.parts:
                if e < 0:
                    times, left = (1, -e) if alone else as_quotients(-e / root)
                    for _ in range(times):
                        value = value / _raised(computed[b], left)
            value = _raised(value, float(root))
        else:
            function = FUNCTIONS.get(node.label) or OF_TWO[node.label]
            value = np.asarray(function.evaluate(*(computed[part] for _, part in node.parts)))
        computed[node] = value
    return [computed[expression] for expression in expressions]
