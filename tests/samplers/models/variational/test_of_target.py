"""Gamma SGVB on targets whose law is known: KL(q‖p) and shares against formulas, its limits against p and scipy."""

import numpy as np
import pytest
from numpy.random import SFC64, Generator
from scipy import optimize, special, stats

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.variational import of_target
from sgmcmc_lab.samplers.models.variational.gamma import draw, path_gradient
from sgmcmc_lab.samplers.models.variational.of_target import GammaFit, Gammas, divergence, law_of, share_cdf
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.edited import edited
from tests.helpers.statistics import z_verdict

SMALL = {"dimension": 4, "alpha": 0.5, "observed": (8, 1)}


def of_gammas(a, b, s):
    """KL(Γ(a, b)‖Γ(s, 1)) by its formula."""
    psi = special.digamma(a)
    return float(((a - s) * psi - special.gammaln(a) + special.gammaln(s) + s * np.log(b) + a * (1 / b - 1)).sum())


def of_lognormal(a, b, mu, sigma):
    """KL(Γ(a, b)‖LogNormal(μ, σ²)): E log x = ψ(a) − log b, Var log x = ψ′(a)."""
    m, v = special.digamma(a) - np.log(b), special.polygamma(1, a)
    log_q = a * np.log(b) - special.gammaln(a) + (a - 1) * m - a
    log_p = -m - ((m - mu) ** 2 + v) / (2 * sigma**2) - np.log(np.sqrt(2 * np.pi) * sigma)
    return float(log_q - log_p)


def best(mu, sigma):
    """The shape and the rate of the gamma with the smallest KL(q‖p) from a log-normal, and that."""
    found = optimize.minimize(
        lambda at: of_lognormal(*np.exp(at), mu, sigma),
        [0.0, -mu],
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000},
    )
    assert found.success
    return np.exp(found.x), found.fun


PAIRS = [(0.01, 30.0, 0.5), (0.5, 1.0, 0.01), (1.0, 0.2, 7.0), (30.0, 2.0, 800.1), (800.0, 1.001, 800.1)]


def worst(module):
    """The largest error of KL(q‖p), relative to 1 + KL."""
    errors = []
    for a, b, s in PAIRS:
        exact = of_gammas(a, b, s)
        found = module.divergence(np.array([a]), np.array([b]), Gammas(np.array([s])))
        errors.append(abs(found - exact) / (1 + exact))
    for sigma, (a, b) in ((0.05, (300.0, 3.0)), (2.0, (0.4, 2.0))):
        exact = of_lognormal(a, b, 0.3, sigma)
        law = law_of(TARGETS["lognormal"](mu=0.3, sigma=sigma))
        errors.append(abs(module.divergence(np.array([a]), np.array([b]), law) - exact) / (1 + exact))
    return max(errors)


def test_the_divergence_is_its_formula(tmp_path):
    """From gammas and from log-normals to 1e-9. Planted faults: the rate is left out of log q, and of the draws."""
    assert worst(of_target) < 1e-9
    for right, wrong in ((" + np.log(rate)\n", "\n"), ("(log_y - np.log(rate))", "(log_y)")):
        assert worst(edited(of_target, right, wrong, tmp_path)) > 1e-3


def test_divergences_of_independent_unknowns_add_up():
    a, b, s = np.array([p[0] for p in PAIRS]), np.array([p[1] for p in PAIRS]), np.array([p[2] for p in PAIRS])
    assert divergence(a, b, Gammas(s)) == pytest.approx(of_gammas(a, b, s), rel=1e-9)


LEVELS = np.array([1e-6, 0.01, 0.2, 0.5, 0.8, 0.99, 1 - 1e-6])


def gaps(module):
    """The largest error of the law of a share: Beta where all rates are equal, and of two gammas with any rates."""
    out = []
    for shape, k in (([800.1, 100.1, 100.1] + [0.1] * 7, 0), ([800.1, 100.1, 0.1], 2), ([0.1, 2.0, 3.0], 0)):
        a = np.array(shape)
        law = stats.beta(a[k], a.sum() - a[k])
        w = law.ppf(LEVELS)
        out.append(np.abs(module.share_cdf(a, np.full(len(a), 1.7), k, w) - law.cdf(w)).max())
    a, b, odds = np.array([0.4, 3.0]), np.array([5.0, 0.2]), np.array([1e-9, 1e-3, 0.02, 0.3, 4.0])
    exact = stats.betaprime(*a).cdf(odds * b[0] / b[1])
    out.append(np.abs(module.share_cdf(a, b, 0, odds / (1 + odds)) - exact).max())
    return max(out)


def test_the_law_of_a_share_is_a_beta(tmp_path):
    """To 1e-9. Planted faults: the rate of the share's own gamma is left out; a coarse grid of frequencies."""
    assert gaps(of_target) < 1e-9
    for right, wrong in (("(1 - w) / rate[k]", "1 - w"), ("FREQUENCY_STEP = 0.03", "FREQUENCY_STEP = 0.5")):
        assert gaps(edited(of_target, right, wrong, tmp_path)) > 1e-3


def test_a_share_is_between_0_and_1():
    assert share_cdf(np.array([2.0, 3.0]), np.ones(2), 1, [0.0, 1.0, 1.5]).tolist() == [0.0, 1.0, 1.0]


