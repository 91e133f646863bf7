"""What a claim can measure: one file a measure, or a family of them."""

from lessons.measures.acceptance import Acceptance
from lessons.measures.agreement import AdjustedRand, Purity
from lessons.measures.amari import Amari
from lessons.measures.autocorrelation import Cost, Tau
from lessons.measures.auxiliary import Auxiliary
from lessons.measures.base import Measure
from lessons.measures.clipped import Clipped
from lessons.measures.diverged import Diverged
from lessons.measures.ensemble import EnsembleMean, EnsembleMGF, EnsembleVariance
from lessons.measures.expectation import Expectation
from lessons.measures.gap import Gap
from lessons.measures.heat import Heat
from lessons.measures.kl import KL, JointKL
from lessons.measures.ks import KS, ChainKS
from lessons.measures.model import DataToReach, Elbo, Score
from lessons.measures.moments import Mean, Power, Variance
from lessons.measures.predictive import Predictive
from lessons.measures.probability import Probability
from lessons.measures.quantile import Quantile
from lessons.measures.rhat import RHat
from lessons.measures.scan import ScanCost, ScanTau
from lessons.measures.temperature import Temperature
from lessons.measures.trials import TrialGain, TrialTau
from samplers.registry import Registry

MEASURES: Registry[type[Measure]] = Registry(
    "measure",
    Mean,
    Variance,
    Power,
    Expectation,
    Probability,
    Quantile,
    Predictive,
    KS,
    ChainKS,
    KL,
    JointKL,
    Tau,
    Cost,
    ScanTau,
    ScanCost,
    Gap,
    RHat,
    Acceptance,
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
