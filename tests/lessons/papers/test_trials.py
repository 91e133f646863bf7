"""The common parts of the commands about the batch size."""

import numpy as np
import pytest

from sgmcmc_lab.lessons.papers.trials import Trials, rhat


def test_rhat_is_eq_23():
    """Equal chains have 1, chains that are apart far more; W and B by hand."""
    rng = np.random.default_rng(1)
    draws = rng.standard_normal((3, 500, 1))
    assert rhat(draws) == pytest.approx(1, abs=0.02)
    assert rhat(draws + np.arange(3)[:, None, None]) > 1.2
    within, between = np.mean([x.var(ddof=1) for x in draws]), 500 * np.var([x.mean() for x in draws], ddof=1)
    assert rhat(draws) == pytest.approx(np.sqrt((499 / 500 * within + between / 500) / within))


def test_rhat_leaves_out_what_never_varies():
    still = np.zeros((3, 50, 1))
    moving = np.random.default_rng(1).standard_normal((3, 50, 1))
    assert rhat(np.concatenate([still, moving], axis=2)) == rhat(moving)
    assert rhat(still + np.arange(3)[:, None, None]) == np.inf
    assert rhat(still) == 0


def test_a_size_whose_tau_is_unknown_is_not_chosen():
    sizes, seconds = np.array([100, 25, 5]), np.array([1.1e-3, 3.5e-4, 1.5e-4])
    trials = Trials(sizes, np.array([2.0, 4.0, np.inf]), seconds)
    assert trials.chosen == 25 and trials.seconds_of(25) == 3.5e-4
    np.testing.assert_allclose(trials.weights, (1e-5, 1e-4))
    np.testing.assert_allclose(trials.costs, [1, 1.4 / 2.2, np.inf])
    assert [line.endswith("chosen") for line in str(trials).splitlines()] == [False, False, True, False]
    assert Trials(sizes, np.full(3, np.inf), seconds).chosen == 100
