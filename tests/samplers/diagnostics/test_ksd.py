"""The kernel Stein discrepancy against a double sum by hand, its expectation for exact draws, and what it can tell.

Each has its planted faults: a Stein kernel without its trace, one with the sign of a cross term changed, and one whose
derivatives are of another exponent.
"""

import numpy as np
import pytest

from sgmcmc_lab.lessons.evidence import evidence, measured
from sgmcmc_lab.lessons.measures import MEASURES
from sgmcmc_lab.samplers import RunSpec, SpecError, run
from sgmcmc_lab.samplers.diagnostics import ks, ksd
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.statistics import critical

N_DRAWS = 1_000
FAULTS = ("no trace", "cross term", "exponent")


def stein_kernel(x, y, s_x, s_y, c=1.0, beta=-0.5, fault=""):
    """k_p(x, y), number by number, from the kernel's derivatives by hand."""
    square = sum((a - b) ** 2 for a, b in zip(x, y, strict=True))
    other = beta / 5 if fault == "exponent" else beta
    k = (c**2 + square) ** beta
    by_x = [2 * other * (c**2 + square) ** (other - 1) * (a - b) for a, b in zip(x, y, strict=True)]
    by_y = [a if fault == "cross term" else -a for a in by_x]
    total = 0.0
    for i in range(len(x)):
        total += s_x[i] * s_y[i] * k + s_x[i] * by_y[i] + s_y[i] * by_x[i]
        if fault != "no trace":
            # ∂²k/∂x_i∂y_i.
            total -= 2 * other * (c**2 + square) ** (other - 1)
            total -= 4 * other * (other - 1) * (c**2 + square) ** (other - 2) * (x[i] - y[i]) ** 2
    return total


def by_hand(points, scores, fault="", **kernel):
    """The sum over i ≠ j, and that over i = j."""
    n = len(points)
    pairs = {(i, j): stein_kernel(points[i], points[j], scores[i], scores[j], fault=fault, **kernel) for i in range(n) for j in range(n)}  # fmt: skip
    alone = sum(pairs[i, i] for i in range(n))
    return sum(pairs.values()) - alone, alone


@for_each("dim", [1, 2, 5])
@for_each("kernel", [{}, {"c": 0.7}, {"c": 2.0, "beta": -0.8}], ids=str)
def test_the_double_sum_is_that_by_hand(dim, kernel):
    """To 1e-12 of the sum. Each planted fault is off by more than 1e-3."""
    rng = np.random.default_rng(dim)
    points, scores = rng.normal(size=(2, 13, dim))
    found = ksd.of_scores(points, scores, **kernel)
    apart, alone = by_hand(points.tolist(), scores.tolist(), **kernel)
    n = len(points)
    assert (n * found.value) ** 2 == pytest.approx(apart + alone, rel=1e-11)
    assert (n * found.expected) ** 2 == pytest.approx(alone, rel=1e-12)
    for fault in FAULTS:
        assert (n * found.value) ** 2 != pytest.approx(
            sum(by_hand(points.tolist(), scores.tolist(), fault, **kernel)), rel=1e-3
        )


def test_the_derivatives_by_hand_are_those_of_the_kernel():
    """The terms of the Stein kernel by differences of (c² + ‖x − y‖²)^β. Each planted fault is off."""
    rng = np.random.default_rng(3)
    x, y, s_x, s_y = rng.normal(size=(4, 3))
    h, each = 1e-4, np.eye(3)

    def k(a, b):
        return (1 + ((a - b) ** 2).sum()) ** -0.5

    by_x = [(k(x + h * e, y) - k(x - h * e, y)) / (2 * h) for e in each]
    by_y = [(k(x, y + h * e) - k(x, y - h * e)) / (2 * h) for e in each]
    mixed = [sum(a * b * k(x + a * h * e, y + b * h * e) for a in (1, -1) for b in (1, -1)) / (4 * h**2) for e in each]
    expected = s_x @ s_y * k(x, y) + s_x @ by_y + s_y @ by_x + sum(mixed)
    assert stein_kernel(x, y, s_x, s_y) == pytest.approx(expected, rel=1e-6)
    assert all(stein_kernel(x, y, s_x, s_y, fault=fault) != pytest.approx(expected, rel=1e-3) for fault in FAULTS)


