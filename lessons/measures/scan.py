"""Minibatch Gibbs where its autocorrelation time is known, and what an independent draw of it costs."""

import numpy as np

from sgmcmc_lab.lessons.measures.base import OWN_RUN, Estimate, Evidence, Measure, spread
from sgmcmc_lab.samplers import convergence
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.models.batch_size import exact_tau, scan_chain
from sgmcmc_lab.samplers.parameters import Count, Real, SpecError


class ScanTau(Measure):
    """The autocorrelation time of θ in minibatch Gibbs where it is known: 1 + 2s²N/m.

    θ flat, z_i | θ ~ N(θ, 1), x_i | z_i ~ N(z_i, s²), i = 1…N; a step draws m of the z_i anew, chosen at random, and
    then θ given all of them. It is a run of its own, with the lane's seed and as many steps and chains; no other number
    of the lane is in it.
    """

    key = "scan_tau"
    title = "Autocorrelation time of a scan"
    requires = OWN_RUN
    constant_steps = True
    n_data = Count(64, bounds=(1, 10_000), label="Data N", doc="How many data there are.")
    batch_size = Count(8, bounds=(1, 10_000), label="Batch size m", doc="How many z_i a step draws.")
    sd = Real(
        1.0, bounds=(0.01, 10.0), label="Standard deviation s", doc="The standard deviation of the data about their z."
    )

    def check(self, spec: RunSpec) -> None:
        if self.batch_size > self.n_data:
            raise SpecError("measure.batch_size", self.batch_size, f"allowed is at most the n_data of {self.n_data}")

    def of(self, lane: Evidence) -> Estimate:
        spec, n, variance = lane.trace.spec, int(self.n_data), float(self.sd) ** 2
        jit.prepare([scan_chain])
        values, out = [], np.empty(spec.n_steps)
        for chain in np.random.SeedSequence(spec.seed).spawn(spec.n_chains):
            rng = np.random.Generator(np.random.SFC64(chain))
            scan_chain(rng, variance, int(self.batch_size), np.empty(n), np.empty(n), out)
            values.append(convergence.tau_of_mean(out))
        exact = float(exact_tau(int(self.batch_size), n, variance))
        return Estimate(float(np.mean(values)), spread(np.array(values)), exact)


class ScanCost(ScanTau):
    """The cost of an independent draw of that scan, (m w_z + w_θ) τ, smallest at m* = √(2s²N w_θ/w_z)."""

    key = "scan_cost"
    title = "Cost of an independent draw of a scan"
    local = Real(1.0, bounds=(0.0, 1e9), label="Cost of a z", doc="w_z: what it costs to draw one z.")
    overall = Real(1.0, bounds=(0.0, 1e9), label="Cost of θ", doc="w_θ: what it costs to draw θ.")

    def of(self, lane: Evidence) -> Estimate:
        found = super().of(lane)
        scale = int(self.batch_size) * self.local + self.overall
        error = None if found.error is None else found.error * scale
        return Estimate(found.value * scale, error, None if found.exact is None else found.exact * scale)
