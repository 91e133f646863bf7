"""The accept step of Metropolis and Hastings."""

from math import exp, inf

from sgmcmc_lab.samplers.compile import jit

ACCEPT = r"\\&\text{accept with probability } \min\bigl(1, e^{-\Delta H}\bigr)"
"""The accept step as the last line of an update."""


@jit.inlined
def accept(rng, c, theta, before, log_ratio, energy, counts, sure):
    """Keep the proposal that θ of this chain is, with probability min(1, e^log_ratio), or go back to ``before``.

    Returns whether it is kept. ``sure`` is without an accept step. A NaN ratio compares false. A proposal with U = −∞
    is rejected, too: it is a point of a density's pole, which has probability 0 and which no ratio would let the chain
    leave.
    """
    accepted = sure or (rng.random() < exp(log_ratio) and abs(energy) < inf)
    if accepted:
        counts[jit.ACCEPTED] += 1
    else:
        theta[c] = before[c]
    return accepted
