"""The moments of one column."""

from math import comb

import numpy as np

from sgmcmc_lab.lessons.measures.base import Estimate, Evidence, OfColumn, spread
from sgmcmc_lab.samplers.models.run import ModelRun
from sgmcmc_lab.samplers.parameters import Count
from sgmcmc_lab.samplers.targets.base import Array, Target


def central_powers(lane: Evidence | ModelRun, k: int, centre: float) -> Array:
    """The mean of (x − centre)ᵖ, p = 0…4, in every chain: (5, chains)."""
    statistics = lane.statistics
    middle, per_scale = statistics.sums.scales[k, 3:]
    scale = 1 / per_scale
    z = np.vstack([np.ones(statistics.n_chains), statistics.sums.powers[k].T / np.maximum(statistics.chain_weights, 1)])
    shift = (middle - centre) / scale
    return np.array([scale**p * sum(comb(p, q) * shift ** (p - q) * z[q] for q in range(p + 1)) for p in range(5)])


def known(target: Target, *names: str) -> float | None:
    """An expectation that the target knows under one of these names."""
    exact = {moment.name: moment.exact for moment in target.moments}
    return next((float(exact[name]) for name in names if name in exact), None)


class Mean(OfColumn):
    """E x."""

    key = "mean"
    title = "Mean"
    of_model = True

    def of(self, lane: Evidence | ModelRun) -> Estimate:
        values, column = lane.statistics.chain_means(self.k), lane.statistics.columns[self.k]
        return Estimate(float(values.mean()), spread(values), column.mean if column.exact else None)


class Variance(OfColumn):
    """Var x, of all chains together about their common mean."""

    key = "variance"
    title = "Variance"
    of_model = True

    def of(self, lane: Evidence | ModelRun) -> Estimate:
        values, column = central_powers(lane, self.k, lane.statistics.mean(self.k))[2], lane.statistics.columns[self.k]
        return Estimate(float(values.mean()), spread(values), column.variance if column.exact else None)


class Power(OfColumn):
    """E xᵖ. The exact value is known for p = 1 and 2, and for more where the target names it."""

    key = "power"
    title = "Moment"
    order = Count(2, bounds=(1, 4), label="Power", doc="The power p of E xᵖ.")

    def of(self, lane: Evidence) -> Estimate:
        values = central_powers(lane, self.k, 0.0)[int(self.order)]
        column = lane.trace.statistics.columns[self.k]
        name = f"E {column.name}{'⁰¹²³⁴'[int(self.order)]}"
        exact = {1: column.mean, 2: column.variance + column.mean**2}.get(
            int(self.order), known(lane.trace.target, name)
        )
        return Estimate(float(values.mean()), spread(values), exact)
