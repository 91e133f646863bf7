"""The engine of SG-MCMC Lab: targets, samplers and diagnostics, without any user interface."""

from sgmcmc_lab.samplers import models as _models  # noqa: F401  (adds the models of data to their registries)
from sgmcmc_lab.samplers.choices import Choice
from sgmcmc_lab.samplers.engine import Run, run
from sgmcmc_lab.samplers.experiment import Experiment, RunSpec
from sgmcmc_lab.samplers.lanes import Change, Lane
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.trace import Trace

__all__ = ["Change", "Choice", "Experiment", "Lane", "Run", "RunSpec", "SpecError", "Trace", "run"]
