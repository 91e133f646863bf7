"""The diagnostics, one a file: pure functions of running statistics or draws that give plain numbers and arrays."""

from sgmcmc_lab.samplers.diagnostics import (
    agreement,
    autocorrelation,
    bands,
    calibration,
    coupling,
    divergence,
    effective,
    histogram,
    ks,
    ksd,
    moments,
    pareto,
    predictive,
    ranks,
)

__all__ = [
    "agreement",
    "autocorrelation",
    "bands",
    "calibration",
    "coupling",
    "divergence",
    "effective",
    "histogram",
    "ks",
    "ksd",
    "moments",
    "pareto",
    "predictive",
    "ranks",
]
