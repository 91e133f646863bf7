"""MCLMC that adapts: as in plain Python step for step, the energy error, the length, and the law behind them."""

from math import sqrt

import numpy as np
import pytest

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.choices import Choice, default_choice
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import energy_adaptation, mclmc
from sgmcmc_lab.samplers.kernels.adaptation import LEARNT, MADE, STATISTIC, STEP_SIZE
from sgmcmc_lab.samplers.kernels.energy_adaptation import LENGTH
from sgmcmc_lab.samplers.lanes import Change
from sgmcmc_lab.samplers.step_terms import Play
from tests.helpers.edited import edited, faulty
from tests.helpers.statistics import exact_start, put_sampler

DIM = 10
CLAIMS = {"step size", "length of the width", "energy error", "length of the memory", "end", "law"}


def run_of(steps, n_chains, target="isotropic_gaussian", where=None, **params):
    where = {"dimension": DIM} if where is None else where
    params = {"adapt_steps": steps, **params}
    return Run(RunSpec.of(target, "mclmc", target_params=where, sampler_params=params, n_chains=n_chains, seed=4))


def known(run, which):
    """A number that each chain knows, (chains,)."""
    return run.momentum[:, 2 * run.target.dim + which]


def mean_and_error(x):
    return float(np.mean(x)), float(np.std(x, ddof=1)) / sqrt(len(x))


# --- step for step ---------------------------------------------------------------------------------------------------


def apart(run, n):
    """How far the chains and what they know come from the reference's in n steps, relative to 1 + its numbers."""
    play, worst = Play(run, chain=1), 0.0
    for _ in range(n):
        step = play.step()
        run.advance(1)
        assert step.adds_up(1e-9)
        ours, theirs = np.hstack([run.position, run.momentum]), np.hstack([play.theta, play.momentum])
        worst = max(worst, float((np.abs(ours - theirs) / (1 + np.abs(theirs))).max()))
    return worst


SCALES = {"rho": 0.0, "sd1": 1.0, "sd2": 10.0}


@pytest.mark.slow
@pytest.mark.parametrize("steps", [30, 90, 240])
def test_each_step_is_the_references(steps):
    """Runs of few steps, which adapt ε alone, of batches of one, and of two; beyond the last adapting step."""
    assert apart(run_of(steps, 2, "correlated_gaussian", SCALES), steps + 5) < 1e-8


def times_apart(batch_time):
    """How far τ of batches is from the reference's, of a walk and of noise that alternates."""
    rng, worst = np.random.default_rng(3), 0.0
    for k in range(20):
        y = rng.standard_normal((30, 2))
        y = y.cumsum(axis=0) if k % 2 else y + (-1.0) ** np.arange(30)[:, None]
        row = np.concatenate([np.zeros(energy_adaptation.VECTORS + 2), [0.4, 0.9], 4 * y.ravel()])
        row[LEARNT] = 10
        expected = max(4 * textbook.long_run_variance(y[:, 1]) / 0.09, 1)
        worst = max(worst, abs(batch_time(row, 1, 2, 30, 4) - expected) / expected)
    return worst


def test_the_time_of_batches_is_the_references(tmp_path):
    """The planted fault: a sequence that is not monotone."""
    assert times_apart(energy_adaptation.batch_time.py_func) < 1e-12
    fault = edited(energy_adaptation, "min(least, pair)", "pair", tmp_path)
    assert times_apart(fault.batch_time.py_func) > 1e-2


def test_a_step_without_an_energy_is_taken_back():
    """Its chain stays, its ε falls to .8, and no later one is larger; the other chain learns as before."""
    run = run_of(30, 2, step_size=3.0)
    exact_start(run)
    run.momentum[0, DIM : 2 * DIM] = 1e60
    before = run.position.copy()
    run.advance(1)
    assert (run.position[0] == before[0]).all() and (run.position[1] != before[1]).any()
    assert known(run, STEP_SIZE)[0] == pytest.approx(2.4) and known(run, STATISTIC)[0] == 0 < known(run, STATISTIC)[1]


