"""The compiled readings, each against the same in NumPy, SciPy or ArviZ, on runs and at their ends.

Each has a planted fault: what a lost draw, factor or tail would give, which is to be found elsewhere.
"""

import inspect
import re
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from numba import types
from scipy import special, stats
from scipy.interpolate import PchipInterpolator

from sgmcmc_lab.samplers import RunSpec, convergence, run, running_statistics
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.diagnostics import autocorrelation, bands, divergence, histogram, ks, moments
from sgmcmc_lab.samplers.running_statistics import LAG_RATIO, N_BINS, N_JOINT, N_LAGS, N_LEVELS, TAIL, Statistics
from sgmcmc_lab.samplers.targets import expectations
from tests.helpers.cases import for_each

RUNS = {
    "quartic": ("quartic", "sgld", {}, 4, 3000),
    "one draw": ("gaussian", "exact", {}, 1, 1),
    "few draws": ("gaussian", "sgld", {}, 2, 7),
    "many chains": ("gaussian", "sgld", {}, 700, 40),
    "long": ("banana", "sgld", {}, 2, 300_000),
    "log": ("sparse_dirichlet", "exact", {}, 3, 2000),
    "none": ("quartic", "sgld", {}, 3, 0),
}
TILES = [*RUNS, "overflow", "huge", "far"]


@pytest.fixture(autouse=True)
def quiet():
    """An overflow in NumPy's expression warns; compiled, it does not."""
    with np.errstate(all="ignore"):
        yield


@cache
def made(name):
    """The target and the running statistics of a run, or of draws that no run makes."""
    if name not in RUNS:
        values = {"overflow": [1e9, -1e9, 2e9], "huge": [1e150, -1e150, 3.0], "far": 1e6 + np.arange(3.0)}[name]
        target, _ = made("quartic")
        found = Statistics.empty(target.columns, 3, target.dim, target.planar)
        draws = np.tile(np.array(values)[None, :, None], (1, 1, target.dim))
        jit.prepare([running_statistics.count_row])
        for step in range(60):
            row = np.ascontiguousarray(draws.transpose(2, 1, 0)) * (1 + 0.1 * np.sin(step))
            running_statistics.count_row(found.sums, draws, row, np.empty((2, 1 + N_LAGS)))
        return target, found
    target, sampler, params, n_chains, n_steps = RUNS[name]
    trace = run(RunSpec.of(target, sampler, sampler_params=params, n_chains=n_chains, n_steps=max(n_steps, 1), seed=3))
    if n_steps == 0:
        trace.statistics.restart()
    return trace.target, trace.statistics


def columns(name):
    target, found = made(name)
    return [(target, found, k) for k in range(len(target.columns))]


