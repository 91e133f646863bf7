"""Steps that adapt: as in plain Python step for step, the acceptance and the masses, and the law behind them."""

from importlib import import_module
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.choices import Choice, default_choice
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS, adaptation
from sgmcmc_lab.samplers.lanes import Change
from sgmcmc_lab.samplers.step_terms import Play
from tests.helpers.edited import edited, faulty
from tests.helpers.statistics import draws_of, exact_start, failures, ks_verdict, put_sampler, start_with

WANTED = {"hmc": 0.651, "nuts": 0.8, "mala": 0.574}
SD = np.array([1.0, 10.0])
TAUGHT = 950 - 450
"""Draws of the last window of 1,000 steps."""


def spec_of(key, steps=1000, n_chains=200, **params):
    """A Gaussian with scales 1 and 10."""
    where = {"rho": 0.0, "sd1": 1.0, "sd2": 10.0}
    params = {"adapt_steps": steps, **params}
    return RunSpec.of("correlated_gaussian", key, target_params=where, sampler_params=params, n_chains=n_chains, seed=4)


def with_fault(key, right, wrong, folder, run):
    """The run, with a sampler whose adaptation has this fault."""
    helpers = edited(adaptation, right, wrong, folder)
    kernel = edited(import_module(SAMPLERS[key].__module__), adaptation.__name__, helpers.__name__, folder)
    put_sampler(run, faulty(run.sampler, kernel.advance))
    return run


def known(run, which):
    """A number that each chain knows, (chains,)."""
    return run.momentum[:, run.target.dim + which]


def inverse_masses(run):
    return run.momentum[:, -run.target.dim :]


# --- step for step ---------------------------------------------------------------------------------------------------


def test_the_windows():
    """Those of Stan: for 1,000 steps buffers of 75 and 50, and windows from 25 on that double."""
    assert textbook.windows(1000) == [(75, 100), (100, 150), (150, 250), (250, 450), (450, 950)]
    assert textbook.windows(150) == [(75, 100)]
    assert textbook.windows(100) == [(15, 90)]
    assert textbook.windows(19) == []
    for n in (*range(1, 420), 1000, 2345):
        expected = [(False, False)] * n
        for first, end in textbook.windows(n):
            expected[first:end] = [(True, False)] * (end - first - 1) + [(True, True)]
        assert [adaptation.window_at.py_func(t, n) for t in range(n)] == expected, n


def apart(run, n):
    """How far the chains and what they know are after n steps from the reference's, relative to 1 + its numbers."""
    play = Play(run, chain=1)
    steps = [play.step() for _ in range(n)]
    run.advance(n)
    assert all(step.adds_up(1e-12) for step in steps)
    assert any(part.name == "adaptation" for part in steps[-1].parts)
    ours, theirs = np.hstack([run.position, run.momentum]), np.hstack([play.theta, play.momentum])
    return float((np.abs(ours - theirs) / (1 + np.abs(theirs))).max())


@pytest.mark.parametrize("key", WANTED)
def test_each_step_is_the_references(key):
    """Through a window and beyond the last adapting step. HMC's trajectories are long, so that ε doubles rounding: 8
    steps of it, and of one leapfrog step as many as of the others."""
    for n, params in ((40, {"n_leapfrog": 1} if key == "hmc" else {}), (8, {})):
        assert apart(Run(spec_of(key, 30, 2, **params)), n) < 1e-8


def test_fault_no_shrinkage(tmp_path):
    """The planted fault: x̄ is the last x."""
    run = with_fault(
        "mala", "m**-DECAY * (x - known[LOG_MEAN])", "x - known[LOG_MEAN]", tmp_path, Run(spec_of("mala", 30, 2))
    )
    assert apart(run, 40) > 1e-2


def test_another_step_size_begins_again():
    """On the way it is where dual averaging begins again; later it is ε, and the masses stay."""

    def changed(run, step_size):
        params = {**run.sampler.param.values(), "step_size": step_size}
        made = Choice("mala", tuple((name, params[name]) for name, _ in run.spec.sampler.params))
        run.change(Change(run.steps, made, default_choice(GRADIENTS, "full")))

    run = Run(spec_of("mala", 60, 3))
    run.advance(20)
    assert (known(run, adaptation.AVERAGED) == 20).all()
    changed(run, 0.07)
    run.advance(1)
    assert (known(run, adaptation.AVERAGED) == 1).all() and (known(run, adaptation.MADE) == 21).all()
    np.testing.assert_allclose(known(run, adaptation.SHRUNK_TO), np.log(0.7))
    run.advance(50)
    assert (known(run, adaptation.STEP_SIZE) == np.exp(known(run, adaptation.LOG_MEAN))).all()
    masses = inverse_masses(run).copy()
    changed(run, 0.3)
    run.advance(5)
    assert (known(run, adaptation.STEP_SIZE) == 0.3).all() and (inverse_masses(run) == masses).all()


