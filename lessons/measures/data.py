"""The number of data points that a step looks at."""

from sgmcmc_lab.lessons.measures.base import Estimate, Evidence, Measure


class DataOfAStep(Measure):
    """The mean number of data points that a step of a chain looks at."""

    key = "data"
    title = "Data points per step"
    has_error = False

    def of(self, lane: Evidence) -> Estimate:
        trace = lane.trace
        return Estimate(trace.data_seen / max(trace.steps, 1) / trace.spec.n_chains)
