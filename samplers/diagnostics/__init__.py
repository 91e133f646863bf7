"""The diagnostics, one a file: pure functions of running statistics or draws that give plain numbers and arrays."""

from sgmcmc_lab.samplers.diagnostics import (
    agreement,
    autocorrelation,
    bands,
    calibration,
    coupling,
    divergence,
    histogram,
    ks,
    moments,
    predictive,
)

__all__ = [
    "agreement",
    "autocorrelation",
    "bands",
    "calibration",
    "coupling",
    "divergence",
    "histogram",
    "ks",
    "moments",
    "predictive",
]
