"""How hot the velocities of topics on a sphere are in a chain's last step, as a mean over the chains."""

from lessons.measures.base import NAN
from lessons.measures.model import OfModel
from samplers.models import METHODS
from samplers.models.run import ModelChain
from samplers.models.spherical import Spherical
from samplers.models.spherical.variational import SphericalVariational
from samplers.parameters import SpecError
from samplers.spec import RunSpec


class Heat(OfModel):
    """‖v‖²/m over all topics, with m = K(V − 1): 1 on average at the right temperature, ± √(2/m) in one step."""

    key = "heat"
    title = "Temperature of the topics"

    def check(self, spec: RunSpec) -> None:
        if spec.target.key != Spherical.key or issubclass(METHODS[spec.sampler.key], SphericalVariational):
            raise SpecError("measure", self.key, f"it needs topics on a sphere with a velocity, which {spec.sampler.key} has not")  # fmt: skip

    def of_chain(self, chain: ModelChain) -> float:
        return float(chain.snapshot()["heat"][0]) or NAN
