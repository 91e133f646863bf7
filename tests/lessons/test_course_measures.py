"""The measures of the spectral gap, of the cost of a draw, and of the scan whose answer is known."""

import numpy as np
import pytest

from sgmcmc_lab.lessons.evidence import evidence
from sgmcmc_lab.lessons.measures import MEASURES
from sgmcmc_lab.lessons.measures.base import OWN_RUN
from sgmcmc_lab.samplers import SpecError
from sgmcmc_lab.samplers.experiment import RunSpec
from tests.helpers.statistics import critical


def lane(t, s, gradient="", needs=(), **settings):
    return evidence(RunSpec.of(t, s, gradient, **{"n_chains": 16, "n_steps": 4000, **settings}), needs)


def recipe(n_steps=1, **sampler_params):
    return RunSpec.of("correlated_gaussian", "recipe", sampler_params=sampler_params, n_chains=1, n_steps=n_steps)


@pytest.mark.slow
@pytest.mark.parametrize("q", [0.0, 2.0, 8.0])
def test_the_gap_is_that_of_the_normal_law(q):
    """Fails where the gap is not the smallest real part of the eigenvalues of (I + Q)Σ⁻¹, to one in a hundred. Planted
    fault: a D of one and a fifth."""
    a = np.linalg.inv([[1, 0.9], [0.9, 1]])
    exact = np.linalg.eigvals((np.eye(2) + q * np.array([[0, 1], [-1, 0]])) @ a).real.min()

    def gap(**params):
        return MEASURES["gap"]().of(evidence(recipe(curl_entries=(repr(q),), **params), {OWN_RUN})).value

    assert gap() == pytest.approx(exact, rel=0.01)
    assert gap(diffusion_entries=("1.2", "0", "1.2")) != pytest.approx(exact, rel=0.01)


def test_the_gap_refuses_what_has_none():
    measure = MEASURES["gap"]()
    with pytest.raises(SpecError, match="it needs a recipe, which sgld is not"):
        measure.check(RunSpec.of("gaussian", "sgld"))
    with pytest.raises(SpecError, match="a state of one or two numbers, and this one has 4"):
        measure.check(RunSpec.of("correlated_gaussian", "recipe", sampler_params={"layout": "theta_r"}))
    with pytest.raises(SpecError, match="the full gradient"):
        measure.check(RunSpec.of("gaussian", "recipe", "gaussian"))


def test_the_data_of_a_step_are_those_of_one_chain():
    """Burn-in included. Fails where the data of all chains, or of the counted steps alone, are taken."""
    params = {"target_params": {"items": 10}, "sampler_params": {"n_leapfrog": 3}, "gradient_params": {"batch_size": 7}}
    got = lane("linear_regression", "hmc", "minibatch", n_steps=40, burn_in=20, **params)
    assert MEASURES["data"]().of(got).value == 4 * 7


def test_the_cost_counts_the_data():
    """Fails where a draw's cost is not (n w_z + w_θ) τ with the n of the gradient; without data n is 1."""
    params = {
        "target_params": {"items": 10},
        "sampler_params": {"step_size": 0.05},
        "gradient_params": {"batch_size": 7},
    }
    got = lane("mises_posterior", "sggmc", "minibatch", **params)
    tau, plain = MEASURES["tau"]().of(got), lane("gaussian", "sgld", sampler_params={"step_size": 0.3})
    cost = MEASURES["cost"](per_datum=2.0, per_step=3.0).of(got)
    assert (cost.value, cost.error) == (pytest.approx(17 * tau.value), pytest.approx(17 * tau.error))
    assert MEASURES["cost"](per_datum=2.0, per_step=3.0).of(plain).value == pytest.approx(
        5 * MEASURES["tau"]().of(plain).value
    )


@pytest.mark.slow
def test_the_scan_has_its_known_time():
    """Fails where τ of minibatch Gibbs is not 1 + 2s²N/m for three batches (false alarms: 1e-3 in all). Planted fault:
    the τ of half the batch."""
    given = evidence(RunSpec.of("gaussian", "sgld", n_chains=32, n_steps=20_000, seed=4), {OWN_RUN})
    limit = critical(1e-3, 3, 31)
    for m in (2, 8, 32):
        found = MEASURES["scan_tau"](n_data=32, batch_size=m, sd=0.8).of(given)
        assert found.exact == pytest.approx(1 + 2 * 0.64 * 32 / m)
        assert abs(found.value - found.exact) < limit * found.error, (m, found)
        half = 1 + 2 * (found.exact - 1)
        assert abs(found.value - half) > limit * found.error
        cost = MEASURES["scan_cost"](n_data=32, batch_size=m, sd=0.8, local=3.0, overall=5.0).of(given)
        for a, b in zip((cost.value, cost.error, cost.exact), (found.value, found.error, found.exact), strict=True):
            assert a == pytest.approx((3 * m + 5) * b)


def test_a_scan_draws_no_more_than_there_is():
    with pytest.raises(SpecError, match="allowed is at most the n_data of 4"):
        MEASURES["scan_tau"](n_data=4, batch_size=5).check(RunSpec.of("gaussian", "sgld"))


def test_what_a_claim_asks_for_is_checked_before_the_law_is_known():
    """Reading a lesson on a law by a long run makes no long run, whatever its claims measure."""
    spec = RunSpec.of("curve_network", "sgld", target_params={"data_seed": 77})
    target = spec.make_target()
    assert target.n_columns == target.n_values == len(target.column_names) == len(target.ks_columns)
    assert not target.planar
    refused = 0
    for measure in MEASURES.values():
        for settings in ({}, {"column": target.n_columns + 1}):
            try:
                measure(**settings).check(spec)
            except SpecError:
                refused += 1
    assert refused > len(MEASURES)
    assert not target.ready