def close(found, expected, scale=1.0, fault=None):
    """Whether numbers are the same to 1e-12 of the larger one of them and ``scale``; a fault is not."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * scale)
    if fault is not None:
        assert not np.allclose(found, fault, rtol=1e-9, atol=1e-9 * scale, equal_nan=True)


# --- the declaration -----------------------------------------------------------------------------------------------

PLAIN = {
    str(one)
    for one in (types.none, jit.int64, jit.float64, jit.vector, jit.matrix, jit.cube, jit.integers, jit.integer_matrix)
}
CALLED = re.compile(r"\bnp\.(\w+)")


def strange(function, signature):
    """The types and calls of a declared function that a host without Python does not have."""
    parts = [part for part in (signature.return_type, *signature.args) if str(part) not in PLAIN]
    return [*map(str, parts), *set(CALLED.findall(inspect.getsource(function.py_func))) - {"nan", "inf", "isnan"}]


def test_readings_take_plain_arrays_and_make_none():
    """Fails where a reading has an argument of another kind, or calls NumPy. Planted: the loop that counts a row, and
    a function that makes an array."""
    assert len(jit.readings()) > 25 and set(jit.readings()) <= set(jit.declared())
    for function in jit.readings():
        assert strange(function, jit._COMPILED[function][1]) == []
    assert strange(running_statistics.count_row, jit._COMPILED[running_statistics.count_row][1])
    made = jit.numba.njit(lambda x: np.zeros(len(x)))
    assert strange(made, types.void(jit.vector)) == ["zeros"]


@pytest.mark.slow
def test_to_import_them_compiles_nothing():
    code = "import sgmcmc_lab.samplers.diagnostics; from sgmcmc_lab.samplers.compile import jit; print(len(jit._READY), len(jit.readings()))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert said[0] == "0" and int(said[1]) == len(jit.readings())


# --- power sums ----------------------------------------------------------------------------------------------------


@for_each("name", TILES)
def test_moments_are_those_of_the_power_sums(name):
    for _, found, k in columns(name):
        column, sums, n = found.columns[k], found.sums.powers[k], max(found.n_draws, 1)
        means = column.mean + np.sqrt(column.variance) * sums[:, 0] / max(found.n_steps, 1)
        scale = float(np.abs(means).max())
        close(found.chain_means(k), means, scale)
        close(found.mean(k), means.mean(), scale)
        raw = [sums[:, p].sum() / n for p in range(4)]
        close([found.raw_moment(k, p + 1) for p in range(4)], raw)
        variance = column.variance * (raw[1] - raw[0] ** 2)
        # The terms that cancel are as large as the second moment.
        close(found.variance(k), variance, column.variance * max(raw[1], 1.0))
        if found.n_steps > 1 and name not in ("huge", "far"):
            close(found.variance(k), variance, column.variance * max(raw[1], 1.0), fault=column.variance * raw[1] + 1)


# --- the ring ------------------------------------------------------------------------------------------------------


@for_each("written", [0, 1, 5, 16, 17, 1023, 1024, 1025, 5000])
@for_each("unseen", [0, 1, 7, 16, 17, 33, 1000, 1024, 1025, 10_000])
def test_fresh_draws_are_those_of_the_tail(written, unseen):
    """The number of each draw is in the ring. Planted fault: every row one later."""
    found = Statistics.empty(made("quartic")[0].columns, 1, 1)
    found.sums.clock[running_statistics.WRITTEN] = written
    for i in range(max(written - TAIL, 0), written):
        found.sums.tail[i % TAIL] = i + 1
    for most in (1, 16):
        draws, ages = found.fresh(unseen, most)
        tail = found.tail(min(unseen, TAIL))
        step = max(1, -(-len(tail) // most))
        picked = np.arange(len(tail) - 1, -1, -step)[::-1]
        assert len(draws) <= most and np.array_equal(draws, tail[picked])
        assert np.array_equal(ages, len(tail) - 1 - picked)
        assert len(draws) == 0 or not np.array_equal(found.sums.tail[draws[:, 0, 0].astype(int) % TAIL], draws)
    assert len(found.fresh(-3, 16)[0]) == 0


# --- histograms ----------------------------------------------------------------------------------------------------


@for_each("name", TILES)
def test_the_ks_distance_is_that_of_the_cumulated_counts(name):
    for target, found, k in columns(name):
        cdf = np.asarray(target.columns[k].cdf(running_statistics.bin_edges(target.columns[k])))
        if found.n_draws == 0:
            assert np.isnan(ks.distance(found, k))
            continue
        counts = found.sums.bins[k]
        expected = np.abs(np.cumsum(counts[:-1]) / found.n_draws - cdf).max()
        # Planted fault: what is below the histogram is lost.
        lost = np.abs(np.cumsum(np.r_[0, counts[1:-1]]) / found.n_draws - cdf).max()
        close(ks.distance(found, k), expected, fault=None if counts[0] * 10 < found.n_draws else lost)
        shifted = np.abs(np.cumsum(counts)[1:] / found.n_draws - cdf).max()
        assert name != "quartic" or shifted != pytest.approx(expected, rel=1e-12)


@for_each("name", TILES)
def test_bars_and_what_is_occupied_are_those_of_the_cumulated_counts(name):
    for _, found, k in columns(name):
        counts, starts = found.sums.bins[k], np.arange(0, N_BINS, 37)
        ends = np.minimum(starts + 37, N_BINS)
        widths = np.linspace(0.1, 2, len(starts))
        below = np.cumsum(counts)
        expected = (below[ends] - below[starts]) / (max(found.n_draws, 1) * widths)
        # Planted fault: the bins are one further down.
        fault = (np.cumsum(np.r_[counts[1:], 0])[ends] - np.cumsum(np.r_[counts[1:], 0])[starts]) / (
            max(found.n_draws, 1) * widths
        )
        close(histogram.densities(found, k, starts, ends, widths), expected, fault=fault if name == "quartic" else None)
        for lanes in ([found], [found, made("quartic")[1]]):
            inner = np.cumsum(sum(one.sums.bins[min(k, 1) if one is not found else k][1:-1] for one in lanes))
            if len(lanes) > 1 and k > 1:
                continue
            expected = None
            if inner[-1]:
                first, last = np.searchsorted(inner, [0.001 * inner[-1], 0.999 * inner[-1]])
                room = max(4, (last - first) // 8)
                expected = max(first - room, 0), min(last + room, len(inner))
            assert histogram.occupied(lanes, k) == expected


@for_each("bars", [1, 3, 64])
def test_bars_are_whole_bins(bars):
    """Planted fault: a half is rounded up, never to an even number."""
    unlike = 0
    for first, last in [
        (0, N_BINS),
        (0, 0),
        (5, 6),
        (2040, 2048),
        (2048, 2048),
        *[(7, 7 + n) for n in range(1, 800, 3)],
        (10, 170),
        (10, 234),
    ]:
        for rounded in (round, lambda x: int(x + 0.5)):
            group = max(1, rounded((last - first) / bars))
            starts = np.arange(max(first - 1, 0), min(last + 1, N_BINS), group)
            same = all(
                map(np.array_equal, histogram.groups(first, last, bars), (starts, np.minimum(starts + group, N_BINS)))
            )
            assert same or rounded is not round
            unlike += not same
    assert (unlike > 0) == (bars % 2 == 0)


def test_fault_an_occupied_range_of_other_shares():
    """The 1st and the 99th percentile bound another range."""
    found = made("quartic")[1]
    inner = np.cumsum(found.sums.bins[0][1:-1])
    first, last = np.searchsorted(inner, [0.01 * inner[-1], 0.99 * inner[-1]])
    assert histogram.occupied([found], 0) != (first - (last - first) // 8, last + (last - first) // 8)


def boxes(found, positions, levels):
    """Quantiles of the columns, linear within a bin, and the lowest bins that were hit."""
    quantiles, least, last = [], [], positions.shape[1] - 1
    for j in range(len(positions)):
        below = np.cumsum(found.sums.bins[j])
        at = levels * below[-1]
        bins = np.searchsorted(below, at)
        before = np.where(bins > 0, below[bins - 1], 0)
        left, right = positions[j, np.maximum(bins - 1, 0)], positions[j, np.minimum(bins, last)]
        quantiles.append(left + (at - before) / (below[bins] - before) * (right - left))
        least.append(positions[j, max(int(np.searchsorted(below, 1)) - 1, 0)])
    return np.array(quantiles), np.array(least)


@for_each("name", [name for name in TILES if name != "none"])
def test_boxes_are_quantiles_of_the_counts(name):
    target, found = made(name)
    positions, levels = (
        np.array([running_statistics.bin_edges(column) for column in target.columns]),
        np.array([0.05, 0.25, 0.5, 0.95]),
    )
    quantiles, least = histogram.quantiles(found, positions, levels)
    expected, lowest = boxes(found, positions, levels)
    fault = boxes(found, positions, levels * 0.9)[0]
    close(quantiles, expected, fault=fault if name == "quartic" else None)
    close(least, lowest)


def test_no_draws_have_no_boxes():
    quantiles, least = histogram.quantiles(made("none")[1], np.zeros((2, N_BINS + 1)), [0.5])
    assert quantiles.shape == (0, 1) and least.shape == (0,)


# --- autocorrelation -----------------------------------------------------------------------------------------------


def correlations(found, k, off=0):
    """Lags and ρ of the lag sums, in NumPy; the fault: the values left out are those of a lag further ``off``."""
    sums, n = found.sums, found.n_steps
    watched = sums.lag_sums.shape[1]
    if n == 0:
        return np.empty(0), np.empty(0)
    products, first_values, last_values = (
        array[k].sum(axis=0).reshape(N_LEVELS, N_LAGS) for array in (sums.lag_sums, sums.lag_first, sums.lag_recent)
    )
    totals, lags, rho = sums.level_sums[k].sum(axis=0), [], []
    for level in range(N_LEVELS):
        stride = LAG_RATIO**level
        first, last = 0 if level == 0 else N_LAGS // LAG_RATIO, min(N_LAGS - 1, n // (10 * stride))
        if last < first:
            break
        at, here, lag = np.arange(first, last + 1), -(-n // stride), np.arange(last + 1)
        mean = totals[level] / (watched * here)
        left_out = np.concatenate([[0.0], np.cumsum(first_values[level] + last_values[level, ::-1])])
        covariance = mean**2 + (products[level, lag] - mean * (2 * totals[level] - left_out[lag + off])) / (
            watched * (here - lag)
        )
        if not covariance[0] > 1e-12 * mean**2:
            return np.empty(0), np.empty(0)
        lags.append(at * stride)
        rho.append(covariance[at] / covariance[0])
    return np.concatenate(lags).astype(float), np.concatenate(rho)


def integrated(lags, rho, n, factor=2.0):
    """τ, its standard error and the window, in NumPy; the fault: another factor before the sum."""
    if len(lags) < 2:
        return [np.nan] * 3
    area = np.concatenate([[0.0], np.cumsum(np.diff(lags) * (rho[1:] + rho[:-1]) / 2)])
    tau = factor * area + rho
    enough = np.flatnonzero(lags >= 5 * tau)
    if len(enough) == 0:
        return [np.nan] * 3
    window, value = lags[enough[0]], tau[enough[0]]
    return [value, abs(value) * np.sqrt(2 * (2 * window + 1) / n), window]


@for_each("name", TILES)
def test_correlations_and_their_time_are_those_of_the_lag_sums(name):
    for _, found, k in columns(name):
        lags, rho = autocorrelation.autocorrelation(found, k)
        expected = correlations(found, k)
        assert np.array_equal(lags, expected[0])
        # Of chains far from the exact mean all but their last digits cancels.
        np.testing.assert_allclose(rho, expected[1], rtol=1e-12, atol=1e-5 if name == "far" else 1e-12)
        n = found.n_steps * found.sums.lag_sums.shape[1]
        time = autocorrelation.integrated_time(found, k)
        np.testing.assert_allclose(time, integrated(lags, rho, n), rtol=1e-12)
        assert autocorrelation.tau_int(found, k) == time.tau or np.isnan(time.tau)
        if name == "long":
            assert np.isfinite(time.tau)
            assert np.abs(correlations(found, k, off=1)[1] - rho).max() > 1e-9
            assert integrated(lags, rho, n, factor=1.0)[0] != pytest.approx(time.tau, rel=1e-3)


def test_equal_draws_have_no_correlations():
    found = Statistics.empty(made("quartic")[0].columns, 1, 2)
    for _ in range(100):
        running_statistics.count_row(found.sums, np.ones((1, 1, 2)), np.full((2, 1, 1), 0.7), np.empty((2, 1 + N_LAGS)))
    assert len(autocorrelation.autocorrelation(found, 0)[0]) == 0 == len(correlations(found, 0)[0])
    assert np.isnan(autocorrelation.integrated_time(found, 0)).all()


@for_each("name", ["quartic", "few draws", "long"])
def test_the_standard_error_of_a_mean(name):
    _, found, k = columns(name)[0]
    tau = autocorrelation.tau_int(found, k)
    expected = np.sqrt(max(found.variance(k), 0.0) * max(tau, 1.0) / found.n_draws)
    close(autocorrelation.standard_error(found, k), expected, fault=expected * np.sqrt(2) if tau > 0 else None)
    jit.prepare([autocorrelation.mean_error])
    assert autocorrelation.mean_error(2.0, 0.3, 8) == 0.5
    assert autocorrelation.mean_error(-1e-9, 3.0, 8) == 0
    assert np.isnan(autocorrelation.mean_error(1.0, np.nan, 8))


# --- divergence ----------------------------------------------------------------------------------------------------


def terms():
    """log λ and g(λ) = E[c log(c/λ)], c ~ Poisson(λ)."""
    grid = np.linspace(np.log(1e-12), np.log(1e4), 400)
    rates, counts = np.exp(grid)[:, None], np.arange(1, 300)
    exact = (stats.poisson.pmf(counts, np.minimum(rates, 100)) * counts * np.log(counts / rates)).sum(axis=1)
    return grid, np.where(rates[:, 0] < 100, exact, 0.5 + 1 / (12 * rates[:, 0]))


def estimate(counts, masses):
    masses, n = np.maximum(masses, np.finfo(float).tiny), counts.sum()
    if n == 0:
        return [np.nan, np.nan]
    return [special.kl_div(counts / n, masses).sum(), (np.interp(np.log(n * masses), *terms()).sum() - 0.5) / n]


@for_each("name", TILES)
def test_divergences_are_those_of_the_merged_counts(name):
    for target, found, k in columns(name):
        cuts, masses = divergence.cells(target.columns[k])
        counts = np.add.reduceat(found.sums.bins[k], cuts)
        # Planted fault: what is above the histogram is lost.
        fault = estimate(np.add.reduceat(np.r_[found.sums.bins[k][:-1], 0], cuts), masses)
        close(divergence.kl_1d(found, k), estimate(counts, masses), fault=fault if found.sums.bins[k][-1] else None)
    if target.planar:
        masses, side = divergence.joint_masses(target), N_JOINT // 3
        inside = found.sums.joint.reshape(side, 3, side, 3).sum(axis=(1, 3)).ravel()
        counts = np.append(inside, max(found.n_draws - inside.sum(), 0))
        fault = estimate(np.append(inside.reshape(side, side).T.ravel(), counts[-1]), masses)
        close(divergence.kl_2d(found, target), estimate(counts, masses), fault=fault if name == "long" else None)


@pytest.mark.slow
def test_the_bias_of_independent_draws_at_all_ends():
    rng = np.random.default_rng(1)
    for scale in (1e-14, 1e-9, 1e-3, 1.0):
        masses = rng.random(50) * scale
        for n in (1, 7.5, 1e3, 1e9):
            expected = (np.interp(np.log(n * masses), *terms()).sum() - 0.5) / n
            close(divergence.expected(n, masses), expected, fault=expected + 0.5 / n if n < 1e4 else None)
    grid, values = terms()
    # At each point of the grid, and beside it.
    for x in (*grid, *np.nextafter(grid, 0), *np.nextafter(grid, np.inf)):
        close(divergence.expected(1, np.exp([x])), np.interp(np.log(np.exp(x)), grid, values) - 0.5)


# --- convergence ---------------------------------------------------------------------------------------------------


def kinds(rng, chains, n):
    """Draws of chains (chains, n) of all kinds."""
    noise, phi = rng.normal(size=(chains, n)), rng.uniform(-0.95, 0.999)
    slow = noise.copy()
    for t in range(1, n):
        slow[:, t] += phi * slow[:, t - 1]
    stuck = noise.copy()
    stuck[0] = stuck[0, 0]
    yield from (
        noise,
        slow,
        stuck,
        np.cumsum(noise, axis=1),
        np.round(noise, 1),
        noise + 3 * np.arange(chains)[:, None],
    )
    yield rng.integers(0, rng.integers(2, 6), size=(chains, n)).astype(float)
    yield rng.standard_cauchy(size=(chains, n)) * 10.0 ** rng.integers(-200, 200)
    yield np.repeat(noise, 3, axis=1)[:, :n]
    yield (-1.0) ** np.arange(n) + 0.1 * noise
    yield np.where(noise > 0, 1e300, -1e300) * (1 + 0.01 * slow)


def pairs(draws):
    """The sums ρ_2t + ρ_2t+1 of draws (chains, n): where one is 0, Geyer's criterion is rounding."""
    n, apart = draws.shape[1], draws - draws.mean(axis=1, keepdims=True)
    covariance = np.array([(apart[:, : n - t] * apart[:, t:]).sum(axis=1).mean() / n for t in range(n)])
    total = covariance[0] + draws.mean(axis=1).var(ddof=1)
    rho = 1 - (covariance[0] * n / (n - 1) - covariance) / total
    return rho[: n // 2 * 2].reshape(-1, 2).sum(axis=1)[1:]


def undecided(draws):
    half = draws.shape[1] // 2
    sides = [draws <= q for q in np.quantile(draws, [0.05, 0.95])]
    split = [np.concatenate([x[:, :half], x[:, -half:]]).astype(float) for x in sides]
    with np.errstate(all="ignore"):
        return any((np.abs(pairs(x)) < 1e-12).any() for x in split if np.ptp(x) > 0)


def arviz(draws):
    from arviz_stats.base import array_stats

    with np.errstate(all="ignore"):
        return np.array(
            [
                float(array_stats.rhat(draws)) if len(draws) > 1 else np.nan,
                float(array_stats.ess(draws, method="bulk")),
                float(array_stats.ess(draws, method="tail", prob=0.05)),
            ]
        )


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 5, 6, 7, 9, 10, 13, 50, 333, 1023, 1024])
def test_the_summary_is_arvizs(n):
    """To 1e-9, of one chain to eight. Planted faults: draws without ranks, and a later half that is one draw off."""
    rng, seen, unlike = np.random.default_rng(n), 0, 0
    for chains in (1, 2, 3, 4, 8):
        for draws in kinds(rng, chains, n):
            history = np.concatenate([np.zeros((chains, n, 1)), draws[..., None]], axis=2)
            if convergence.refusal(history, 1) or undecided(draws):
                continue
            found, expected = np.array(convergence.summary(history, 1)), arviz(draws)
            np.testing.assert_allclose(found, expected, rtol=1e-9)
            seen += 1
            unlike += not np.allclose(arviz(np.roll(draws, 1, axis=1)), found, rtol=1e-9, equal_nan=True)
    assert seen > 30
    assert unlike > seen / 3


