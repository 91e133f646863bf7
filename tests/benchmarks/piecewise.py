"""Zig-zag's events, beside the cost of their random numbers alone and beside another program."""

import importlib.util
from math import pi, sqrt
from typing import Any

import numpy as np
from numba import types
from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.targets.correlated_gaussian import CorrelatedGaussian
from tests.benchmarks.timing import UNCOUNTED, Effort, Requirement, Work, in_turns, ratio_of


@jit.loop(types.float64(jit.rng_type, types.int64))
def _events_alone(rng, n):
    """``n`` times the random numbers of an event in two dimensions: two waiting times, and whether it takes place."""
    total = 0.0
    for _ in range(n):
        total += rng.standard_exponential() + rng.standard_exponential() + rng.random()
    return total


def piecewise_requirements(effort: Effort) -> list[Requirement]:
    """One chain on the correlated Gaussian, measured in turns; a step has one event on average."""
    precision = np.linalg.inv(CorrelatedGaussian().covariance)
    # v_i changes its sign at the mean rate E(v_i ∂_iU)⁺, of which ∂_iU is normal.
    rate = float(np.sqrt(np.diag(precision)).sum()) / sqrt(2 * pi)
    spec = RunSpec.of(
        "correlated_gaussian", "zigzag", sampler_params={"step_size": 1 / rate}, n_chains=1, burn_in=UNCOUNTED
    )
    works: dict[str, tuple[Work, int]] = {"engine": (Run(spec).advance, 1), "alone": (_alone(), 1)}
    if importlib.util.find_spec("pdmp_jax"):
        works["pdmp-jax"] = _pdmp_jax(precision), 1
    rates = in_turns(works, effort)
    name = "events of zig-zag on the correlated Gaussian, over "
    return [
        Requirement(name + "their random numbers alone", ratio_of(rates, "engine", "alone"), 0.04),
        Requirement(name + "pdmp-jax's", ratio_of(rates, "engine", "pdmp-jax") if "pdmp-jax" in rates else None, 2.0),
    ]


def _alone() -> Work:
    jit.prepare([_events_alone])
    rng = Generator(SFC64(1))

    def work(n: int) -> None:
        _events_alone(rng, n)

    return work


def _pdmp_jax(precision: Any) -> Work:
    """Its skeleton: every event, with bounds that it finds on a grid."""
    import jax
    import jax.numpy as jnp
    from pdmp_jax import ZigZag
    from pdmp_jax.sampling_loop import one_step, output_state

    matrix = jnp.array(precision)
    sampler = ZigZag(dim=2, grad_U=lambda x: matrix @ x, grid_size=10)

    def body(state: Any, _: None) -> Any:
        state = one_step(state)
        return state, output_state(state)

    compiled = jax.jit(lambda state, n: jax.lax.scan(body, state, None, length=n), static_argnums=1)
    state = [sampler.init_state(jnp.zeros(2), jnp.ones(2), 1)]

    def work(n: int) -> None:
        state[0], events = compiled(state[0], n)
        jax.block_until_ready(events)

    return work
