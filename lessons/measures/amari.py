"""How far the loadings of a chain's last step are from the known ones, as means over the chains."""

from sgmcmc_lab.lessons.measures.base import NAN
from sgmcmc_lab.lessons.measures.model import OfModel
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.models.factors.amari import amari
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.settings import ANY_TARGET


class Amari(OfModel):
    """The Amari error: 0 where the loadings are the known ones, whatever their order, sign and scale; about 0.36 of
    random ones. Without known loadings there is none.
    """

    key = "amari"
    title = "Amari error"

    def check(self, spec: RunSpec) -> None:
        if spec.target.key != "factors":
            allowed = f"{ANY_TARGET[spec.target.key].title} has no loadings: it is of {ANY_TARGET['factors'].title}"
            raise SpecError("measure", self.key, allowed)

    def of_chain(self, chain: ModelChain) -> float:
        known = chain.model.truth
        return NAN if known is None else amari(chain.snapshot()["W"], known)
