"""A prior and the log density of a row as compiled functions: rows on the stack machine, or by native code.

Four rows share an instruction of the machine. Native code, where it is there, goes over a block of rows in one call;
its sums are in the machine's order, so that every number is the machine's.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.expressions.machine import LANES, execute, workspace
from sgmcmc_lab.samplers.expressions.native import Loop, call
from sgmcmc_lab.samplers.expressions.program import Op
from sgmcmc_lab.samplers.targets.base import Array, Whitening

BLOCK = 64
"""Rows that native code goes over in a call: 2 ns for each call, and numbers that stay in the nearest cache."""

# Of the packed parameters: where programs, memory, the block's memory and data begin; the number of data points, and
# of numbers in each; the addresses of native code.
_PRIOR, _ROW, _PRIOR_SLOPES, _ROW_SLOPES, _WORK, _BLOCK, _ROWS, _ITEMS, _WIDTH = range(9)
_NATIVE_PRIOR, _NATIVE_ROW, _NATIVE_PRIOR_SLOPES, _NATIVE_ROW_SLOPES, _NATIVE_BATCH = range(9, 14)
# The indices at which θ̂ and L begin; 0 where the coordinates are θ.
_WHITENING = 14
_HEADER = 15


class Programs(NamedTuple):
    """Minus the log densities of a model, and their slopes, as programs of the stack machine."""

    prior: Array
    """The prior, of the coordinates."""
    row: Array
    """A row's term, of the coordinates and the columns that are used."""
    prior_slopes: Array
    row_slopes: Array

    def packed(self, rows: Array, whitening: Whitening | None = None) -> Array:
        """The packed parameters, with these rows (N, columns), of θ or of z."""
        most = max(rows.shape[1], int(self.row_slopes[2]))
        parts = [*self, np.zeros(workspace(*self)), np.zeros(BLOCK * most), rows.ravel()]
        starts = _HEADER + np.cumsum([0, *map(len, parts)])
        header = np.zeros(_HEADER)
        header[: _WIDTH + 1] = [*starts[:-1], *rows.shape]
        if whitening is not None:
            header[_WHITENING] = starts[-1]
            parts += [whitening.centre, whitening.factor.ravel()]
        return np.concatenate([header, *parts])

    def native(self, items: int) -> dict[int, Loop]:
        """Native code for a model with this number of data points, by the index of the packed parameters that takes its
        address.
        """
        dim = int(self.prior[1])
        width = int(self.row[1]) - dim

        def of_prior(title: str, program: Array) -> Loop:
            loop = Loop(title, {"theta": dim, "out": int(program[2])})
            for k, value in enumerate(loop.run(program, partial(loop.load, "theta"))):
                loop.store("out", k, value)
            return loop

        def of_rows(title: str, arrays: dict[str, int]) -> tuple[Loop, Callable[[int], str]]:
            loop = Loop(title, arrays, {"theta": dim})
            return loop, lambda k: loop.load("theta", k) if k < dim else loop.load("rows", k - dim)

        def values(title: str, program: Array) -> Loop:
            loop, given = of_rows(title, {"values": int(program[2]), "rows": width})
            for k, value in enumerate(loop.run(program, given)):
                loop.store("values", k, value)
            return loop

        def batch() -> Loop:
            loop, given = of_rows("batch", {"rows": width, "each": dim})
            slopes = zip(loop.run(self.prior_slopes, given), loop.run(self.row_slopes, given), strict=True)
            for k, (prior, row) in enumerate(slopes):
                as_all = loop.binary(Op.MUL, loop.constant(float(items)), row)
                loop.store("each", k, loop.binary(Op.ADD, prior, as_all))
            return loop

        return {
            _NATIVE_PRIOR: of_prior("prior", self.prior),
            _NATIVE_PRIOR_SLOPES: of_prior("prior_slopes", self.prior_slopes),
            _NATIVE_ROW: values("row", self.row),
            _NATIVE_ROW_SLOPES: values("row_slopes", self.row_slopes),
            _NATIVE_BATCH: batch(),
        }


@jit.inlined
def _at(params, place):
    return params[int(params[place]) :]


@jit.inlined
def _code(params, place):
    """The address of native code, 0 where there is none."""
    return params.view(np.int64)[place]


@jit.inlined
def _of_parameters(programme, theta, params):
    """Run a program of θ (dim,) alone, in the first lane."""
    work = _at(params, _WORK)
    for i in range(theta.size):
        work[i * LANES] = theta[i]
    execute(programme, work)


@jit.inlined
def _put_row(theta, row, lane, params):
    """Make θ (dim,) and a row the inputs of a lane."""
    work, rows, width = _at(params, _WORK), _at(params, _ROWS), int(params[_WIDTH])
    for i in range(theta.size):
        work[i * LANES + lane] = theta[i]
    for i in range(width):
        work[(theta.size + i) * LANES + lane] = rows[row * width + i]


