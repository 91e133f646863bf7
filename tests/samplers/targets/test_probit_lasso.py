"""The probit lasso against Gibbs sampling of the latent variables, and log Φ in the tail where Φ underflows."""

import numpy as np
import pytest
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.targets.probit_lasso import MADE_WITH, ProbitLasso
from tests.helpers.statistics import apart

SETTINGS = [{"items": 100, "shrinkage": 3.0}, {"items": 60, "shrinkage": 15.0}]


def gibbs(target, n_chains, n_steps, scale_of=lambda inverse: 1 / inverse, latent=lambda z: z, seed=5):
    """Albert & Chib's sampler with Park & Casella's prior, from θ = 1: (chains, dim).

    z_i ~ N(θ·x_i, 1) on the side of s_i; 1/τ_j² ~ InverseGaussian(√(λ²/θ_j²), λ²); θ ~ N(A⁻¹Xᵀz, A⁻¹), A = XᵀX + D⁻¹
    with D = diag(τ_j²): PAPERS.md, section 4. ``scale_of`` takes 1/τ_j² to the entries of D, ``latent`` z to what
    stands in its place. All of it with the rows s_i x_i, so that every z_i is positive.
    """
    rng, x = np.random.default_rng(seed), target.rows
    theta = np.ones((n_chains, target.dim))
    for _ in range(n_steps):
        mean = theta @ x.T
        # Minus the quantile of what is left of the upper tail.
        z = mean - special.ndtri(special.ndtr(mean) * rng.random(mean.shape))
        inverse = rng.wald(target.shrinkage / np.abs(theta), target.shrinkage**2)
        matrix = x.T @ x + np.eye(target.dim) / scale_of(inverse)[:, None]
        root = np.linalg.inv(np.linalg.cholesky(matrix)).transpose(0, 2, 1)
        pull = (latent(z) @ x)[..., None]
        theta = (np.linalg.solve(matrix, pull) + root @ rng.standard_normal((*theta.shape, 1)))[..., 0]
    return theta


@pytest.mark.slow
@pytest.mark.parametrize("params", SETTINGS)
def test_the_answers_are_those_of_the_gibbs_sampler(params):
    """20 statistics within 4.1 standard errors (false alarms: 1e-3). Planted faults: the paper's D = diag(τ_j), and
    its y in place of z in eq (22)."""
    target = ProbitLasso(**params)
    assert apart(target, gibbs(target, 2000, 30), target.reference.ess) < 4.1
    assert apart(target, gibbs(target, 2000, 30, lambda inverse: inverse**-0.5), target.reference.ess) > 8
    assert apart(target, gibbs(target, 2000, 30, latent=np.ones_like), target.reference.ess) > 8


def test_a_margin_far_below_0_has_its_energy_and_its_slope():
    """One data point x = (1, 0, 0, 0) with margins down to −10⁶, where Φ is 0 in double precision, against SciPy's log
    Φ and the bounds of Mills' ratio. Planted fault: Φ itself."""
    target = ProbitLasso(items=50, shrinkage=1.0)
    params = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    margins = np.array([-1e6, -1e3, -40.0, -30.1, -29.9, -5.0, -0.1, 0.3, 8.0, 40.0])
    theta, energy, slope = np.zeros((len(margins), 4)), np.empty(len(margins)), np.empty((len(margins), 4))
    theta[:, 0] = margins
    jit.prepare([target.potential, target.gradient])
    target.potential(theta, energy, params)
    target.gradient(theta, slope, params)
    np.testing.assert_allclose(energy, np.abs(margins) - special.log_ndtr(margins), rtol=1e-12)
    # φ/Φ from a function that the target does not use.
    hazard = np.sqrt(2 / np.pi) / special.erfcx(-margins / np.sqrt(2))
    np.testing.assert_allclose(slope[:, 0], np.sign(margins) - hazard, rtol=1e-12)
    with np.errstate(divide="ignore"):
        assert np.isinf(np.log(special.ndtr(margins[:3]))).sum() == 3


def test_the_mode_is_a_lasso_and_shrinks():
    """The conditions of Karush, Kuhn and Tucker: a coefficient that is not 0 is pulled as hard by the data as by the
    prior, one that is 0 no harder. A prior that pulls more has more of them at 0; one that pulls little leaves what
    made the data."""
    zeros = []
    for shrinkage in (0.1, 30.0, 100.0):
        target = ProbitLasso(shrinkage=shrinkage)
        pull = -target._expansion(target.mode)[0] / shrinkage
        there = target.mode != 0
        np.testing.assert_allclose(pull[there], np.sign(target.mode[there]), atol=1e-5)
        assert (np.abs(pull) < 1 + 1e-5).all()
        zeros.append(target.dim - there.sum())
    assert zeros[0] < zeros[1] <= zeros[2]
    # Five standard errors of the largest coefficient, .045.
    assert np.abs(ProbitLasso(shrinkage=0.1).mode - MADE_WITH).max() < 0.22
