"""The measures of claims: one file a measure, or a family of them."""

from sgmcmc_lab.lessons.measures.acceptance import Acceptance
from sgmcmc_lab.lessons.measures.agreement import AdjustedRand, Purity
from sgmcmc_lab.lessons.measures.amari import Amari
from sgmcmc_lab.lessons.measures.autocorrelation import Cost, Tau
from sgmcmc_lab.lessons.measures.auxiliary import Auxiliary
from sgmcmc_lab.lessons.measures.base import Measure
from sgmcmc_lab.lessons.measures.clipped import Clipped
from sgmcmc_lab.lessons.measures.data import DataOfAStep
from sgmcmc_lab.lessons.measures.diverged import Diverged
from sgmcmc_lab.lessons.measures.ensemble import EnsembleMean, EnsembleMGF, EnsembleVariance
from sgmcmc_lab.lessons.measures.expectation import Expectation
from sgmcmc_lab.lessons.measures.gap import Gap
from sgmcmc_lab.lessons.measures.heat import Heat
from sgmcmc_lab.lessons.measures.held_out import HeldOut
from sgmcmc_lab.lessons.measures.kl import KL, JointKL
from sgmcmc_lab.lessons.measures.ks import KS, ChainKS
from sgmcmc_lab.lessons.measures.ksd import KSD
from sgmcmc_lab.lessons.measures.model import DataToReach, Elbo, Score
from sgmcmc_lab.lessons.measures.moments import Mean, Power, Variance
from sgmcmc_lab.lessons.measures.predictive import Predictive
from sgmcmc_lab.lessons.measures.probability import Probability
from sgmcmc_lab.lessons.measures.quantile import Quantile
from sgmcmc_lab.lessons.measures.rhat import RHat
from sgmcmc_lab.lessons.measures.scan import ScanCost, ScanTau
from sgmcmc_lab.lessons.measures.swaps import Swaps
from sgmcmc_lab.lessons.measures.temperature import Temperature
from sgmcmc_lab.lessons.measures.trials import TrialGain, TrialTau
from sgmcmc_lab.samplers.registry import Registry

MEASURES: Registry[type[Measure]] = Registry(
    "measure",
    Mean,
    Variance,
    Power,
    Expectation,
    Probability,
    Quantile,
    Predictive,
    HeldOut,
    KS,
    ChainKS,
    KSD,
    KL,
    JointKL,
    Tau,
    Cost,
    ScanTau,
    ScanCost,
    Gap,
    RHat,
    Acceptance,
    Swaps,
    DataOfAStep,
    Clipped,
    Diverged,
    Temperature,
    Auxiliary,
    EnsembleMean,
    EnsembleVariance,
    EnsembleMGF,
    Score,
    DataToReach,
    Elbo,
    AdjustedRand,
    Purity,
    Heat,
    Amari,
    TrialTau,
    TrialGain,
)
