"""Austerity and TunaMH: the law with minibatches, and the data that they look at."""

from itertools import pairwise

import numpy as np
import pytest

from sgmcmc_lab.samplers import engine
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import SAMPLERS, austerity, tunamh
from sgmcmc_lab.samplers.requirements import ENERGIES, LIPSCHITZ
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.edited import edited, faulty
from tests.helpers.statistics import draws_of, exact_start, failures, fast_cdf, ks_verdict, mean_verdict, start_with


def test_only_targets_with_energies_of_their_data_are_offered():
    energies = {t for t, target in TARGETS.items() if ENERGIES in target.provides}
    bounded = {t for t in energies if LIPSCHITZ in TARGETS[t].provides}
    assert {t for t in TARGETS if SAMPLERS["austerity"].fits(TARGETS[t])} == energies
    assert {t for t in TARGETS if SAMPLERS["tunamh"].fits(TARGETS[t])} == bounded
    assert "poisson_regression" in energies - bounded and "logistic_large" in bounded


# --- TunaMH: the law ----------------------------------------------------------------------------------------------

CASES = [
    ("student_mean", {}, {"step_size": 0.8}),
    ("student_mean", {}, {"step_size": 0.8, "chi": 0.003, "control": True}),
    ("logistic_regression", {"items": 25}, {"step_size": 0.2, "chi": 0.01}),
    ("logistic_regression", {"items": 25}, {"step_size": 0.3, "chi": 0.01, "control": True}),
]
"""One coefficient and two, of posteriors that are skewed, with exact answers by quadrature."""
FALSE_ALARM = 1e-4
STEPS = 300


def spec_of(t, target_params, params, s="tunamh", n_chains=1000):
    return RunSpec.of(t, s, target_params=target_params, sampler_params=params, n_chains=n_chains, seed=8)


