"""The spectral gap of a recipe."""

from sgmcmc_lab.lessons.measures.base import OWN_RUN, Estimate, Evidence, Measure
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels.recipe import RecipeSampler
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.recipe.flow import Flow
from sgmcmc_lab.samplers.recipe.recipe import Recipe


class Gap(Measure):
    """The spectral gap of a typed recipe: the slowest rate at which its process forgets, from its density on a grid."""

    key = "gap"
    title = "Spectral gap"
    requires = OWN_RUN
    constant_steps = True
    has_error = False

    def check(self, spec: RunSpec) -> None:
        if spec.sampler.key != RecipeSampler.key:
            raise SpecError("measure", self.key, f"it needs a recipe, which {spec.sampler.key} is not")
        n = len(self._recipe(spec).layout.names)
        if n > 2:
            raise SpecError("measure", self.key, f"it needs a state of one or two numbers, and this one has {n}")
        if spec.gradient.key != "full":
            raise SpecError("measure", self.key, "it needs the full gradient")
        if n == 2 and self._recipe(spec).refresh:
            raise SpecError("measure", self.key, "it needs a momentum that is not redrawn")

    @staticmethod
    def _recipe(spec: RunSpec) -> Recipe:
        sampler = spec.make_sampler()
        assert isinstance(sampler, RecipeSampler)
        return sampler.recipe(spec.make_target())

    def of(self, lane: Evidence) -> Estimate:
        spec = lane.trace.spec
        return Estimate(Flow(self._recipe(spec), spec.make_target()).spectrum.gap)