@for_each("n", [50, 51, 333, 2000])
def test_tau_of_a_mean_is_arvizs(n):
    """The τ of single chains. Planted fault: a later half that is some draws off."""
    from arviz_stats.base import array_stats

    rng, seen, unknown = np.random.default_rng(n), 0, 0
    for _ in range(20):
        draws, phi = rng.normal(size=n), rng.uniform(-0.9, 0.95)
        for t in range(1, n):
            draws[t] += phi * draws[t - 1]
        size = float(array_stats.ess(draws[None], method="mean"))
        found = convergence.tau_of_mean(draws)
        if abs(size - convergence.ENOUGH) > 1e-6:
            expected = max(n / size, 1.0) if size > convergence.ENOUGH else np.inf
            np.testing.assert_allclose(found, expected, rtol=1e-9)
            assert found in (1.0, np.inf) or found != pytest.approx(
                convergence.tau_of_mean(np.roll(draws, 5)), rel=1e-9
            )
            seen += 1
            unknown += found == np.inf
    assert seen > unknown > 0 or n == 2000
    assert convergence.tau_of_mean(rng.normal(size=3)) == np.inf


def reasons(draws):
    """The former expression of what is refused."""
    if draws.shape[1] < 4:
        return "too few draws yet" if draws.shape[1] else "no draws yet"
    if not np.isfinite(draws).all():
        return "draws are not finite"
    later = draws[:, draws.shape[1] // 2 :]
    with np.errstate(over="ignore"):
        if np.ptp(later, axis=1).max() <= 1e-6 * np.ptp(draws, axis=1).max():
            return "the chains stand still"
    return "all chains are the same" if len(draws) > 1 and (draws == draws[:1]).all() else ""


def test_what_is_refused_and_why():
    """Planted fault: were the former half looked at, descent would not stand still."""
    rng, met = np.random.default_rng(2), set()
    for chains in (1, 2, 8):
        noise = rng.normal(size=(chains, 101))
        descent = np.tile(0.9 ** np.arange(401.0), (chains, 1))
        bad = [
            np.where(np.arange(101) == at, value, noise) for at in (0, 50, 100) for value in (np.nan, np.inf, -np.inf)
        ]
        same = np.tile(noise[:1], (chains, 1))
        late = np.where(np.arange(101) == 100, noise + 1e-7, 0.0)
        edge = np.tile(np.r_[1.0, np.zeros(49), 1e-6, np.zeros(49)], (chains, 1))
        for draws in (
            noise,
            descent,
            descent[:, :60],
            *bad,
            same,
            late,
            edge,
            noise * 0,
            noise * 1e308,
            *(noise[:, :m] for m in range(6)),
        ):
            assert convergence.refusal(draws[..., None], 0) == reasons(draws)
            met.add(reasons(draws))
        assert convergence.refusal(descent[..., None], 0) != convergence.refusal(descent[:, ::-1, None], 0)
    assert met == set(convergence.REASONS)


def test_histories_of_any_kind_are_taken():
    """A view of a longer history, one that cannot be written to, one in another order."""
    whole = np.random.default_rng(1).normal(size=(4, 100, 3))
    expected = convergence.summary(whole[:, :60].copy(), 2)
    fixed = np.frombuffer(whole[:, :60].tobytes()).reshape(4, 60, 3)
    for history in (whole[:, :60], fixed, np.asfortranarray(whole[:, :60])):
        assert convergence.summary(history, 2) == expected
    jit.prepare([convergence.summarise])
    out, longer = np.empty(3), np.concatenate([whole[:, :60], np.full((4, 9, 3), np.nan)], axis=1)
    assert convergence.summarise(longer, 60, 2, np.empty((5, 240)), np.empty((2, 240), dtype=np.int64), out) == 0
    assert tuple(out) == expected != convergence.summary(whole, 2)


# --- moments of ensembles ------------------------------------------------------------------------------------------


@for_each("n", [1, 2, 3, 500])
def test_the_spread_of_chains(n):
    x = np.random.default_rng(n).gamma(0.3, size=(n, 4)) * [1, 1e-3, 1e8, 1]
    x[:, 3] = 2.0
    mean, square = x.mean(axis=0), (x - x.mean(axis=0)) ** 2
    v = square.sum(axis=0) / max(n - 1, 1)
    spread = (square**2).mean(axis=0) - v**2 * (n - 3) / max(n - 1, 1)
    expected = np.array([mean, np.sqrt(v / n), v, np.sqrt(np.maximum(spread, 0) / n)])
    found = moments.spread(x)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    if n > 3:
        assert not np.allclose(found[2], square.mean(axis=0), rtol=1e-4)


def test_theory_is_what_the_papers_formulas_give():
    a, first, h, added, t = 20.5, 3.0, 0.3, 90.0, np.r_[0.0, 1e-9, 0.3, 5.0, 800.0]
    gone = -np.expm1(-t)
    close(moments.cir_mean(a, first, t), first * np.exp(-t) + a * gone, fault=first * np.exp(-t) + gone)
    variance = 2 * first * np.exp(-t) * gone + a * gone**2
    close(moments.cir_variance(a, first, t), variance, fault=variance / 2)
    steps = np.arange(51)
    gone = -np.expm1(-h * steps)
    cir = 2 * first * np.exp(-h * steps) * gone + a * gone**2
    noise = -np.expm1(-2 * h * steps) * np.tanh(h / 2) * added
    close(moments.scir_variance(a, first, h, steps, added), cir + noise, fault=cir + 2 * noise)
    close(moments.scir_variance(a, first, h, 7, added), (cir + noise)[7])
    out = [0.0]
    for k in range(50):
        mean = first * np.exp(-h * k) - a * np.expm1(-h * k)
        own = 2 * mean * np.exp(-h) * -np.expm1(-h) + a * np.expm1(-h) ** 2
        out.append(np.exp(-2 * h) * out[-1] + own + np.expm1(-h) ** 2 * added * (out[-1] + (mean - a) ** 2) / a**2)
    close(moments.scir_variance_cv(a, first, h, 50, added), out, fault=np.r_[out[1:], 0.0])
    mu, sigma, t = 0.4, 0.7, np.linspace(0, 4, 9)
    centre, spread = mu + (np.log(first) - mu) * np.exp(-t), -(sigma**2) * np.expm1(-2 * t)
    found = moments.geometric_ou(mu, sigma, first, t)
    close(found[0], np.exp(centre + spread / 2), fault=np.exp(centre))
    close(found[1], np.exp(centre + spread / 2) ** 2 * np.expm1(spread))


def expected_mgf(s, alpha, theta0, h, steps, n_data, count, batch, replacement, counted=True):
    """E e^{sθ} by SciPy's probabilities of the counts of a minibatch."""
    b = np.arange(batch + 1)
    weight = (
        stats.binom.logpmf(b, batch, count / n_data) if replacement else stats.hypergeom.logpmf(b, n_data, count, batch)
    )
    base = 1 + s * np.expm1(-h * np.arange(steps + 1))
    slopes = np.log(base[1:] / base[:-1])
    each = special.logsumexp(weight - slopes[:, None] * (alpha + n_data / batch * b), axis=1)
    t = h * steps
    return np.exp(theta0 * s * np.exp(-t) / (1 + s * np.expm1(-t)) + each.sum())


@for_each("replacement", [True, False])
@for_each(
    ("n_data", "count", "batch"),
    [(100, 20, 10), (100, 20, 100), (100, 0, 7), (100, 100, 7), (1000, 3, 900), (10, 9, 5), (5000, 2000, 1)],
)
def test_mgfs_are_those_of_scipys_probabilities(replacement, n_data, count, batch):
    """Planted fault: the batch is drawn in the other way."""
    s = np.r_[np.linspace(-100, 0, 9), 0.02]
    args = (0.5, 3.0, 0.4, 6, n_data, count, batch)
    found = moments.scir_mgf_expected_curve(s, *args, replacement)
    np.testing.assert_allclose(found, [expected_mgf(x, *args, replacement) for x in s], rtol=1e-10)
    other = [expected_mgf(x, *args, not replacement) for x in s]
    assert np.allclose(found, other, rtol=1e-6) == (count in (0, n_data) or batch == 1)
    assert moments.scir_mgf_expected(0.02, *args, replacement) == found[-1]
    base = 1 + s * np.expm1(-2.0)
    plain = base**-20.5 * np.exp(3.0 * s * np.exp(-2.0) / base)
    np.testing.assert_allclose(moments.cir_mgf_curve(s, 20.5, 3.0, 2.0), plain, rtol=1e-12)


def test_sums_over_batches():
    """Planted fault: errors that are added rather than their squares."""
    rng = np.random.default_rng(4)
    batches = rng.random((5, 4, 11))
    sums = np.zeros((4, 11))
    for rows in batches:
        before = sums.copy()
        sums = moments.with_batch(sums, rows)
    assert not np.array_equal(before, sums)
    mean, error = batches.mean(axis=0), np.sqrt((batches**2).sum(axis=0)) / 5
    close(
        moments.of_batches(sums, 5), [mean[0], error[1], mean[2], error[3]], fault=[mean[0], mean[1], mean[2], mean[3]]
    )
    s, theta = np.linspace(-3, 0, 6), rng.gamma(2, size=(5, 100, 3))
    total = np.zeros((2, 2, 6))
    for part in theta:
        moments.add_to_mgf(total, 1, s, part, 2)
    values = np.exp(s[:, None] * theta[..., 2].ravel())
    mean, error = moments.of_mgf(total, 500)
    close(mean[1], values.mean(axis=1), fault=values.mean(axis=1) * 5)
    close(error[1], np.sqrt(np.maximum((values**2).mean(axis=1) - values.mean(axis=1) ** 2, 0) / 500))
    assert (mean[0] == 0).all()


# --- functions with known expectations -----------------------------------------------------------------------------


def test_sums_of_functions_over_draws():
    """Added to what there is, over the first draws. Planted fault: over all draws."""
    values = np.random.default_rng(6).normal(size=(2, 7, 5))
    x, y = values
    known = [
        (expectations.sum_waves, [2.0, 0.3], np.cos(2 * x - 0.3)),
        (expectations.sum_products, [0.4, -1.0], (x - 0.4) * (y + 1.0)),
        (expectations.sum_ordered, [], (x < y).astype(float)),
    ]
    for function, constants, each in known:
        jit.prepare([function])
        out = np.ones(5)
        function(values, 4, np.array(constants), out)
        close(out, 1 + each[:4].sum(axis=0), fault=1 + each.sum(axis=0))


# --- bands ---------------------------------------------------------------------------------------------------------


@for_each("n", [1, 2, 3, 20, 21, 400])
def test_quantiles_of_draws(n):
    rng = np.random.default_rng(n)
    for x in (
        rng.normal(size=(n, 7)),
        np.round(rng.normal(size=(n, 7))),
        rng.normal(size=(n, 7)) * 1e300,
        np.sort(rng.normal(size=(n, 7)), axis=0)[::-1],
    ):
        for levels in ((0.05, 0.95), (0.0, 0.3, 0.5, 1.0)):
            fault = np.quantile(x, np.array(levels) * 0.9, axis=0) if n > 20 else None
            close(bands.quantiles(x, levels), np.quantile(x, levels, axis=0), fault=fault)
    x[n // 2, 3] = np.nan
    assert np.array_equal(np.isnan(bands.quantiles(x, (0.1, 0.5))[0]), np.arange(7) == 3)


@pytest.mark.parametrize("fault", [0, 1])
def test_quantiles_read_their_draws_alone(fault):
    """Fails where the memory behind the draws is read. Fault: one more of the numbers there is taken for a draw."""
    values, work = np.full((6, 1), np.nan), np.full(6, np.nan)
    values[:5, 0] = [3.0, 1.0, 2.0, 5.0, 4.0]
    out, levels = np.empty((2, 1)), np.array([0.5, 1.0])
    jit.prepare([bands.quantiles_of_draws])
    bands.quantiles_of_draws(values[: 5 + fault], levels, work[: 5 + fault], out)
    assert (out[:, 0].tolist() == [3.0, 5.0]) == (not fault)


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 4, 9])
def test_the_smooth_line_is_scipys(n):
    """Planted fault: straight lines between the points."""
    rng = np.random.default_rng(n)
    for _ in range(200):
        x, y = np.cumsum(rng.gamma(2, size=n)), np.round(rng.normal(size=(2, n)), 1)
        at = np.r_[x, np.linspace(x[0] - 1, x[-1] + 1, 61)]
        expected = PchipInterpolator(x, y, axis=1)(np.clip(at, x[0], x[-1]))
        straight = np.array([np.interp(at, x, row) for row in y])
        close(bands.smooth(x, y, at), expected, fault=straight if n > 3 and np.ptp(y) > 1 else None)
