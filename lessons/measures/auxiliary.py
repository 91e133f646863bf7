"""A moment of a chain's auxiliary variables."""

from sgmcmc_lab.lessons.measures.base import MOMENTA, NAN, Estimate, Evidence, Measure, spread
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.parameters import Count, SpecError


class Auxiliary(Measure):
    """E aᵖ of an auxiliary variable a of a chain: a momentum r or, after the momenta, a thermostat ξ."""

    key = "auxiliary"
    title = "Moment of a momentum"
    requires = MOMENTA
    component = Count(
        1, bounds=(1, 100), label="Component", doc="The number of the auxiliary variable, counted from 1."
    )
    order = Count(2, bounds=(1, 2), label="Power", doc="The power p of E aᵖ.")

    def check(self, spec: RunSpec) -> None:
        n = len(spec.make_sampler().auxiliary(spec.make_target()))
        if self.component > n:
            raise SpecError("measure.component", self.component, f"{spec.sampler.key} has {n} auxiliary variables")

    def of(self, lane: Evidence) -> Estimate:
        if lane.momenta is None or not len(lane.momenta):
            return Estimate(NAN)
        values = (lane.momenta[:, :, int(self.component) - 1] ** int(self.order)).mean(axis=0)
        return Estimate(float(values.mean()), spread(values))
