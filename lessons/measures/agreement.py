"""How well the clusters of a chain's last step agree with known groups, as means over the chains."""

from sgmcmc_lab.lessons.measures.base import NAN
from sgmcmc_lab.lessons.measures.model import OfModel
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.models.agreement import adjusted_rand, purity
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.settings import ANY_TARGET

OF = ("clusters", "mixture")
"""Models whose snapshots have the cluster of each data point, z."""


class Agreement(OfModel):
    """The agreement of clusters with known groups, on models of clusters with such groups."""

    def check(self, spec: RunSpec) -> None:
        if spec.target.key not in OF:
            allowed = ", ".join(ANY_TARGET[key].title for key in OF)
            raise SpecError(
                "measure", self.key, f"{ANY_TARGET[spec.target.key].title} has no clusters: it is of {allowed}"
            )


class AdjustedRand(Agreement):
    """The adjusted Rand index: 1 where the clusters are the known groups, 0 on average where they are independent."""

    key = "adjusted_rand"
    title = "Adjusted Rand index"

    def of_chain(self, chain: ModelChain) -> float:
        known = chain.model.groups
        return NAN if known is None else adjusted_rand(chain.snapshot()["z"], known)


class Purity(Agreement):
    """The share of the data that belong to the commonest known group of their cluster."""

    key = "purity"
    title = "Purity"

    def of_chain(self, chain: ModelChain) -> float:
        known = chain.model.groups
        return NAN if known is None else purity(chain.snapshot()["z"], known)
