"""The Bayesian lasso against answers of another kind: Gibbs sampling, quadrature in two dimensions, simulated data."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from sgmcmc_lab.samplers.targets.lasso import NAMES, BayesianLasso, diabetes
from sgmcmc_lab.samplers.targets.quadrature import rule
from tests.helpers.statistics import apart

SETTINGS = [{}, {"shrinkage": 15.0, "noise_sd": 0.5}]


def gibbs(target, n_chains, n_steps, scale_of=lambda inverse: 1 / inverse, seed=5):
    """Park & Casella's sampler at a known σ, from θ = 1: (chains, dim).

    θ ~ N(A⁻¹Xᵀy, σ²A⁻¹), A = XᵀX + D⁻¹, D = diag(τ_j²), and 1/τ_j² ~ InverseGaussian(√(λ²σ²/θ_j²), λ²): PAPERS.md,
    section 4, which corrects the paper's D = diag(τ_j). ``scale_of`` takes 1/τ_j² to the entries of D.
    """
    rng = np.random.default_rng(seed)
    x, y = target.observations[:, :-1], target.observations[:, -1]
    theta = np.ones((n_chains, x.shape[1]))
    for _ in range(n_steps):
        inverse = rng.wald(target.shrinkage * target.noise_sd / np.abs(theta), target.shrinkage**2)
        matrix = x.T @ x + np.eye(x.shape[1]) / scale_of(inverse)[:, None]
        root = np.linalg.inv(np.linalg.cholesky(matrix)).transpose(0, 2, 1)
        noise = root @ rng.standard_normal((*theta.shape, 1))
        theta = (np.linalg.solve(matrix, np.broadcast_to((x.T @ y)[:, None], noise.shape)) + target.noise_sd * noise)[
            ..., 0
        ]
    return theta


@pytest.mark.slow
@pytest.mark.parametrize("params", SETTINGS)
def test_the_exact_answers_are_those_of_the_gibbs_sampler(params):
    """50 statistics within 4.3 standard errors (false alarms: 1e-3). Planted fault: the paper's D = diag(τ_j)."""
    target = BayesianLasso(**params)
    n = 2000
    assert apart(target, gibbs(target, n, 40), 2**17) < 4.3
    assert apart(target, gibbs(target, n, 40, lambda inverse: inverse**-0.5), 2**17) > 8


class Two(BayesianLasso):
    """The same with two measurements, the total cholesterol and the LDL, which go together."""

    key = "two"
    names = ("s1", "s2")
    observations = property(lambda self: diabetes()[:, [4, 5, 10]])


@pytest.mark.slow
@pytest.mark.parametrize("params", SETTINGS)
def test_two_coefficients_are_those_of_quadrature(params):
    """Fails where the density does not integrate to 1 within .3 %, a mean is off by two thousandths of a standard
    deviation, a variance by .5 %, or a CDF by .002. Planted fault: a prior that pulls a tenth more."""
    target = Two(**params)
    *x, y = target.observations.T

    def errors(rate):
        axes = []
        for centre, sd in zip(target.mode, np.sqrt(np.diag(np.linalg.inv(target.quadratic[0]))), strict=True):
            ends = np.unique([centre - 10 * sd, 0.0, centre + 10 * sd])
            axes.append(
                [np.concatenate(part) for part in zip(*(rule(*pair, 20) for pair in pairwise(ends)), strict=True)]
            )
        (a, wide_a), (b, wide_b) = axes
        grid = np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1)
        # ‖y − θ₁x₁ − θ₂x₂‖² from its six sums.
        square = (
            y @ y
            - 2 * (grid @ [y @ x[0], y @ x[1]])
            + np.einsum("...i,ij,...j", grid, np.array(x) @ np.array(x).T, grid)
        )
        energy = square / (2 * target.noise_sd**2) + rate * np.abs(grid).sum(axis=-1)
        mass = np.exp(energy.min() - energy) * np.outer(wide_a, wide_b)
        total = (np.exp(target.log_density(grid)) * np.outer(wide_a, wide_b)).sum()
        out = [abs(total - 1) / 0.003]
        for k, (values, column) in enumerate(zip((a, b), target.columns, strict=True)):
            share = mass.sum(axis=1 - k) / mass.sum()
            mean = share @ values
            variance = share @ (values - mean) ** 2
            middle = np.cumsum(share) - share / 2
            out += [abs(mean - column.mean) / variance**0.5 / 0.002, abs(column.variance / variance - 1) / 0.005]
            out.append(np.abs(middle - column.cdf(values)).max() / 0.002)
        return out

    rate = target.shrinkage / target.noise_sd
    assert max(errors(rate)) < 1
    assert max(errors(1.1 * rate)[1:]) > 1


class Simulated(BayesianLasso):
    """A hundred of the patients with an outcome that the model has made."""

    key = "simulated"
    outcome = np.zeros(100)

    @property
    def observations(self):
        return np.column_stack([diabetes()[:100, :-1], self.outcome])


@pytest.mark.slow
def test_coefficients_that_made_the_data_have_the_law_of_the_prior_again():
    """Geweke's joint test: θ from the prior, y given θ, θ′ from the posterior given y: θ′ has the prior's law.

    So has Σ|θ′_j| − Σ|θ_j| the mean 0, within 3.9 standard errors of 100 pairs (false alarms: 1e-4). Planted fault:
    draws of a posterior that takes λ for a third of what it is.
    """
    rng = np.random.default_rng(3)
    x = diabetes()[:100, :-1]
    prior = stats.laplace(scale=0.7 / 3)
    right, wrong = [], []
    for seed in range(100):
        theta = prior.rvs(10, random_state=rng)
        outcome = x @ theta + 0.7 * rng.standard_normal(len(x))
        for sizes, shrinkage in ((right, 3.0), (wrong, 1.0)):
            target = Simulated(shrinkage=shrinkage)
            target.outcome = outcome
            sizes.append(np.abs(target.sample(seed, 1)[0]).sum() - np.abs(theta).sum())
    z, faulty = (np.mean(sizes) / np.std(sizes) * 10 for sizes in (right, wrong))
    assert abs(z) < 3.9
    assert faulty > 3.9


def test_the_data_are_those_of_scikit_learn():
    from sklearn.datasets import load_diabetes

    found = load_diabetes()
    x, y = found["data"], found["target"]
    assert tuple(found["feature_names"]) == NAMES
    np.testing.assert_allclose(diabetes()[:, :-1], x * np.sqrt(len(x)), atol=1e-12)
    np.testing.assert_allclose(diabetes()[:, -1], (y - y.mean()) / y.std(), atol=1e-12)


def test_the_mode_is_the_lasso_and_shrinks():
    """The conditions of Karush, Kuhn and Tucker: a coefficient that is not 0 is pulled as hard by the data as by the
    prior, one that is 0 no harder. A prior that pulls more has more of them at 0."""
    zeros = []
    for shrinkage in (0.1, 5.0, 20.0):
        target = BayesianLasso(shrinkage=shrinkage)
        precision, linear, rate = target.quadratic
        pull = (linear - precision @ target.mode) / rate
        there = target.mode != 0
        np.testing.assert_allclose(pull[there], np.sign(target.mode[there]), atol=1e-6)
        assert (np.abs(pull) < 1 + 1e-6).all()
        zeros.append(10 - there.sum())
    assert zeros[0] < zeros[1] <= zeros[2]
