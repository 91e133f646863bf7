"""Divergent transitions: where they are marked, and that nothing else is."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from sgmcmc_lab.samplers import Change, Run, RunSpec, textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels import chmc, gmc, hmc, rmhmc
from sgmcmc_lab.samplers.kernels.leapfrog import TOO_FAR
from tests.helpers.checks_samplers import reference_steps
from tests.helpers.edited import edited, faulty

CHAINS, STEPS, BURN_IN = 4, 2000, 150
NECK = -2.0
"""θ₁ below it is the neck: a quarter of the centred funnel, where the width e^{θ₁/2} is below 0.4."""


def funnel(sampler, centring=1.0, steps=STEPS, chunk=STEPS, kernel=None, **more):
    """The run, and its draws (chains, n, 2)."""
    settings = {"target_params": {"centring": centring}, "n_chains": CHAINS, "n_steps": steps, "seed": 3}
    run = Run(RunSpec.of("funnel", sampler, burn_in=BURN_IN, **settings, **more), keep_draws=True)
    if kernel is not None:
        run.sampler = faulty(run.sampler, kernel)
    while run.steps < BURN_IN + steps:
        run.advance(min(chunk, BURN_IN + steps - run.steps))
    return run, run.kept


def check(run, draws):
    """At least twenty; each has the draw of its step and chain, which was a rejection, in the neck of the funnel."""
    found = run.divergent
    assert len(found.steps) == run.counts[jit.DIVERGED] == run.trace().divergent >= 20
    assert (found.steps > BURN_IN + 1).all() and len(set(zip(found.steps, found.chains, strict=True))) >= 20
    at = found.steps - BURN_IN - 1
    np.testing.assert_array_equal(found.theta, draws[found.chains, at])
    np.testing.assert_array_equal(draws[found.chains, at], draws[found.chains, at - 1])
    assert (found.theta[:, 0] < NECK).all()


def test_divergent_transitions_of_hmc_are_rejections_in_the_neck():
    """Most draws are outside of the neck, and most proposals are accepted."""
    run, draws = funnel("hmc")
    check(run, draws)
    assert (draws[..., 0] < NECK).mean() < 0.5 and run.trace().acceptance > 0.8


@pytest.mark.parametrize("sampler", ["hmc", "nuts"])
def test_the_funnel_that_is_not_centred_has_none(sampler):
    run, _ = funnel(sampler, centring=0.0)
    assert run.counts[jit.DIVERGED] == 0 and len(run.divergent.theta) == 0


def test_divergent_transitions_of_nuts_end_at_their_draws():
    run, draws = funnel("nuts")
    found = run.divergent
    assert len(found.steps) == run.counts[jit.DIVERGED] >= 10
    np.testing.assert_array_equal(found.theta, draws[found.chains, found.steps - BURN_IN - 1])
    assert np.median(found.theta[:, 0]) < NECK < np.median(draws[..., 0])


def test_marks_are_the_same_in_chunks_and_with_a_schedule_each_has_its_step():
    whole, in_chunks = funnel("hmc")[0].divergent, funnel("hmc", chunk=7)[0].divergent
    for one, other in zip(whole, in_chunks, strict=True):
        np.testing.assert_array_equal(one, other)
    check(*funnel("hmc", schedule={"key": "polynomial", "params": {"exponent": 0.34, "offset": 1e4}}))


def test_the_last_marks_stay_and_a_copy_keeps_its_own():
    run, draws = funnel("hmc", sampler_params={"step_size": 0.4}, steps=8000)
    assert run.counts[jit.DIVERGED] > jit.N_MARKS == len(run.divergent.steps)
    assert (np.diff(run.divergent.steps) >= 0).all()
    np.testing.assert_array_equal(run.divergent.theta, draws[run.divergent.chains, run.divergent.steps - BURN_IN - 1])
    standing, before = run.standing(), run.divergent
    run.restart_statistics()
    assert len(run.divergent.steps) == 0
    np.testing.assert_array_equal(standing.divergent.theta, before.theta)


STEEP = {
    "rmhmc": (rmhmc, "gamma", {"shape": 1000.0}, 2.0, (1980.0,)),
    "gmc": (gmc, "fisher", {"concentration": 100.0, "colatitude": 0.0}, 1.0, (0.0, 0.0, -1.0)),
    "chmc": (chmc, "fisher", {"concentration": 100.0, "colatitude": 0.0}, 1.5, (0.0, 0.0, -1.0)),
}
"""The module, a target and its parameters, a step size and a start from which one leapfrog step may diverge.

