"""The diagnostics against scipy, ArviZ and theory, each statistical test with a planted fault that it must catch.

z-tests use a bound of 4 (two-sided false alarm 6e-5) unless they say otherwise. Seeds are fixed.
"""

import inspect
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sgmcmc_lab.samplers import RunSpec, convergence, diagnostics, kolmogorov, run
from sgmcmc_lab.samplers.diagnostics import autocorrelation, divergence, ks, moments
from sgmcmc_lab.samplers.running_statistics import WATCHED, Statistics
from sgmcmc_lab.samplers.targets import TARGETS, dirichlet
from tests.helpers.cases import for_each
from tests.helpers.work import calls_of

Z = 4.0


def test_every_file_is_registered():
    files = {p.stem for p in Path(diagnostics.__file__).parent.glob("*.py")} - {"__init__"}
    assert files == set(diagnostics.__all__)
    assert all(inspect.ismodule(getattr(diagnostics, name)) for name in files)


def exact(target, n_steps=20_000, n_chains=1, seed=1, **params):
    return run(RunSpec.of(target, "exact", target_params=params, n_steps=n_steps, n_chains=n_chains, seed=seed))


# --- Kolmogorov–Smirnov --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gaussian", "quartic", "gamma", "lognormal", "sparse_dirichlet"])
def test_the_histogram_has_scipys_distance_within_the_mass_of_a_bin(target):
    trace = exact(target)
    values = trace.target.values(trace.draws)[0]
    for k, column in enumerate(trace.target.columns):
        truth = stats.kstest(values[:, k], column.cdf).statistic
        _, cdf = ks.edges_and_cdf(column)
        resolution = np.diff(cdf, prepend=0.0, append=1.0).max()
        assert truth - resolution - 1e-12 <= ks.distance(trace.statistics, k) <= truth + 1e-12
        assert ks.of_values(column, values[:, k]) == pytest.approx(truth, abs=1e-12)
    score = np.mean(
        [stats.kstest(values[:, k], trace.target.columns[k].cdf).statistic for k in trace.target.ks_columns]
    )
    assert ks.of_draws(trace.target, trace.draws[0]) == pytest.approx(score, abs=1e-12)
    # The planted fault: counts a hundred bins off.
    trace.statistics.sums.bins[0] = np.roll(trace.statistics.sums.bins[0], 100)
    truth = stats.kstest(values[:, 0], trace.target.columns[0].cdf).statistic
    assert ks.distance(trace.statistics, 0) > truth + 0.01


@for_each(("a", "b"), [(0.1, 0.4), (0.5, 900.1), (80.0, 0.2), (3e4, 5e4), (1.0, 1.0)])
def test_the_distance_of_odds_is_scipys(a, b):
    """Compiled for the page, too. Planted fault: another shape."""
    # Logarithms of this size cancel.
    allowed = 1e-13 * max(a + b, 1000)
    share = np.random.default_rng(4).beta(a, b, 500)
    rest = np.random.default_rng(5).beta(b, a, 20)
    with np.errstate(divide="ignore"):
        odds = np.sort(np.concatenate([share / (1 - share), (1 - rest) / rest, [0.0, 1e-300, 1e300, np.inf]]))
    column = dirichlet._odds(0, a, b)
    expected = stats.kstest(odds, column.cdf).statistic
    assert ks.of_values(column, odds) == pytest.approx(expected, rel=allowed)
    assert ks.of_values(replace(column, odds_of=(1.01 * a, b)), odds) != pytest.approx(expected, rel=allowed)
    each = [ks.odds_gap(np.array([x]), *ks.odds_constants(column)) for x in odds]
    below = column.cdf(odds)
    assert np.allclose(each, np.maximum(below, 1 - below), rtol=allowed)


