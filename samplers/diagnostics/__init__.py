"""The diagnostics, one a file: pure functions of running statistics or draws that give plain numbers and arrays."""

from samplers.diagnostics import autocorrelation, convergence, divergence, ks, moments

__all__ = ["autocorrelation", "convergence", "divergence", "ks", "moments"]
