"""ChEES-HMC: its adapting steps in plain Python, the length that it learns, and the law afterwards."""

import numpy as np
import pytest
from scipy import optimize

from sgmcmc_lab.samplers.choices import Choice
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import chees
from sgmcmc_lab.samplers.kernels.adaptation import (
    AVERAGED,
    LEARNT,
    LOG_MEAN,
    MADE,
    SHRUNK_TO,
    STATISTIC,
    STEP_SIZE,
)
from sgmcmc_lab.samplers.lanes import Change
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.step_terms import Play
from sgmcmc_lab.samplers.targets.isotropic_gaussian import IsotropicGaussian
from tests.helpers.edited import edited, faulty
from tests.helpers.statistics import (
    draws_of,
    exact_start,
    failures,
    fast_cdf,
    ks_verdict,
    mean_verdict,
    put_sampler,
    start_with,
    z_verdict,
)

SD = np.arange(1.0, 11.0)
"""The scales of a Gaussian in ten dimensions."""


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        out[c] = 0.0
        for i in range(theta.shape[1]):
            out[c] += (theta[c, i] / (i + 1)) ** 2 / 2


@jit.gradient
def gradient(theta, out, params):
    for c in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            out[c, i] = theta[c, i] / (i + 1) ** 2


class Scales(IsotropicGaussian):
    """N(0, diag σ²)."""

    key = "scales"
    potential, gradient = potential, gradient

    def sample(self, seed, n):
        return SD * super().sample(seed, n)


def of_scales(seed, n_chains, steps, kernel=None, **params):
    """A run on that Gaussian from exact draws, with a kernel of its own where one is given."""
    run = Run(
        RunSpec.of(
            "isotropic_gaussian",
            "chees",
            target_params={"dimension": len(SD)},
            sampler_params={"adapt_steps": steps, **params},
            n_chains=n_chains,
            seed=seed,
            burn_in=10**9,
        )
    )
    jit.prepare([potential, gradient])
    run.target = Scales(dimension=len(SD))
    exact_start(run, 1000 + seed)
    if kernel is not None:
        put_sampler(run, faulty(run.sampler, kernel))
    return run


def known(run, which):
    """A number that each chain knows, (chains,)."""
    return run.momentum[:, run.target.dim + which]


# --- step for step ---------------------------------------------------------------------------------------------------


def apart(n, steps=30, kernel=None, **params):
    """How far four chains and what they know are after n steps from the reference's, relative to 1 + its numbers."""
    params = {"adapt_steps": steps, **params}
    run = Run(RunSpec.of("banana", "chees", sampler_params=params, n_chains=4, seed=4))
    if kernel is not None:
        put_sampler(run, faulty(run.sampler, kernel))
    play = Play(run, chain=1)
    parts = [play.step() for _ in range(n)]
    run.advance(n)
    assert kernel is not None or all(step.adds_up(1e-12) for step in parts)
    ours, theirs = np.hstack([run.position, run.momentum]), np.hstack([play.theta, play.momentum])
    return float((np.abs(ours - theirs) / (1 + np.abs(theirs))).max())


@pytest.mark.slow
@pytest.mark.parametrize("params", [{}, {"step_size": 1.5}, {"step_size": 0.002}])
def test_each_step_is_the_references(params):
    """Beyond the last adapting step; with a step that blows up, and with trajectories of the most leapfrog steps."""
    assert apart(40 if not params else 8, **params) < 1e-8


@pytest.mark.slow
def test_fault_a_criterion_without_weights(tmp_path):
    """The planted fault: trajectories that are rejected count for T as much as others."""
    assert apart(40, kernel=edited(chees, "alpha[c] / total * change", "1.0 / left * change", tmp_path).advance) > 1e-4


# --- what it learns --------------------------------------------------------------------------------------------------