def kolmogorov_z(target, draws, n):
    """z of the mean KS distance of all columns and replications against its exact mean at n."""
    values = target.values(draws).reshape(-1, n, len(target.columns))
    scores = [ks.of_values(target.columns[k], rows[:, k]) for rows in values for k in target.ks_columns]
    law = stats.kstwo(n)
    return (np.mean(scores) - law.mean()) / (law.std() / np.sqrt(len(scores)))


@pytest.mark.slow
def test_rosenblatt_columns_of_exact_dirichlet_draws_have_the_kolmogorov_mean():
    # The d − 1 columns are independent, so all 200 · 9 distances are.
    n = 400
    sparse = TARGETS["sparse_dirichlet"]
    target = sparse()
    assert abs(kolmogorov_z(target, target.sample(seed=3, n=200 * n), n)) < Z
    # The planted fault: draws of another prior.
    assert abs(kolmogorov_z(target, sparse(alpha=0.12).sample(seed=3, n=200 * n), n)) > 2 * Z


@pytest.mark.slow
def test_the_baseline_is_the_mean_of_the_kolmogorov_law():
    assert abs(kolmogorov.KOLMOGOROV_MEAN - stats.kstwobign.mean()) < 1e-6
    assert kolmogorov.baseline(1000) == pytest.approx(0.8687 / np.sqrt(1000), rel=1e-4)
    # At n draws the exact mean is lower by about 1/6n.
    assert kolmogorov.baseline(1000) == pytest.approx(stats.kstwo(1000).mean(), abs=2 / 6000)


@for_each("columns", [1, 2, 9])
def test_the_band_holds_its_share(columns):
    repeats = 20_000
    scores = stats.kstwobign.rvs(size=(repeats, columns), random_state=columns).mean(axis=1)
    low, high = kolmogorov.band(1.0, 0.9, columns)
    error = np.sqrt(0.05 * 0.95 / repeats)
    assert abs((scores < low).mean() - 0.05) < Z * error
    assert abs((scores > high).mean() - 0.05) < Z * error
    # The planted fault: the band of a different number of columns.
    low, high = kolmogorov.band(1.0, 0.9, 2 * columns)
    assert max(abs((scores < low).mean() - 0.05), abs((scores > high).mean() - 0.05)) > 2 * Z * error


def test_the_score_of_a_run_of_exact_draws_is_in_the_band():
    trace = exact("sparse_dirichlet", n_steps=20_000, n_chains=4)
    low, high = kolmogorov.band(trace.statistics.n_draws, 0.9999, columns=9)
    assert low < ks.mean_distance(trace.statistics, trace.target) < high
    biased = run(RunSpec.of("sparse_dirichlet", "sgrld", n_steps=20_000)).statistics
    assert ks.mean_distance(biased, trace.target) > 10 * high


def test_without_draws_there_is_no_distance():
    target = TARGETS["quartic"]()
    empty = Statistics.empty(target.columns, 1, target.dim, target.planar)
    assert np.isnan(ks.mean_distance(empty, target))
    assert np.isnan(divergence.kl_1d(empty, 0).value)
    assert np.isnan(divergence.kl_2d(empty, target).value)
    assert np.isnan(autocorrelation.tau_int(empty, 0))
    assert [len(x) for x in autocorrelation.autocorrelation(empty, 0)] == [0, 0]


# --- Kullback–Leibler ----------------------------------------------------------------------------------------------


def test_the_divergence_of_a_wider_gaussian_is_the_analytic_one():
    target = TARGETS["gaussian"]()
    column = target.columns[0]
    n, sd = 400_000, 1.1
    cuts, masses = divergence.cells(column)
    edges, _ = ks.edges_and_cdf(column)
    wide = np.diff(stats.norm.cdf(edges[cuts[1:] - 1], scale=sd), prepend=0.0, append=1.0)
    binned = (wide * np.log(wide / masses)).sum()
    unbinned = (sd**2 - 1 - np.log(sd**2)) / 2
    assert 0.98 * unbinned < binned < unbinned
    found = divergence.of_draws(column, np.random.default_rng(1).normal(0, sd, n))
    # The delta method: the estimate's variance is that of log(wide/masses) over n.
    error = np.sqrt((wide * np.log(wide / masses) ** 2).sum() - binned**2) / np.sqrt(n)
    assert abs(found.value - found.bias - binned) < Z * error
    # The planted fault: the other direction, KL(exact ‖ sample).
    assert abs((masses * np.log(masses / wide)).sum() - binned) > Z * error


