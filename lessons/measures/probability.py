"""The probability of an interval."""

import numpy as np

from sgmcmc_lab.lessons.measures.base import Estimate, Evidence, OfColumn
from sgmcmc_lab.samplers.diagnostics import ks
from sgmcmc_lab.samplers.diagnostics.autocorrelation import integrated_time
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.parameters import Real, SpecError


class Probability(OfColumn):
    """P(low < x < high), from the histogram; the standard error is √(p(1 − p)τ/n) with the τ of x itself.

    A bin that a bound divides counts in proportion; on a log axis, in proportion of the logarithm.
    """

    key = "probability"
    title = "Probability"
    low = Real(-1e300, bounds=(-1e300, 1e300), label="From", doc="The lower end.")
    high = Real(1e300, bounds=(-1e300, 1e300), label="To", doc="The upper end.")

    def check(self, spec: RunSpec) -> None:
        super().check(spec)
        if not self.low < self.high:
            raise SpecError("measure.low", self.low, f"allowed is less than high = {self.high:g}")

    def of(self, lane: Evidence) -> Estimate:
        statistics = lane.trace.statistics
        column = statistics.columns[self.k]
        low, high = empirical(lane, self.k, self.low), empirical(lane, self.k, self.high)
        p = high - low
        exact_low, exact_high = np.asarray(column.cdf(np.array([self.low, self.high])))
        # All draws on one side say that p is below about one effective draw.
        tau = integrated_time(statistics, self.k).tau
        n = statistics.n_effective / max(tau, 1.0)
        error = float(np.sqrt(max(p * (1 - p), 1 / n) / n)) if np.isfinite(n) and n > 0 else None
        return Estimate(p, error, float(exact_high - exact_low))


def empirical(lane: Evidence, k: int, x: float) -> float:
    """The empirical CDF of column ``k`` at x, linear within a bin (of the logarithm, on a log axis)."""
    statistics = lane.trace.statistics
    edges, _ = ks.edges_and_cdf(statistics.columns[k])
    if x < edges[0] or x > edges[-1]:
        return 0.0 if x < edges[0] else 1.0
    below = ks.empirical_cdf(statistics, k)
    if statistics.columns[k].log:
        return float(np.interp(np.log(x), np.log(edges), below))
    return float(np.interp(x, edges, below))
