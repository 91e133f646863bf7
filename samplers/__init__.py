"""The engine of SG-MCMC Lab: targets, samplers and diagnostics, without any user interface."""

from samplers.engine import Run, run
from samplers.parameters import SpecError
from samplers.spec import Change, Choice, Experiment, Lane, RunSpec
from samplers.trace import Trace

__all__ = ["Change", "Choice", "Experiment", "Lane", "Run", "RunSpec", "SpecError", "Trace", "run"]
