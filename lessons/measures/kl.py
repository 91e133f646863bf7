"""The KL divergence from the target, of one column and of two."""

from sgmcmc_lab.lessons.measures.base import Estimate, Evidence, Measure, OfColumn
from sgmcmc_lab.samplers.diagnostics import divergence
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.parameters import SpecError


class KL(OfColumn):
    """KL(sample ‖ target) of one column, its bias for as many independent draws subtracted."""

    key = "kl"
    title = "KL divergence"
    has_error = False

    def of(self, lane: Evidence) -> Estimate:
        found = divergence.kl_1d(lane.trace.statistics, self.k)
        return Estimate(found.value - found.bias, None, 0.0)


class JointKL(Measure):
    """KL(sample ‖ target) of both coordinates of a two-dimensional target, its bias subtracted."""

    key = "joint_kl"
    title = "Joint KL divergence"
    has_error = False

    def check(self, spec: RunSpec) -> None:
        if not spec.make_target().planar:
            raise SpecError("measure", self.key, "it needs a target of two dimensions")

    def of(self, lane: Evidence) -> Estimate:
        found = divergence.kl_2d(lane.trace.statistics, lane.trace.target)
        return Estimate(found.value - found.bias, None, 0.0)
