"""The stack machine that runs typed expressions: data in, numbers out, no code made from what a person types.

A program is an array of numbers, :func:`program`: [instructions, inputs, outputs, stack depth, slots], then an
(operation, argument) pair for each instruction of :class:`~samplers.expressions.program.Op`. It works in memory of the
caller's, in rows of four numbers: inputs, outputs, stack, slots. Every instruction works on the four lanes of a row at
once, one chain in each, which spreads the cost of finding out what it is. The top of the stack is kept in four
variables: an operation then does not wait for the last one's result to go through memory.
"""

from collections.abc import Sequence
from math import atan, cosh, expm1, log1p, sinh, tan, tanh

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.expressions.functions import Array
from sgmcmc_lab.samplers.expressions.normal_form import Expression
from sgmcmc_lab.samplers.expressions.program import Op, postfix
from sgmcmc_lab.samplers.expressions.special import (
    digamma,
    i1_over_i0,
    if_nonnegative,
    inv_logit,
    lgamma_half_step,
    lgamma_half_step_slope,
    log1m_exp,
    log1p_exp,
    log1p_square,
    log_gamma,
    log_gamma_density,
    log_i0,
    log_i0e,
    log_i0e_slope,
    log_ndtr,
    log_ndtr_slope,
    log_sum_exp,
    trigamma,
    zero_times,
)

LANES = 4
"""Chains that one instruction works on: as many as the app runs unless it is told otherwise."""
HEADER = 5

_CONST, _NAME, _STORE, _LOAD, _OUT = map(int, (Op.CONST, Op.NAME, Op.STORE, Op.LOAD, Op.OUT))
_ADD, _SUB, _MUL, _DIV = map(int, (Op.ADD, Op.SUB, Op.MUL, Op.DIV))
_ADDC, _MULC, _NEG, _SQUARE = map(int, (Op.ADDC, Op.MULC, Op.NEG, Op.SQUARE))
_POW_INT, _POW, _SQRT, _EXP, _LOG = map(int, (Op.POW_INT, Op.POW, Op.SQRT, Op.EXP, Op.LOG))
_SIN, _COS, _TAN, _SINH, _COSH, _TANH = map(int, (Op.SIN, Op.COS, Op.TAN, Op.SINH, Op.COSH, Op.TANH))
_ATAN, _ABS, _SIGN, _ADDM = map(int, (Op.ATAN, Op.ABS, Op.SIGN, Op.ADDM))
_LOG1P_EXP, _INV_LOGIT, _LGAMMA = map(int, (Op.LOG1P_EXP, Op.INV_LOGIT, Op.LGAMMA))
_DIGAMMA, _TRIGAMMA, _LOG_I0, _I1_OVER_I0 = map(int, (Op.DIGAMMA, Op.TRIGAMMA, Op.LOG_I0, Op.I1_OVER_I0))
_EXPM1, _LOG1P, _LOG1M_EXP, _LOG1P_SQUARE = map(int, (Op.EXPM1, Op.LOG1P, Op.LOG1M_EXP, Op.LOG1P_SQUARE))
_LOG_SUM_EXP, _ZERO_TIMES, _IF_NONNEGATIVE = map(int, (Op.LOG_SUM_EXP, Op.ZERO_TIMES, Op.IF_NONNEGATIVE))
_LOG_GAMMA_DENSITY, _LOG_I0E, _LOG_I0E_SLOPE = map(int, (Op.LOG_GAMMA_DENSITY, Op.LOG_I0E, Op.LOG_I0E_SLOPE))
_LGAMMA_HALF_STEP, _LOG_NDTR, _LOG_NDTR_SLOPE = map(int, (Op.LGAMMA_HALF_STEP, Op.LOG_NDTR, Op.LOG_NDTR_SLOPE))

# Unsigned, for a place that might be negative is checked in every access.
_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(LANES)
_AT = np.uint64(HEADER)


def program(expressions: Sequence[Expression], names: Sequence[str]) -> Array:
    """The program whose outputs are these expressions, of inputs in the order of ``names``."""
    made = postfix(expressions, names)
    header = [len(made.code), len(names), len(expressions), made.depth, made.slots]
    return np.concatenate([np.array(header, dtype=float), np.asarray(made.code, dtype=float).ravel()])


def workspace(*programs: Array) -> int:
    """How many numbers of memory the largest of these programs works in."""
    return int(max(p[1:HEADER].sum() for p in programs) + 1) * LANES


@jit.inlined
def _load(work, at):
    return work[at], work[at + _1], work[at + _2], work[at + _3]


@jit.inlined
def _store(work, at, a, b, c, d):
    work[at], work[at + _1], work[at + _2], work[at + _3] = a, b, c, d


@jit.inlined
def _power(base, exponent):
    result = 1.0
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


@jit.helper
def special(op, x):
    """A special function of one number."""
    if op == _LGAMMA:
        return log_gamma(x)
    if op == _DIGAMMA:
        return digamma(x)
    if op == _TRIGAMMA:
        return trigamma(x)
    if op == _LOG_I0:
        return log_i0(x)
    if op == _I1_OVER_I0:
        return i1_over_i0(x)
    if op == _LOG1M_EXP:
        return log1m_exp(x)
    if op == _LOG1P_SQUARE:
        return log1p_square(x)
    if op == _LOG_I0E:
        return log_i0e(x)
    if op == _LOG_I0E_SLOPE:
        return log_i0e_slope(x)
    if op == _LGAMMA_HALF_STEP:
        return lgamma_half_step(x)
    if op == _LOG_NDTR:
        return log_ndtr(x)
    if op == _LOG_NDTR_SLOPE:
        return log_ndtr_slope(x)
    return lgamma_half_step_slope(x)


