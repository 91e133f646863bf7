"""log Φ and its slope, with all their digits in the tail where Φ itself underflows."""

from math import erfc

import numpy as np

from sgmcmc_lab.samplers.compile import jit

_ROOT_HALF = np.sqrt(0.5)
_ROOT_2PI = np.sqrt(2 * np.pi)
# Below it Φ(t) is taken from its asymptotic series, whose first term left out is then 10395/t¹² < 2e-14.
# Above it erfc is far from underflow, which comes at t = −37.
_FAR = -30.0


@jit.helper
def _tail(t):
    """−t Φ(t)/φ(t) for t far below 0: 1 − 1/t² + 3/t⁴ − 15/t⁶ + 105/t⁸ − 945/t¹⁰."""
    w = 1 / (t * t)
    return 1 - w * (1 - w * (3 - w * (15 - w * (105 - w * 945))))


@jit.helper
def log_phi(t):
    """log Φ(t)."""
    if t > _FAR:
        return np.log(erfc(-t * _ROOT_HALF) / 2)
    return -t * t / 2 - np.log(-t * _ROOT_2PI) + np.log(_tail(t))


@jit.helper
def slope_of_log_phi(t):
    """φ(t)/Φ(t)."""
    if t > _FAR:
        return np.exp(-t * t / 2) / (_ROOT_2PI * erfc(-t * _ROOT_HALF) / 2)
    return -t / _tail(t)