@for_each("target", ["gaussian", "quartic", "gamma", "sparse_dirichlet"])
def test_exact_draws_have_the_stated_bias(target):
    trace = exact(target, n_steps=10_000, n_chains=4)
    n = trace.statistics.n_draws
    for k in range(trace.target.n_values):
        found = divergence.kl_1d(trace.statistics, k)
        cells = len(divergence.cells(trace.target.columns[k])[0])
        # 2n·KL ~ χ² with cells − 1 degrees of freedom.
        assert found.bias == pytest.approx((cells - 1) / (2 * n), rel=0.02)
        assert abs(found.value - found.bias) < 6 * np.sqrt(2 * (cells - 1)) / (2 * n)
        values = trace.target.values(trace.draws)[..., k].ravel()
        assert divergence.of_draws(trace.target.columns[k], values).value == pytest.approx(found.value, rel=0.02)


def test_the_bias_for_few_draws_is_the_mean_over_many_samples():
    masses = np.array([0.5, 0.3, 0.1, 0.05, 0.03, 0.01, 0.009, 0.001])
    rng = np.random.default_rng(5)
    for n in (400, 50, 10):
        scores = np.array([divergence._estimate(row, masses).value for row in rng.multinomial(n, masses, size=5000)])
        error = scores.std() / np.sqrt(len(scores))
        # The Poisson terms stand for binomial ones, which costs O(1/n²).
        assert abs(scores.mean() - divergence.expected(n, masses)) < Z * error + 1 / n**2
    # The planted fault: (m − 1)/2n, which is too much where cells are nearly empty.
    assert abs(scores.mean() - (len(masses) - 1) / (2 * n)) > 2 * (Z * error + 1 / n**2)


def test_the_joint_divergence_knows_the_exact_masses():
    trace = exact("quartic", n_steps=100_000, n_chains=4)
    target, statistics = trace.target, trace.statistics
    masses = divergence.joint_masses(target)
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    n = statistics.n_draws
    found = divergence.kl_2d(statistics, target)
    error = np.sqrt(2 * found.bias * n) / n
    assert abs(found.value - found.bias) < Z * error
    # The planted fault: the axes exchanged; and a sampler with a visible bias.
    turned = replace(statistics, sums=statistics.sums._replace(joint=np.ascontiguousarray(statistics.sums.joint.T)))
    assert divergence.kl_2d(turned, target).value > 1
    coarse = run(RunSpec.of("quartic", "sgld", sampler_params={"step_size": 0.03}, n_steps=100_000))
    assert divergence.kl_2d(coarse.statistics, target).value > found.bias + 20 * error


# --- autocorrelation -----------------------------------------------------------------------------------------------


def bartlett(r, lag, n):
    """The standard error of ρ̂(lag) of ``n`` values of an AR(1) with coefficient r (Bartlett 1946)."""
    power = r ** (2 * lag)
    return np.sqrt(((1 + r**2) * (1 - power) / (1 - r**2) - 2 * lag * power) / n)


def autocorrelation_z(statistics, r):
    """The largest |z| over all lags against r^lag; level k sees an AR(1) with r^(4^k)."""
    lags, rho = autocorrelation.autocorrelation(statistics, 0)
    n = statistics.n_steps * statistics.n_chains
    level = np.maximum(0, np.floor(np.log(np.maximum(lags, 1) / 4) / np.log(4)))
    stride = np.where(lags < 16, 1, 4.0**level)
    error = np.array([bartlett(r**s, lag / s, n / s) for lag, s in zip(lags[1:], stride[1:], strict=True)])
    return np.abs((rho[1:] - r ** lags[1:]) / error).max(), len(lags)