def test_another_step_size_or_length_begins_anew_and_later_stays():
    def changed(run, **new):
        params = {**run.sampler.param.values(), **new}
        made = Choice("mclmc", tuple((name, params[name]) for name, _ in run.spec.sampler.params))
        run.change(Change(run.steps, made, default_choice(GRADIENTS, "full")))

    run = run_of(60, 3)
    run.advance(20)
    changed(run, step_size=0.05)
    run.advance(1)
    assert (known(run, STEP_SIZE) <= 0.1).all() and (known(run, MADE) == 21).all()
    run.advance(50)
    assert run.counted_from == 60 and (known(run, MADE) == 60).all()
    learnt = known(run, LENGTH).copy()
    changed(run, step_size=0.3)
    run.advance(5)
    assert (known(run, STEP_SIZE) == 0.3).all() and (known(run, LENGTH) == learnt).all()
    changed(run, length=7.0)
    run.advance(5)
    assert (known(run, LENGTH) == 7).all()


# --- what it reaches -------------------------------------------------------------------------------------------------


def adapted():
    """100 chains that adapt from exact draws of N(0, I)."""
    run = run_of(3000, 100)
    exact_start(run)
    return run


def failures_of(run):
    """The claims that a run of 3,000 adapting steps, and 2,000 more, does not keep; false alarm 6e-5 each, at four
    standard errors over the chains.

    blackjax 1.7.1 with the same splitting, thirds and start has ε 1.9107 ± .0082 in 100 chains.
    """
    out = []
    run.advance(2000)
    mean, error = mean_and_error(known(run, STEP_SIZE))
    if abs(mean - 1.9107) > 4 * np.hypot(error, 0.0082):
        out.append("step size")
    # Too large by the bias of this ε besides.
    mean, error = mean_and_error(known(run, LENGTH))
    if abs(mean - sqrt(DIM)) > 0.03 * sqrt(DIM) + 4 * error:
        out.append("length of the width")
    squares, draws = [], []
    for _ in range(1000):
        run.advance(1)
        squares.append(known(run, STATISTIC).copy())
        draws.append(run.position.copy())
    mean, error = mean_and_error(np.mean(squares, axis=0))
    if abs(mean - 5e-4) > 4 * error:
        out.append("energy error")
    # τ from the spread of the means of 100 chains, of whose 10 coordinates each is a measurement; the sequence of
    # each chain is cut, which gives up to .3 more.
    draws = np.array(draws)
    times = 1000 * draws.mean(axis=0).var(axis=0, ddof=1) / draws.var(axis=(0, 1))
    expected, error = mean_and_error(0.4 * known(run, STEP_SIZE).mean() * times)
    mean, own = mean_and_error(known(run, LENGTH))
    if abs(mean - expected) > 0.1 * expected + 4 * np.hypot(error, own):
        out.append("length of the memory")
    fixed, total = run.momentum[:, 2 * DIM :].copy(), 0.0
    for _ in range(2000):
        run.advance(1)
        total = total + (run.position**2).mean(axis=1) / 2000
    if (run.momentum[:, 2 * DIM :] != fixed).any():
        out.append("end")
    # The bias that is left at this energy error is 3 %.
    mean, error = mean_and_error(total)
    if abs(mean - 1) > 0.05 + 4 * error:
        out.append("law")
    return out


@pytest.mark.slow
def test_the_energy_error_the_length_and_the_law():
    assert not failures_of(adapted())


FAULTS = (
    ("(dim * _WANTED)", "(dim**3 * _WANTED)"),
    ("known[LENGTH] = SHARE * known", "known[LENGTH] = known"),
    ("sqrt(total)", "sqrt(total / dim)"),
    ("if t >= n:", "if t >= 2 * n:"),
    ("if t >= second:", "if n > t >= second:"),
    ("if t < third:", "if t < third or t >= n:"),
)


@pytest.mark.slow
def test_faults(tmp_path):
    """The planted faults: ε of another error, the whole of τ, another width, and adaptation without an end."""
    run, helpers = adapted(), energy_adaptation
    for right, wrong in FAULTS:
        helpers = edited(helpers, right, wrong, tmp_path)
    kernel = edited(mclmc, energy_adaptation.__name__, helpers.__name__, tmp_path)
    kernel = edited(kernel, "memory[0, MADE] < adapting", "memory[0, MADE] < 2 * adapting", tmp_path)
    put_sampler(run, faulty(run.sampler, kernel.advance))
    assert set(failures_of(run)) == CLAIMS
