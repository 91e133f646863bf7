"""Factors of columns of numbers: gamma process factor analysis, and what it is compared with."""

from sgmcmc_lab.samplers.models.factors.gibbs import FactorsGibbs
from sgmcmc_lab.samplers.models.factors.model import Factors
from sgmcmc_lab.samplers.models.factors.variational import FactorsGamma, FactorsNorm

FACTOR_METHODS = (FactorsGamma, FactorsGibbs, FactorsNorm)

__all__ = ["FACTOR_METHODS", "Factors"]
