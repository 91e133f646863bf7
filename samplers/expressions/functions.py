"""The functions that may be typed."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Function:
    """A function of one variable that may be typed."""

    evaluate: Callable[[Array], Array]
    tex: str


FUNCTIONS: dict[str, Function] = {
    "exp": Function(np.exp, r"\exp"),
    "log": Function(np.log, r"\log"),
    "sqrt": Function(np.sqrt, r"\sqrt"),
    "sin": Function(np.sin, r"\sin"),
    "cos": Function(np.cos, r"\cos"),
    "tan": Function(np.tan, r"\tan"),
    "sinh": Function(np.sinh, r"\sinh"),
    "cosh": Function(np.cosh, r"\cosh"),
    "tanh": Function(np.tanh, r"\tanh"),
    "atan": Function(np.arctan, r"\arctan"),
    "abs": Function(np.abs, ""),
    "sign": Function(np.sign, r"\operatorname{sign}"),
}
"""What may be typed, by what it is typed as."""
