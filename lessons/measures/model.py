"""The numbers of a lane on a model of data: its scores and its evidence lower bound, as means over its chains."""

from collections.abc import Callable

import numpy as np

from sgmcmc_lab.lessons.measures.base import NAN, Estimate, Measure
from sgmcmc_lab.samplers.models.run import ModelChain, ModelRun
from sgmcmc_lab.samplers.parameters import Count, Real


class OfModel(Measure):
    """A number of each chain; of one that blew up there is none."""

    of_density, of_model = False, True
    has_error = False

    def of(self, lane: ModelRun) -> Estimate:
        if lane.divergence is not None:
            return Estimate(NAN)
        return Estimate(float(np.mean([self.of_chain(chain) for chain in lane.chains])))

    of_chain: Callable[[ModelChain], float]


class Score(OfModel):
    """The held-out score: the last one, or the last one up to a step."""

    key = "score"
    title = "Held-out score"
    step = Count(0, bounds=(0, 1_000_000_000), label="Step", doc="The score at this step; 0 for the last.")

    def of_chain(self, chain: ModelChain) -> float:
        scores = [score.value for score in chain.scores if self.step == 0 or score.step <= self.step]
        return scores[-1] if scores else NAN


class DataToReach(OfModel):
    """The number of data points that a method had touched when its score first reached ``threshold``; infinite if
    never.
    """

    key = "data_to_reach"
    title = "Data to reach a score"
    threshold = Real(0.0, bounds=(-1e12, 1e12), label="Score", doc="The held-out score to reach.")

    def of_chain(self, chain: ModelChain) -> float:
        sign = 1 if chain.model.higher_is_better else -1
        reached = (score.data_seen for score in chain.scores if sign * score.value >= sign * self.threshold)
        return float(next(reached, np.inf))


class Elbo(OfModel):
    """The evidence lower bound of a method that has one: the mean of its last tenth of steps, each one noisy draw."""

    key = "elbo"
    title = "Evidence lower bound"

    def of_chain(self, chain: ModelChain) -> float:
        values = getattr(chain.state, "elbo", ())
        return float(np.mean(values[-max(len(values) // 10, 1) :])) if len(values) else NAN
