"""The gradients a second of NUTS and of MCLMC, beside those of another program."""

import importlib.util
import statistics
from collections.abc import Callable
from typing import Any

from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from tests.benchmarks.timing import CHAINS, UNCOUNTED, Effort, Requirement, Work, in_turns

DIM = 10
PARAMS: dict[str, dict[str, Any]] = {
    "nuts": {"step_size": 0.5, "max_depth": 10},
    "mclmc": {"step_size": 1.0, "length": 3.0},
}
TITLES = {"nuts": "NUTS", "mclmc": "MCLMC"}
NEEDED = 2.0
MISSING = "NUTS and MCLMC have no other program beside them: blackjax is not installed (pip install blackjax jax)."


def trajectory_requirements(effort: Effort, progress: Callable[[str], None]) -> list[Requirement]:
    """A Gaussian in ten dimensions, with the same ε, L and depth for both.

    Where blackjax is missing the ratios are None, and ``progress`` is told so.
    """
    there = importlib.util.find_spec("blackjax") is not None
    if not there:
        progress(MISSING)
    return [
        Requirement(
            f"gradients of {TITLES[key]}, Gaussian, d = {DIM}, over blackjax's, {n} chain{'s' if n > 1 else ''}",
            _ratio(key, n, effort) if there else None,
            NEEDED,
        )
        for key in PARAMS
        for n in CHAINS
    ]


def _ratio(key: str, n_chains: int, effort: Effort) -> float:
    """The median over rounds of the ratio of gradients a second.

    Both make steps in turns. A step of NUTS has another number of gradients each time: its mean is counted.
    """
    spec = RunSpec.of(
        "isotropic_gaussian",
        key,
        target_params={"dimension": DIM},
        sampler_params=PARAMS[key],
        n_chains=n_chains,
        burn_in=UNCOUNTED,
    )
    run = Run(spec)
    work, counted = _blackjax(key, n_chains)
    works: dict[str, tuple[Work, int]] = {"engine": (run.advance, n_chains), "blackjax": (work, n_chains)}
    rates = in_turns(works, effort)
    ours, theirs = run.gradients / run.steps / n_chains, counted[0] / counted[1]
    return statistics.median(a / b for a, b in zip(rates["engine"], rates["blackjax"], strict=True)) * ours / theirs


def _blackjax(key: str, n_chains: int) -> tuple[Work, list[float]]:
    """Steps of it in float32, and the gradients of a chain and the steps that they took, so far."""
    import blackjax
    import jax
    import jax.numpy as jnp
    from blackjax.mcmc.integrators import isokinetic_velocity_verlet

    def log_density(theta: Any) -> Any:
        return -(theta @ theta) / 2

    values = PARAMS[key]
    if key == "nuts":
        sampler = blackjax.nuts(log_density, values["step_size"], jnp.ones(DIM), max_num_doublings=values["max_depth"])
    else:
        # A step of this splitting takes one gradient, as ours does; of its default two.
        sampler = blackjax.mclmc(
            log_density, values["length"], values["step_size"], integrator=isokinetic_velocity_verlet
        )

    def begin(key: Any, position: Any) -> Any:
        return sampler.init(position, key)

    starts = jnp.zeros((n_chains, DIM)), jax.random.split(jax.random.PRNGKey(1), n_chains)

    def one(keys: Any, state: Any) -> Any:
        state, info = sampler.step(keys, state)
        return state, (state.position, info.num_integration_steps if key == "nuts" else 1)

    def many(keys: Any, states: Any, n: int) -> Any:
        def body(states: Any, each: Any) -> Any:
            if n_chains == 1:
                return one(each, states)
            return jax.vmap(one)(jax.random.split(each, n_chains), states)

        states, (draws, made) = jax.lax.scan(body, states, jax.random.split(keys, n))
        return states, draws, jnp.mean(jnp.asarray(made, dtype=float))

    compiled = jax.jit(many, static_argnums=2)
    states = jax.vmap(begin)(starts[1], starts[0]) if n_chains > 1 else begin(starts[1][0], starts[0][0])
    state, counted = [jax.random.PRNGKey(2), states], [0.0, 0.0]

    def work(n: int) -> None:
        state[0], keys = jax.random.split(state[0])
        state[1], draws, made = compiled(keys, state[1], n)
        draws.block_until_ready()
        counted[0] += float(made) * n
        counted[1] += n

    return work, counted
