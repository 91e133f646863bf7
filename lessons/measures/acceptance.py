"""The acceptance rate."""

from sgmcmc_lab.lessons.measures.base import Estimate, Evidence, Measure


class Acceptance(Measure):
    """The share of accepted proposals."""

    key = "acceptance"
    title = "Acceptance"
    has_error = False

    def of(self, lane: Evidence) -> Estimate:
        return Estimate(lane.trace.acceptance)
