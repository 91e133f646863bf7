"""Files of thinned runs with a burn-in and an adaptation, each column against the steps of the run, one by one."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from sgmcmc_lab.samplers import Change, RunSpec, engine, run
from sgmcmc_lab.samplers.targets.base import SIMPLEX
from tests.helpers.cases import for_each

BURN_IN, THIN, N_STEPS, CHAINS = 7, 4, 61, 3
"""In all 68 steps, of which the thinning divides neither the burn-in nor the rest."""
FALLING = {"key": "polynomial", "params": {"exponent": 0.5, "offset": 9.0}}
SCHOOLS = {
    "table": "schools",
    "parameters": "a, b",
    "prior": "normal_lpdf(a, 0, 9) + normal_lpdf(b, 0, 9)",
    "row": "normal_lpdf(y, a + b*s1, error)",
    "curve": "",
}
CASES = {
    "burn-in": ("quartic", "sgld", {}, {}),
    "adapted": ("quartic", "nuts", {"adapt_steps": 21}, {}),
    "adapted in the burn-in": ("quartic", "hmc", {"adapt_steps": 5}, {}),
    "simplex": ("sparse_dirichlet", "sgrld", {}, {}),
    "schedule": ("quartic", "sgld", {}, {"schedule": FALLING}),
    "schedule, adapted": ("quartic", "hmc", {"adapt_steps": 21}, {"schedule": FALLING}),
    "adapted later": ("quartic", "hmc", {"adapt_steps": 0}, {"schedule": FALLING}),
    "own weights": ("gaussian_mixture", "contour_sgld", {"step_size": 0.1, "adapt_steps": 21, "n_bins": 12}, {}),
    "rows": ("posterior", "hmc", {}, {"target_params": SCHOOLS}),
}
LATER = 30
"""The step at which the run of that name begins to adapt."""


def spec_of(name):
    target, sampler, params, more = CASES[name]
    settings = {"burn_in": BURN_IN, "thin": THIN, "n_steps": N_STEPS, "n_chains": CHAINS, "seed": 8, **more}
    made = RunSpec.of(target, sampler, sampler_params=params, **settings)
    if name != "adapted later":
        return made
    other = RunSpec.of(target, sampler, sampler_params={"adapt_steps": 21}, **settings)
    return replace(made, changes=(Change(LATER, other.sampler, other.gradient),))


def steps_of(name):
    """The steps of the draws in a file, by hand: from the burn-in or the adaptation on, whichever is longer."""
    first = {"adapted": 21, "schedule, adapted": 21, "own weights": 21}.get(name, BURN_IN)
    if name == "adapted later":
        # Of 23 steps before the change every fourth, and three are left: with one after the adaptation they are four.
        return np.r_[11:28:THIN, LATER + 21 + 1 : BURN_IN + N_STEPS + 1 : THIN]
    return np.arange(first + THIN, BURN_IN + N_STEPS + 1, THIN)


def path_of(spec):
    """After each step θ, the last of the chains' variables, and whether it diverged, from a run that keeps nothing."""
    one, theta, last, diverged = engine.Run(spec, False), [], [], np.zeros((CHAINS, BURN_IN + N_STEPS), dtype=bool)
    for step in range(BURN_IN + N_STEPS):
        one.advance(1)
        assert one.steps == step + 1
        theta.append(one.position.copy())
        last.append(one.momentum[:, -1].copy() if one.momentum.shape[1] else np.ones(CHAINS))
        found = one.divergent
        diverged[found.chains, found.steps - 1] = True
    return np.array(theta).swapaxes(0, 1), np.array(last).T, diverged


def check_files(spec, trace, folder, path, name, steps):
    """Both files of a run, column by column, against the draws after these steps of its path."""
    theta, last, diverged = (x[:, steps - 1] for x in path)
    weight = last if name == "own weights" else None
    if CASES[name][3].get("schedule"):
        weight = np.tile((1 + (steps - 1) / 9) ** -0.5, (CHAINS, 1))
    simplex = trace.target.support == SIMPLEX
    omega = theta / theta.sum(axis=-1, keepdims=True) if simplex else theta
    trace.save(folder / "draws.csv")
    header, *rows = csv.reader(io.StringIO((folder / "draws.csv").read_text()))
    dim, n = theta.shape[-1], theta.shape[1]
    names = [f"theta_{i + 1}" for i in range(dim)] + [f"omega_{i + 1}" for i in range(dim * simplex)]
    assert header == ["chain", "draw", *names, *["weight"] * (weight is not None)]
    numbers = [np.repeat(np.arange(CHAINS), n)[:, None], np.tile(np.arange(n), CHAINS)[:, None]]
    columns = [*numbers, theta.reshape(-1, dim), *[omega.reshape(-1, dim)] * simplex]
    columns += [] if weight is None else [weight.reshape(-1, 1)]
    np.testing.assert_allclose(np.array(rows, dtype=float), np.hstack(columns), rtol=1e-14)
    trace.save(folder / "draws.nc")
    with xr.open_datatree(folder / "draws.nc") as tree:
        np.testing.assert_array_equal(tree["posterior"]["theta"], theta)
        assert tree["posterior"]["coordinate"].values.tolist() == list(range(1, dim + 1))
        if simplex:
            np.testing.assert_allclose(tree["posterior"]["omega"], omega, rtol=1e-14)
        if weight is not None:
            np.testing.assert_allclose(tree["sample_stats"]["weight"], weight, rtol=1e-14)
        if spec.make_sampler().diverges and not spec.changes:
            np.testing.assert_array_equal(tree["sample_stats"]["diverging"], diverged)
            assert tree.attrs.get("divergent", 0) == path[2].sum()
        if name == "rows":
            y, s1, error = (trace.target.titles[title] for title in ("y", "s1", "error"))
            rows = stats.norm.logpdf(y, theta[..., :1] + theta[..., 1:] * s1, error)
            np.testing.assert_allclose(tree["log_likelihood"]["row"], rows, rtol=1e-12)
        assert json.loads(tree.attrs["spec"]) == json.loads(spec.to_json())
        assert tree.attrs["steps"] == trace.steps == BURN_IN + N_STEPS


@pytest.mark.slow
@for_each("name", CASES)
def test_a_file_has_the_steps_that_it_says(name, tmp_path):
    """Planted faults: each draw is that of the step before, and the burn-in is counted in draws."""
    spec = spec_of(name)
    trace, path, steps = run(spec), path_of(spec), steps_of(name)
    check_files(spec, trace, tmp_path, path, name, steps)
    assert (5 < path[2].sum() < path[2].size / 2) == (name in ("adapted", "adapted in the burn-in"))
    for wrong in (steps - 1, np.minimum(steps + (THIN - 1) * BURN_IN, BURN_IN + N_STEPS)):
        with pytest.raises(AssertionError):
            check_files(spec, trace, tmp_path, path, name, wrong)
