"""The program of the stack machine that computes expressions."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from sgmcmc_lab.samplers.expressions.functions import Array
from sgmcmc_lab.samplers.expressions.limits import MAX_INSTRUCTIONS, count, refuse, work_limit
from sgmcmc_lab.samplers.expressions.nodes import Kind
from sgmcmc_lab.samplers.expressions.normal_form import Expression, make_product
from sgmcmc_lab.samplers.expressions.values import as_quotients, as_roots, common_power, is_whole


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
    LOG1P_EXP = 28
    """Replace the top by log(1 + e^top); the rest are functions, too."""
    INV_LOGIT = 29
    LGAMMA = 30
    DIGAMMA = 31
    TRIGAMMA = 32
    LOG_I0 = 33
    I1_OVER_I0 = 34
    EXPM1 = 35
    LOG1P = 36
    LOG1M_EXP = 37
    LOG1P_SQUARE = 38
    LOG_SUM_EXP = 39
    """Pop b, pop a, push log(eᵃ + eᵇ); the next three are functions of two numbers as well."""
    ZERO_TIMES = 40
    IF_NONNEGATIVE = 41
    LOG_GAMMA_DENSITY = 42
    LOG_I0E = 43
    LOG_I0E_SLOPE = 44
    LGAMMA_HALF_STEP = 45
    LGAMMA_HALF_STEP_SLOPE = 46
    LOG_NDTR = 47
    LOG_NDTR_SLOPE = 48


_PUSHES = {Op.CONST, Op.NAME, Op.LOAD}
_COST = {
    **dict.fromkeys((*range(Op.POW, Op.ATAN + 1), Op.EXPM1, Op.LOG1P), 8),
    **dict.fromkeys((*range(Op.LOG1P_EXP, Op.TRIGAMMA + 1), Op.LOG1M_EXP, Op.LOG1P_SQUARE, Op.LOG_SUM_EXP), 16),
    **dict.fromkeys((Op.LOG_I0, Op.I1_OVER_I0, *range(Op.LOG_GAMMA_DENSITY, Op.LOG_NDTR_SLOPE + 1)), 32),
}
"""How long functions take, in sums."""
_POPS = {Op.OUT, Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.ADDM, *range(Op.LOG_SUM_EXP, Op.LOG_GAMMA_DENSITY + 1)}


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

    @property
    def cost(self) -> int:
        """How long it takes, in sums: some 1.2 ns each, in every lane."""
        return sum(_COST.get(int(op), 1) for op in self.code[:, 0])


def postfix(expressions: Sequence[Expression], names: Sequence[str]) -> Program:
    """The program that computes all expressions; ``names`` gives the order of the variables.

    A subexpression that occurs several times, in one expression or in several, is computed once and kept in a slot.
    Raises :class:`SpecError` for a program of more than MAX_INSTRUCTIONS.
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
                count(2 * len(needed[node]))
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
            refuse("", "its expanded form is too large; a simpler one is needed")
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
        return [*(part for _, part in node.parts), (Op[node.label.upper()], 0.0)]
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
        roots, left = as_roots(exponent)
        steps = [base, *[(Op.SQRT, 0.0)] * roots]
        if left == 2:
            steps.append((Op.SQUARE, 0.0))
        elif left != 1:
            steps.append((Op.POW_INT if is_whole(left) else Op.POW, left))
        return steps
    root = common_power(node.parts)
    if root > 1:
        # (a/s)² rather than a²/s², whose parts may be too large or too small for a number.
        inner = make_product([(e / root, b) for e, b in node.parts])
        return [inner, (Op.SQUARE, 0.0) if root == 2 else (Op.POW_INT, float(root))]
    for e, b in node.parts:
        if e > 0:
            first = not steps
            steps.append(make_product([(e, b)]))
            if not first:
                steps.append((Op.MUL, 0.0))
    alone = not steps
    if alone:
        steps.append((Op.CONST, 1.0))
    for e, b in node.parts:
        if e < 0:
            times, left = (1, -e) if alone else as_quotients(-e)
            steps += [make_product([(left, b)]), (Op.DIV, 0.0)] * times
    return steps
