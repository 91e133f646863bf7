"""SCIR with control variates: its moments against their recursion, how often its rate is below 0, and what it gains."""

import numpy as np
import pytest

from sgmcmc_lab.samplers import Run, RunSpec
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.diagnostics import ks, moments

ITEMS, COUNTS = 1000, np.array([800, 100, 100])


def spec_of(gradient, batch_size, n_chains, h=0.1, **more):
    return RunSpec.of(
        "sparse_dirichlet",
        "scir",
        gradient,
        sampler_params={"step_size": h},
        gradient_params={"batch_size": batch_size, **more},
        n_chains=n_chains,
        seed=3,
    )


def from_its_law(spec):
    """A run whose chains begin at draws of the target."""
    run = Run(spec)
    run.position = np.maximum(run.target.sample(3, spec.n_chains), 1e-300)
    return run


@pytest.mark.parametrize("replacement", [True, False])
def test_mean_and_variance_are_those_of_the_recursion(replacement):
    """The moments of 4000 chains from 1.2 a, 20 steps of h = .5 with n = 10: each of 120 numbers within 4.5 standard
    errors (false alarms: 8e-4). Planted fault: the variance without control variates."""
    h, steps = 0.5, 20
    spec = spec_of("minibatch_cv", 10, 4000, h, replacement=replacement)
    a = spec.make_target().shapes[:3]
    found = moments.ensemble(spec, steps, 1.2 * spec.make_target().shapes)
    noise = np.array([moments.var_a_hat(ITEMS, int(count), 10, replacement) for count in COUNTS])

    def apart(variances):
        return np.abs(found.variance[:, :3] - variances).max(axis=0) / found.variance_error[:, :3].max(axis=0)

    means = np.array([moments.cir_mean(one, 1.2 * one, h * found.step) for one in a]).T
    assert (np.abs(found.mean[:, :3] - means) < 4.5 * found.mean_error[:, :3]).all()
    right = np.array(
        [moments.scir_variance_cv(a_j, 1.2 * a_j, h, steps, v)[1:] for a_j, v in zip(a, noise, strict=True)]
    ).T
    assert (np.abs(found.variance[:, :3] - right) < 4.5 * found.variance_error[:, :3]).all()
    plain = np.array(
        [moments.scir_variance(a_j, 1.2 * a_j, h, found.step, v) for a_j, v in zip(a, noise, strict=True)]
    ).T
    assert (apart(plain) > 20).all()


def test_at_rest_the_recursion_is_its_closed_form_and_may_have_no_limit():
    """v = a/(1 − tanh(h/2)·Var N̂/a²); where that is negative the variance grows for ever."""
    found = moments.scir_variance_cv(100.1, 100.1, 0.1, 400, 9000.0)
    assert found[-1] == pytest.approx(100.1 / (1 - np.tanh(0.05) * 9000 / 100.1**2), rel=1e-9)
    endless = moments.scir_variance_cv(100.1, 100.1, 0.5, 400, 90_000.0)
    assert np.tanh(0.25) * 90_000 / 100.1**2 > 1
    assert endless[-1] > 1e6 * endless[1]


@pytest.mark.slow
def test_the_rate_is_below_0_as_often_as_one_datum_makes_it():
    """n = 1: the category j of the drawn point gets N − (θ_j/θ̂_j)(N − N_j), below 0 where
    θ_j/θ̂_j > (α + N)/(N − N_j); the others more than they had. Of 2·10⁵ steps the share that is clipped is that of the
    points they started from, within 4 standard errors. Planted faults: every θ_j above θ̂_j, and half of them."""
    run = from_its_law(spec_of("minibatch_cv", 1, 400))
    run.advance(100)
    run.restart_statistics()
    found, above = [], []
    for _ in range(500):
        ratio = run.position[:, :3] / run.target.mode[:3]
        found.append((ratio > (0.1 + ITEMS) / (ITEMS - COUNTS)) @ (COUNTS / ITEMS))
        above.append((ratio > 1) @ (COUNTS / ITEMS))
        run.advance(1)
    share, expected = run.share(jit.CLIPPED), np.mean(found)
    error = np.sqrt(expected / (400 * 500))
    assert abs(share - expected) < 4 * error
    assert 0.03 < share < 0.06
    for fault in (np.mean(above), expected / 2):
        assert abs(share - fault) > 4 * error


@pytest.mark.slow
def test_with_a_hundred_data_the_law_is_nearly_that_of_all():
    """KS at h = .1: n = 10 goes from .05 to .004, n = 100 from .013 to .003, the second without any clipping."""
    found = {}
    for gradient in ("minibatch", "minibatch_cv"):
        for batch_size in (10, 100):
            run = from_its_law(spec_of(gradient, batch_size, 200))
            run.advance(100)
            run.restart_statistics()
            run.advance(500)
            found[gradient, batch_size] = ks.mean_distance(run.statistics, run.target)
            if batch_size == 100:
                assert run.counts[jit.CLIPPED] == 0
    assert found["minibatch", 10] > 0.04
    assert found["minibatch_cv", 10] < 0.01
    assert found["minibatch", 100] > 0.01
    assert found["minibatch_cv", 100] < 0.008
