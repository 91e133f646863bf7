"""The choice of the batch size: the case that is known exactly, and the trials in a run of minibatch Gibbs."""

import numpy as np
import pytest
from numpy.random import SFC64, Generator, SeedSequence
from scipy import signal

from sgmcmc_lab.lessons.papers import smolyakov_2018_topics as batches
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models import batch_size
from sgmcmc_lab.samplers.models.batch_size import (
    Adaptation,
    block_length,
    choose_batch_size,
    exact_best,
    exact_tau,
    gaussian_scan,
    objective,
    scan_chain,
    sizes_to_try,
    tau_int,
)
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.models.topics import minibatch_gibbs
from sgmcmc_lab.samplers.models.topics.corpus import bars, synthetic
from sgmcmc_lab.samplers.models.topics.minibatch_gibbs import MinibatchGibbs
from sgmcmc_lab.samplers.models.topics.model import Topics
from tests.helpers.cases import for_each

N, VARIANCE = 200, 0.5
TRIED = (5, 12, 50, 200)


def gaussian_draws(m, n, seed=1, variance=VARIANCE):
    rng = Generator(SFC64(seed))
    x = rng.standard_normal(N) * np.sqrt(1 + variance)
    z = x.copy()
    out = np.empty(n)
    gaussian_scan(rng, x, z, variance, m, out[: n // 20])
    gaussian_scan(rng, x, z, variance, m, out)
    return out, x


def measured_tau(m, stated=None):
    """From 40,000 τ of draws: the standard error is 3 % (of 30 seeds), so that 10 % is 3.3 of them."""
    n = int(40_000 * exact_tau(stated or m, N, VARIANCE))
    return tau_int(gaussian_draws(m, n)[0])


def sokal(draws, block=1):
    """The planted fault: the sum of ρ up to the first lag M ≥ 5 τ(M), which ends where the fast part of ρ does."""
    x = np.asarray(draws) - np.mean(draws)
    products = signal.correlate(x, x, method="fft")[len(x) - 1 :][: len(x) // 10]
    tau = 2 * np.cumsum(products / products[0]) - 1
    return max(tau[np.flatnonzero(np.arange(len(tau)) >= 5 * np.maximum(tau, 1))[0]], 1.0)


def one_by_one(draws, block):
    """Another: effective draws without blocks."""
    return tau_int(draws)


@pytest.mark.slow
@pytest.mark.parametrize("m", TRIED)
def test_the_gaussian_case_has_the_exact_tau(m):
    assert abs(measured_tau(m) / exact_tau(m, N, VARIANCE) - 1) < 0.1


@pytest.mark.slow
def test_a_chain_begins_with_an_exact_draw_on_data_of_its_own():
    """As in NumPy. Planted fault: without the data's part of θ."""
    jit.prepare([scan_chain])
    found, wanted, fault = np.empty(100), np.empty(100), np.empty(100)
    scan_chain(Generator(SFC64(3)), VARIANCE, 7, np.empty(N), np.empty(N), found)
    for out, share in ((wanted, 1), (fault, 0)):
        rng = Generator(SFC64(3))
        x = rng.standard_normal(N) * np.sqrt(1 + VARIANCE)
        theta = share * x.mean() + np.sqrt((1 + VARIANCE) / N) * rng.standard_normal()
        noise = np.sqrt(VARIANCE / (1 + VARIANCE)) * rng.standard_normal(N)
        gaussian_scan(rng, x, (VARIANCE * theta + x) / (1 + VARIANCE) + noise, VARIANCE, 7, out)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    assert not np.allclose(found, fault, rtol=1e-6)


@pytest.mark.slow
def test_a_batch_of_another_size_than_stated_is_caught():
    for m in TRIED[:3]:
        assert abs(measured_tau(max(m * 3 // 4, 1), stated=m) / exact_tau(m, N, VARIANCE) - 1) > 0.1


@pytest.mark.slow
def test_the_gaussian_case_has_the_exact_posterior():
    draws, x = gaussian_draws(50, 400_000)
    error = np.sqrt((1 + VARIANCE) / N * exact_tau(50, N, VARIANCE) / len(draws))
    assert abs(draws.mean() - x.mean()) < 4 * error
    variance = (1 + VARIANCE) / N
    assert abs(draws.var() / variance - 1) < 4 * np.sqrt(2 * exact_tau(50, N, VARIANCE) / len(draws))


@pytest.mark.slow
def test_the_best_size_of_the_measured_taus_is_the_exact_one():
    """m* = √(2 s² N w_θ/w_z), within 10 %: from a fit of τ = a + b/m to the measured τ's."""
    local, overall = 1.0, 8.0
    taus = np.array([measured_tau(m) for m in TRIED])
    design = np.array([[1, 1 / m] for m in TRIED]) / taus[:, None]
    a, b = np.linalg.lstsq(design, np.ones(len(TRIED)), rcond=None)[0]
    best = exact_best(N, VARIANCE, local, overall)
    assert best == pytest.approx(np.sqrt(2 * 0.5 * 200 * 8))
    assert abs(np.sqrt(b / a * overall / local) / best - 1) < 0.1
    fine = np.arange(1, N + 1)
    assert abs(fine[objective(fine, exact_tau(fine, N, VARIANCE), local, overall).argmin()] - best) <= 1
    # The grid's own minimum is the size on it that is nearest in cost.
    assert choose_batch_size(TRIED, objective(TRIED, taus, local, overall)) == 50


def test_the_weights_in_the_wrong_places_are_caught():
    fine = np.arange(1, N + 1)
    best = exact_best(N, VARIANCE, 1.0, 8.0)
    wrong = fine[objective(fine, exact_tau(fine, N, VARIANCE), 8.0, 1.0).argmin()]
    assert abs(wrong / best - 1) > 0.5


SMALL = 0.02
"""s² where θ has 2 % of its variance from the z, and remembers it: with m = 1 for 200 steps, so that τ is 9."""


def tau_ratios(estimate, m=1, n=200_000, n_seeds=16):
    """Estimate/τ for each of the seeds."""
    exact = exact_tau(m, N, SMALL)
    draws = (gaussian_draws(m, n, seed, SMALL)[0] for seed in range(n_seeds))
    return np.array([estimate(x, block_length(m, N)) / exact for x in draws])


@pytest.mark.slow
def test_a_small_part_that_falls_slowly_is_in_tau():
    """One estimate has a standard error of 20 %, so that a quarter is 5 of the mean of 16."""
    ratios = tau_ratios(tau_int)
    assert abs(ratios.mean() - 1) < 0.25
    assert ratios.std(ddof=1) < 0.35


@pytest.mark.slow
@pytest.mark.parametrize("fault", [sokal, one_by_one])
def test_an_estimate_that_ends_with_the_fast_part_is_caught(fault):
    assert tau_ratios(fault).mean() < 0.75


def chosen_size(estimate, seed, local=1.0, overall=21.0):
    """By trials that cost as much as 4,000 steps with all."""
    sizes = sizes_to_try(N)
    cost = 4000 * (N * local + overall)
    draws = [gaussian_draws(m, int(cost / (m * local + overall)), seed, SMALL)[0] for m in sizes]
    taus = [estimate(x, block_length(m, N)) for x, m in zip(draws, sizes, strict=True)]
    return choose_batch_size(sizes, objective(sizes, taus, local, overall))


@pytest.mark.slow
def test_the_best_size_is_chosen_where_little_is_remembered_for_long():
    """f is 230, 83, 55, 88, 198 for m = 200, 50, 12, 3, 1. Another was chosen with none of 24 seeds."""
    sizes = sizes_to_try(N)
    assert sizes[objective(sizes, exact_tau(sizes, N, SMALL), 1.0, 21.0).argmin()] == 12
    assert [chosen_size(tau_int, seed) for seed in range(8)] == [12] * 8
    # A sum that ends with the fast part sees no cost of a small batch.
    assert {chosen_size(sokal, seed) for seed in range(8)} <= {1, 3}


@for_each("rho", [0.0, 0.5, 0.9, -0.3])
def test_tau_of_an_autoregression(rho):
    """(1 + ρ)/(1 − ρ), but at least 1, which is what independent draws have."""
    noise = np.random.default_rng(1).standard_normal(200_000)
    draws = signal.lfilter([1], [1, -rho], noise)
    assert tau_int(draws) == pytest.approx(max((1 + rho) / (1 - rho), 1), rel=0.1)


@for_each("draws", [[], [1.0], np.ones(1000), np.arange(1000.0), np.random.default_rng(1).normal(size=300).cumsum()])
def test_tau_is_unknown_where_the_draws_do_not_tell(draws):
    assert tau_int(draws) == np.inf


@for_each(("n", "wanted"), [(1, [1]), (2, [2, 1]), (16, [16, 4, 1]), (316, [316, 79, 19, 4, 1]), (20, [20, 5, 1])])
def test_the_sizes_fall_from_all_to_one(n, wanted):
    assert sizes_to_try(n).tolist() == wanted


def test_a_size_of_unknown_tau_is_never_chosen_where_another_is_known():
    assert choose_batch_size([100, 10, 1], [50.0, np.inf, np.inf]) == 100
    assert choose_batch_size([100, 10, 1], [np.inf, 9.0, np.inf]) == 10
    assert choose_batch_size([100, 10, 1], [np.inf] * 3) == 100


@for_each("unit", [1.0, 0.25, 1e-3])
def test_every_size_is_tried_at_the_same_cost(unit):
    """The unit of costs, seconds or the time of one document, changes nothing."""
    rng = np.random.default_rng(1)
    trial = Adaptation(np.array([64, 8, 1]), unit, 8 * unit, cost=72 * 500 * unit, warm_up=7)
    used = {}
    while not trial.chosen:
        used[trial.size] = used.get(trial.size, 0) + 1
        # It is said in advance how long the trials take.
        assert trial.steps_left == 6757 - sum(used.values()) + 1
        trial.record(rng.normal(), sum(used.values()))
    assert trial.steps_left == 0
    assert used == {64: 507, 8: 2250, 1: 4000}
    # Independent draws have τ = 1, whatever m: so the cheapest is best.
    assert trial.chosen == 1
    kept = trial.taus.copy()
    assert trial.chosen_after == 507 + 2250 + 4000
    trial.record(1.0, 10_000)
    assert trial.taus == kept
    assert trial.chosen == trial.size == 1 and trial.chosen_after == 6757


@pytest.fixture(scope="module")
def few():
    """Twenty short documents to learn from: their trials take a second."""
    corpus = bars(n_documents=25, length=20, side=3)
    return Topics(corpus, corpus="uploaded", n_topics=3, beta=1.0, alpha=1.0, max_share=1.0)


def tried(model, **params):
    """A run of minibatch Gibbs just after it has chosen."""
    run = ModelChain(model, MinibatchGibbs(**params), Generator(SFC64(SeedSequence(1))))
    while not run.method.adaptation(model, run.state).chosen:
        run.method.advance(model, run.state, run.rng)
    return run


@pytest.mark.slow
def test_a_run_tries_the_sizes_and_keeps_the_best(few):
    run = tried(few, cost_ratio=2.0, trial=2000)
    shown = run.snapshot()
    assert shown["batch_sizes"].tolist() == [20, 5, 1]
    best = shown["objective"].argmin()
    assert np.isfinite(shown["objective"][best])
    assert np.allclose(shown["objective"], (shown["batch_sizes"] + 2.0) * shown["tau"])
    chosen = int(shown["chosen"][0])
    assert chosen == shown["batch_sizes"][best]
    for _ in range(3):
        run.advance()
        assert len(run.state.batch) == chosen


@pytest.mark.slow
def test_smaller_batches_remember_longer(few):
    """Each τ from about as many draws as resolve it within a third; from 20 documents to 1 it grows about 20-fold."""
    tau = tried(few, cost_ratio=2.0, trial=5000).snapshot()["tau"]
    assert np.isfinite(tau).all()
    assert tau[0] < tau[1] < tau[2]
    assert 5 < tau[2] / tau[0] < 60


@pytest.mark.slow
def test_a_dear_draw_of_phi_asks_for_the_largest_batch(few):
    assert tried(few, cost_ratio=3000.0, trial=500).snapshot()["chosen"][0] == 20


def test_other_weights_begin_the_trials_anew(few):
    run = tried(few, cost_ratio=8.0, trial=20)
    assert run.method.adaptation(few, run.state).chosen
    run.method = MinibatchGibbs(cost_ratio=9.0, trial=20)
    assert not run.method.adaptation(few, run.state).chosen


def test_the_ratio_in_the_spec_decides_and_not_the_clock(few, monkeypatch):
    """Measured times are nowhere in a run: two runs of one spec choose alike and draw alike."""
    monkeypatch.setattr(minibatch_gibbs.time, "perf_counter", lambda: pytest.fail("the clock was read"))
    states = []
    for _ in range(2):
        made = MinibatchGibbs(trial=20, cost_ratio=8.0)
        rng = Generator(SFC64(1))
        state = made.start(few, rng)
        for _ in range(300):
            made.advance(few, state, rng)
        states.append(state)
    assert np.array_equal(states[0].weights, states[1].weights)
    with pytest.raises(pytest.fail.Exception):
        minibatch_gibbs.measure_weights(few)


# --- the chosen size against one document and all, at equal cost ------------------------------------------------------

LIMIT = 4.0
"""Standard errors: sizes that are equal pass it once in 3,500 (Student, 24 chains). Here it is 6.7 and 10.9."""


@pytest.fixture(scope="module")
def topical():
    """A hundred documents of three topics that hardly share words, so that φ remembers little of the z."""
    corpus = synthetic(125, n_words=200, n_topics=3, length=60)
    return Topics(corpus, corpus="uploaded", n_topics=3, max_share=1.0)


def losses(model):
    """The sizes that the chosen one does not beat, and whether it is one of the two extremes."""
    found = batches.compare(model, ratio=10.0, trial=1500, sweeps=50, chains=24, scored=False)
    chosen, n = found.adaptation.chosen, model.training.n_documents
    out = [] if 1 < chosen < n else [f"m = {chosen} is chosen"]
    for row in found.rows[1:]:
        (_, log, _), (_, error, _) = found.ratios(row)
        if not log > LIMIT * error:
            out.append(
                f"m = {row.size}: the error of φ is {np.exp(log):.2f} ± {np.exp(log) * error:.2f} of that of m = {chosen}"
            )
    return out


def test_the_statistics_are_those_of_the_state(topical):
    """Σ φ² is what the size is chosen by; log p(x | z, φ) is the sum over the words, one by one."""
    method, rng = MinibatchGibbs(trial=10, cost_ratio=10.0), Generator(SFC64(1))
    state = method.start(topical, rng)
    for _ in range(5):
        method.advance(topical, state, rng)
    squares, phi, log_likelihood = batches.statistics(topical, state)
    assert squares == pytest.approx(method.adaptation(topical, state)._draws[-1], rel=1e-12)
    assert np.allclose(phi.sum(axis=0), 1)
    assert log_likelihood == pytest.approx(np.log(phi[topical.training.words, state.topics]).sum(), rel=1e-12)


@pytest.mark.slow
def test_a_ratio_of_errors_has_the_stated_standard_error():
    """One in 20 of 4,000 pairs of 24 equal chains is beyond 2 errors, within a third; with half the error, one in 3."""
    rng = np.random.default_rng(1)
    pairs = [batches.log_ratio(*rng.chisquare(20, size=(2, 24, 1))) for _ in range(4000)]
    z = np.array([log / error for log, error in pairs]).ravel()
    assert abs((np.abs(z) > 2).mean() / 0.0515 - 1) < 0.33
    assert (np.abs(2 * z) > 2).mean() > 0.25


@pytest.mark.slow
def test_the_chosen_size_beats_one_document_and_all_at_equal_cost(topical):
    assert losses(topical) == []


@pytest.mark.slow
def test_a_size_that_was_chosen_by_the_fast_part_is_caught(topical, monkeypatch):
    monkeypatch.setattr(batch_size, "tau_int", sokal)
    # It is m = 1, and that does not beat all of them either.
    assert len(losses(topical)) == 2
