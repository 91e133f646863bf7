"""The loss of a posterior's predictions on data that it has not seen."""

import numpy as np
from scipy.special import logsumexp

from sgmcmc_lab.lessons.measures.base import NAN, Estimate, Evidence, Measure, spread
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import Array, Target


class HeldOut(Measure):
    """Minus the mean, over held-out data y, of log (1/S) Σ_s p(y | θ_s) over the kept draws θ_s of the first
    eight chains.

    The standard error is that of the mean of the losses of single chains, each from its own draws.
    """

    key = "held_out"
    title = "Held-out loss"

    def check(self, spec: RunSpec) -> None:
        target = spec.make_target()
        if not target.of_coordinates or target.held_out(target.start()[None]) is None:
            raise SpecError("measure", self.key, f"{target.title} has no held-out data at these settings")

    def of(self, lane: Evidence) -> Estimate:
        target, history, weights = lane.trace.target, lane.statistics.history(), lane.statistics.history_weights()
        if not history.shape[1]:
            return Estimate(NAN)
        by_chain = np.array([_log_means(target, *chain) for chain in zip(history, weights, strict=True)])
        return Estimate(-float(_log_mean(by_chain).mean()), spread(-by_chain.mean(axis=1)))


def _log_means(target: Target, theta: Array, weights: Array) -> Array:
    """log Σ_s w_s p(y | θ_s)/Σ_s w_s of each held-out y, (observations,)."""
    found = target.held_out(np.ascontiguousarray(theta))
    assert found is not None
    return _log_mean(found, weights[:, None])


def _log_mean(logs: Array, weights: Array | float = 1.0) -> Array:
    total = np.broadcast_to(weights, (len(logs), 1)).sum()
    return np.asarray(logsumexp(logs, axis=0, b=weights) - np.log(total))
