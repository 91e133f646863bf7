"""The integrated autocorrelation time, and what an independent draw costs by it."""

from typing import Any

import numpy as np

from sgmcmc_lab.lessons.measures.base import Estimate, OfChains
from sgmcmc_lab.samplers.diagnostics.autocorrelation import integrated_time
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.parameters import Option, Real, SpecError
from sgmcmc_lab.samplers.settings import is_model


class Tau(OfChains):
    """The integrated autocorrelation time, in steps or in units of time (steps × ε)."""

    key = "tau"
    title = "Autocorrelation time"
    constant_steps = True
    of_model = True
    unit = Option(default="steps", objects=["steps", "time"], label="Unit", doc="Steps, or the time that they advance.")

    def check(self, spec: RunSpec) -> None:
        super().check(spec)
        if self.unit == "time" and is_model(spec.target.key):
            raise SpecError("measure.unit", self.unit, "allowed is steps: a method of a model has no time")

    def of(self, lane: Any) -> Estimate:
        found = integrated_time(lane.statistics, self.k)
        scale = lane.trace.spec.make_sampler().time_per_step if self.unit == "time" else 1.0
        error = found.standard_error * scale
        return Estimate(found.tau * scale, error if np.isfinite(error) else None)


class Cost(Tau):
    """The cost of an independent draw, (n w_z + w_θ) τ: n data a gradient, τ the autocorrelation time in steps.

    Smolyakov, Liu & Fisher, eq (13); where the target has no data, n is 1.
    """

    key = "cost"
    title = "Cost of an independent draw"
    of_model = False
    per_datum = Real(1.0, bounds=(0.0, 1e9), label="Cost of a data point", doc="w_z: the cost of one data point.")
    per_step = Real(1.0, bounds=(0.0, 1e9), label="Cost of a step", doc="w_θ: what a step costs beside its data.")

    def of(self, lane: Any) -> Estimate:
        found, spec = super().of(lane), lane.trace.spec
        n = spec.make_gradient().data_per_gradient(lane.trace.target)
        scale = n * self.per_datum + self.per_step
        return Estimate(found.value * scale, None if found.error is None else found.error * scale)
