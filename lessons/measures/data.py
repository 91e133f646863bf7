"""The data that a step looks at."""

from sgmcmc_lab.lessons.measures.base import Estimate, Evidence, Measure


class DataOfAStep(Measure):
    """The data points that a step of a chain looks at, on average over all steps."""

    key = "data"
    title = "Data of a step"
    has_error = False

    def of(self, lane: Evidence) -> Estimate:
        trace = lane.trace
        return Estimate(trace.data_seen / max(trace.steps, 1) / trace.spec.n_chains)