def test_units_do_not_matter():
    """A target three times as wide, and its draws, have the same discrepancy."""
    values = []
    for scale in (1.0, 3.0):
        target = TARGETS["correlated_gaussian"](rho=0.6, sd1=scale, sd2=3 * scale)
        values.append(ksd.of_draws(target, target.sample(1, 200) * np.array([1.3, 1.0])).value)
    assert values[0] == pytest.approx(values[1], rel=1e-9)


# The expectation for exact draws

REPLICATES, FEW = 1_500, 8


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 3])
def test_the_terms_of_exact_draws_have_the_mean_zero(dim):
    """For N(0, Σ) the V-statistic's mean is that of its diagonal, over n. False alarms: 1e-3 in all; each planted fault
    is more than twice the limit away.
    """
    rng = np.random.default_rng(11 + dim)
    root = np.tril(rng.normal(size=(dim, dim)), -1) * 0.5 + np.eye(dim)
    precision = np.linalg.inv(root @ root.T)
    limit = critical(1e-3, 2)

    def z(fault=None):
        values = []
        for _ in range(REPLICATES):
            points = rng.normal(size=(FEW, dim)) @ root.T
            scores = -points @ precision
            if fault is None:
                found = ksd.of_scores(points, scores)
                values.append(found.value**2 - found.expected**2)
            else:
                values.append(by_hand(points.tolist(), scores.tolist(), fault)[0] / FEW**2)
        return np.mean(values) / (np.std(values, ddof=1) / np.sqrt(len(values)))

    assert abs(z()) < limit
    for fault in FAULTS:
        assert abs(z(fault)) > 2 * limit, fault


def test_the_expectation_on_a_normal_target_is_known():
    """E k_p(X, X) = d + E‖s‖² = 2d for N(0, I), with the standard error of the draws' own mean. Planted fault: d."""
    target = TARGETS["correlated_gaussian"](rho=0.0, sd1=1.0, sd2=1.0)
    draws = target.sample(5, N_DRAWS)
    squares = (draws**2).sum(axis=1)
    error = squares.std(ddof=1) / np.sqrt(N_DRAWS)
    mean = ksd.of_draws(target, draws).expected ** 2 * N_DRAWS
    assert abs(mean - 4) < critical(1e-3) * error < abs(mean - 2)


# Power, and blindness to modes


def threshold(target, replicates=200):
    """The discrepancy that 1 % of as many exact draws exceed."""
    return np.quantile([ksd.of_draws(target, target.sample(s, N_DRAWS)).value for s in range(replicates)], 0.99)


def stein_of_sgld(step_size, seed):
    """The discrepancy of a run long enough that its thousand draws are nearly independent."""
    spec = RunSpec.of("gaussian", "sgld", sampler_params={"step_size": step_size}, n_steps=8000, n_chains=8, burn_in=100, seed=seed)  # fmt: skip
    trace = run(spec, keep_draws=False)
    assert len(ksd.thinned(trace.statistics, trace.target)) == N_DRAWS
    return ksd.of_statistics(trace.statistics, trace.target).value


@pytest.mark.slow
def test_a_biased_sampler_is_told_from_an_exact_one():
    """SGLD at ε = .6, whose variance is 1.43: with 1,000 draws and 1 % of false alarms the power was 40 of 40, and at
    least 18 of 20 are asked for. Planted fault: ε = .1, where the variance is 1.05, of which at most 4 of 20 are seen.
    """
    limit = threshold(TARGETS["gaussian"]())
    seen = [stein_of_sgld(0.6, seed) > limit for seed in range(20)]
    unseen = [stein_of_sgld(0.1, seed) > limit for seed in range(20)]
    assert sum(seen) >= 18
    assert sum(unseen) <= 4


