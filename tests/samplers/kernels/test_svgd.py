"""Stein variational gradient descent: where its particles come to rest, and how many there may be."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist, pdist

from sgmcmc_lab.samplers import Experiment, Run, RunSpec
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets import TARGETS


def at_rest(target, n_chains, n_steps=4000, step_size=0.5, **params):
    run = Run(
        RunSpec.of(
            target, "svgd", target_params=params, sampler_params={"step_size": step_size}, n_chains=n_chains, seed=2
        )
    )
    run.advance(n_steps)
    assert run.divergence is None
    return run


def forces(theta, slopes, push=1.0):
    """(1/n) Σ_b [−k ∇U(θ_b) + push·∇_{θ_b}k], (n, dim), from SciPy's distances."""
    h = np.median(pdist(theta)) ** 2 / np.log(len(theta))
    k = np.exp(-cdist(theta, theta, "sqeuclidean") / h)
    apart = theta[:, None] - theta[None]
    return (-k @ slopes + push * 2 / h * np.einsum("ab,abi->ai", k, apart)) / len(theta)


@pytest.mark.parametrize(("n", "variance"), [(2, np.log(2)), (3, 2 / 3 * np.log(3) * 29 / 40)])
def test_few_particles_rest_where_pull_and_push_are_equal(n, variance):
    """On N(1, σ²), from 1: of two at ±a is h = 4a²/log 2 and k = ½, so that a² = σ² log 2. Of three at −a, 0, a is
    h = a²/log 3, k = ⅓ and 3⁻⁴, so that a²(1 − 3⁻⁴) = 2σ² log 3 (3⁻¹ + 2·3⁻⁴). Planted faults: the push
    without the 1/n, with which both are n times as large, and the law's own variance."""
    x = at_rest("gaussian", n, mean=1.0, sd=1.5).position[:, 0]
    assert x.mean() == pytest.approx(1, abs=1e-9)
    assert x.var() == pytest.approx(2.25 * variance, rel=1e-9)
    assert x.var() != pytest.approx(2.25 * n * variance, rel=0.1)
    assert x.var() != pytest.approx(2.25, rel=0.1)


@pytest.mark.parametrize("target", ["skew_normal", "quartic"])
def test_no_force_is_left_where_particles_rest(target):
    """Within 1e-6 of the pull alone. Planted faults: particles that attract each other, and a push without 1/n."""
    run = at_rest(target, 8, 20_000, 0.1)
    theta = run.position
    slopes = run.target.gradient_at(theta)
    pull = np.abs(forces(theta, slopes, 0.0)).max()
    assert np.abs(forces(theta, slopes)).max() < 1e-6 * pull
    for push in (-1.0, 8.0):
        assert np.abs(forces(theta, slopes, push)).max() > 0.5 * pull


@pytest.mark.slow
def test_many_particles_are_nearly_the_law():
    """For N(0, 1) the variance is .83, .94 and .97 with 12, 50 and 100 particles, always below 1. With forces that are
    drawn to each other there would be none."""
    found = [at_rest("gaussian", n, 3000).position[:, 0] for n in (12, 50, 100)]
    assert np.abs([x.mean() for x in found]).max() < 0.01
    variances = [x.var() for x in found]
    assert 0.75 < variances[0] < variances[1] < variances[2] < 1
    assert variances[2] > 0.95


def test_one_particle_goes_to_the_mode():
    """Gradient descent: to the skew normal's highest point, which is far from its mean."""
    run = at_rest("skew_normal", 1, step_size=0.05)
    best = minimize_scalar(
        lambda x: -run.target.log_density(np.array([x])), bounds=(-1, 3), method="bounded", options={"xatol": 1e-9}
    ).x
    assert run.position[0, 0] == pytest.approx(best, abs=1e-6)
    assert abs(best - run.target.columns[0].mean) > 0.2


@pytest.mark.slow
def test_particles_begin_apart_and_another_seed_begins_elsewhere():
    first, second = (Run(RunSpec.of("logistic_regression", "svgd", n_chains=50, seed=seed)).position for seed in (1, 2))
    assert len(np.unique(first[:, 0])) == 50
    assert not np.isin(first, second).any()
    # No wider than the law where it is narrowest, and no narrower than a fifth of that.
    narrowest = np.linalg.eigvalsh(np.cov(TARGETS["logistic_regression"]().sample(1, 4000).T))[0] ** 0.5
    assert 0.2 < first.std(axis=0).mean() / narrowest < 1


def test_of_particles_there_are_at_most_two_hundred():
    """A file with more is refused in a sentence; a link has two hundred, and is told so."""
    asked = {"target": "gaussian", "lanes": [{"sampler": "sgld"}, {"sampler": "svgd"}], "n_chains": 201}
    with pytest.raises(
        SpecError, match=r"n_chains = 201: SVGD looks at all pairs of chains in a step; allowed are 200 chains"
    ):
        Experiment.from_dict(asked)
    made, messages = Experiment.from_query(
        "target=gaussian&lane=sgld&lane=svgd&n_chains=10000", Experiment.from_dict({**asked, "n_chains": 4})
    )
    assert made.n_chains == 200
    assert any("allowed are 200 chains" in message for message in messages)
    assert Experiment.from_dict({**asked, "lanes": [{"sampler": "sgld"}]}).n_chains == 201


def test_particles_in_one_place_stay_together_and_do_not_blow_up():
    """Rounding sets them apart by 1e-17, and the push is as the inverse of the distance. Planted fault: 1e-6 apart."""
    ends = []
    for apart in (0.0, 1e-6):
        run = Run(RunSpec.of("correlated_gaussian", "svgd", "gaussian", n_chains=4, seed=2))
        run.position = 0.3 + apart * np.arange(4)[:, None]
        run.advance(20)
        ends.append(np.ptp(run.position[:, 0]))
    assert ends[0] < 1e-12
    assert ends[1] > 0.1


def test_particles_of_which_most_are_in_one_place_share_their_gradients():
    """Their median distance is 0: the kernel is 1 for all, and nothing pushes. Planted fault: a kernel of width 1."""
    run = Run(RunSpec.of("gaussian", "svgd", sampler_params={"step_size": 0.5}, n_chains=5, seed=2))
    run.position[:] = np.array([[1.0], [1.0], [1.0], [1.0], [3.0]])
    start = run.position.copy()
    run.advance(1)
    np.testing.assert_allclose(run.position, start - 0.5 * start.mean(), rtol=1e-12)
    near = np.exp(-cdist(start, start, "sqeuclidean"))
    assert not np.allclose(run.position, start - 0.5 * near @ start / 5, rtol=1e-2)
