"""A function that reaches others, constants and classes, and edits of these."""

REACHES = """
import math
from typing import NamedTuple
import numpy as np
from sgmcmc_lab.samplers.compile import jit

STEP = 0.5
TABLE = (1.0, 2.0)
WEIGHTS = np.array([1.0, 2.0, 3.0])
class Pair(NamedTuple):
    first: float
    second: float
class Numbers:
    pass
numbers = __import__("types").ModuleType("numbers")
numbers.SCALE = 2.0

@jit.helper
def far(x, power=2):
    return STEP * x**power

@jit.inlined
def near(x):
    return far(x) + TABLE[1]

@jit.reduction
def total(x):
    return x + WEIGHTS[2] * numbers.SCALE

def made(shift):
    @jit.helper
    def shifted(x):
        return x + shift
    return shifted

shifted = made(3.0)

def potential(theta, out, params):
    for chain in range(theta.shape[0]):
        pair = Pair(theta[chain, 0], math.pi)
        out[chain] = near(pair.first) + total(pair.second) + shifted(params[0])
"""
EDITS = {
    "nothing": ("", ""),
    "lines": ("\nSTEP", "\n\n# Said of it.\n\nSTEP"),
    "a docstring": ("(x, power=2):\n", '(x, power=2):\n    "Said of it."\n'),
    "another function": ("def made", "def unused(x):\n    return x\n\ndef made"),
    "its own code": ("range(theta.shape[0])", "range(1, theta.shape[0])"),
    "a helper two calls away": ("STEP * x", "STEP + x"),
    "a constant": ("STEP = 0.5", "STEP = 0.25"),
    "the type of a constant": ("TABLE = (1.0, 2.0)", "TABLE = (1.0, 2)"),
    "a default argument": ("power=2", "power=3"),
    "a closure": ("made(3.0)", "made(4.0)"),
    "an inlined function": ("+ TABLE[1]", "- TABLE[1]"),
    "whether it is inlined": ("@jit.inlined", "@jit.helper"),
    "whether sums are reordered": ("@jit.reduction", "@jit.helper"),
    "a table": ("[1.0, 2.0, 3.0]", "[1.0, 2.0, 4.0]"),
    "a tuple": ("(1.0, 2.0)", "(1.0, 2.5)"),
    "a constant of a module": ("SCALE = 2.0", "SCALE = 3.0"),
    "the name in a module": ("math.pi", "math.e"),
    "the fields of a tuple": ("first: float\n    second: float", "second: float\n    first: float"),
}
SAME = 4
"""Replacements in the source above; the first of them make no other machine code."""
UNKNOWN = {
    "an object": ("STEP = 0.5", "STEP = object()"),
    "a module": ("* numbers.SCALE", "* numbers"),
    "a closure without its value": ("    return shifted", "    del shift\n    return shifted"),
}
"""Edits after which it reaches something whose content is unknown."""
