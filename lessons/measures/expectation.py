"""An expectation that the target knows."""

import numpy as np

from sgmcmc_lab.lessons.measures.base import DRAWS, Estimate, Evidence, Measure, spread
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.parameters import Count, SpecError
from sgmcmc_lab.samplers.targets.base import Moment, Target


class Expectation(Measure):
    """An expectation that the target knows exactly, by its number in the target's list of moments; of all draws."""

    key = "expectation"
    title = "Expectation"
    requires = DRAWS
    number = Count(1, bounds=(1, 400), label="Number", doc="The number of the target's moment, counted from 1.")

    def moment(self, target: Target) -> Moment:
        """The target's moment."""
        return target.moments[int(self.number) - 1]

    def check(self, spec: RunSpec) -> None:
        target = spec.make_target()
        if not target.exact_law:
            raise SpecError(
                "measure",
                self.key,
                f"the distribution of {target.title} is not known exactly; allowed are mean and variance, among others",
            )
        names = [moment.name for moment in target.moments]
        if self.number > len(names):
            raise SpecError("measure.number", self.number, f"the moments are 1 to {len(names)}: {', '.join(names)}")

    def of(self, lane: Evidence) -> Estimate:
        target = lane.trace.target
        moment = self.moment(target)
        assert lane.trace.draws is not None
        values = np.average(moment.function(target.values(lane.trace.draws)), axis=1, weights=lane.trace.weights)
        return Estimate(float(values.mean()), spread(values), moment.exact)
