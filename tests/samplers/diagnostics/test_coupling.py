"""Coupled chains: each has the law of a chain alone, pairs stay together, and the estimates have no bias.

Every test is at its seeds; false alarms are 1e-4 a test.
"""

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from sgmcmc_lab.samplers.diagnostics import coupling
from sgmcmc_lab.samplers.diagnostics.coupling import Coupling, Pairs, couple, main, refusal
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.statistics import critical, ks_verdict

SKEWED = TARGETS["skew_normal"]()
KERNELS = [("rwm", 1.0), ("mala", 0.05)]


def sampler_of(key, step_size):
    return SAMPLERS[key](step_size=step_size)


class OwnCoins(Pairs):
    """The planted fault: a uniform for each acceptance."""

    def coins(self):
        return self.rng.random(self.n), self.rng.random(self.n)


class Greedy(Pairs):
    """The planted fault: always the same proposal, which is not of Y's distribution."""

    def proposals(self, a, b, s):
        first, _ = super().proposals(a, b, s)
        return first, first


class Plain(Pairs):
    """The planted fault: a mean of X alone, without the difference of the two chains."""

    def _count(self):
        apart, self.meeting = self.meeting, np.where(self.meeting == 0, -1, self.meeting)
        super()._count()
        self.meeting = np.where(self.meeting == -1, apart, self.meeting)
        if self.t >= self.lag:
            met = (self.meeting == 0) & (self.x == self.y).all(axis=1)
            self.meeting[met] = self.t


# --- the coupling ---------------------------------------------------------------------------------------------------


def uniforms(cls, key, step_size, n=10_000, steps=2):
    """F(X) and F(Y) after some steps from independent exact draws, of which each chain by itself keeps the law."""
    pairs = cls(SKEWED, sampler_of(key, step_size), n, lag=1, m=10**6)
    pairs.x, pairs.y = SKEWED.sample(1, n), SKEWED.sample(2, n)
    pairs._begin()
    for _ in range(steps):
        pairs.step()
    assert (pairs.meeting > 0).mean() > 0.05
    return [SKEWED.columns[0].cdf(chain[:, :1]) for chain in (pairs.x, pairs.y)]


@pytest.mark.parametrize(("key", "step_size"), KERNELS)
def test_each_chain_keeps_its_own_law(key, step_size):
    """KS of 10,000 chains X and of their Y. Fault: one that meets too often keeps the law of X alone."""
    verdicts = [ks_verdict("", u, 1e-4, 2) for u in uniforms(Pairs, key, step_size)]
    assert all(verdict.ok for verdict in verdicts), list(map(str, verdicts))
    x, y = (ks_verdict("", u, 1e-4, 2) for u in uniforms(Greedy, key, step_size))
    assert x.ok and not y.ok


def test_proposals_meet_as_often_as_is_possible():
    """With probability 2Φ(−‖a − b‖/2s), the overlap of N(a, s²I) and N(b, s²I), and each is its normal: 40,000 pairs in
    three dimensions. Fault: the overlap at twice the distance."""
    pairs = Pairs(TARGETS["gaussian"](), sampler_of("rwm", 1.0), 4)
    n, s = 40_000, 0.7
    a, b = np.zeros((n, 3)), np.tile([0.6, -0.3, 0.5], (n, 1))
    x, y = pairs.proposals(a, b, s)
    apart = np.linalg.norm(b[0]) / s
    same = (x == y).all(axis=1).mean()
    assert abs(same - 2 * stats.norm.cdf(-apart / 2)) < 4 * sqrt(0.25 / n)
    assert abs(same - 2 * stats.norm.cdf(-apart)) > 4 * sqrt(0.25 / n)
    for k in range(3):
        assert stats.kstest((y[:, k] - b[:, k]) / s, "norm").pvalue > 1e-4
    np.testing.assert_allclose(np.cov((y - b).T), s * s * np.eye(3), atol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("key", "step_size"), KERNELS)
@pytest.mark.parametrize("lag", [1, 4])
def test_chains_that_have_met_stay_together(key, step_size, lag):
    """And Y is L steps behind. Fault: uniforms of their own, with which they part again."""
    for cls, stay in ((Pairs, True), (OwnCoins, False)):
        pairs = cls(SKEWED, sampler_of(key, step_size), 200, lag=lag, m=150)
        for _ in range(150):
            pairs.step()
        met = pairs.meeting > 0
        assert met.mean() > 0.5
        assert ((pairs.x == pairs.y).all(axis=1)[met]).all() == stay
    np.testing.assert_array_equal(pairs.meeting[met] >= lag, True)


