"""The coherence of the topics of every method, on one axis."""

from collections.abc import Sequence
from typing import Any

from sgmcmc_lab.app.views.models.marks import NPMI
from sgmcmc_lab.app.views.models.scores import Scores
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.models.run import ModelChain, Score


class Coherence(Scores):
    """The mean coherence of a draw's topics, at the steps of the perplexity; one curve for each method."""

    key = "coherence"
    title = "Coherence"
    help = NPMI
    requires = "topics"
    high_is_good = True

    @classmethod
    def title_for(cls, experiment: Experiment) -> str:
        return cls.title

    def scores(self, chain: ModelChain) -> Sequence[Score]:
        return [score._replace(value=npmi) for score, npmi in zip(chain.scores, chain.state.coherence, strict=False)]

    def build(self) -> Any:
        p = super().build()
        self.title, self.hint = type(self).title, "mean NPMI; higher is better"
        return p
