"""The engine of SG-MCMC Lab: targets, samplers and diagnostics, without any user interface."""

from sgmcmc_lab.samplers.engine import Run, run
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.spec import Change, Choice, Experiment, Lane, RunSpec
from sgmcmc_lab.samplers.trace import Trace

__all__ = ["Change", "Choice", "Experiment", "Lane", "Run", "RunSpec", "SpecError", "Trace", "run"]
