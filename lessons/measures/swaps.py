"""The frequency of swaps of neighbouring rungs."""

import numpy as np

from sgmcmc_lab.lessons.measures.base import MOMENTA, NAN, Estimate, Evidence, Measure, spread
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.kernels.tempering import Tempered
from sgmcmc_lab.samplers.parameters import Count, SpecError


class Swaps(Measure):
    """The share of the proposed swaps of two neighbouring rungs that were made, from the first to the last snapshot."""

    key = "swaps"
    title = "Swaps"
    requires = MOMENTA
    pair = Count(1, bounds=(1, 11), label="Pair", doc="The number of the colder rung of the two, counted from 1.")

    def check(self, spec: RunSpec) -> None:
        if not issubclass(SAMPLERS[spec.sampler.key], Tempered):
            raise SpecError("measure", self.key, f"it needs a sampler with rungs, which {spec.sampler.key} has not")
        n_pairs = spec.make_sampler().rungs - 1
        if self.pair > n_pairs:
            raise SpecError("measure.pair", self.pair, f"{spec.sampler.key} has the pairs 1 to {n_pairs}")

    def of(self, lane: Evidence) -> Estimate:
        if lane.momenta is None or len(lane.momenta) < 2:
            return Estimate(NAN)
        # The counts of proposed and made swaps follow the position of the hotter rung.
        last = int(self.pair) * (lane.trace.target.dim + 2)
        proposed, made = (lane.momenta[-1] - lane.momenta[0])[:, last - 2 : last].T
        if not proposed.all():
            return Estimate(NAN)
        return Estimate(float(made.sum() / proposed.sum()), spread(np.asarray(made / proposed)))
