"""Whether the chains agree."""

from lessons.measures.base import Estimate, Evidence, OfColumn
from samplers.diagnostics import convergence


class RHat(OfColumn):
    """Rank-normalised split R-hat of the thinned history of up to eight chains."""

    key = "rhat"
    title = "R-hat"
    has_error = False

    def of(self, lane: Evidence) -> Estimate:
        found = convergence.summary(lane.trace.statistics.history(), self.k)
        return Estimate(found.rhat, None, 1.0)
