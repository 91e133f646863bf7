"""The KS distance to the target, of all chains together and of a chain."""

import numpy as np

from sgmcmc_lab.lessons.measures.base import DRAWS, NAN, Estimate, Evidence, Measure, spread
from sgmcmc_lab.samplers import kolmogorov
from sgmcmc_lab.samplers.diagnostics import ks
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.parameters import Count, SpecError


class KS(Measure):
    """The mean KS distance to the target (Baker et al. 2018), of all chains together; or of one column.

    ``exact`` is what as many independent exact draws would have, .8687/√n.
    """

    key = "ks"
    title = "KS distance"
    has_error = False
    column = Count(
        0,
        bounds=(0, 400),
        label="Column",
        doc="The number of the column, counted from 1; 0 for the mean of the target's own.",
    )

    def check(self, spec: RunSpec) -> None:
        n = spec.make_target().n_columns
        if self.column > n:
            raise SpecError("measure.column", self.column, f"allowed are 0 to {n}")

    def of(self, lane: Evidence) -> Estimate:
        statistics = lane.trace.statistics
        n = statistics.n_effective
        if n == 0:
            return Estimate(NAN)
        value = (
            ks.distance(statistics, int(self.column) - 1)
            if int(self.column)
            else ks.mean_distance(statistics, lane.trace.target)
        )
        return Estimate(value, None, kolmogorov.baseline(n))


class ChainKS(Measure):
    """The mean over chains of the KS distance of each chain's own draws: the score of Baker et al. 2018, Fig 2."""

    key = "chain_ks"
    title = "KS distance of a chain"
    requires = DRAWS

    def of(self, lane: Evidence) -> Estimate:
        draws, weights = lane.trace.draws, lane.trace.weights
        if draws is None or draws.shape[1] == 0:
            return Estimate(NAN)
        each = np.ones(draws.shape[:2]) if weights is None else np.broadcast_to(weights, draws.shape[:2])
        values = np.array(
            [
                ks.of_draws(lane.trace.target, chain, None if weights is None else own)
                for chain, own in zip(draws, each, strict=True)
            ]
        )
        n = each[0].sum() ** 2 / (each[0] ** 2).sum()
        return Estimate(float(values.mean()), spread(values), kolmogorov.baseline(n))
