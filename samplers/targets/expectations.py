"""Functions whose expectations targets know exactly, compiled: each adds up its values over draws, in every host."""

from math import cos

from numba import types

from sgmcmc_lab.samplers.compile import jit

SUM = types.void(jit.cube, jit.int64, jit.vector, jit.vector)
"""sum(values (columns, draws, chains), n, constants, out (chains,)): adds the values at the first ``n`` draws."""


@jit.reading(SUM)
def sum_waves(values, n, constants, out):
    """cos(kφ − δ) of the first column φ; constants: k, δ."""
    for t in range(n):
        for c in range(out.shape[0]):
            out[c] += cos(constants[0] * values[0, t, c] - constants[1])


@jit.reading(SUM)
def sum_products(values, n, constants, out):
    """(x − a)(y − b) of the first two columns x and y; constants: a, b."""
    for t in range(n):
        for c in range(out.shape[0]):
            out[c] += (values[0, t, c] - constants[0]) * (values[1, t, c] - constants[1])


@jit.reading(SUM)
def sum_ordered(values, n, constants, out):
    """1 where the first column is below the second, else 0."""
    for t in range(n):
        for c in range(out.shape[0]):
            out[c] += 1.0 if values[0, t, c] < values[1, t, c] else 0.0
