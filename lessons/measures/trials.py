"""The results of the trials of a method that chooses its batch size."""

import numpy as np

from sgmcmc_lab.lessons.measures.base import NAN
from sgmcmc_lab.lessons.measures.model import OfModel
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.parameters import Count, SpecError
from sgmcmc_lab.samplers.settings import ANY_SAMPLER


class OfTrials(OfModel):
    """A number of the trials, as a mean over the chains; there is none before a chain has chosen."""

    def check(self, spec: RunSpec) -> None:
        chooses = getattr(ANY_SAMPLER[spec.sampler.key], "chooses_batch_size", False)
        if not chooses or spec.sampler.values()["batch_size"]:
            raise SpecError("measure", self.key, "allowed is a method that chooses its batch size, set to 0")

    def of_chain(self, chain: ModelChain) -> float:
        seen = chain.snapshot()
        return self.of_trials(seen["batch_sizes"], seen["tau"], seen["objective"]) if seen["chosen"][0] else NAN

    def of_trials(self, sizes: np.ndarray, taus: np.ndarray, costs: np.ndarray) -> float:
        """The number, from what stands in the picture of the trials."""
        raise NotImplementedError


class TrialTau(OfTrials):
    """The autocorrelation time τ(m) in the trial of one batch size, in sweeps."""

    key = "trial_tau"
    title = "Autocorrelation time of a batch size"
    batch_size = Count(1, bounds=(1, 100_000), label="Batch size m", doc="One of the sizes that were tried.")

    def of_trials(self, sizes: np.ndarray, taus: np.ndarray, costs: np.ndarray) -> float:
        return float(taus[sizes == self.batch_size].sum()) if (sizes == self.batch_size).any() else NAN


class TrialGain(OfTrials):
    """The cost of an independent draw with all data over the cost with the best size: f(N)/min f, at least 1."""

    key = "trial_gain"
    title = "Gain of the best batch size over the full batch"

    def of_trials(self, sizes: np.ndarray, taus: np.ndarray, costs: np.ndarray) -> float:
        return float(costs[sizes.argmax()] / costs.min())