def verdicts(spec, kernel=None):
    """Moments and marginals of 1000 chains from exact draws, the first half of whose steps is not looked at."""
    run = start_with(spec, None if kernel is None else faulty(spec.make_sampler(), kernel))
    exact_start(run)
    run.advance(STEPS // 2)
    values = run.target.values(draws_of(run, 10, STEPS // 20))
    # Most steps are those of a minibatch.
    assert run.data_seen < 0.95 * len(run.data) * run.steps * run.spec.n_chains
    n_tests = len(CASES) * 8
    out = [mean_verdict(m.name, m.function(values), m.exact, FALSE_ALARM, n_tests) for m in run.target.moments]
    for k in run.target.ks_columns:
        column = run.target.columns[k]
        out.append(ks_verdict(column.name, fast_cdf(column)(values[..., k]), FALSE_ALARM, n_tests))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_tunamh_is_exact(case):
    """Fails where a moment or a marginal is off by more than its Monte Carlo error; no bias is allowed for (false
    alarms: 1e-4 in all)."""
    assert not failures(verdicts(spec_of(*case)))


INDENT = "\n" + 24 * " "
RATIO = "log_ratio += log((2 * rate + bound - apart) / (2 * rate + bound + apart))"
KEPT = "if 2 * rng.random() * (rate + bound) < 2 * rate + bound + apart:"
FAULTS = {
    "λ left out of the ratio": (0, RATIO, "log_ratio += log((bound - apart) / (bound + apart))"),
    "bound halved": (0, "total += abs(y[j] - x[j])", "total += 0.5 * abs(y[j] - x[j])"),
    "no thinning": (1, KEPT, "if rng.random() < 2:"),
    "an estimate in place of the ratio": (
        1,
        KEPT + INDENT + RATIO,
        "if rng.random() < 2:" + INDENT + "log_ratio -= apart / (rate + bound)",
    ),
    "no control variates with their bound": (1, "if control:", "if control and bound < 0:"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_tunamh_are_seen(fault, tmp_path):
    case, right, wrong = FAULTS[fault]
    assert failures(verdicts(spec_of(*CASES[case]), edited(tunamh, right, wrong, tmp_path).advance))


# --- austerity ------------------------------------------------------------------------------------------------------


@for_each(("t", "step_size"), [("student_mean", 1.0), ("logistic_regression", 0.8), ("poisson_regression", 0.1)])
def test_without_error_austerity_is_random_walk_metropolis(t, step_size):
    """Draw for draw, and each step looks at all data. The planted faults: one test that errs, and a level that is off
    by a hundredth."""
    runs = []
    for s, params in (("rwm", {}), ("austerity", {"error": 0.0}), ("austerity", {"error": 1e-3, "batch_size": 4})):
        spec = spec_of(t, {}, {"step_size": step_size, **params}, s, n_chains=5)
        runs.append(engine.Run(spec))
        runs[-1].advance(400)
    exact, none, some = runs
    np.testing.assert_array_equal(none.position, exact.position)
    assert none.counts[jit.ACCEPTED] == exact.counts[jit.ACCEPTED] > 0
    assert (none.data_seen, none.gradients) == (exact.data_seen, exact.gradients)
    assert not np.array_equal(some.position, exact.position) and some.data_seen < exact.data_seen


@pytest.mark.slow
def test_another_level_is_no_random_walk_metropolis(tmp_path):
    kernel = edited(austerity, "level = -log(rng.random())", "level = 0.01 - log(rng.random())", tmp_path).advance
    spec = spec_of("student_mean", {}, {"step_size": 1.0, "error": 0.0}, "austerity", n_chains=5)
    wrong, exact = start_with(spec, faulty(spec.make_sampler(), kernel)), engine.Run(spec)
    for run in (wrong, exact):
        run.advance(400)
    assert not np.array_equal(wrong.position, exact.position)


ERRORS = (0.0, 0.001, 0.01, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("items", [100, 569])
def test_the_bias_of_austerity_grows_with_its_error_and_its_data_fall(items):
    """Logistic regression with m = 20: Var θ₁ over the target's, and the share of the data that a step looks at.

    With ε = 0 there is no bias to within 3.9 standard errors (false alarm 1e-4); every larger ε has more, by four
    standard errors of the difference. N = 100: {0: 1, .001: 1.26, .01: 1.5, .05: 1.8} with {1, .85, .76, .61} of the
    data. N = 569: {0: 1, .001: 1.2, .01: 1.7, .05: 2.6} with {1, .76, .61, .37}.
    """
    found = []
    for error in ERRORS:
        params = {"step_size": 8 / items**0.5, "error": error, "batch_size": 20}
        run = engine.Run(spec_of("logistic_regression", {"items": items}, params, "austerity", n_chains=200))
        exact_start(run)
        run.advance(200)
        column = run.target.columns[0]
        squares = (run.target.values(draws_of(run, 40, 5))[..., 0] - column.mean) ** 2 / column.variance
        of_chains = squares.mean(axis=1)
        seen = run.data_seen / items / run.steps / len(of_chains)
        found.append((of_chains.mean(), of_chains.std() / len(of_chains) ** 0.5, seen))
    assert abs(found[0][0] - 1) < 3.9 * found[0][1] and found[0][2] == 1
    for less, more in pairwise(found):
        assert more[0] - less[0] > 4 * np.hypot(less[1], more[1]), found
        assert more[2] < less[2] - 0.05, found


# --- the data that a step looks at ------------------------------------------------------------------------------------


def seen_by(s, items, **params):
    """Data a step on average, of 20 chains at steps of a tenth of a standard deviation."""
    params["step_size"] = 0.5 / items**0.5
    run = engine.Run(spec_of("logistic_large", {"items": items, "features": 2}, params, s, n_chains=20))
    exact_start(run)
    run.advance(20)
    return run.data_seen / run.steps / 20


SEEN = [("tunamh", {}), ("tunamh", {"control": True}), ("austerity", {"error": 0.05, "batch_size": 100})]


@pytest.mark.slow
def test_data_of_a_step_as_n_grows():
    """N is 1,000 and 16,000. With χ = .1 TunaMH looks at a share of .60 and .57 of the data, and with control
    variates at .044 and .0032: their number hardly grows. Austerity looks at .28 and .15. That each counts once is in
    ``test_costs``."""
    few, many = ([seen_by(s, items, **params) for s, params in SEEN] for items in (1000, 16_000))
    plain, control, tested = (b / a for a, b in zip(few, many, strict=True))
    assert 12 < plain < 20 and 0.8 < control < 1.5 and 2 < tested < 14, (few, many)
    assert few[1] < 60, few
