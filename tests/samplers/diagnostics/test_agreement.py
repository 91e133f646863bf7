"""The sentence that says why draws do not agree with their target, of runs that are wrong in a known way."""

import re

import numpy as np
import pytest

from sgmcmc_lab.samplers import Run
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.diagnostics import agreement
from sgmcmc_lab.samplers.experiment import RunSpec


def run_of(target, sampler, n, params=None, target_params=None, gradient="", **settings):
    made = Run(RunSpec.of(target, sampler, gradient, sampler_params=params, target_params=target_params, **settings))
    made.advance(n)
    return made


def test_draws_that_agree_raise_no_doubt():
    for target, sampler in (("gaussian", "exact"), ("gaussian", "sgld"), ("fisher", "gmc")):
        assert agreement.doubt(run_of(target, sampler, 12_000)) == ""


def test_nothing_is_said_of_a_few_steps_or_of_an_unknown_target():
    step = {"step_size": 1.9}
    assert agreement.doubt(run_of("gaussian", "sgld", agreement.FIRST - 1, step)) == ""
    assert agreement.doubt(run_of("gaussian", "sgld", agreement.FIRST, step)) != ""


def test_a_step_ten_times_too_long_is_a_bias_and_one_too_short_has_not_mixed():
    wide, narrow = ({"step_size": x} for x in (1.9, 1e-4))
    assert "the step size biases θ" in agreement.doubt(run_of("gaussian", "sgld", 12_000, wide))
    assert "the step size, or the noise of its gradient, biases θ" in agreement.doubt(
        run_of("gaussian", "sgld", 12_000, {"step_size": 1.5}, gradient="gaussian")
    )
    assert "of the probability of θ" in agreement.doubt(run_of("gaussian", "sgld", 2_000, narrow))
    assert "θ has not mixed: R̂ " in agreement.doubt(run_of("gaussian", "sgld", 2_000, {"step_size": 2e-3}))


def test_chains_in_one_of_two_modes_have_visited_half():
    made = run_of("gaussian_mixture", "hmc", 4_000, target_params={"modes": 2, "weight": 0.5, "radius": 6.0, "sd": 0.3})
    # Exactly: the first mode is one half.
    assert agreement.visited(made.statistics, 0) == pytest.approx(0.5, abs=0.01)
    assert "the chains have visited 50% of the probability of θ₁" in agreement.doubt(made)


def test_what_is_visited_is_the_mass_of_the_places_with_draws():
    """Recomputed from the draws of an exact run, with the bins' edges alone."""
    made = Run(RunSpec.of("gaussian", "exact", n_steps=50), keep_draws=True)
    made.advance(50)
    column = made.target.columns[0]
    ends = np.linspace(column.low, column.high, 2048 // 32 + 1)
    places = np.unique(np.searchsorted(ends, made.kept.ravel(), side="right"))
    masses = np.diff(np.concatenate([[0.0], column.cdf(ends), [1.0]]))
    assert agreement.visited(made.statistics, 0) == pytest.approx(masses[places].sum(), abs=1e-12)


@pytest.mark.slow
def test_a_few_particles_are_points_and_fifty_agree():
    said = agreement.doubt(run_of("gaussian", "svgd", 12_000, n_chains=4))
    assert "4 particles are 4 points, however many steps they make; 50 stand for the target more closely" in said
    assert agreement.doubt(run_of("gaussian", "svgd", 12_000)) == ""


def test_sgrld_says_that_its_bias_near_0_is_known():
    said = agreement.doubt(run_of("sparse_dirichlet", "sgrld", 4_000))
    assert said.endswith("; the lesson Boundary measures it.")
    assert agreement.doubt(run_of("sparse_dirichlet", "scir", 4_000)) == ""


def test_divergent_transitions_are_the_reason_where_there_are_many():
    often, seldom = (run_of("banana", "hmc", 2_000, {"step_size": x}) for x in (1.2, 0.3))
    share = often.counts[jit.DIVERGED] / often.statistics.n_draws
    assert share > 0.5 and f"{share:.0%} of the transitions diverged" in agreement.doubt(often)
    assert "diverged" not in agreement.doubt(seldom)


@pytest.mark.slow
def test_hmc_ecs_names_the_bias_of_a_small_subsample(monkeypatch):
    """The variance over all data, recomputed from the formulas. m = 4: KS .1; m = 64: KS .003, and nothing is said."""
    few, many = (run_of("linear_regression", "hmc_ecs", 12_000, {"batch_size": m}) for m in (4, 64))
    draws, target = np.array([[0.3, -0.2], [1.0, 0.5]]), few.target
    rows = np.arange(len(target.data()))
    energies = np.array([[target.textbook_energy(theta, i) for i in rows] for theta in (target.mode, *draws)])
    tangents = np.array([target.textbook_slope(target.mode, i) for i in rows]) @ (draws - target.mode).T
    expected = (energies[1:] - energies[0] - tangents.T).var(axis=1).mean() / 4
    assert few.sampler.variance(target, draws) == pytest.approx(expected, rel=1e-9)
    monkeypatch.setattr(agreement, "FAR", 0.2)
    assert agreement.doubt(few).startswith("The estimate of U has a variance above 1 at the draws")
    assert agreement.doubt(many) == ""


def test_weighted_draws_have_no_effective_sample_size():
    params = {"step_size": 1e-3, "adapt_steps": 100}
    said = agreement.doubt(run_of("gaussian", "contour_sgld", 4_000, params))
    assert re.search(r"θ has not mixed: R̂ \d\.\d\d\. ", said)
    assert "effective draws." in agreement.doubt(run_of("gaussian", "sgld", 2_000, {"step_size": 2e-3}))
