"""The diagnostics, one a file: pure functions of running statistics or draws that give plain numbers and arrays."""

from samplers.diagnostics import autocorrelation, calibration, convergence, divergence, ks, moments, predictive

__all__ = ["autocorrelation", "calibration", "convergence", "divergence", "ks", "moments", "predictive"]
