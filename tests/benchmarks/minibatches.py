"""SGLD on minibatches of many data points, beside the gradients of its batches alone and beside another program."""

import importlib.util
from typing import Any

import numpy as np
from numba import types
from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.targets import logistic
from tests.benchmarks.timing import UNCOUNTED, Effort, Requirement, Work, in_turns, ratio_of

ITEMS, FEATURES, BATCH = 1_000_000, 10, 100
STEP_SIZE = 1e-6

_ALONE = types.void(
    jit.rng_type,
    jit.matrix,
    jit.matrix,
    jit.matrix,
    types.FunctionType(jit.BATCH),
    jit.vector,
    jit.integers,
    types.int64,
)


@jit.loop(_ALONE)
def _batches_alone(rng, theta, out, each, batch, params, data, n):
    """``n`` times: pick a batch, and average the gradients of its data."""
    chosen = np.empty(each.shape[0], dtype=np.int64)
    for _ in range(n):
        for k in range(chosen.size):
            chosen[k] = data[int(rng.random() * data.size)]
        batch(theta, chosen, each, params)
        out[0] = 0.0
        for k in range(chosen.size):
            for i in range(theta.shape[1]):
                out[0, i] += each[k, i] / chosen.size


def minibatch_requirements(effort: Effort) -> list[Requirement]:
    """Logistic regression with N = 10⁶, d = 10 and n = 100, one chain, measured in turns."""
    spec = RunSpec.of(
        "logistic_large",
        "sgld",
        "minibatch",
        target_params={"items": ITEMS, "features": FEATURES},
        sampler_params={"step_size": STEP_SIZE},
        gradient_params={"batch_size": BATCH},
        n_chains=1,
        burn_in=UNCOUNTED,
    )
    run = Run(spec)
    works: dict[str, tuple[Work, int]] = {"engine": (run.advance, 1), "alone": (_alone(run), 1)}
    if importlib.util.find_spec("blackjax"):
        works["blackjax"] = _blackjax(run), 1
    rates = in_turns(works, effort)
    name = f"SGLD on minibatches, N = {ITEMS:,}, d = {FEATURES}, n = {BATCH}, over "
    return [
        Requirement(name + "their gradients alone", ratio_of(rates, "engine", "alone"), 0.8),
        Requirement(name + "blackjax's", ratio_of(rates, "engine", "blackjax") if "blackjax" in rates else None, 3.0),
    ]


def _alone(run: Run) -> Work:
    jit.prepare([_batches_alone])
    rng, theta = Generator(SFC64(1)), run.target.mode[None].copy()
    out, each = np.empty_like(theta), np.empty((BATCH, FEATURES))

    def work(n: int) -> None:
        _batches_alone(rng, theta, out, each, run.target.batch, run.target_params, run.data, n)

    return work


def _blackjax(run: Run) -> Work:
    """SGLD by blackjax, whose gradient is that of a batch drawn at every step."""
    import blackjax
    import jax
    import jax.numpy as jnp

    rows = jnp.asarray(run.target_params[logistic.FIRST : logistic.FIRST + ITEMS * FEATURES].reshape(ITEMS, FEATURES))
    rate = float(run.target_params[0])

    def log_density(theta: Any, batch: Any) -> Any:
        return -ITEMS * jnp.logaddexp(0.0, -batch @ theta).mean() - rate * (theta @ theta) / 2

    sampler = blackjax.sgld(jax.grad(log_density))

    def many(key: Any, position: Any, n: int) -> Any:
        def body(position: Any, key: Any) -> Any:
            chosen, noise = jax.random.split(key)
            batch = rows[jax.random.randint(chosen, (BATCH,), 0, ITEMS)]
            position = sampler.step(noise, position, batch, STEP_SIZE)
            return position, position

        return jax.lax.scan(body, position, jax.random.split(key, n))

    compiled = jax.jit(many, static_argnums=2)
    state = [jax.random.PRNGKey(1), jnp.asarray(run.target.mode)]

    def work(n: int) -> None:
        state[0], key = jax.random.split(state[0])
        state[1], draws = compiled(key, state[1], n)
        draws.block_until_ready()

    return work
