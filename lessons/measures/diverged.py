"""Whether a run blew up."""

from sgmcmc_lab.lessons.measures.base import Estimate, Evidence, Measure


class Diverged(Measure):
    """1 where a chain left its target for good or the sampler was refused, else 0."""

    key = "diverged"
    title = "Diverged"
    has_error = False

    def of(self, lane: Evidence) -> Estimate:
        return Estimate(float(lane.trace.divergence is not None))