def slope_of(length, step_size):
    """d/d log T of the criterion's mean over h, with the times ε⌈hT/ε⌉, hT for ε → 0.

    The flow of a Gaussian gives θ'² − θ² = σ²(s²(r² − z²) + 2cs zr), s and c of t/σ, θ = σz; its square has the mean
    4σ⁴s², and the criterion is Σσ⁴ sin²(t/σ).
    """
    h = (np.arange(20_000) + 0.5) / 20_000
    times = h * length if step_size == 0 else step_size * np.ceil(h * length / step_size)
    return ((SD**3 * np.sin(2 * times[:, None] / SD)).sum(axis=1) * h * length).mean()


def best_length(step_size):
    """The maximiser next to that of the widest coordinate, 2.247σ: tan x = x at x = 2T/σ = 4.493."""
    return optimize.brentq(slope_of, 14, 26, args=(step_size,))


def test_the_best_length_is_the_criterions_maximiser():
    lengths = np.linspace(1, 60, 2000)
    found = [(SD**4 * (0.5 - np.sin(2 * t / SD) / (4 * t / SD))).sum() for t in lengths]
    assert abs(best_length(0) - lengths[np.argmax(found)]) < 0.05


CHAINS, SEEDS, STEPS = 16, 64, 1000


def length_faults(kernel=None):
    """That the mean of log T over 64 runs is not that of the best length at the ε that they learnt.

    An allowance of 3 % for the leapfrog's error and the α, which the closed form leaves out; false alarm 1e-4.
    """
    lengths, steps = [], []
    for seed in range(SEEDS):
        run = of_scales(seed, CHAINS, STEPS, kernel)
        run.advance(STEPS + 1)
        lengths.append(known(run, chees.LENGTH)[0])
        steps.append(known(run, STEP_SIZE)[0])
        assert (run.momentum[:, len(SD) :] == run.momentum[0, len(SD) :]).all()
    x = np.log(lengths)
    error = x.std(ddof=1) / np.sqrt(SEEDS)
    expected = np.log(best_length(np.mean(steps)))
    verdict = z_verdict("log T", x.mean(), expected, error, allowance=0.03, freedom=SEEDS - 1)
    return np.exp(x.mean()), error, failures([verdict])


@pytest.mark.slow
def test_the_length_is_the_best_one():
    _, error, found = length_faults()
    assert not found and error < 0.02, found


@pytest.mark.slow
def test_fault_a_slope_with_its_sign_turned(tmp_path):
    """The planted fault: T falls from its first value, 3."""
    length, _, found = length_faults(edited(chees, "+ RATE * slope", "- RATE * slope", tmp_path).advance)
    assert found and length < 1


@pytest.mark.slow
def test_the_harmonic_mean_of_the_acceptance_is_the_wanted_one():
    """Over the last 20 of 500 adapting steps of 40 runs, within .02 and four standard errors (false alarm 6e-5)."""
    means = []
    for seed in range(40):
        run, alpha = of_scales(seed, CHAINS, 500), []
        run.advance(480)
        for _ in range(20):
            run.advance(1)
            alpha.append(known(run, STATISTIC)[0])
        means.append(np.mean(alpha))
    mean, error = np.mean(means), np.std(means, ddof=1) / np.sqrt(len(means))
    assert abs(mean - 0.651) < 0.02 + 4 * error and error < 0.02, (mean, error)


# --- the law afterwards ----------------------------------------------------------------------------------------------


def law_faults(target, where, kernel=None):
    """The moments and marginals of draws after the adaptation that are another law's; false alarm 1e-3."""
    params = {"adapt_steps": 300}
    run = start_with(RunSpec.of(target, "chees", target_params=where, sampler_params=params, n_chains=1000, seed=4))
    exact_start(run)
    if kernel is not None:
        put_sampler(run, faulty(run.sampler, kernel))
    run.advance(350)
    target = run.target
    values = target.values(draws_of(run, 20, 3))
    tests = len(target.moments) + len(target.ks_columns)
    out = [mean_verdict(m.name, m.function(values), m.exact, 1e-3, tests) for m in target.moments]
    for k in target.ks_columns:
        column = target.columns[k]
        out.append(ks_verdict(column.name, fast_cdf(column)(values[..., k]), 1e-3, tests))
    return failures(out)


TWO_SCALES = "correlated_gaussian", {"rho": 0.0, "sd2": 3.0}


