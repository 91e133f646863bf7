"""Whether the chains agree."""

from sgmcmc_lab.lessons.measures.base import Estimate, Evidence, OfChains
from sgmcmc_lab.samplers import convergence
from sgmcmc_lab.samplers.models.run import ModelRun


class RHat(OfChains):
    """Rank-normalised split R-hat of the thinned history of up to eight chains."""

    key = "rhat"
    title = "R-hat"
    has_error = False
    of_model = True

    def of(self, lane: Evidence | ModelRun) -> Estimate:
        found = convergence.summary(lane.statistics.history(), self.k)
        return Estimate(found.rhat, None, 1.0)