@for_each(("key", "params"), [("gamma", {}), ("lognormal", {"mu": 0.4}), ("sparse_dirichlet", SMALL)])
def test_the_slope_of_a_law_is_that_of_its_density(key, params):
    law, target = law_of(TARGETS[key](**params)), TARGETS[key](**params)
    log_x, step = Generator(SFC64(3)).normal(size=target.dim), 1e-5
    grad, unused = np.empty(target.dim), np.empty(target.dim)
    assert law.log_joint(log_x, grad) == pytest.approx(law.log_densities(log_x).sum())
    for j, e in enumerate(np.eye(target.dim)):
        moved = (law.log_joint(log_x + step * e, unused) - law.log_joint(log_x - step * e, unused)) / (2 * step)
        assert grad[j] == pytest.approx(moved, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("key", "params"), [("gamma", {}), ("sparse_dirichlet", SMALL)])
def test_q_becomes_a_posterior_of_its_family(key, params, monkeypatch):
    """KL(q‖p) falls below 1e-8 in 3,000 steps, and 20,000 draws of q are within the KS distance that exact ones exceed
    once in 10,000 times. Planted fault: it climbs to shapes that are .1 larger.
    """
    target = TARGETS[key](**params)

    def distance(fit):
        shape, rate = fit.parameters
        theta = Generator(SFC64(5)).gamma(shape, 1 / rate, (20_000, target.dim))
        exact = stats.gamma(target.packed().reshape(2, -1).sum(axis=0)[-1])
        return stats.kstest(theta[:, -1], exact.cdf).statistic

    limit = stats.kstwo(20_000).isf(1e-4)
    fit = GammaFit(target, 1)
    first = fit.divergence
    fit.advance(3000)
    assert first > 0.1 and abs(fit.divergence) < 1e-8
    assert distance(fit) < limit
    right = fit.law
    monkeypatch.setattr(of_target, "law_of", lambda target: Gammas(right._shapes + 0.1))
    wrong = GammaFit(target, 1)
    wrong.advance(3000)
    shape, rate = wrong.parameters
    assert divergence(shape, rate, right) > 1e-3 and distance(wrong) > limit


def slopes(law, shape, rate, n=5000):
    """Gradients of the ELBO at n draws of q, in shape and rate, (n, 2)."""
    jit.prepare([draw])
    rng, out = Generator(SFC64(9)), np.empty((n, 2))
    log_x, slope, grad = np.empty(1), np.empty(1), np.empty(1)
    for i in range(n):
        draw(rng, shape, rate, log_x, slope)
        law.log_joint(log_x, grad)
        out[i] = np.concatenate(path_gradient(grad, log_x, slope, shape, rate))
    return out


class NoJacobian(of_target.OneCoordinate):
    """The slope in x in place of that in log x."""

    def log_joint(self, log_x, grad):
        value = super().log_joint(log_x, grad)
        grad /= np.exp(log_x)
        return value


@pytest.mark.slow
def test_outside_the_family_q_settles_at_the_smallest_divergence():
    """The ELBO's gradient at the minimum that scipy finds is 0, within the standard errors of 5,000 draws (a false
    alarm once in 10,000 times); and KL(q‖p) at the mean of log shape and log rate over the last 2,000 of 3,000 steps is
    above the minimum .0192 by less than .001, while q alone comes no nearer. Planted fault: a gradient in x.
    """
    target = TARGETS["lognormal"]()
    (a, b), least = best(0.0, 0.5)
    assert least == pytest.approx(0.0191858, abs=1e-7)

    def verdicts(law):
        found = slopes(law, np.array([a]), np.array([b]))
        errors = found.std(axis=0) / np.sqrt(len(found))
        return [
            z_verdict(name, m, 0.0, e, n_tests=2) for name, m, e in zip("ab", found.mean(axis=0), errors, strict=True)
        ]

    assert all(one.ok for one in verdicts(law_of(target)))
    assert not any(one.ok for one in verdicts(NoJacobian(target)))

    def settled(fit):
        path = []
        for _ in range(3000):
            fit.advance(1)
            path.append(np.log(np.concatenate(fit.parameters)))
        return of_lognormal(*np.exp(np.mean(path[1000:], axis=0)), 0.0, 0.5), fit

    value, fit = settled(GammaFit(target, 2))
    assert least <= value < least + 0.001
    assert fit.divergence > least
    faulty = GammaFit(target, 2)
    faulty.law = NoJacobian(target)
    assert settled(faulty)[0] > least + 0.005


def test_a_fit_is_the_same_in_parts():
    target, parts, whole = TARGETS["lognormal"](), [], []
    for steps in ((3, 40, 57), (100,)):
        fit = GammaFit(target, 4)
        for n in steps:
            fit.advance(n)
        (parts if len(steps) > 1 else whole).append(fit.parameters)
    np.testing.assert_array_equal(parts[0], whole[0])


def test_laws_that_are_known():
    known = {key for key, cls in TARGETS.items() if cls.support in ("positive", "simplex") and of_target.known(cls())}
    assert known == {"gamma", "lognormal", "sparse_dirichlet", "dense_dirichlet"}
    assert not of_target.known(TARGETS["sparse_dirichlet"](dimension=21))
    assert not of_target.known(TARGETS["gaussian"]())