@for_each("step_size", [0.5, 0.05, 0.005])
def test_sgld_on_a_gaussian_has_the_autocorrelation_of_its_ar1(step_size):
    # θ ← (1 − ε/σ²)θ + noise with σ = 1: ρ(t) = (1 − ε)^t and τ = (1 + r)/(1 − r) = (2 − ε)/ε.
    spec = RunSpec.of(
        "gaussian", "sgld", sampler_params={"step_size": step_size}, n_steps=400_000, burn_in=5000, n_chains=4
    )
    statistics = run(spec, keep_draws=False).statistics
    # 100 lags or so at 5.5: a false alarm of 4e-6.
    worst, n_lags = autocorrelation_z(statistics, 1 - step_size)
    assert n_lags > 80
    assert worst < 5.5
    tau = autocorrelation.integrated_time(statistics, 0)
    assert autocorrelation.tau_int(statistics, 0) == tau.tau
    assert abs(tau.tau - (2 - step_size) / step_size) < Z * tau.standard_error
    assert tau.window >= 5 * tau.tau
    # The planted fault: a factor 2 lost in the step.
    assert autocorrelation_z(statistics, 1 - step_size / 2)[0] > 11
    assert abs(tau.tau - (2 - step_size / 2) / (step_size / 2)) > 2 * Z * tau.standard_error


def test_geometric_ou_has_its_integrated_time():
    # Of θ = e^x: ρ(t) = (e^{σ² e^{−ht}} − 1)/(e^{σ²} − 1).
    h, sigma = 0.2, 0.5
    spec = RunSpec.of(
        "lognormal", "geometric_ou", target_params={"sigma": sigma}, sampler_params={"step_size": h}, n_steps=200_000
    )
    t = np.arange(1, 500)
    truth = 1 + 2 * (np.expm1(sigma**2 * np.exp(-h * t)) / np.expm1(sigma**2)).sum()
    tau = autocorrelation.integrated_time(run(spec, keep_draws=False).statistics, 0)
    assert abs(tau.tau - truth) < Z * tau.standard_error
    # The planted fault: the chain's own (1 + r)/(1 − r) of x, which is that of log θ.
    other = 1 / np.tanh(h / 2)
    assert abs(other - truth) > 0.02 * truth


@pytest.mark.slow
@pytest.mark.parametrize("n_chains", [4, 32])
def test_the_standard_error_is_the_spread_over_runs(n_chains):
    """Eight of 32 chains are watched: an error that counts them all is half of what it should be, a planted fault."""
    taus = []
    for seed in range(40):
        spec = RunSpec.of(
            "gaussian",
            "sgld",
            sampler_params={"step_size": 0.1},
            n_steps=20_000 if n_chains == 4 else 8000,
            n_chains=n_chains,
            seed=seed,
        )
        taus.append(autocorrelation.integrated_time(run(spec, keep_draws=False).statistics, 0))
    spread = np.std([x.tau for x in taus], ddof=1)
    stated = np.mean([x.standard_error for x in taus])
    # The spread of 40 has a relative error of 11 %; subsampling at long lags adds a little.
    assert 0.6 < spread / stated < 1.5
    watched = min(n_chains, WATCHED)
    assert (spread / (stated * np.sqrt(watched / n_chains)) > 1.5) == (n_chains > watched)


def test_a_run_that_is_too_short_has_no_integrated_time():
    spec = RunSpec.of("gaussian", "sgld", sampler_params={"step_size": 0.001}, n_steps=2000)
    statistics = run(spec).statistics
    assert np.isnan(autocorrelation.tau_int(statistics, 0))
    lags, _ = autocorrelation.autocorrelation(statistics, 0)
    assert lags.max() <= 200
    assert (np.diff(lags) > 0).all()


