"""Mirrored Langevin: the distribution of its discretised chain, and the mean of the shares at every step size.

False alarms are 1e-4 a test. Beside each stand planted faults.
"""

import numpy as np
import pytest
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.experiment import RunSpec
from tests.helpers.statistics import draws_of, failures, mean_verdict, start_with

NONE, NO_JACOBIAN, HALF_HEAT = 0.0, 1.0, 2.0
"""Nothing wrong; the density of ω taken for that of y; noise of variance ε."""


@jit.kernel
def planted(rng, state, model, source, params, out, n, info):
    """The sampler with the full data, and a fault params[1]."""
    theta, a, fault = state.position, model.params, params[1]
    n_chains, dim = theta.shape
    less = 1.0 if fault == NO_JACOBIAN else 0.0
    noise = np.sqrt((1.0 if fault == HALF_HEAT else 2.0) * params[0])
    y = np.empty(dim)
    for t in range(n):
        for c in range(n_chains):
            total = 0.0
            for j in range(dim):
                total += a[j] + a[dim + j] - less
            for j in range(dim):
                y[j] = np.log(theta[c, j] / theta[c, dim - 1])
                if j < dim - 1:
                    share = theta[c, j] / theta[c].sum()
                    y[j] += params[0] * (a[j] + a[dim + j] - less - total * share) + noise * rng.standard_normal()
            total = np.exp(y).sum()
            for j in range(dim):
                theta[c, j] = np.exp(y[j]) / total
                out[t, c, j] = theta[c, j]


def faulty(sampler, fault):
    numbers = np.array([sampler.step_size, fault])
    cls = type("Planted", (type(sampler),), {"advance": planted, "packed": lambda self, target: numbers})
    return cls(**{"step_size": sampler.step_size})


def posterior(counts, alpha, step_size, gradient="full", **gradient_params):
    return RunSpec.of(
        "sparse_dirichlet",
        "mirrored_langevin",
        gradient,
        target_params={"dimension": len(counts), "alpha": alpha, "observed": counts},
        sampler_params={"step_size": step_size},
        gradient_params=gradient_params,
        n_chains=1000,
        seed=9,
    )


def shares(spec, fault=None, kept=100, every=5):
    """The shares of 1000 chains that all begin at the centre, after a burn-in."""
    run = start_with(spec)
    if fault is not None:
        run = start_with(spec, faulty(run.sampler, fault))
    run.advance(1500)
    x = draws_of(run, kept, every)
    return run.target, x / x.sum(axis=2, keepdims=True)


def law_of_two(a, b, step_size, n=1501):
    """The mean and the variance of ω₁ under the stationary distribution of y ← y + ε(a − (a + b)ω) + N(0, 2ε), the
    eigenvector of its transition on a grid, and under Beta(a, b)."""
    y = np.linspace(-22, 22, n)
    drifted = y + step_size * (a - (a + b) * special.expit(y))
    moves = np.exp(-((y[None] - drifted[:, None]) ** 2) / (4 * step_size))
    moves /= moves.sum(axis=1, keepdims=True)
    p = np.exp(a * y - (a + b) * np.logaddexp(0, y))
    p /= p.sum()
    for _ in range(12):
        # After k squares the power is 2ᵏ steps.
        p, moves = p @ moves, moves @ moves
    omega = special.expit(y)
    mean = p @ omega
    return mean, p @ (omega - mean) ** 2, a * b / ((a + b) ** 2 * (a + b + 1))


@pytest.mark.slow
def test_the_discretised_chain_has_its_own_law():
    """Mean and variance of ω₁ with two categories are those of the eigenvector of the transition, whose variance is
    a tenth above that of Beta(2.5, 1.5). Faults: the Jacobian left out, half the heat, and the exact variance."""
    spec = posterior((2, 1), 0.5, 0.3)
    mean, variance, exact = law_of_two(2.5, 1.5, 0.3)
    assert mean == pytest.approx(2.5 / 4, abs=1e-9)
    assert 1.08 < variance / exact < 1.2

    def verdicts(fault, expected):
        _, x = shares(spec, fault)
        first = x[..., 0]
        return failures(
            [
                mean_verdict("E ω", first, mean, 1e-4, 2),
                mean_verdict("Var ω", (first - mean) ** 2, expected, 1e-4, 2),
            ]
        )

    assert not verdicts(None, variance)
    assert not verdicts(NONE, variance)
    for wrong in (verdicts(None, exact), verdicts(NO_JACOBIAN, variance), verdicts(HALF_HEAT, variance)):
        assert wrong


@pytest.mark.slow
@pytest.mark.parametrize("gradient", [("full", {}), ("minibatch", {"batch_size": 2})])
def test_the_means_of_sparse_shares_are_right_at_every_step(gradient):
    """E ω_j = a_j/A with two shapes of 0.5, at a step whose variance is more than a twentieth too large. Fault: the
    Jacobian left out, for which the sparse shares have no distribution."""
    spec = posterior((4, 2, 0, 0), 0.5, 0.15, gradient[0], **gradient[1])
    target, x = shares(spec)
    a = target.shapes
    exact = a / a.sum()
    assert not failures([mean_verdict(f"ω{j}", x[..., j], exact[j], 1e-4, 4) for j in range(4)])
    variance = exact * (1 - exact) / (a.sum() + 1)
    assert ((x[..., 0] - exact[0]) ** 2).mean() > 1.05 * variance[0]
    _, x = shares(spec, NO_JACOBIAN)
    assert failures([mean_verdict(f"ω{j}", x[..., j], exact[j], 1e-4, 4) for j in range(4)])


@pytest.mark.slow
def test_a_share_never_leaves_what_has_a_logarithm():
    """With α = 0.005 shares fall to 1e-300, are kept there, and come back."""
    spec = posterior((100,) + (0,) * 9, 0.005, 0.05)
    run = start_with(spec)
    x = draws_of(run, 60, 100)
    assert x.min() == pytest.approx(1e-300)
    assert (x.min(axis=1) == x.min()).any(axis=0).any()
    assert np.isfinite(np.log(x)).all()
