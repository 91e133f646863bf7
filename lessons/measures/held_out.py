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
        target, history = lane.trace.target, lane.statistics.history()
        if not history.shape[1]:
            return Estimate(NAN)
        by_chain = np.array([_log_means(target, draws) for draws in history])
        return Estimate(-float(_log_mean(by_chain).mean()), spread(-by_chain.mean(axis=1)))


def _log_means(target: Target, theta: Array) -> Array:
    """log (1/S) Σ_s p(y | θ_s) of each held-out y, (observations,)."""
    found = target.held_out(np.ascontiguousarray(theta))
    assert found is not None
    return _log_mean(found)


def _log_mean(logs: Array) -> Array:
    return np.asarray(logsumexp(logs, axis=0) - np.log(len(logs)))
