"""The laws of ASGLD and MSGLD: a second drift of running averages, with which e^{−U} is not stationary."""

from math import sqrt

import numpy as np
import pytest
from scipy import integrate, linalg, optimize

from sgmcmc_lab.samplers import engine
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import SAMPLERS
from tests.helpers.statistics import draws_of, failures, mean_and_error, mean_verdict, start_with, z_verdict

N_CHAINS = 1000


def squares(params, steps, every, burn_in, gradient="full", variance=0.0, kernel=None):
    """θ² of chains on N(0, 1), (chains, draws), of every so many steps after the burn-in."""
    noise = {"variance": variance} if variance else {}
    spec = RunSpec.of(
        "gaussian", "asgld", gradient, gradient_params=noise, sampler_params=params, n_chains=N_CHAINS, seed=5
    )
    sampler = engine.Run(spec).sampler
    if kernel is not None:
        cls = type("Faulty", (type(sampler),), {"advance": staticmethod(kernel)})
        sampler = cls(**{name: getattr(sampler, name) for name in sampler.param.values() if name != "name"})
    run = start_with(spec, sampler)
    run.advance(burn_in)
    return draws_of(run, steps // every, every)[..., 0] ** 2


def lagged_law(eps, weight, decay, variance=0.0):
    """Var θ of θ ← θ − ε(g + a m) + √(2ε)ξ, m ← βm + (1 − β)g with g = θ + √V η, from its Lyapunov equation."""
    step = np.array([[1 - eps, -eps * weight], [1 - decay, decay]])
    heat = np.outer([-eps, 1 - decay], [-eps, 1 - decay]) * variance + np.diag([2 * eps, 0.0])
    return float(linalg.solve_discrete_lyapunov(step, heat)[0, 0])


def standing_law(eps, weight, decay):
    """The same where v stands at E g² = Var θ: the weight is a/√Var θ."""
    return float(optimize.brentq(lambda s2: lagged_law(eps, weight / sqrt(s2), decay) - s2, 0.05, 1.5))


def test_the_laws_have_their_printed_limits():
    """As ε → 0 MSGLD's variance is 1/(1 + a), and ASGLD's standard deviation solves s² + as = 1."""
    np.testing.assert_allclose(lagged_law(1e-6, 1.5, 0.9), 1 / 2.5, rtol=1e-4)
    np.testing.assert_allclose(sqrt(standing_law(1e-6, 1.0, 0.0)), (sqrt(5) - 1) / 2, rtol=1e-4)
    np.testing.assert_allclose(lagged_law(0.3, 0.0, 0.9, 2.0), 2.6 / 1.7)


_asgld = SAMPLERS["asgld"].advance


@jit.kernel
def own_gradient_first(rng, state, model, source, params, out, n, info):
    """MSGLD whose average holds the step's own gradient, as Adam's does."""
    step, weight, decay = params[0], params[1], params[2]
    theta, grad, m = state.position, info.gradient, state.momentum
    for t in range(n):
        model.gradient(theta, grad, model.params)
        for c in range(theta.shape[0]):
            for i in range(theta.shape[1]):
                m[c, i] = decay * m[c, i] + (1 - decay) * grad[c, i]
                theta[c, i] -= step * (grad[c, i] + weight * m[c, i]) - sqrt(2 * step) * rng.standard_normal()
                out[t, c, i] = theta[c, i]


@jit.kernel
def one_memory(rng, state, model, source, params, out, n, info):
    """ASGLD with β₂ in the place of β₁: the first average is as slow as the second."""
    swapped = params.copy()
    swapped[2] = params[3]
    _asgld(rng, state, model, source, swapped, out, n, info)


@pytest.mark.slow
@pytest.mark.parametrize(("gradient", "variance"), [("full", 0.0), ("gaussian", 2.0)])
def test_msgld_has_the_law_of_its_lyapunov_equation(gradient, variance):
    """Fails where Var θ at ε = .3, a = 1, β₁ = .9 is not the linear chain's own: 1.124, and 1.564 with noise of the
    gradient of variance 2 (standard errors .001 and .002; false alarms: 1e-4).

    Planted faults: SGLD's law, the law without the noise in m, and an average with the step's own gradient.
    """
    eps, a, decay = 0.3, 1.0, 0.9
    params = {"step_size": eps, "bias": a, "m_decay": decay, "scaled": False}
    x = squares(params, 4000, 2, 300, gradient, variance)
    assert not failures([mean_verdict("Var θ", x, lagged_law(eps, a, decay, variance))])
    assert failures([mean_verdict("Var θ", x, lagged_law(eps, 0.0, decay, variance))])
    if variance:
        assert failures([mean_verdict("Var θ", x, lagged_law(eps, a, decay))])
    else:
        broken = squares(params, 4000, 2, 300, kernel=own_gradient_first)
        assert failures([mean_verdict("Var θ", broken, lagged_law(eps, a, decay))])


@pytest.mark.slow
def test_asgld_without_memory_has_the_law_of_its_drift():
    """Fails where on N(0, 1), with β₁ = β₂ = 0 and λ = .01, the variance is not that of exp(−θ²/2 − √(θ² + λ)), .482 by
    quadrature, at the limit of ε = .01 and .005 (standard error .004; false alarms: 1e-4). Planted fault: MSGLD's law,
    e^{−θ²}, of which the variance is .5, and that of the target.
    """
    lam = 0.01

    def weight(x):
        return np.exp(-x * x / 2 - np.sqrt(x * x + lam))

    expected = integrate.quad(lambda x: x * x * weight(x), -12, 12)[0] / integrate.quad(weight, -12, 12)[0]
    local = {"bias": 1.0, "m_decay": 0.0, "v_decay": 0.0, "floor": lam}
    found = [
        mean_and_error(squares({"step_size": eps, **local}, int(150 / eps), k, int(20 / eps)))
        for eps, k in ((0.01, 10), (0.005, 20))
    ]
    limit = 2 * found[1][0] - found[0][0]
    error = sqrt(4 * found[1][1] ** 2 + found[0][1] ** 2)
    assert not failures([z_verdict("Var θ", limit, expected, error, freedom=N_CHAINS - 1)])
    assert failures([z_verdict("Var θ", limit, 0.5, error, freedom=N_CHAINS - 1)])
    assert failures([z_verdict("Var θ", limit, 1.0, error, freedom=N_CHAINS - 1)])


@pytest.mark.slow
def test_asgld_with_a_long_memory_finds_its_own_temperature():
    """Fails where at ε = .1, β₁ = .5 and β₂ = .999 the variance is not the fixed point of s² = Var θ at the weight a/s
    (.610, standard error .001, and .001 for the spread of v; false alarms: 1e-4). Planted faults: the law without a
    memory of m, and a first average as slow as the second.
    """
    eps, decay = 0.1, 0.5
    params = {"step_size": eps, "bias": 1.0, "m_decay": decay, "v_decay": 0.999}
    expected = standing_law(eps, 1.0, decay)
    x = squares(params, 3000, 3, 6000)
    assert not failures([mean_verdict("Var θ", x, expected, allowance=0.001)])
    assert failures([mean_verdict("Var θ", x, standing_law(eps, 1.0, 0.0), allowance=0.001)])
    broken = squares(params, 3000, 3, 6000, kernel=one_memory)
    assert failures([mean_verdict("Var θ", broken, expected, allowance=0.001)])
