"""Accept steps that are taken once for several updates: the energy of all data, beside minibatches.

A chain keeps its momentum. A rejection takes it back to where it was, with the momentum turned around.
"""

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.metropolis import accept
from sgmcmc_lab.samplers.kernels.noisy_gradient import Moving
from sgmcmc_lab.samplers.requirements import BATCH, FULL, MODE, NOISE
from sgmcmc_lab.samplers.targets.base import FirstSteps


@jit.inlined
def accept_or_turn(rng, c, theta, before, r, first, log_ratio, energy, proposed, counts, sure):
    """Keep θ of this chain, and its energy, with probability min(1, e^log_ratio), or go back with r = −``first``."""
    if accept(rng, c, theta, before, log_ratio, proposed[c], counts, sure):
        energy[c] = proposed[c]
    else:
        for i in range(theta.shape[1]):
            r[c, i] = -first[c, i]


class Amortised(Moving):
    """A sampler of L updates with its ``step_size`` and ``friction``, and an accept step after them."""

    accepts = frozenset({FULL, NOISE, BATCH, MODE})
    gradient_age = None
    bias_order = None

    @classmethod
    def first_values(cls, first: FirstSteps | None, gradient: str) -> dict[str, float]:
        """On a steep target, too, ten updates take the time in which the momentum is forgotten.

        A chain that falls from afar keeps its energy otherwise, and with it every further trajectory is rejected.
        """
        out = super().first_values(first, gradient)
        if out:
            friction = max(out.get("friction", cls.param.friction.default), float(f"{0.1 / out['step_size']:.1g}"))
            out["friction"] = min(friction, cls.param.friction.bounds[1])
        return out

    @property
    def full_gradients_per_step(self) -> int:
        """The energy of the accept step, whose cost is that of a gradient of all data."""
        return 1

    @property
    def time_per_step(self) -> float:
        return self.step_size * self.n_leapfrog
