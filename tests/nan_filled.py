"""The results of samplers, targets and methods if every uninitialised array begins with NaN.

Run as a program, ``python -m tests.nan_filled FILE``, with Numba's compilation off: the functions are the same, in
plain Python, and ``np.empty`` is one that fills. ``found(cases)`` is what both this program and the test record.
"""

import math
import os
import sys

import numpy as np

N_STEPS = 3
GARBAGE = {"f": np.nan, "i": 77, "b": True}
"""The first value of an uninitialised array, by the kind of its numbers."""
NEAR = [
    "gaussian",
    "correlated_gaussian",
    "gamma",
    "lognormal",
    "sparse_dirichlet",
    "linear_regression",
    "student_mean",
    "fisher",
    "von_mises",
    "matrix_langevin",
    "sphere_dirichlet",
    "mises_posterior",
]
"""Targets of all supports and with data; each sampler is tried on the first two that it takes with each estimator."""


def filled(make):
    """The same function, whose arrays hold garbage."""

    def made(*args, **kw):
        out = make(*args, **kw)
        if out.dtype.kind in GARBAGE:
            out[...] = GARBAGE[out.dtype.kind]
        return out

    return made


def cases():
    """Names of sampler, target and estimator."""
    from tests.helpers.checks_samplers import OFFERED

    tried = {}
    for t in NEAR:
        for s, other, g in OFFERED:
            if other == t:
                tried.setdefault((s, g), []).append((s, t, g))
    return [each for some in tried.values() for each in some[:2]]


def of_samplers():
    """The contents of the runs of the cases after a few steps; of Gaussians also far out in a tail, with a step whose
    error in energy no exponential holds.
    """
    from sgmcmc_lab.samplers import engine
    from sgmcmc_lab.samplers.experiment import RunSpec
    from sgmcmc_lab.samplers.kernels import SAMPLERS
    from tests.helpers.checks_samplers import FEW_DATA

    out = {}
    for s, t, g in cases():
        for far in (0.0, 200.0) if t in NEAR[:2] else (0.0,):
            params = {"step_size": 1.0} if far and "step_size" in SAMPLERS[s].param else {}
            run = engine.Run(
                RunSpec.of(
                    t, s, g, target_params=FEW_DATA.get(t), sampler_params=params, n_chains=2, n_steps=N_STEPS, seed=3
                ),
                keep_draws=True,
            )
            run.position += far
            run.advance(N_STEPS)
            name = f"{s} {t} {g} {far:g}"
            out[f"{name} draws"], out[f"{name} place"] = run.trace().draws, run.position
            out[f"{name} beside"], out[f"{name} gradient"] = run.momentum, run.last_gradient
            out[f"{name} counts"] = run.counts
    # Where the energy is no formula, entries with U read U and ∇U, which are the last columns beside a chain.
    entries = {"diffusion_entries": ("1 + 0.1*U",), "step_size": 1e-4}
    few = FEW_DATA.get("student_mean")
    spec = RunSpec.of("student_mean", "recipe", target_params=few, sampler_params=entries, n_chains=2, seed=3)
    run = engine.Run(spec, keep_draws=True)
    run.advance(N_STEPS)
    out["recipe with U"] = run.trace().draws
    return out


def of_methods():
    """The state of each method for a model of data after a few steps.

    But that of the gamma gradients: Python's own numbers overflow in a continued fraction that ends in infinities.
    """
    from numpy.random import SFC64, Generator

    from sgmcmc_lab.samplers.models import METHODS
    from sgmcmc_lab.samplers.models.run import ModelChain
    from sgmcmc_lab.samplers.models.variational.gamma import GammaAscent
    from tests.helpers.checks_methods import numbers, small_model

    out = {}
    for key, cls in METHODS.items():
        for k, params in enumerate(cls.tried_at if not issubclass(cls, GammaAscent) else ()):
            chain = ModelChain(small_model(cls), cls(**params), Generator(SFC64(4)))
            for _ in range(N_STEPS):
                chain.advance()
            out |= {f"{key} {k} {name}": value for name, value in numbers(chain.state).items()}
            out[f"{key} {k} score"] = np.array(chain.scored())
    return out


def of_targets():
    """Energy, gradient, slopes of the data, draws and columns of the same targets."""
    from sgmcmc_lab.samplers.targets import TARGETS
    from sgmcmc_lab.samplers.targets.base import Target
    from tests.helpers.checks_samplers import FEW_DATA

    out = {}
    for t in NEAR:
        target = TARGETS[t](**FEW_DATA.get(t, {}))
        theta = np.tile(np.asarray(target.start(), dtype=float), (2, 1))
        out[f"{t} energy"], out[f"{t} gradient"] = target.energies_at(theta), target.gradient_at(theta)
        out[f"{t} values"], out[f"{t} drawn"] = target.values(theta), target.sample(1, 2)
        if type(target).batch is not Target.batch:
            out[f"{t} slopes"] = target.slopes_at(theta[0])
    return out


def found():
    """All of it, by name."""
    return of_targets() | of_samplers() | of_methods()


def in_plain_python():
    """Let the functions of an uncompiled engine be called, with what the compiled ones have."""
    from sgmcmc_lab.samplers import kernels
    from sgmcmc_lab.samplers.compile import jit
    from sgmcmc_lab.samplers.models import run

    jit.prepare, run.functions = (lambda *args: None), (lambda method: [])
    # These are infinite or NaN where Python's own raise an error.
    engine = [
        module for name, module in list(sys.modules.items()) if name.startswith(kernels.__name__.rpartition(".")[0])
    ]
    assert len(engine) > 100
    for module in engine:
        # Only the compiler knows owners.
        if hasattr(module, "borrowed"):
            module.borrowed, module.keep_alive = (lambda value: value), (lambda owners: None)
        for name in ("exp", "log", "sqrt"):
            if getattr(module, name, None) is getattr(math, name):
                setattr(module, name, getattr(np, name))
    np.seterr(all="ignore")
    np.empty, np.empty_like = filled(np.empty), filled(np.empty_like)


if __name__ == "__main__":
    assert os.environ["NUMBA_DISABLE_JIT"] == "1"
    from tests.helpers import checks_methods, checks_samplers  # noqa: F401

    in_plain_python()
    np.savez(sys.argv[1], **found())