@jit.helper
def of_two(op, a, b):
    """A function of two numbers."""
    if op == _LOG_SUM_EXP:
        return log_sum_exp(a, b)
    if op == _ZERO_TIMES:
        return zero_times(a, b)
    if op == _IF_NONNEGATIVE:
        return if_nonnegative(a, b)
    return log_gamma_density(a, b)


@jit.helper
def execute(program, work):
    """Run a program, which other numbers may follow, on the inputs in ``work``, and leave its outputs there.

    Lane c of input i is ``work[4i + c]``, that of output k ``work[4(inputs + k) + c]``. A lane that no chain is in is
    computed like the others.
    """
    out = _4 * np.uint64(program[1])
    # The entry below the top of the stack; the row under the first value holds nothing.
    top = out + _4 * np.uint64(program[2])
    slots = top + _4 * np.uint64(program[3] + 1)
    at = _AT
    a = b = c = d = 0.0
    for _ in range(int(program[0])):
        op, x = int(program[at]), program[at + _1]
        at += _2
        if op == _NAME:
            _store(work, top, a, b, c, d)
            top += _4
            a, b, c, d = _load(work, _4 * np.uint64(x))
        elif op == _CONST:
            _store(work, top, a, b, c, d)
            top += _4
            a = b = c = d = x
        elif op == _LOAD:
            _store(work, top, a, b, c, d)
            top += _4
            a, b, c, d = _load(work, slots + _4 * np.uint64(x))
        elif op == _STORE:
            _store(work, slots + _4 * np.uint64(x), a, b, c, d)
        elif op == _OUT:
            _store(work, out + _4 * np.uint64(x), a, b, c, d)
            top -= _4
            a, b, c, d = _load(work, top)
        elif op == _ADDM:
            top -= _4
            e, f, g, h = _load(work, top)
            a, b, c, d = e + x * a, f + x * b, g + x * c, h + x * d
        elif op == _ADD:
            top -= _4
            e, f, g, h = _load(work, top)
            a, b, c, d = e + a, f + b, g + c, h + d
        elif op == _SUB:
            top -= _4
            e, f, g, h = _load(work, top)
            a, b, c, d = e - a, f - b, g - c, h - d
        elif op == _MUL:
            top -= _4
            e, f, g, h = _load(work, top)
            a, b, c, d = e * a, f * b, g * c, h * d
        elif op == _DIV:
            top -= _4
            e, f, g, h = _load(work, top)
            a, b, c, d = e / a, f / b, g / c, h / d
        elif op == _ADDC:
            a, b, c, d = a + x, b + x, c + x, d + x
        elif op == _MULC:
            a, b, c, d = a * x, b * x, c * x, d * x
        elif op == _NEG:
            a, b, c, d = -a, -b, -c, -d
        elif op == _SQUARE:
            a, b, c, d = a * a, b * b, c * c, d * d
        elif op == _POW_INT:
            exponent = int(x)
            a, b, c, d = _power(a, exponent), _power(b, exponent), _power(c, exponent), _power(d, exponent)
        elif op == _POW:
            a, b, c, d = a**x, b**x, c**x, d**x
        elif op == _SQRT:
            a, b, c, d = np.sqrt(a), np.sqrt(b), np.sqrt(c), np.sqrt(d)
        elif op == _EXP:
            a, b, c, d = np.exp(a), np.exp(b), np.exp(c), np.exp(d)
        elif op == _LOG:
            a, b, c, d = np.log(a), np.log(b), np.log(c), np.log(d)
        elif op == _SIN:
            a, b, c, d = np.sin(a), np.sin(b), np.sin(c), np.sin(d)
        elif op == _COS:
            a, b, c, d = np.cos(a), np.cos(b), np.cos(c), np.cos(d)
        elif op == _TAN:
            a, b, c, d = tan(a), tan(b), tan(c), tan(d)
        elif op == _SINH:
            a, b, c, d = sinh(a), sinh(b), sinh(c), sinh(d)
        elif op == _COSH:
            a, b, c, d = cosh(a), cosh(b), cosh(c), cosh(d)
        elif op == _TANH:
            a, b, c, d = tanh(a), tanh(b), tanh(c), tanh(d)
        elif op == _ATAN:
            a, b, c, d = atan(a), atan(b), atan(c), atan(d)
        elif op == _ABS:
            a, b, c, d = abs(a), abs(b), abs(c), abs(d)
        elif op == _SIGN:
            a, b, c, d = np.sign(a), np.sign(b), np.sign(c), np.sign(d)
        elif op == _LOG1P_EXP:
            a, b, c, d = log1p_exp(a), log1p_exp(b), log1p_exp(c), log1p_exp(d)
        elif op == _INV_LOGIT:
            a, b, c, d = inv_logit(a), inv_logit(b), inv_logit(c), inv_logit(d)
        elif op == _EXPM1:
            a, b, c, d = expm1(a), expm1(b), expm1(c), expm1(d)
        elif op == _LOG1P:
            a, b, c, d = log1p(a), log1p(b), log1p(c), log1p(d)
        elif _LOG_SUM_EXP <= op <= _LOG_GAMMA_DENSITY:
            top -= _4
            _store(work, top + _4, a, b, c, d)
            for lane in range(_4):
                work[top + lane] = of_two(op, work[top + lane], work[top + _4 + lane])
            a, b, c, d = _load(work, top)
        else:
            # In one place for all lanes: what is compiled grows with every place.
            _store(work, top, a, b, c, d)
            for lane in range(_4):
                work[top + lane] = special(op, work[top + lane])
            a, b, c, d = _load(work, top)
