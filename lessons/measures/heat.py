"""How hot the velocities of topics on a sphere are in a chain's last step, as a mean over the chains."""

from sgmcmc_lab.lessons.measures.base import NAN
from sgmcmc_lab.lessons.measures.model import OfModel
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.models.spherical import Spherical
from sgmcmc_lab.samplers.models.spherical.variational import SphericalVariational
from sgmcmc_lab.samplers.parameters import SpecError


class Heat(OfModel):
    """‖v‖²/m over all topics, with m = K(V − 1): 1 on average at the right temperature, ± √(2/m) in one step."""

    key = "heat"
    title = "Temperature of the topics"

    def check(self, spec: RunSpec) -> None:
        if spec.target.key != Spherical.key or issubclass(METHODS[spec.sampler.key], SphericalVariational):
            raise SpecError(
                "measure", self.key, f"it needs topics on a sphere with a velocity, which {spec.sampler.key} has not"
            )

    def of_chain(self, chain: ModelChain) -> float:
        return float(chain.snapshot()["heat"][0]) or NAN
