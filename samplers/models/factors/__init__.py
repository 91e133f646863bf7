"""Factors of columns of numbers: gamma process factor analysis, and what it is compared with."""

from samplers.models.factors.gibbs import FactorsGibbs
from samplers.models.factors.model import Factors
from samplers.models.factors.variational import FactorsGamma, FactorsNorm

FACTOR_METHODS = (FactorsGamma, FactorsGibbs, FactorsNorm)

__all__ = ["FACTOR_METHODS", "Factors"]
