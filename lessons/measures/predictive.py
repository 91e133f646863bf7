"""The posterior predictive p-value of a statistic of a typed model."""

import numpy as np

from sgmcmc_lab.lessons.measures.base import NAN, Estimate, Evidence, Measure
from sgmcmc_lab.samplers.diagnostics.calibration import generative
from sgmcmc_lab.samplers.diagnostics.predictive import STATISTICS, named, p_value
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.parameters import Option, SpecError
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior

DATA_SETS = 400
"""Made of draws that are evenly spaced in the run: p is known to .025."""


class Predictive(Measure):
    """The posterior predictive p: the share of data sets, made of the draws, whose statistic is the data's or more.

    The data are those of the first column that the row has a density of.
    """

    key = "predictive"
    title = "Posterior predictive p"
    has_error = False
    statistic = Option(
        default="max", objects=list(STATISTICS), label="Statistic", doc="The statistic of the outcome over all rows."
    )

    def check(self, spec: RunSpec) -> None:
        if not issubclass(TARGETS[spec.target.key], TypedPosterior):
            raise SpecError("measure", self.key, "it needs a typed posterior")

    def of(self, lane: Evidence) -> Estimate:
        target, draws = lane.trace.target, lane.statistics.equal_draws(DATA_SETS)
        if not isinstance(target, TypedPosterior) or not len(draws):
            return Estimate(NAN)
        model = generative(target)
        outcome = model.outcomes[0]
        made = model.data(np.random.default_rng(1), named(target, draws))[outcome]
        return Estimate(p_value(made, target.titles[outcome], self.statistic))
