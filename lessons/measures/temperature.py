"""The temperature of the velocities."""

from sgmcmc_lab.lessons.measures.base import MOMENTA, NAN, Estimate, Evidence, Measure, spread
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.kernels.noisy_gradient import Moving
from sgmcmc_lab.samplers.parameters import SpecError


class Temperature(Measure):
    """E ‖v‖²/m, with m the dimension of the manifold: 1 where all noise is accounted for."""

    key = "temperature"
    title = "Temperature"
    requires = MOMENTA

    def check(self, spec: RunSpec) -> None:
        if not issubclass(SAMPLERS[spec.sampler.key], Moving):
            raise SpecError(
                "measure", self.key, f"it needs a sampler with a velocity, which {spec.sampler.key} has not"
            )

    def of(self, lane: Evidence) -> Estimate:
        if lane.momenta is None or not len(lane.momenta):
            return Estimate(NAN)
        target = lane.trace.target
        values = (lane.momenta[:, :, : target.dim] ** 2).sum(axis=2).mean(axis=0) / target.manifold.dim
        return Estimate(float(values.mean()), spread(values), 1.0)
