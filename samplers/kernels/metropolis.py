"""The accept step of Metropolis and Hastings."""

from math import exp, inf

from sgmcmc_lab.samplers.compile import jit

ACCEPT = r"\\&\text{accept with probability } \min\bigl(1, e^{-\Delta H}\bigr)"
"""The accept step as the last line of an update."""


@jit.inlined
def accepts(rng, log_ratio, energy):
    """Whether a proposal is accepted: with probability min(1, e^log_ratio), and only where its energy is finite.

    A NaN ratio compares false. A proposal with U = −∞ is rejected, too: it is a point of a density's pole, which has
    probability 0 and which no ratio would let the chain leave.
    """
    return rng.random() < exp(log_ratio) and abs(energy) < inf
