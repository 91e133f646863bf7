"""The declarations of every measure, and the common part of measures.

A measure of a lane on a density reads its :class:`Evidence`: the trace, and what else the measure ``requires``. A
measure of a lane on a model of data reads its run. Both have running statistics of columns. All are functions of
numbers that the run gives, so that the same measure serves the headless run and the live check mark; those that need
more than the running statistics are for the headless run only.

Standard errors are those of the spread between chains, divided by the root of their number, where nothing else is said;
they are given from :data:`FEWEST` chains on.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import param

from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.models import MODELS
from sgmcmc_lab.samplers.parameters import Count, SpecError, Value, check_all
from sgmcmc_lab.samplers.running_statistics import Statistics
from sgmcmc_lab.samplers.settings import ANY_SAMPLER, ANY_TARGET, is_model
from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.trace import Divergence, Trace

FEWEST = 8
"""Chains that a standard error from their spread needs."""
STATISTICS, DRAWS, MOMENTA, OWN_RUN = "statistics", "draws", "momenta", "a run of its own"
"""The data that a measure requires: the running statistics alone, all draws, snapshots of the momenta, or its own
run."""
NAN = float("nan")


@dataclass(frozen=True)
class Estimate:
    """A measured number."""

    value: float
    error: float | None = None
    """Its standard error, where it is known."""
    exact: float | None = None
    """Its value under the target distribution, where that is known."""


@dataclass(frozen=True)
class Evidence:
    """The run of one lane as measures read it."""

    trace: Trace
    momenta: Array | None = None
    """Snapshots of the chains' auxiliary variables, evenly spaced after the burn-in, (snapshots, chains, …)."""

    @property
    def statistics(self) -> Statistics:
        """The running statistics of its columns."""
        return self.trace.statistics

    @property
    def divergence(self) -> Divergence | None:
        """Why the lane stopped, where it did."""
        return self.trace.divergence


class Measure(param.ParameterizedABC):
    """A number of a run. Instances are never changed after they are made."""

    key: ClassVar[str]
    title: ClassVar[str]
    requires: ClassVar[str] = STATISTICS
    has_error: ClassVar[bool] = True
    """Whether a standard error comes with it."""
    of_density: ClassVar[bool] = True
    constant_steps: ClassVar[bool] = False
    """Whether it is defined only for lanes whose draws have no weights, by step sizes or of their own."""
    equal_weights: ClassVar[bool] = False
    """Whether it is defined only for lanes whose draws have no weights of their own."""
    of_model: ClassVar[bool] = False
    """Whether it is defined for lanes on a density, and for lanes on a model of data."""

    def __init__(self, **values: Value):
        """Raises :class:`~samplers.parameters.SpecError` for a value that is not allowed."""
        super().__init__(**dict(check_all(type(self), "measure", values)))

    def fit(self, spec: RunSpec) -> None:
        """Raise :class:`SpecError` where the lane has no such number, or its steps are not of the size it is for."""
        if self.constant_steps and spec.make_schedule().falls:
            raise SpecError(
                "measure",
                self.key,
                "the step size of the lane falls along the run; allowed are lanes without a schedule",
            )
        # A model's method is not in the list.
        weighs = spec.sampler.key in SAMPLERS and SAMPLERS[spec.sampler.key].weighs
        if weighs and (self.constant_steps or self.equal_weights):
            raise SpecError(
                "measure", self.key, "the draws of the lane have weights; allowed are samplers that give them none"
            )
        self.check(spec)

    def check(self, spec: RunSpec) -> None:
        """Raise :class:`SpecError` where the lane has no such number."""

    @abstractmethod
    def of(self, lane: Any) -> Estimate:
        """The number of a lane by its :class:`Evidence`, or its :class:`~samplers.models.run.ModelRun`."""


class OfColumn(Measure):
    """A number of one column: of θ, of ω on the simplex, or of what is followed of a model; counted from 1."""

    column = Count(1, bounds=(1, 400), label="Column", doc="The number of the coordinate, counted from 1.")

    @property
    def k(self) -> int:
        """The column, counted from 0."""
        return int(self.column) - 1

    def check(self, spec: RunSpec) -> None:
        key = spec.target.key
        n = len(MODELS[key].followed) if is_model(key) else spec.make_target().n_columns
        if self.column > n:
            raise SpecError("measure.column", self.column, f"{ANY_TARGET[key].title} has the columns 1 to {n}")


class OfChains(OfColumn):
    """A number of one column that is taken along chains or across them, as if they were independent."""

    def check(self, spec: RunSpec) -> None:
        super().check(spec)
        sampler = ANY_SAMPLER[spec.sampler.key]
        if getattr(sampler, "interacting", False):
            raise SpecError("measure", self.key, f"the particles of {sampler.title} interact: they are not chains")


def spread(values: Array) -> float | None:
    """The standard error of the mean of independent values, from FEWEST values on."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) >= FEWEST else None
