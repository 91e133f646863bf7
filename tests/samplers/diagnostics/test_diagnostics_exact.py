"""Diagnostics against the same numbers by NumPy and SciPy, to rounding; statistics are in ``test_diagnostics.py``."""

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy import stats

from sgmcmc_lab.samplers import RunSpec, kolmogorov, run
from sgmcmc_lab.samplers.diagnostics import autocorrelation, divergence, moments
from sgmcmc_lab.samplers.diagnostics.predictive import STATISTICS, p_value
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.running_statistics import LAG_RATIO, N_LAGS, N_LEVELS, STEPS, WEIGHT, Statistics
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each


def exact(target, **settings):
    return run(RunSpec.of(target, "exact", seed=4, **{"n_steps": 3000, "n_chains": 3, **settings}))


@for_each("target", ["gaussian", "gamma", "sparse_dirichlet"])
def test_stored_draws_have_the_divergence_of_their_histogram(target):
    """Fails where the cells of stored draws end a bin beside those of the histogram."""
    trace = exact(target)
    values = trace.target.values(trace.draws)
    for k, column in enumerate(trace.target.columns[: trace.target.n_values]):
        found, binned = divergence.of_draws(column, values[..., k].ravel()), divergence.kl_1d(trace.statistics, k)
        assert found == (pytest.approx(binned.value, rel=1e-9), pytest.approx(binned.bias, rel=1e-12))


def test_the_joint_masses_are_those_of_the_cells():
    """A cell's mass of independent normals is a product; two nodes a bin in place of three are off by 1e-6 of it."""
    target = TARGETS["correlated_gaussian"](rho=0.0)
    sides = [np.linspace(*column.axis, 41) for column in target.columns]
    x, y = (np.diff(column.cdf(edges)) for column, edges in zip(target.columns, sides, strict=True))
    masses = divergence.joint_masses(target)
    assert len(masses) == 1601
    inside = np.outer(x, y).ravel()
    np.testing.assert_allclose(masses[:-1], inside, rtol=2e-8, atol=1e-14)
    assert masses[-1] == pytest.approx(1 - inside.sum(), rel=1e-6, abs=1e-12)
    assert divergence.joint_masses(target) is masses


def test_one_column_has_the_band_of_the_kolmogorov_law():
    low, high = stats.kstwobign.ppf([0.05, 0.95]) / 10
    assert kolmogorov.band(100) == (pytest.approx(low), pytest.approx(high))
    low, high = stats.kstwobign.ppf([0.25, 0.75]) / 20
    assert kolmogorov.band(400, 0.5) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize("level", [0.9, 0.5])
def test_two_columns_have_the_band_of_the_law_of_their_mean(level):
    """Fails where an end is 2e-6 off: P((X + Y)/2 ≤ m) = ∫ f(x) F(2m − x) dx, and the band's grid has steps of 7e-4."""
    law = stats.kstwobign
    nodes, weights = leggauss(200)
    x = 1.5 * (nodes + 1)
    mass = 1.5 * weights * law.pdf(x)
    for end, below in zip(kolmogorov.band(1, level, 2), ((1 - level) / 2, (1 + level) / 2), strict=True):
        before, after = (mass @ law.cdf(np.maximum(2 * m - x, 0)) for m in (end - 2e-6, end + 2e-6))
        assert before < below < after


def test_the_bias_where_cells_have_many_counts():
    """(m − 1)/2n plus Σ 1/(12 λ)/n, on both sides of λ = 100, where the sum gives way to its expansion."""
    divergence.poisson_terms.cache_clear()  # it is worked out here, whatever ran before
    for n in (400, 4000, 400_000):
        masses = np.array([0.25, 0.25, 0.5])
        truth = (2 / 2 + (1 / (12 * n * masses)).sum()) / n
        assert divergence.expected(n, masses) == pytest.approx(truth, rel=2e-3)


