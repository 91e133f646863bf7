"""Borrowed arrays arrive whole, from every caller."""

import re
import sys

import numba
import numpy as np
import pytest
from numba import types

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed, keep_alive

LOOK = types.void(jit.lent_cube, jit.lent_vector)


def look(cube, out):
    """All that an array says of itself, what is cut out of it, and a mark left in it."""
    out[0], out[1], out[2] = cube.size, cube.itemsize, cube.nbytes
    out[3:6], out[6:9] = cube.shape, cube.strides
    rows, flat = cube[1:, 2], cube.reshape(-1)
    out[9], out[10], out[11] = rows.size, rows[0, 3], flat[flat.size - 2]
    for k in range(4):
        cube[0, 1, k] = -1.0


def lend(function, cube, out):
    function(cube, out)


def lend_own(function, n, out):
    """One that the compiled function has made, and that goes with it."""
    cube = np.empty((n, 3, 4))
    for k in range(cube.size):
        cube.reshape(-1)[k] = k
    function(cube, out)
    out[12] = cube[0, 1, 2]


@pytest.fixture(scope="module")
def compiled():
    """The three functions, compiled once there is a test of them: it takes seconds."""
    pointer = types.FunctionType(LOOK)
    return (
        numba.njit(LOOK)(look),
        numba.njit(types.void(pointer, jit.cube, jit.vector))(lend),
        numba.njit(types.void(pointer, types.int64, jit.vector))(lend_own),
    )


@pytest.mark.slow
def test_an_array_that_is_lent_arrives_whole(compiled):
    """From Python, from compiled code through a pointer, and where it is that code's own; no reference stays."""
    look, lend, lend_own = compiled
    expected = [24, 8, 192, 2, 3, 4, 96, 32, 8, 4, 23, 22, -1]
    for call in (look, lambda cube, out: lend(look, cube, out), lambda cube, out: lend_own(look, 2, out)):
        cube, out = np.arange(24.0).reshape(2, 3, 4), np.zeros(13)
        before = sys.getrefcount(cube), sys.getrefcount(out)
        call(cube, out)
        out[12] = out[12] or cube[0, 1, 2]
        assert out.tolist() == expected
        assert (sys.getrefcount(cube), sys.getrefcount(out)) == before


@numba.njit
def first_of(pair, n):
    """The first number of a tuple's array, and of one that this function has made, after both were handed on."""
    (left, (right, _)), own = borrowed(pair), (np.full(n, 2.0), n)
    lent = borrowed(own)[0]
    right[0] = left[0] + lent[0]
    keep_alive(own)
    return right[0]


@pytest.mark.slow
def test_the_arrays_of_a_tuple_are_borrowed():
    """The tuple keeps its form, no reference stays, and the owner lives as long as it is needed."""
    left, right = np.ones(3), np.zeros((2, 4))[0]
    before = sys.getrefcount(left), sys.getrefcount(right)
    assert first_of((left, (right, 1.5)), 1000) == 3 == right[0]
    assert (sys.getrefcount(left), sys.getrefcount(right)) == before
    code = first_of.inspect_llvm(first_of.signatures[0])
    assert not re.search(r"@NRT_incref\([^)]*%arg\.pair", code)


@pytest.mark.slow
def test_what_is_not_in_one_piece_is_not_borrowed(compiled):
    """Its strides would not follow from its shape."""
    look = compiled[0]
    look.disable_compile()
    with pytest.raises(TypeError, match="No matching definition"):
        look(np.zeros((2, 3, 8))[:, :, ::2], np.zeros(13))