@jit.inlined
def _add_rows(native, theta, out, params):
    """Add what native code has of each row at θ (dim,) to ``out``, row by row."""
    items, width = int(params[_ITEMS]), int(params[_WIDTH])
    rows, values = _at(params, _ROWS), _at(params, _BLOCK)
    for first in range(0, items, BLOCK):
        n = min(BLOCK, items - first)
        call(native, (theta, values, rows), first * width, n)
        for i in range(out.size):
            total = out[i]
            for c in range(n):
                total += values[c * out.size + i]
            out[i] = total


@jit.inlined
def _by_machine(prior, row, theta, out, params):
    """The values of the two programs at θ (dim,), that of the rows summed row by row."""
    dim, items, work = theta.size, int(params[_ITEMS]), _at(params, _WORK)
    output = (dim + int(params[_WIDTH])) * LANES
    _of_parameters(prior, theta, params)
    for i in range(out.size):
        out[i] = work[(dim + i) * LANES]
    for first in range(0, items, LANES):
        n = min(LANES, items - first)
        for c in range(n):
            _put_row(theta, first + c, c, params)
        execute(row, work)
        for i in range(out.size):
            for c in range(n):
                out[i] += work[output + i * LANES + c]


@jit.inlined
def _theta(z, params):
    """θ = θ̂ + Lz (n, dim) where the coordinates are z, or the coordinates themselves."""
    n, dim = z.shape
    theta, first = np.empty((n, dim)), int(params[_WHITENING])
    for k in range(n):
        for i in range(dim):
            if first == 0:
                theta[k, i] = z[k, i]
                continue
            theta[k, i] = params[first + i]
            for j in range(i + 1):
                theta[k, i] += params[first + dim + i * dim + j] * z[k, j]
    return theta


@jit.inlined
def _pull_back(slopes, params):
    """Make Lᵀ∂U/∂θ of ∂U/∂θ (n, dim) where the coordinates are z."""
    n, dim = slopes.shape
    first = int(params[_WHITENING])
    if first == 0:
        return
    for k in range(n):
        # L is lower triangular: what is written is not read again.
        for j in range(dim):
            total = 0.0
            for i in range(j, dim):
                total += params[first + dim + i * dim + j] * slopes[k, i]
            slopes[k, j] = total


@jit.potential
def potential(z, out, params):
    theta = _theta(z, params)
    if _code(params, _NATIVE_ROW) != 0:
        call(_code(params, _NATIVE_PRIOR), (theta, out), 0, theta.shape[0])
        for k in range(theta.shape[0]):
            _add_rows(_code(params, _NATIVE_ROW), theta[k], out[k : k + 1], params)
        return
    for k in range(theta.shape[0]):
        _by_machine(_at(params, _PRIOR), _at(params, _ROW), theta[k], out[k : k + 1], params)


@jit.gradient
def gradient(z, out, params):
    theta = _theta(z, params)
    if _code(params, _NATIVE_ROW_SLOPES) != 0:
        call(_code(params, _NATIVE_PRIOR_SLOPES), (theta, out), 0, theta.shape[0])
        for k in range(theta.shape[0]):
            _add_rows(_code(params, _NATIVE_ROW_SLOPES), theta[k], out[k], params)
    else:
        for k in range(theta.shape[0]):
            _by_machine(_at(params, _PRIOR_SLOPES), _at(params, _ROW_SLOPES), theta[k], out[k], params)
    _pull_back(out, params)


@jit.inlined
def _slopes_of_rows(theta, data, each, params):
    """Write ∂U/∂θ at θ (1, dim) of each of these rows by itself, as if it stood for all."""
    dim, items, work, width = theta.shape[1], params[_ITEMS], _at(params, _WORK), int(params[_WIDTH])
    output = (dim + width) * LANES
    if _code(params, _NATIVE_BATCH) != 0:
        rows, block = _at(params, _ROWS), _at(params, _BLOCK)
        for first in range(0, data.size, BLOCK):
            n = min(BLOCK, data.size - first)
            for c in range(n):
                for i in range(width):
                    block[c * width + i] = rows[data[first + c] * width + i]
            call(_code(params, _NATIVE_BATCH), (theta, block, each), first * dim, n)
        return
    _of_parameters(_at(params, _PRIOR_SLOPES), theta[0], params)
    for i in range(dim):
        for k in range(data.size):
            each[k, i] = work[(dim + i) * LANES]
    for first in range(0, data.size, LANES):
        n = min(LANES, data.size - first)
        for c in range(n):
            _put_row(theta[0], data[first + c], c, params)
        execute(_at(params, _ROW_SLOPES), work)
        for i in range(dim):
            for c in range(n):
                each[first + c, i] += items * work[output + i * LANES + c]


@jit.batch
def batch(z, data, each, params):
    theta = _theta(z, params)
    _slopes_of_rows(theta, data, each, params)
    _pull_back(each, params)
