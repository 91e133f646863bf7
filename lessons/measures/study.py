"""The numbers of a study's method: its scores and its evidence lower bound."""

import numpy as np

from lessons.measures.base import NAN, Estimate, Measure
from samplers.models.study import StudyRun
from samplers.parameters import Count, Real


class Score(Measure):
    """A study's held-out score: the last one, or the last one up to a step."""

    key = "score"
    title = "Held-out score"
    of_study = True
    has_error = False
    step = Count(0, bounds=(0, 1_000_000_000), label="Step", doc="The score at this step; 0 for the last.")

    def of(self, lane: StudyRun) -> Estimate:
        scores = [score.value for score in lane.scores if self.step == 0 or score.step <= self.step]
        return Estimate(scores[-1] if scores and lane.divergence is None else NAN)


class DataToReach(Measure):
    """How many data a method had touched when its score first was as good as ``threshold``; infinite if never."""

    key = "data_to_reach"
    title = "Data to reach a score"
    of_study = True
    has_error = False
    threshold = Real(0.0, bounds=(-1e12, 1e12), label="Score", doc="The held-out score to reach.")

    def of(self, lane: StudyRun) -> Estimate:
        sign = 1 if lane.model.higher_is_better else -1
        reached = (score.data_seen for score in lane.scores if sign * score.value >= sign * self.threshold)
        return Estimate(float(next(reached, np.inf)))


class Elbo(Measure):
    """The evidence lower bound of a method that has one: the mean of its last tenth of steps, each one noisy draw."""

    key = "elbo"
    title = "Evidence lower bound"
    of_study = True
    has_error = False

    def of(self, lane: StudyRun) -> Estimate:
        values = getattr(lane.state, "elbo", ())
        if not len(values) or lane.divergence is not None:
            return Estimate(NAN)
        return Estimate(float(np.mean(values[-max(len(values) // 10, 1) :])))