# --- the estimator --------------------------------------------------------------------------------------------------


def by_definition(paths, tau, h, lag, k, m):
    """The mean over l of h(X_l) + Σ_j [h(X_{l+jL}) − h(Y_{l+(j−1)L})], from the paths X_t, Y_{t−L} (steps, 2, dim)."""
    total = 0.0
    for first in range(k, m + 1):
        total += h(paths[first, 0])
        t = first + lag
        while t < tau:
            total += h(paths[t, 0]) - h(paths[t, 1])
            t += lag
    return total / (m - k + 1)


@for_each(("lag", "k", "m"), [(1, 0, 0), (1, 2, 9), (3, 0, 4), (5, 3, 30)])
def test_the_estimator_is_its_double_sum(lag, k, m):
    """Pair by pair. Fault: without the difference of the chains."""
    mean = SKEWED.columns[0].mean
    moments = [lambda x: x[0], lambda x: (x[0] - mean) ** 2]
    for cls, right in ((Pairs, True), (Plain, False)):
        pairs = cls(SKEWED, sampler_of("rwm", 0.8), 30, lag=lag, k=k, m=m, seed=3)
        pairs.advance(350)
        assert pairs.done
        paths = np.array(pairs.paths)
        expected = [
            [by_definition(paths[:, :, i], pairs.meeting[i], h, lag, k, m) for h in moments] for i in range(pairs.n)
        ]
        assert np.allclose(pairs.estimates[:, :2], expected, rtol=1e-9, atol=1e-9) == right


@pytest.mark.slow
@pytest.mark.parametrize(("key", "step_size"), KERNELS)
def test_short_chains_have_no_bias(key, step_size):
    """H_{0:4} of 4,000 pairs that begin far from the law, each moment within its standard error. Fault: the mean of X
    over the same steps is biased by more than ten of them."""
    found = {}
    for cls in (Pairs, Plain):
        pairs = cls(SKEWED, sampler_of(key, step_size), 4000, k=0, m=4, seed=5)
        pairs.advance(3000)
        assert pairs.done
        means, errors = pairs.estimates.mean(axis=0), pairs.estimates.std(axis=0, ddof=1) / sqrt(pairs.n)
        found[cls] = np.abs(means - [moment.exact for moment in SKEWED.moments]) / errors
    assert found[Pairs].max() < critical(1e-4, len(SKEWED.moments)), found[Pairs]
    assert found[Plain].max() > 10


@pytest.mark.slow
def test_batches_choose_k_and_m_by_a_first_one():
    spec = RunSpec.of("correlated_gaussian", "mala", sampler_params={"step_size": 0.2})
    found = couple(spec, 120, seed=2)
    assert [len(each) for each in found.meeting] == [50, 50, 50, 50] and found.n == 150
    assert found.k == (found.meeting[0] + 1).max() and found.m == 5 * found.k
    for _, mean, error, exact in found.found():
        assert abs(mean - exact) < critical(1e-4, 5) * error
    assert found.paths.shape[1:] == (2, 50, 2) and (found.lasted > 0).all()


def test_chains_that_do_not_meet_are_said(monkeypatch):
    monkeypatch.setattr(coupling, "MOST_STEPS", 30)
    far = TARGETS["gaussian_mixture"](modes=2, radius=6.0, sd=0.1, weight=0.5)
    with pytest.raises(SpecError, match="of 50 pairs do not meet in 30 steps"):
        Coupling(far, sampler_of("mala", 1e-4)).advance(100)


def test_what_is_not_coupled_is_said(capsys):
    assert "Random-walk Metropolis" in refusal(SKEWED, SAMPLERS["sgld"]())
    assert refusal(SKEWED, SAMPLERS["rwm"]()) == ""
    for arguments in (["double_well", "--by", "sgld"], ["double_well", "--pairs", "0"], ["no_such"]):
        with pytest.raises(SystemExit):
            main(arguments)
    assert main(["gaussian", "--by", "rwm(step_size:1)", "--pairs", "50"]) == 0
    assert "50 pairs, k = " in capsys.readouterr().out
