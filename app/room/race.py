"""The score of a race: the server runs a student's sampler anew, at the same cost for everybody."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sgmcmc_lab.app.state import LEFT_OUT
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.diagnostics import autocorrelation, ks
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.low_priority import workers
from sgmcmc_lab.samplers.parameters import SpecError, declared

GRADIENTS = 20_000
"""Gradient evaluations that each chain has; a step without one counts as one."""
CHAINS = 8
SEED = 1
MOST_DATA = 400_000_000
"""Data that these may touch, some seconds of processor."""
POOL = workers(1, "race")
WAITING = 30
"""Samplers that wait to be measured; more are refused."""
_waiting = [0]


def raced(experiment: Experiment, target: str) -> Experiment:
    """The experiment that is measured: the first lane, from the target's own start. Raises :class:`SpecError`."""
    if experiment.of_model or target_text(experiment) != target:
        raise SpecError("race", target_text(experiment), f"allowed is the target of the race, {target}")
    lane = experiment.lanes[0]
    if lane.sampler.key == "exact":
        raise SpecError("race", "exact", "allowed are samplers that move; exact draws are their reference")
    made = replace(
        experiment,
        lanes=(replace(lane, changes=()),),
        seed=SEED,
        n_chains=CHAINS,
        start=(),
        momentum=(),
        burn_in=0,
        n_steps=GRADIENTS,
        thin=1,
    )
    made = Experiment.from_dict(made.to_dict())
    known, gradient = made.make_target(), made.runs()[0].make_gradient()
    touched = GRADIENTS * CHAINS * gradient.data_per_gradient(known)
    if touched > MOST_DATA:
        raise SpecError("race", f"{touched:,.0f} data points", f"allowed are {MOST_DATA:,}: take minibatches")
    return made


def target_text(experiment: Experiment) -> str:
    """The target as a link writes it, with the temperature where it is not 1: a hot one is easier."""
    words = (word for word in experiment.to_query().split("&") if word.startswith(("target=", "temperature=")))
    return "&".join(words).removeprefix("target=")


def measure(made: Experiment) -> dict[str, Any]:
    """Link and title of a sampler, its KS distance, and its gradient evaluations for one independent draw.

    The latter is the largest integrated autocorrelation time τ of the columns, in steps, times the gradient evaluations
    of a step; None where the run is too short to tell. Raises :class:`SpecError` for a chain that leaves the target.
    """
    run = Run(made.runs()[0])
    budget = GRADIENTS * CHAINS
    while run.divergence is None and (left := budget - _spent(run)) > 0:
        # The cost of a step is known when one has been made.
        a_step = _spent(run) / run.steps if run.steps else left
        run.advance(max(1, int(left / (2 * a_step))) if left > 64 * a_step else 1)
    if run.divergence is not None:
        raise SpecError("race", SAMPLERS[made.lanes[0].sampler.key].title, run.divergence.message)
    times = [] if run.interacting else [autocorrelation.tau_int(run.statistics, k) for k in run.target.ks_columns]
    # An estimate of τ from too few steps may be negative.
    known = bool(times) and np.isfinite(times).all() and max(times) > 0
    tau = max(times) * _spent(run) / (CHAINS * run.steps) if known else None
    return {
        "link": f"?{made.to_query()}",
        "title": _title(made),
        "ks": ks.mean_distance(run.statistics, run.target),
        "tau": tau,
    }


def measure_link(query: str, target: str) -> dict[str, Any]:
    """:func:`measure` the experiment of a link, on the target of the race. Raises :class:`SpecError`."""
    experiment, problems = Experiment.from_query(query, LEFT_OUT)
    if problems:
        raise SpecError("race", query[:80], problems[0])
    return measure(raced(experiment, target))


async def measured(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result of :func:`measure` or :func:`measure_link`, by a thread of its own. Raises :class:`SpecError`."""
    if _waiting[0] >= WAITING:
        raise SpecError("race", _waiting[0] + 1, f"{WAITING} samplers wait to be measured; try again in a moment")
    _waiting[0] += 1
    try:
        return await asyncio.get_running_loop().run_in_executor(POOL, work)
    finally:
        _waiting[0] -= 1


def _spent(run: Run) -> int:
    return max(run.gradients, run.steps * CHAINS)


def _title(made: Experiment) -> str:
    sampler = made.lanes[0].sampler
    steps = [
        f"ε = {value:.3g}"
        for name, value in sampler.values().items()
        if name == "step_size" and name in dict(declared(SAMPLERS[sampler.key]))
    ]
    return ", ".join([SAMPLERS[sampler.key].title, *steps])
