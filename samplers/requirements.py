"""The words for what gradient estimators and samplers require of a target, and estimators of a sampler.

An estimator lists what it :attr:`~samplers.gradients.base.Estimator.requires`, a target what it
:attr:`~samplers.targets.base.Target.provides`, and a sampler what it :attr:`~samplers.kernels.base.Sampler.accepts`.
The estimator fits both where it finds all of its words in both; every menu follows from that. A sampler's own
:attr:`~samplers.kernels.base.Sampler.requires` must be in what the target provides, too.
"""

FULL = "full"
"""The gradient itself."""
NOISE = "noise"
"""Gaussian noise added to it."""
KNOWN = "known"
"""A number that is subtracted from the noise that the sampler injects."""
REDRAWN = "redrawn"
"""A subtracted number that differs from step to step."""
BATCH = "batch"
"""Some of the data in place of all."""
SPREAD = "spread"
"""A covariance that is subtracted, computed from the gradients of single data points."""
MODE = "mode"
"""The mode of the density."""
MEMORY = "memory"
"""A memory of the data points, numbered 0, 1, …, as earlier steps saw them. An accept step is not exact with it: on the
way back the memory would be another."""
LIPSCHITZ = "lipschitz"
"""Lipschitz constants of the partial derivatives of the energy, valid for all θ, and of those of each data point."""
ENERGIES = "energies"
"""The energy, too, with each data point in place of all: ``batch`` writes it behind the gradient."""

ADDED = frozenset({FULL, NOISE, KNOWN, REDRAWN})
"""Provided by every target on ℝᵈ."""
DATA = ADDED | {BATCH, SPREAD, MEMORY}
"""Provided by a target with numbered data points whose gradient is a sum over them."""
STOCHASTIC = DATA - {REDRAWN} | {MODE}
"""Accepted by a sampler that steps by :mod:`samplers.kernels.noisy_gradient`."""
