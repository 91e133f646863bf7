"""What an estimator of the gradient needs, in words that targets and samplers know.

An estimator says what it :attr:`~samplers.gradients.base.Estimator.needs`, a target what it
:attr:`~samplers.targets.base.Target.gives`, a sampler what it :attr:`~samplers.kernels.base.Sampler.takes`. It fits
both where each has all that it needs: a new one is in every menu that it belongs in.
"""

FULL = "full"
"""The gradient itself."""
NOISE = "noise"
"""Gaussian noise on top of it."""
KNOWN = "known"
"""A number that is subtracted from the noise that the sampler injects."""
REDRAWN = "redrawn"
"""Such a number that is another one at every step."""
BATCH = "batch"
"""Some of the data in place of all."""
SPREAD = "spread"
"""A covariance that is subtracted, from the gradients of each datum."""
MODE = "mode"
"""Where the density is largest."""
MEMORY = "memory"
"""What was seen of data with numbers 0, 1, … in the steps before. An accept step is not exact with it: on the way back
the memory would be another."""

ADDED = frozenset({FULL, NOISE, KNOWN, REDRAWN})
"""What every target on ℝᵈ gives."""
DATA = ADDED | {BATCH, SPREAD, MEMORY}
"""What a target with numbered data gives, whose gradient is a sum over them."""
STOCHASTIC = DATA - {REDRAWN} | {MODE}
"""What a sampler takes that steps by :mod:`samplers.kernels.kicks`."""