@pytest.mark.slow
@pytest.mark.parametrize(("target", "where"), [("gaussian_mixture", {}), TWO_SCALES])
def test_the_law_afterwards_is_exact(target, where):
    assert not law_faults(target, where)


@pytest.mark.slow
def test_fault_no_accept_step(tmp_path):
    """The planted fault: all proposals are kept after the adaptation. The narrow coordinate's draws are too wide."""
    kernel = edited(chees, "info.counts, False)", "info.counts, r[c, dim] > adapting)", tmp_path).advance
    assert law_faults(*TWO_SCALES, kernel)


# --- its numbers -----------------------------------------------------------------------------------------------------


def test_in_chunks_the_draws_are_the_same():
    runs = [
        Run(RunSpec.of("banana", "chees", sampler_params={"adapt_steps": 60}, n_chains=3, seed=4), keep_draws=True)
        for _ in range(2)
    ]
    runs[0].advance(100)
    for n in (7, 60, 33):
        runs[1].advance(n)
    assert runs[0].counted_from == 60 and runs[0].counted == 40
    np.testing.assert_array_equal(runs[0].kept[:, :40], runs[1].kept[:, :40])
    assert runs[0].gradients == runs[1].gradients <= 300 * runs[0].sampler.most_gradients()


def test_another_step_size_or_length_begins_again():
    """Each its own average. After the adaptation a new value replaces the learnt one, and the other one stays."""
    run = Run(RunSpec.of("banana", "chees", sampler_params={"adapt_steps": 60}, n_chains=3, seed=4))

    def changed(**values):
        params = {**run.sampler.param.values(), **values}
        made = Choice("chees", tuple((name, params[name]) for name, _ in run.spec.sampler.params))
        run.change(Change(run.steps, made, run.spec.gradient))
        run.advance(1)

    run.advance(20)
    learnt = known(run, LEARNT)[0]
    assert learnt > 10
    changed(step_size=0.07)
    assert (known(run, AVERAGED) == 1).all() and (known(run, MADE) == 21).all() and known(run, LEARNT)[0] >= learnt
    np.testing.assert_allclose(known(run, SHRUNK_TO), np.log(0.7))
    changed(step_size=0.07, length=1.0)
    assert (known(run, AVERAGED) == 2).all() and (known(run, LEARNT) <= 1).all()
    run.advance(50)
    assert (known(run, STEP_SIZE) == np.exp(known(run, LOG_MEAN))).all()
    length = known(run, chees.LENGTH).copy()
    np.testing.assert_array_equal(length, np.exp(known(run, chees.LOG_LENGTH)))
    changed(step_size=0.3, length=1.0)
    assert (known(run, STEP_SIZE) == 0.3).all() and (known(run, chees.LENGTH) == length).all()
    changed(step_size=0.3, length=2.0)
    assert (known(run, STEP_SIZE) == 0.3).all() and (known(run, chees.LENGTH) == 2.0).all()


def test_one_chain_does_not_adapt():
    RunSpec.of("gaussian", "chees", n_chains=1)
    with pytest.raises(SpecError, match="n_chains = 1: ChEES-HMC adapts across chains; allowed are 2 chains or more"):
        RunSpec.of("gaussian", "chees", sampler_params={"adapt_steps": 9}, n_chains=1)


def test_divergent_transitions_are_rejections_in_the_neck_of_a_funnel():
    """At least twenty, most where e^{θ₁/2} is small; each has the draw of its step, which is the one before."""
    run = Run(RunSpec.of("funnel", "chees", n_chains=4, n_steps=2000, seed=3), keep_draws=True)
    run.advance(2000)
    found, at = run.divergent, run.divergent.steps - 1
    assert len(found.steps) == run.counts[jit.DIVERGED] >= 20 and at.min() > 0
    np.testing.assert_array_equal(found.theta, run.kept[found.chains, at])
    np.testing.assert_array_equal(run.kept[found.chains, at], run.kept[found.chains, at - 1])
    assert np.median(found.theta[:, 0]) < -2 < np.median(run.kept[..., 0])