def moved(trace, by):
    """The statistics of the same draws with each chain moved by so much: Σ(z+a)(z'+a) = Σzz' + a(Σz+Σz') + ma²."""
    sums, n = trace.statistics.sums, trace.statistics.n_steps
    for c, a in enumerate(by):
        for level in range(12):
            here = -(-n // 4**level)
            z = trace.draws[c, :: 4**level, 0]
            kept = min(16, here)
            for lag in range(kept):
                sums.lag_sums[0, c, level * 16 + lag] += (
                    a * (z[lag:].sum() + z[: here - lag].sum()) + (here - lag) * a * a
                )
            sums.lag_first[0, c, level * 16 : level * 16 + kept] += a
            sums.lag_recent[0, c, (level + 1) * 16 - kept : (level + 1) * 16] += a
            sums.level_sums[0, c, level] += here * a
        sums.powers[0, c, 0] += n * a
    return trace.statistics


@for_each("n_steps", [37, 4000, 4001])
def test_the_autocorrelation_does_not_depend_on_where_zero_is(n_steps):
    """Fails where the mean that is taken off the products of a level is that of other draws: far from zero the
    difference is as large as the autocovariance."""
    trace = run(RunSpec.of("gaussian", "sgld", sampler_params={"step_size": 0.2}, n_steps=n_steps, n_chains=3, seed=6))
    lags, rho = autocorrelation.autocorrelation(trace.statistics, 0)
    z = trace.draws[..., 0] - trace.draws[..., 0].mean()
    direct = [(z[:, lag:] * z[:, : n_steps - lag]).mean() / (z**2).mean() for lag in range(min(4, int(lags.max()) + 1))]
    np.testing.assert_allclose(rho[: len(direct)], direct, atol=1e-12)
    other_lags, other = autocorrelation.autocorrelation(moved(trace, (10.0, 10.0, 10.0)), 0)
    np.testing.assert_array_equal(other_lags, lags)
    np.testing.assert_allclose(other, rho, atol=1e-9)


def test_chains_in_different_places_do_not_look_mixed():
    trace = exact("gaussian", n_steps=4000, n_chains=4)
    assert autocorrelation.autocorrelation(trace.statistics, 0)[1][1:].max() < 0.1
    moved(trace, (3.0, -3.0, 3.0, -3.0))
    lags, rho = autocorrelation.autocorrelation(trace.statistics, 0)
    np.testing.assert_allclose(rho[lags > 0], 0.9, atol=0.1)


# --- R-hat and effective sample size -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_summary_is_that_of_arviz():
    import arviz_stats
    from arviz_base import from_dict

    trace = run(RunSpec.of("quartic", "sgld", n_steps=2000))
    history = trace.statistics.history()
    for k in range(2):
        tree = from_dict({"posterior": {"x": history[..., k]}})
        found = convergence.summary(history, k)
        assert found.rhat == pytest.approx(float(arviz_stats.rhat(tree)["x"]), rel=1e-12)
        assert found.ess_bulk == pytest.approx(float(arviz_stats.ess(tree, method="bulk")["x"]), rel=1e-12)
        assert found.ess_tail == pytest.approx(float(arviz_stats.ess(tree, method="tail", prob=0.05)["x"]), rel=1e-12)
    # The planted fault: one chain elsewhere.
    moved = history.copy()
    moved[0] += 3
    assert convergence.summary(moved, 0).rhat > 1.1


@for_each("stuck", [1, 2, 3])
def test_chains_that_are_stuck_do_not_hide_that_they_disagree(stuck):
    """Fails where R-hat or an effective size is nan because a chain never moved, or where the stuck chain passes.

    Planted fault: all four move, in the same place.
    """
    history = np.random.default_rng(4).normal(size=(4, 500, 1))
    assert convergence.summary(history, 0).rhat < 1.02
    history[:stuck] = np.arange(stuck)[:, None, None] + 0.5
    found = convergence.summary(history, 0)
    assert np.isfinite(found).all()
    assert found.rhat > 1.1


@for_each(
    "history",
    [
        np.zeros((4, 0, 1)),
        np.ones((4, 3, 1)),
        np.ones((4, 100, 1)),
        np.arange(4.0)[:, None, None] + np.zeros((4, 50, 1)),
        np.full((4, 50, 1), np.inf),
        np.full((4, 50, 1), np.nan),
    ],
)
def test_what_draws_cannot_give_is_nan_and_says_nothing(history):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(convergence.summary(history, 0)).all()


def test_descent_that_stands_still_has_no_diagnostics_and_says_why():
    """Gradient descent from one start, and its end; with noise there are diagnostics."""
    descent = np.tile(0.9 ** np.arange(400.0), (4, 1))[..., None]
    for history, why in ((descent[:, :60], "all chains are the same"), (descent, "the chains stand still")):
        assert convergence.refusal(history, 0) == why
        assert np.isnan(convergence.summary(history, 0)).all()
    noisy = descent + 0.1 * np.random.default_rng(2).normal(size=descent.shape)
    assert convergence.refusal(noisy, 0) == ""
    assert np.isfinite(convergence.summary(noisy, 0)).all()


def test_one_chain_has_effective_draws_but_no_rhat():
    history = np.random.default_rng(1).normal(size=(1, 500, 1))
    found = convergence.summary(history, 0)
    assert np.isnan(found.rhat)
    assert 300 < found.ess_bulk < 800


# --- the moments of SCIR -------------------------------------------------------------------------------------------

# The check numbers of the papers' notes: d = 5 categories with 20 of 100 counts each.
ALPHA, THETA0, H, STEPS, N, NJ, BATCH = 0.5, 3.0, 0.5, 6, 100, 20, 10


def measured(replacement):
    """Mean and variance of θ after STEPS steps with their errors, over five categories of equal law."""
    spec = RunSpec.of(
        "dense_dirichlet",
        "scir",
        "minibatch",
        target_params={"dimension": 5, "items": N, "alpha": ALPHA},
        sampler_params={"step_size": H},
        gradient_params={"batch_size": BATCH, "replacement": replacement},
        n_chains=10_000,
        seed=4,
    )
    found = moments.ensemble(spec, STEPS, THETA0)
    assert list(found.step) == [1, 2, 3, 4, 5, 6]
    # Counts correlate by −1/4, so their squares by 1/16: the mean of five has (1 + 4/16)/5 of the variance.
    share = np.sqrt(1.25 / 5)
    return (
        found.mean.mean(axis=1),
        found.mean_error.mean(axis=1) * share,
        found.variance.mean(axis=1),
        found.variance_error.mean(axis=1) * share,
    )


@pytest.mark.parametrize(("replacement", "number"), [(True, 57.88), (False, 54.33)])
def test_corollary_3_2(replacement, number):
    a = ALPHA + NJ
    noise = moments.var_a_hat(N, NJ, BATCH, replacement)
    theory = moments.scir_variance(a, THETA0, H, np.arange(1, STEPS + 1), noise)
    assert theory[-1] == pytest.approx(number, abs=1e-2)
    mean, mean_error, variance, variance_error = measured(replacement)
    assert (np.abs(mean - moments.cir_mean(a, THETA0, H * np.arange(1, STEPS + 1))) < Z * mean_error).all()
    assert (np.abs(variance - theory) < Z * variance_error).all()
    # The planted faults: no minibatch noise at all, and the other way to draw the batch.
    assert (
        np.abs(variance - moments.cir_variance(a, THETA0, H * np.arange(1, STEPS + 1))) > 2 * Z * variance_error
    ).all()
    other = moments.scir_variance(a, THETA0, H, STEPS, moments.var_a_hat(N, NJ, BATCH, not replacement))
    assert abs(variance[-1] - other) > 1.5 * Z * variance_error[-1]


@pytest.mark.slow
def test_an_ensemble_of_thousands_is_one_run():
    """Fails where its chains run one by one: the calls are then as many times more."""
    runs = [partial(moments.ensemble, RunSpec.of("sparse_dirichlet", "scir", n_chains=n), 60) for n in (1, 4000)]
    # Compiled by the first call.
    assert runs[1]().mean.shape == (60, 10)
    one, many = map(calls_of, runs)
    assert many < 2 * one


def cumulants(mgf):
    """The mean and the variance by central differences of log MGF at 0."""
    e = 1e-3
    below, above = np.log(mgf(-e)), np.log(mgf(e))
    return (above - below) / (2 * e), (above + below) / e**2


def test_the_derivatives_of_the_mgfs_are_the_moments():
    a, t = ALPHA + NJ, H * STEPS
    mean, variance = cumulants(lambda s: moments.cir_mgf(s, a, THETA0, t))
    assert mean == pytest.approx(moments.cir_mean(a, THETA0, t), rel=1e-4)
    assert variance == pytest.approx(moments.cir_variance(a, THETA0, t), rel=1e-4)
    for replacement in (True, False):
        mean, variance = cumulants(
            lambda s, r=replacement: moments.scir_mgf_expected(s, ALPHA, THETA0, H, STEPS, N, NJ, BATCH, r)
        )
        noise = moments.var_a_hat(N, NJ, BATCH, replacement)
        assert mean == pytest.approx(moments.cir_mean(a, THETA0, t), rel=1e-4)
        assert variance == pytest.approx(moments.scir_variance(a, THETA0, H, STEPS, noise), rel=1e-3)
        # The planted fault: the other factor.
        other = moments.var_a_hat(N, NJ, BATCH, not replacement)
        assert variance != pytest.approx(moments.scir_variance(a, THETA0, H, STEPS, other), rel=1e-2)


def test_the_conditional_mgf_reverses_the_time_index():
    a_hats = np.array([0.5, 0.5, 10.5, 20.5, 30.5, 60.5])
    mean, variance = THETA0, 0.0
    for a_hat in a_hats:
        variance = np.exp(-2 * H) * variance + moments.cir_variance(a_hat, mean, H)
        mean = moments.cir_mean(a_hat, mean, H)

    def mgf(s, given):
        return moments.scir_mgf(s, ALPHA + NJ, THETA0, H, STEPS, given)

    assert cumulants(lambda s: mgf(s, a_hats)) == (pytest.approx(mean, rel=1e-4), pytest.approx(variance, rel=1e-4))
    # The planted fault: the printed order.
    assert cumulants(lambda s: mgf(s, a_hats[::-1]))[0] != pytest.approx(mean, rel=0.1)
    with pytest.raises(ValueError, match="6 steps"):
        mgf(0.01, a_hats[:-1])
    # Constant â's are CIR itself.
    assert mgf(0.02, np.full(STEPS, ALPHA + NJ)) == pytest.approx(
        moments.cir_mgf(0.02, ALPHA + NJ, THETA0, H * STEPS), rel=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("replacement", [True, False])
def test_the_expected_mgf_is_the_mean_of_the_conditional_ones(replacement):
    rng = np.random.default_rng(8)
    size = (20_000, STEPS)
    b = rng.binomial(BATCH, NJ / N, size) if replacement else rng.hypergeometric(NJ, N - NJ, BATCH, size)
    s = 0.03
    values = np.array([moments.scir_mgf(s, ALPHA + NJ, THETA0, H, STEPS, row) for row in ALPHA + N / BATCH * b])
    error = values.std() / np.sqrt(len(values))
    truth = moments.scir_mgf_expected(s, ALPHA, THETA0, H, STEPS, N, NJ, BATCH, replacement)
    assert abs(values.mean() - truth) < Z * error
    # The planted fault: CIR's own.
    assert abs(moments.cir_mgf(s, ALPHA + NJ, THETA0, H * STEPS) - truth) > 2 * Z * error
