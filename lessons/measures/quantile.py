"""A quantile."""

import numpy as np

from sgmcmc_lab.lessons.measures.base import Estimate, Evidence, OfColumn
from sgmcmc_lab.samplers.diagnostics import ks
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.targets.base import Array, Column


class Quantile(OfColumn):
    """The quantile at p, from the histogram; exact from the target's CDF."""

    key = "quantile"
    title = "Quantile"
    has_error = False
    p = Real(0.5, bounds=(1e-6, 1 - 1e-6), label="Probability", doc="The share of draws that are below.")

    def of(self, lane: Evidence) -> Estimate:
        statistics = lane.trace.statistics
        column = statistics.columns[self.k]
        edges, cdf = ks.edges_and_cdf(column)
        return Estimate(
            _inverse(column, edges, ks.empirical_cdf(statistics, self.k), self.p),
            None,
            _inverse(column, edges, cdf, self.p),
        )


def _inverse(column: Column, edges: Array, cdf: Array, p: float) -> float:
    if not cdf[0] <= p <= cdf[-1]:
        return float(edges[0] if p < cdf[0] else edges[-1])
    after = int(np.searchsorted(cdf, p))
    at = np.log(edges) if column.log else edges
    low, high = max(after - 1, 0), after
    share = 0.0 if cdf[high] == cdf[low] else (p - cdf[low]) / (cdf[high] - cdf[low])
    x = at[low] + share * (at[high] - at[low])
    return float(np.exp(x) if column.log else x)
