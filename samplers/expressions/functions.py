"""The functions that may be typed."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]


def trigamma(x: Array) -> Array:
    """ψ′(x). SciPy's own goes up from x to 9 by ones, which from −10¹² takes hours: below 0 the reflection is used."""
    above = special.polygamma(1, np.where(x > 0, x, 1 - x))
    poles = (x <= 0) & (x == np.floor(x))
    below = np.where(poles, np.inf, (np.pi / np.sin(np.pi * (x % 1))) ** 2 - above)
    return np.asarray(np.where(x <= 0, below, above))


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
    "log1p_exp": Function(lambda x: np.logaddexp(0.0, x), ""),
    "inv_logit": Function(special.expit, r"\operatorname{logit}^{-1}"),
    "lgamma": Function(special.gammaln, r"\log\Gamma"),
    "digamma": Function(special.digamma, r"\psi"),
    "trigamma": Function(trigamma, r"\psi'"),
    "log_i0": Function(lambda x: np.abs(x) + np.log(special.i0e(x)), r"\log I_0"),
    "i1_over_i0": Function(lambda x: special.i1e(x) / special.i0e(x), r"\tfrac{I_1}{I_0}"),
}
"""What may be typed, by what it is typed as."""
