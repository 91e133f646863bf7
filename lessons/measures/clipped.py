"""Steps whose gradient is noisier than what they inject."""

from sgmcmc_lab.lessons.measures.base import Estimate, Evidence, Measure


class Clipped(Measure):
    """The share of steps in which the noise of the gradient was more than the noise to be injected."""

    key = "clipped"
    title = "Clipped steps"
    has_error = False

    def of(self, lane: Evidence) -> Estimate:
        return Estimate(lane.trace.clipped / max(lane.trace.statistics.n_draws, 1))
