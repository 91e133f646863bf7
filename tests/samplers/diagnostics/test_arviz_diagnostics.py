"""Ranks, effective sizes of quantiles and Pareto k̂ against ArviZ's public functions, each with a planted fault."""

import warnings

import arviz_stats
import numpy as np
import pytest
from arviz_base import from_dict
from arviz_stats.base import array_stats
from scipy import stats

from sgmcmc_lab.samplers import RunSpec, run
from sgmcmc_lab.samplers.diagnostics import effective, pareto, ranks


def chains(n=600, phi=0.6, seed=3):
    """Four autoregressive chains, one of them repeated as refused proposals are."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(4, n))
    for t in range(1, n):
        x[:, t] += phi * x[:, t - 1]
    x[2, 1::3] = x[2, : n - 1 : 3]
    return x


def test_the_ranks_are_those_of_arviz():
    """Where no draws are equal, for ArviZ ranks those in any order; of equal ones by SciPy. Planted fault: a chain
    elsewhere.
    """
    x = chains()
    mean = np.floor((stats.rankdata(x, axis=None).reshape(x.shape) - 0.5) * ranks.BINS / x.size).astype(int)
    assert ranks.counts(x).tolist() == [np.bincount(row, minlength=ranks.BINS).tolist() for row in mean]
    x += 1e-9 * np.random.default_rng(1).normal(size=x.shape)
    found = ranks.counts(x)
    expected = (array_stats.compute_ranks(x, axis=None) - 0.5) * ranks.BINS / x.size
    assert found.tolist() == [np.histogram(row, np.arange(ranks.BINS + 1))[0].tolist() for row in expected]
    assert found.sum(axis=1).tolist() == [600] * 4
    x[0] += 1
    assert (ranks.counts(x) != found).any()


@pytest.mark.slow
def test_the_band_holds_the_counts_of_independent_draws():
    """There are 80 counts a run in 400 runs: the share outside is at most 1 %, to five standard errors; and above a
    quarter of a per cent, for counts are whole numbers. Planted fault: correlated draws leave it at least five
    times as often.
    """
    rng = np.random.default_rng(5)
    low, high = ranks.band(4, 300)

    def outside(draws):
        counts = ranks.counts(draws)
        return ((counts < low) | (counts > high)).mean()

    shares = np.array([outside(rng.normal(size=(4, 300))) for _ in range(400)])
    error = shares.std(ddof=1) / np.sqrt(len(shares))
    assert 0.0025 < shares.mean() < 0.01 + 5 * error
    assert np.mean([outside(chains(300, 0.9, seed)) for seed in range(20)]) > 0.05
    assert np.mean([stats.hypergeom(1200, 300, 60).cdf(low - 1), stats.hypergeom(1200, 300, 60).sf(high)]) <= 0.005


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 9, 100, 601])
def test_the_sizes_of_quantiles_are_those_of_arviz(n):
    """Planted fault: draws in another order."""
    x = chains(n)
    history = np.stack([np.zeros_like(x), x], axis=2)
    found = effective.of_quantiles(history, 1)
    tree = from_dict({"posterior": {"x": x}})
    expected = [float(arviz_stats.ess(tree, method="quantile", prob=p)["x"]) for p in effective.LEVELS]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    shuffled = np.random.default_rng(1).permuted(history, axis=1)
    assert n < 100 or not np.allclose(effective.of_quantiles(shuffled, 1), expected, rtol=0.05)
    assert np.isnan(effective.of_quantiles(history, 0)).all()


@pytest.mark.slow
def test_the_growth_is_that_of_arviz():
    """Planted fault: the sizes of all draws in the place of those of the first ones."""
    x = chains()
    found = effective.of_growth(x[..., None], 0)
    assert found.draws.tolist() == [240 * k for k in range(1, 11)]
    for name, sizes in (("bulk", found.bulk), ("tail", found.tail)):
        settings = {"prob": 0.05} if name == "tail" else {}
        expected = [
            float(arviz_stats.ess(from_dict({"posterior": {"x": x[:, : 60 * k]}}), method=name, **settings)["x"])
            for k in range(1, 11)
        ]
        np.testing.assert_allclose(sizes, expected, rtol=1e-9)
        assert sizes[4] < 0.7 * sizes[9]


@pytest.mark.slow
def test_pareto_is_that_of_loo():
    """k̂ of each row and elpd, of a typed posterior's export. Planted fault: the weights' inverse."""
    trace = run(RunSpec.of("posterior", "hmc", n_chains=4, n_steps=500, burn_in=100, seed=2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = arviz_stats.loo(trace.to_arviz(), pointwise=True, reff=1.0)
    values = trace.target.log_likelihood(trace.draws.reshape(-1, trace.target.dim))
    found, elpd = pareto.shapes(values)
    np.testing.assert_allclose(found, expected.pareto_k.values, rtol=1e-9)
    assert elpd == pytest.approx(float(expected.elpd), rel=1e-9)
    assert pareto.limit(2000) == pytest.approx(expected.good_k)
    assert not np.allclose(pareto.shapes(-values)[0], expected.pareto_k.values, atol=0.05)


def test_a_row_that_no_draw_changes_has_no_shape():
    values = np.random.default_rng(2).normal(size=(300, 2))
    values[:, 1] = -1.5
    found, elpd = pareto.shapes(values)
    assert np.isfinite(found[0])
    assert np.isnan(found[1])
    assert elpd == pytest.approx(pareto.shapes(values[:, :1])[1] - 1.5)