def test_an_ensemble_is_summed_up_as_numpy_does():
    spec = RunSpec.of("dense_dirichlet", "scir", "minibatch", n_chains=3, n_steps=4, seed=2)
    found = moments.ensemble(spec, 4, theta0=3.0)
    again = Run(RunSpec.of("dense_dirichlet", "scir", "minibatch", n_chains=3, n_steps=4, burn_in=4, seed=2))
    again.position = 3.0
    for step in range(4):
        again.advance(1)
        x = again.position
        variance = x.var(axis=0, ddof=1)
        np.testing.assert_allclose(found.mean[step], x.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(found.mean_error[step], np.sqrt(variance / 3), rtol=1e-12)
        np.testing.assert_allclose(found.variance[step], variance, rtol=1e-12)
        # n = 3 takes the middle term of (m₄ − v²(n − 3)/(n − 1))/n away; it is there in the test below.
        fourth = ((x - x.mean(axis=0)) ** 4).mean(axis=0)
        np.testing.assert_allclose(found.variance_error[step], np.sqrt(fourth / 3), rtol=1e-12)
    np.testing.assert_array_equal(found.step, [1, 2, 3, 4])


def test_the_error_of_an_ensembles_variance():
    spec = RunSpec.of("gamma", "exact", n_chains=5, n_steps=1, seed=2)
    found = moments.ensemble(spec, 1)
    again = Run(RunSpec.of("gamma", "exact", n_chains=5, n_steps=1, burn_in=1, seed=2))
    again.advance(1)
    x = again.position
    v, fourth = x.var(axis=0, ddof=1), ((x - x.mean(axis=0)) ** 4).mean(axis=0)
    np.testing.assert_allclose(found.variance_error[0], np.sqrt(np.maximum(fourth - v**2 * 2 / 4, 0) / 5), rtol=1e-12)


def of_values(z):
    """Statistics of one chain of a Gaussian's column whose standardised values are ``z``, in the sums of all levels."""
    statistics = Statistics.empty(TARGETS["gaussian"]().columns, 1, 1)
    sums = statistics.sums
    sums.clock[STEPS] = sums.clock[WEIGHT] = len(z)
    for level in range(N_LEVELS):
        seen, at = z[:: LAG_RATIO**level], level * N_LAGS
        kept = min(N_LAGS, len(seen))
        for lag in range(kept):
            sums.lag_sums[0, 0, at + lag] = (seen[lag:] * seen[: len(seen) - lag]).sum()
        sums.lag_first[0, 0, at : at + kept] = seen[:kept]
        sums.lag_recent[0, 0, at + N_LAGS - kept : at + N_LAGS] = seen[-kept:]
        sums.level_sums[0, 0, level] = seen.sum()
    return statistics


@for_each("place", [0.1, 1e6 + 0.1, 1e-9, -(1e6) / 3])
def test_a_chain_that_stands_still_has_no_autocorrelation(place):
    """The variance of equal values is rounding, which grows with their square."""
    lags, rho = autocorrelation.autocorrelation(of_values(np.full(1001, place)), 0)
    assert (len(lags), len(rho)) == (0, 0)
    assert all(np.isnan(autocorrelation.integrated_time(of_values(np.full(1001, place)), 0)))


def test_the_lags_reach_fifteen_times_four_to_the_eleventh():
    assert (N_LAGS - 1) * LAG_RATIO ** (N_LEVELS - 1) == 15 * 4**11


def test_the_window_and_the_error_of_the_integrated_time():
    rng = np.random.default_rng(3)
    z = np.zeros(4000)
    for t in range(1, len(z)):
        z[t] = 0.5 * z[t - 1] + rng.normal()
    statistics = of_values(z)
    lags, rho = autocorrelation.autocorrelation(statistics, 0)
    assert lags[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert lags[16:20].tolist() == [16, 20, 24, 28]
    assert lags[-1] <= 400
    found = autocorrelation.integrated_time(statistics, 0)
    whole = int(found.window)
    assert whole < 16
    tau = 1 + 2 * rho[1 : whole + 1].sum()
    assert found.tau == pytest.approx(tau, rel=1e-12)
    assert whole >= 5 * tau
    assert whole - 1 < 5 * (1 + 2 * rho[1:whole].sum())
    assert found.standard_error == pytest.approx(tau * np.sqrt(2 * (2 * whole + 1) / 4000), rel=1e-12)


def test_the_predictive_p_counts_ties():
    """P(T(made) ≥ T(data)), by hand: means of 1, 2, 2 and 3 beside data of mean 2."""
    made, data = np.array([[1.0, 1.0], [2.0, 2.0], [1.0, 3.0], [3.0, 3.0]]), np.array([2.0, 2.0])
    assert {each: p_value(made, data, each) for each in STATISTICS} == {
        "mean": 0.75,
        "sd": 1.0,
        "min": 0.5,
        "max": 0.75,
    }