RMHMC's start is just below 2a − 1, above which half a kick by ε = 2 has no real root: the kick ends near p' = −1, and
the drift near θ = 0. On the sphere a chain starts opposite to the mean direction, where no force acts, and the kick at
the end of its step is large."""
COMPARED = 60


def steep(sampler, kernel=None, **params):
    _, target, target_params, step_size, start = STEEP[sampler]
    params = {"step_size": step_size, "n_leapfrog": 1} | params
    spec = RunSpec.of(
        target,
        sampler,
        target_params=target_params,
        sampler_params=params,
        n_chains=CHAINS,
        n_steps=COMPARED,
        start=start,
    )
    run = Run(spec, keep_draws=True)
    if kernel is not None:
        run.sampler = faulty(run.sampler, kernel)
    return run


def check_steep(run, monkeypatch):
    """Marked are the transitions whose energy error is above 1000 in plain Python, which are rejections."""
    errors, plain = [], textbook.accept

    def noted(rng, play, c, theta, before, log_ratio, energy, sure=False):
        errors.append(-log_ratio[c])
        plain(rng, play, c, theta, before, log_ratio, energy, sure)

    with monkeypatch.context() as during:
        during.setattr(textbook, "accept", noted)
        reference_steps(run, COMPARED)
    run.advance(COMPARED)
    found, expected = run.divergent, np.reshape(errors, (COMPARED, CHAINS)) > TOO_FAR
    marked = np.zeros_like(expected)
    marked[found.steps - 1, found.chains] = True
    np.testing.assert_array_equal(marked, expected)
    assert 10 <= expected.sum() == run.counts[jit.DIVERGED] < expected.size
    first = np.broadcast_to(run.spec.first_positions(), (CHAINS, 1, run.target.dim))
    draws = np.concatenate([first, run.kept], axis=1)
    np.testing.assert_array_equal(found.theta, draws[found.chains, found.steps])
    np.testing.assert_array_equal(found.theta, draws[found.chains, found.steps - 1])


@pytest.mark.parametrize("sampler", STEEP)
def test_divergent_transitions_are_those_of_plain_python(sampler, monkeypatch):
    check_steep(steep(sampler), monkeypatch)
    short = steep(sampler, step_size=0.1)
    short.advance(COMPARED)
    assert short.counts[jit.DIVERGED] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "right", "wrong"),
    [
        ("rmhmc", "n_chains, energy[c], proposed[c])", "n_chains, proposed[c], energy[c])"),
        ("gmc", "mark_divergent(info.counts, t, c,", "mark_divergent(info.counts, t, n_chains - 1 - c,"),
        ("chmc", "mark_divergent(info.counts, t, c,", "mark_divergent(info.counts, max(t - 1, 0), c,"),
    ],
)
def test_the_comparison_finds_another_sign_chain_and_step(sampler, right, wrong, monkeypatch, tmp_path):
    run = steep(sampler, edited(STEEP[sampler][0], right, wrong, tmp_path).advance)
    with pytest.raises(AssertionError):
        check_steep(run, monkeypatch)


THIN = 3


def check_exported(run, trace):
    """ArviZ's ``diverging`` of a thinned run: the kept draws of divergent transitions, and no others."""
    known, shown = run.divergent, trace.to_arviz()["sample_stats"]["diverging"].values
    steps, draws = known.steps - BURN_IN, trace.draws
    own = steps % THIN == 0
    assert shown.dtype == bool and shown.shape == draws.shape[:2] and 5 <= shown.sum() == own.sum() < len(own)
    expected = sorted(zip(known.chains[own], steps[own] // THIN - 1, strict=True))
    np.testing.assert_array_equal(np.argwhere(shown), expected)
    # Each is where its transition ended.
    np.testing.assert_array_equal(np.sort(draws[shown], axis=0), np.sort(known.theta[own], axis=0))


@pytest.mark.slow
def test_a_file_says_of_each_kept_draw_whether_its_transition_diverged(tmp_path):
    """In NetCDF, too; the planted faults are a shift by a draw, and another chain."""
    run, _ = funnel("hmc", thin=THIN, steps=3 * STEPS)
    trace = run.trace()
    check_exported(run, trace)
    trace.save(tmp_path / "draws.nc")
    with xr.open_datatree(tmp_path / "draws.nc") as tree:
        np.testing.assert_array_equal(tree["sample_stats"]["diverging"], trace.diverging)
    for fault in (np.roll(trace.diverging, 1, axis=1), np.roll(trace.diverging, 1, axis=0)):
        with pytest.raises(AssertionError):
            check_exported(run, replace(trace, diverging=fault))


def test_a_file_says_why_it_does_not_know_which_transitions_diverged():
    """After more than are marked, or a change, which begins the count again; SGLD has none to mark."""
    many, _ = funnel("hmc", sampler_params={"step_size": 0.4}, steps=8000)
    changed, _ = funnel("hmc", steps=100)
    changed.change(Change(0, changed.spec.sampler, changed.spec.gradient))
    made = int(many.counts[jit.DIVERGED])
    for run, said in (
        (many, f"left out: of {made:,} divergent transitions only the last {jit.N_MARKS} are known"),
        (changed, "left out: the run changed at step 250, and divergent transitions before it are not known"),
    ):
        tree = run.trace().to_arviz()
        assert tree.attrs["diverging"] == said and "sample_stats" not in tree.children
    tree = funnel("sgld", steps=5)[0].trace().to_arviz()
    assert "diverging" not in tree.attrs and "sample_stats" not in tree.children


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("n_chains, energy[c], proposed[c])", "n_chains, proposed[c], energy[c])"),
        ("mark_divergent(info.counts, t, c,", "mark_divergent(info.counts, t, n_chains - 1 - c,"),
        ("mark_divergent(info.counts, t, c,", "mark_divergent(info.counts, max(t - 5, 0), c,"),
    ],
)
def test_the_check_finds_another_sign_another_chain_and_another_step(right, wrong, tmp_path):
    kernel = edited(hmc, right, wrong, tmp_path).advance
    with pytest.raises(AssertionError):
        check(*funnel("hmc", kernel=kernel))