def test_steps_that_adapt_are_burn_in():
    """Also where they begin on the way. In chunks the draws are the same."""
    runs = [Run(spec_of("nuts", 60, 2), keep_draws=True) for _ in range(2)]
    runs[0].advance(100)
    for n in (7, 60, 33):
        runs[1].advance(n)
    assert runs[0].counted_from == 60 and runs[0].counted == 40 == runs[0].statistics.n_steps
    np.testing.assert_array_equal(runs[0].kept[:, :40], runs[1].kept[:, :40])
    off = Run(spec_of("nuts", 0, 2))
    off.advance(10)
    off.change(Change(10, spec_of("nuts", 30).sampler, off.spec.gradient))
    off.advance(50)
    assert off.counted_from == 40 and off.statistics.n_steps == 20


# --- what it reaches -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=WANTED)
def adapted(request):
    """A sampler whose 200 chains have adapted, and the mean α of each in 200 steps more."""
    run = Run(spec_of(request.param))
    exact_start(run)
    run.advance(1000)
    found = []
    for _ in range(200):
        run.advance(1)
        found.append(known(run, adaptation.STATISTIC).copy())
    return request.param, run, np.mean(found, axis=0)


@pytest.mark.slow
def test_the_acceptance_is_the_wanted_one(adapted):
    """The mean over chains, each of which is a seed, within .03 and four standard errors (false alarm 6e-5): ε̄ is the
    mean of log ε, and α a concave function of it near the optimum, so that α(ε̄) is a little above δ."""
    key, _, alpha = adapted
    error = alpha.std(ddof=1) / sqrt(len(alpha))
    assert abs(alpha.mean() - WANTED[key]) < 0.03 + 4 * error, (alpha.mean(), error)
    assert error < 0.01


def mass_faults(run):
    """Those coordinates whose M⁻¹ is not the variance: by 4.5 standard errors (false alarm 1e-5) and 2 % besides.

    A variance of n draws of a chain with autocorrelation time τ is too small by about τ/n on average, and τ is below
    10; Stan's shrinkage makes it smaller by 5/(n + 5).
    """
    found = inverse_masses(run)
    error = found.std(axis=0, ddof=1) / sqrt(len(found))
    expected = (TAUGHT * SD**2 + 5e-3) / (TAUGHT + 5)
    return np.abs(found.mean(axis=0) - expected) > 4.5 * error + 0.02 * expected


@pytest.mark.slow
def test_the_masses_are_the_variances(adapted):
    assert not mass_faults(adapted[1]).any()


@pytest.mark.slow
def test_fault_a_mass_upside_down(tmp_path):
    """The planted fault: the variance as the mass."""
    right, wrong = "(count * variance + 5e-3) / (count + 5)", "(count + 5) / (count * variance + 5e-3)"
    run = with_fault("mala", right, wrong, tmp_path, Run(spec_of("mala")))
    run.advance(1000)
    assert mass_faults(run).any()


def law_faults(run, steps, every=1):
    """The columns whose KS distance, or whose mean square, is that of another law; false alarm 1e-4 in all."""
    draws = draws_of(run, steps, every)
    return failures(
        ks_verdict(f"θ{i}", stats.norm.cdf(draws[..., i] / SD[i]), false_alarm=1e-4, n_tests=2) for i in range(2)
    )


@pytest.mark.slow
@pytest.mark.parametrize("key", WANTED)
def test_the_law_afterwards_is_exact(key):
    """2,000 chains, each with its own ε and masses, after 60 steps of adaptation, whose draws are not of the law."""
    run = start_with(spec_of(key, 60, 2000, **({"n_leapfrog": 3} if key == "hmc" else {})))
    exact_start(run)
    run.advance(300)
    assert not law_faults(run, 20, 5)


@pytest.mark.slow
def test_fault_adaptation_without_an_end(tmp_path):
    """The planted fault: dual averaging that begins again at every step, and so follows the last α for good."""
    right = "    if t >= n:\n        return\n"
    wrong = (
        "    if t >= n:\n        begin_averaging(known)\n        average(known, wanted - statistic)\n        return\n"
    )
    run = with_fault("mala", right, wrong, tmp_path, start_with(spec_of("mala", 60, 2000)))
    exact_start(run)
    run.advance(300)
    assert law_faults(run, 20, 5)