@pytest.mark.slow
def test_a_missing_mode_is_not_seen():
    """Two modes ten standard deviations apart: draws from one of them alone have the discrepancy of exact ones, and the
    KS distance ½. Planted fault: a mode 1.3 times as wide as the target's is seen.
    """
    target = TARGETS["gaussian_mixture"](modes=2, radius=5.0, sd=1.0, weight=0.5)
    limit = threshold(target)
    rng = np.random.default_rng(8)
    centre, seen, wide = np.array([5.0, 0.0]), 0, 0
    for _ in range(20):
        draws = rng.normal(size=(N_DRAWS, 2))
        seen += ksd.of_draws(target, centre + draws).value > limit
        wide += ksd.of_draws(target, centre + 1.3 * draws).value > limit
        gap = ks.of_values(target.columns[0], centre[0] + draws[:, 0])
        assert gap == pytest.approx(0.5, abs=0.01)
    assert seen <= 4
    assert wide >= 18


# Of a run


def test_the_history_is_thinned_evenly():
    """The newest draw is among them, all chains have as many, and a long run has no more than a thousand."""
    for n_chains, n_steps in ((1, 5), (4, 700), (8, 5000), (20, 3000)):
        trace = run(RunSpec.of("quartic", "sgld", n_chains=n_chains, n_steps=n_steps, seed=2))
        history = trace.statistics.history()
        found = ksd.thinned(trace.statistics, trace.target)
        chains = min(n_chains, 8)
        n = len(found) // chains
        assert n == min(history.shape[1], 1000 // chains)
        at = [int(np.flatnonzero((history[0] == row).all(axis=1))[0]) for row in found[:n]]
        assert at[-1] == history.shape[1] - 1
        assert np.ptp(np.diff([-1, *at])) <= 1


def test_much_data_have_fewer_draws():
    target = TARGETS["logistic_large"]()
    trace = run(RunSpec.of("gaussian", "sgld", n_chains=4, n_steps=1000))
    assert len(ksd.thinned(trace.statistics, target)) == min(1000, max(100, 100_000_000 // (target.items * 1)) // 4 * 4)


def test_the_measure_is_that_of_the_history():
    spec = RunSpec.of("quartic", "sgld", n_chains=4, n_steps=500, seed=3)
    lane = evidence(spec)
    found = measured(MEASURES["ksd"](), lane)
    history = lane.statistics.history()
    theta = history[:, np.arange(1, 251) * 500 // 250 - 1].reshape(-1, 2)
    scales = np.sqrt([column.variance for column in lane.trace.target.columns])
    # −∇U by differences of the density.
    h, scores = 1e-5, np.empty_like(theta)
    for k in range(2):
        step = h * np.eye(2)[k]
        scores[:, k] = (lane.trace.target.log_density(theta + step) - lane.trace.target.log_density(theta - step)) / (2 * h)  # fmt: skip
    part = slice(0, 1000, 25)
    assert found.value == pytest.approx(ksd.of_scores(theta / scales, scores * scales).value, rel=1e-6)
    few = by_hand((theta / scales)[part].tolist(), (scores * scales)[part].tolist())
    assert np.sqrt(sum(few)) / 40 == pytest.approx(ksd.of_draws(lane.trace.target, theta[part]).value, rel=1e-6)
    assert found.error is None
    assert found.exact == pytest.approx(ksd.of_scores(theta / scales, scores * scales).expected, rel=1e-6)


def test_where_there_is_none():
    for key in ("gamma", "sparse_dirichlet", "fisher", "curve_network"):
        with pytest.raises(SpecError, match="it needs a density on all of ℝᵈ"):
            MEASURES["ksd"]().check(RunSpec.of(key, "sgld" if key == "curve_network" else "exact"))
    MEASURES["ksd"]().check(RunSpec.of("logistic_tumours", "sgld"))
