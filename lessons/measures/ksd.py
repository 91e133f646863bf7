"""The kernel Stein discrepancy from the target, which needs its gradient alone."""

from sgmcmc_lab.lessons.measures.base import NAN, Estimate, Evidence, Measure
from sgmcmc_lab.samplers.diagnostics import ksd
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.parameters import SpecError


class KSD(Measure):
    """The kernel Stein discrepancy of the thinned history of up to eight chains, at most 1,000 draws.

    ``exact`` is the root mean square for as many independent exact draws.
    """

    key = "ksd"
    title = "Kernel Stein discrepancy"
    has_error = False
    equal_weights = True

    def check(self, spec: RunSpec) -> None:
        target = spec.make_target()
        if not ksd.is_defined(target):
            raise SpecError(
                "measure", self.key, f"{target.title} has none: it needs a density on all of ℝᵈ and its coordinates"
            )

    def of(self, lane: Evidence) -> Estimate:
        trace = lane.trace
        if not trace.statistics.n_steps:
            return Estimate(NAN)
        found = ksd.of_statistics(trace.statistics, trace.target)
        return Estimate(found.value, None, found.expected)
