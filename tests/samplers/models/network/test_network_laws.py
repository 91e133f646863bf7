"""The laws that the methods leave invariant, and the unbiasedness of the variational gradients."""

import copy
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.random import SFC64, Generator
from scipy import special, stats

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.average import LaterAverage
from sgmcmc_lab.samplers.models.network import gamma_sgvb, gibbs, hmc, norm_sgvb
from sgmcmc_lab.samplers.models.network.gibbs import GibbsState, NetworkGibbs
from sgmcmc_lab.samplers.models.network.graph import make_graph
from sgmcmc_lab.samplers.models.network.hmc import HMCState, NetworkHMC
from sgmcmc_lab.samplers.models.network.model import Network, partners
from sgmcmc_lab.samplers.models.variational import gamma, norm
from sgmcmc_lab.samplers.models.variational.optimisers import NAMES, Ascent
from sgmcmc_lab.samplers.models.variational.positive import softplus, softplus_inverse
from tests.helpers.statistics import failures, z_verdict

# The joint law of unknowns and graph: Geweke 2004, by independent replicates that start in it

REPLICATES = 3000
ROUNDS = 5
N, K = 4, 2


@pytest.fixture(scope="module")
def tiny():
    """Four nodes, two communities, priors without the long tails of the defaults, pair (1, 2) held out."""
    model = copy.copy(Network(graph="florentine", n_communities=K, a_prior=2.0, mass_prior=2.0))
    model.data = make_graph(tuple("abcd"), [])
    model.held = np.array([[1, 2]])
    model.held_of = partners(model.held, N)
    jit.prepare([*NetworkGibbs.compiled, *NetworkHMC.compiled])
    return model


def prior_draw(rng):
    a, c = rng.gamma(2.0, 0.5, N), rng.gamma(1.0, 1.0, N)
    mass, rate = rng.gamma(2.0, 0.5), rng.gamma(1.0, 1.0)
    w, r = rng.gamma(a[:, None], 1 / c[:, None], (N, K)), rng.gamma(mass / K, 1 / rate, K)
    return np.concatenate([w.ravel(), r, a, c, [mass, rate]])


def drawn_graph(model, x, rng, use_r=True):
    """The model with observed edges drawn given the unknowns."""
    w, r = model.weights(x)
    i, j = np.triu_indices(N, 1)
    rate = ((r if use_r else 1.0) * w[i] * w[j]).sum(axis=1)
    edge = (rng.random(len(i)) < -np.expm1(-rate)) & ~((i == 1) & (j == 2))
    model = copy.copy(model)
    model.edges = np.ascontiguousarray(np.column_stack([i[edge], j[edge]]))
    return model


def statistics_of(x):
    """The statistics that are compared: every kind of unknown, and rates of an observed and of the held-out pair."""
    w, r = x[: N * K].reshape(N, K), x[N * K : N * K + K]
    rest = x[N * K + K :]
    return [
        w[0, 0],
        w[2, 1],
        r[0],
        rest[0],
        rest[1],
        rest[N + 1],
        rest[2 * N],
        rest[2 * N + 1],
        (r * w[0] * w[1]).sum(),
        (r * w[1] * w[2]).sum(),
        r.sum(),
        w.sum(),
    ]


def gibbs_step(model, x, rng, fault):
    parts = np.split(x, np.cumsum([N * K, K, N, N]))
    w, r, a, c, top = (part.copy() for part in parts)
    if fault == "pairs counted twice":
        model.edges = np.concatenate([model.edges, model.edges])
    state = GibbsState(w.reshape(N, K), r, a, c, top, LaterAverage(1))
    if fault == "held-out pair counted":
        model.held_of = partners(model.held[:0], N)
    NetworkGibbs().advance(model, state, rng)
    return np.concatenate([state.w.ravel(), state.r, state.a, state.c, state.top])


def hmc_step(model, x, rng, fault):
    grad = np.empty_like(x)
    log_x = np.log(np.maximum(x, 1e-300))
    state = HMCState(log_x, hmc.potential(model, log_x, grad), grad, LaterAverage(1))
    NetworkHMC(step_size=0.15, n_leapfrog=6).advance(model, state, rng)
    return np.exp(state.log_x)


def joint_law(model, step, fault="", replicates=REPLICATES):
    """The worst p-value of KS between statistics before and after rounds of (draw graph, step), times their number.

    Every replicate starts from the prior and so stays in it, if the step leaves its posterior invariant; the
    replicates are independent. The false-alarm rate of p < 1e-4 is 1e-4 per test. A step that cannot be made gives 0.
    """
    rng = Generator(SFC64(77))
    before, after = [], []
    for _ in range(replicates):
        before.append(statistics_of(prior_draw(rng)))
        x = prior_draw(rng)
        try:
            for _ in range(ROUNDS):
                x = step(drawn_graph(model, x, rng, fault != "r left out"), x, rng, fault)
        except FloatingPointError:
            return 0.0
        after.append(statistics_of(x))
    before, after = np.array(before), np.array(after)
    p = [stats.ks_2samp(before[:, k], after[:, k]).pvalue for k in range(before.shape[1])]
    return min(p) * len(p)


@pytest.mark.slow
def test_gibbs_leaves_the_joint_law(tiny):
    assert joint_law(tiny, gibbs_step) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["r left out", "pairs counted twice", "held-out pair counted"])
def test_gibbs_faults_are_caught(tiny, fault):
    assert joint_law(tiny, gibbs_step, fault, 600) < 1e-4


@pytest.mark.slow
def test_hmc_leaves_the_joint_law(tiny):
    assert joint_law(tiny, hmc_step, replicates=1500) > 1e-4


@pytest.mark.slow
def test_hmc_without_the_jacobian_is_caught(tiny, monkeypatch):
    def faulty(model, log_x, grad):
        value = model.log_joint(log_x, grad)
        np.negative(grad, out=grad)
        return -value

    monkeypatch.setattr(hmc, "potential", faulty)
    assert joint_law(tiny, hmc_step, replicates=600) < 1e-4


def test_gibbs_ends_where_a_rate_is_out_of_reach(tiny):
    for bad in (1e8, np.nan):
        x = prior_draw(Generator(SFC64(1)))
        x[: N * K + K] = bad
        model = copy.copy(tiny)
        model.edges = np.array([[0, 1]])
        with pytest.raises(FloatingPointError, match="no longer below"):
            gibbs_step(model, x, Generator(SFC64(1)), "")


@pytest.mark.slow
def test_hidden_counts():
    """Means of 2e4 draws, in six standard errors: given that they are not all zero; plain Poisson counts are caught."""
    rng, n, out = Generator(SFC64(5)), 20_000, np.zeros(3, dtype=np.int64)
    for rate in (1e-4, 0.3, 0.999, 1.0, 2.5, 40.0):
        rates = rate * np.array([0.5, 0.2, 0.3])
        draws = np.empty((n, 3))
        for draw in draws:
            gibbs._hidden_counts(rng, rates, rate, out)
            draw[:] = out
        assert draws.sum(axis=1).min() >= 1
        mean = rates / -np.expm1(-rate)
        error = np.sqrt(mean * (1 + rates - mean) / n)
        assert (np.abs(draws.mean(axis=0) - mean) < 6 * error).all()
        if rate < 3:
            assert (np.abs(rng.poisson(rates, (n, 3)).mean(axis=0) - mean) > 6 * error).any()


# The ELBO's gradient against a high-precision ELBO


def smallest():
    """Three nodes, one community: (0, 1) an edge, (0, 2) none, (1, 2) held out. Twelve unknowns."""
    model = copy.copy(Network(graph="florentine", n_communities=1, a_prior=1.5, mass_prior=0.8))
    model.data = make_graph(tuple("abc"), [(0, 1), (1, 2)])
    model.edges, model.held = np.array([[0, 1]]), np.array([[1, 2]])
    jit.prepare(gamma_sgvb.GammaSGVB.compiled)
    return model


def grid(shape, rate, n):
    """log x and weights of a Gamma(shape, rate): the trapezoidal rule in log x, which converges geometrically."""
    log_y = np.linspace((np.log(1e-15) + special.gammaln(shape + 1)) / shape, np.log(shape + 40 + 12 * shape**0.5), n)
    weight = np.exp(shape * log_y - np.exp(log_y) - special.gammaln(shape)) * (log_y[1] - log_y[0])
    return log_y - np.log(rate), weight


def exact_elbo(shape, rate, points=60):
    """E log p(Y, x) − E log q for :func:`smallest`, by closed forms, 1-D and 3-D quadrature."""
    mean, mean_log = shape / rate, special.digamma(shape) - np.log(rate)
    w, r, a, c, mass, top_rate = slice(0, 3), 3, slice(4, 7), slice(7, 10), 10, 11

    def mean_lgamma(k):
        log_x, weight = grid(shape[k], rate[k], 400)
        return (weight * special.gammaln(np.exp(log_x))).sum()

    def prior(k, e, f):
        return e * np.log(f) - special.gammaln(e) + (e - 1) * mean_log[k] - f * mean[k]

    parts = [grid(shape[k], rate[k], points) for k in (0, 1, r)]
    log_p = parts[0][0][:, None, None] + parts[1][0][:, None] + parts[2][0]
    weight = parts[0][1][:, None, None] * parts[1][1][:, None] * parts[2][1]
    total = (weight * np.log(-np.expm1(-np.exp(log_p)))).sum() - mean[0] * mean[2] * mean[r]
    total += (mean[a] * mean_log[c] + (mean[a] - 1) * mean_log[w] - mean[c] * mean[w]).sum()
    total += mean[mass] * mean_log[top_rate] + (mean[mass] - 1) * mean_log[r] - mean[top_rate] * mean[r]
    total -= sum(mean_lgamma(k) for k in (4, 5, 6, mass))
    total += sum(prior(k, 1.5, 1.5) for k in (4, 5, 6)) + prior(mass, 0.8, 0.8)
    total += sum(prior(k, 1.0, 1.0) for k in (7, 8, 9, top_rate))
    return total + stats.gamma.entropy(shape, scale=1 / rate).sum()


def exact_gradient(shape, rate):
    theta, width = np.concatenate([shape, rate]), 1e-4
    out = np.empty_like(theta)
    for d in range(len(theta)):
        up, down = theta.copy(), theta.copy()
        up[d] *= 1 + width
        down[d] *= 1 - width
        out[d] = (exact_elbo(*np.split(up, 2)) - exact_elbo(*np.split(down, 2))) / (2 * width * theta[d])
    return out


def estimates(model, shape, rate, n, fault=""):
    """ELBOs and gradients of single draws: (n,), (n, 2·unknowns)."""
    rng = Generator(SFC64(21))
    log_x, slope, grad = np.empty_like(shape), np.empty_like(shape), np.empty_like(shape)
    values, gradients = np.empty(n), np.empty((n, 2 * len(shape)))
    for k in range(n):
        entropy = gamma.draw(rng, shape, rate, log_x, slope)
        values[k] = model.log_joint(log_x, grad) + entropy
        used = 1 / shape if fault == "the draw moves with the mean" else slope
        by_shape, by_rate = gamma.path_gradient(grad, log_x, used, shape, rate)
        if fault == "the entropy left out":
            by_shape, by_rate = grad * used, -grad / rate
        gradients[k] = np.concatenate([by_shape, by_rate])
    return values, gradients


def gradient_verdicts(values, gradients, elbo, gradient):
    """Each component within its standard error; false-alarm rate 1e-4 for all together."""
    n = len(values)
    out = [z_verdict("ELBO", values.mean(), elbo, values.std() / n**0.5, n_tests=25)]
    for d, expected in enumerate(gradient):
        error = gradients[:, d].std() / n**0.5
        out.append(z_verdict(f"∂{d}", gradients[:, d].mean(), expected, error, n_tests=25))
    return out


@pytest.fixture(scope="module")
def tiny_elbo():
    model = smallest()
    rng = np.random.default_rng(8)
    shape, rate = rng.uniform(1.5, 4.0, 12), rng.uniform(1.0, 3.0, 12)
    assert exact_elbo(shape, rate) == pytest.approx(exact_elbo(shape, rate, 90), abs=1e-7)
    return model, shape, rate, exact_elbo(shape, rate), exact_gradient(shape, rate)


@pytest.mark.slow
def test_gamma_elbo_gradient_is_unbiased(tiny_elbo):
    model, shape, rate, elbo, gradient = tiny_elbo
    verdicts = gradient_verdicts(*estimates(model, shape, rate, 40_000), elbo, gradient)
    assert not failures(verdicts), failures(verdicts)
    # The test has power: the errors are small beside the gradient.
    assert np.median([v.error / abs(v.expected) for v in verdicts]) < 0.05


@pytest.mark.slow
def test_the_traced_elbo_of_gamma_sgvb_is_the_elbo(monkeypatch):
    """The mean of what is shown, with q held where it is, against the ELBO by quadrature."""

    class Still(gamma_sgvb.GammaSGVB):
        def change(self, ascent, g):
            return np.zeros_like(g)

    model = smallest()
    model.prior = np.array([1.5, 0.8])
    monkeypatch.setattr(Network, "n_data", 2)
    rng = np.random.default_rng(8)
    shape, rate = rng.uniform(1.5, 4.0, 12), rng.uniform(1.0, 3.0, 12)
    method, generator = Still(), Generator(SFC64(5))
    state = method.start(model, generator)
    state.theta = np.log(np.expm1(np.stack([shape, rate])))
    for _ in range(1500):
        method.advance(model, state, generator)
    values = np.array(state.elbo)
    error = values.std() / len(values) ** 0.5
    assert z_verdict("ELBO", values.mean(), exact_elbo(shape, rate), error).ok
    # Planted fault: without the entropy.
    entropy = stats.gamma.entropy(shape, scale=1 / rate).sum()
    assert not z_verdict("log f", values.mean() - entropy, exact_elbo(shape, rate), error).ok


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["the draw moves with the mean", "the entropy left out"])
def test_faults_of_the_gradient_are_caught(tiny_elbo, fault):
    model, shape, rate, elbo, gradient = tiny_elbo
    assert failures(gradient_verdicts(*estimates(model, shape, rate, 10_000, fault), elbo, gradient))


def test_gamma_gradient_is_zero_where_q_is_the_posterior():
    """For f a product of gammas: at q = f no draw moves q and every ELBO is log Z = 0; beside it they vary."""
    rng = np.random.default_rng(4)
    size = 200
    shape, rate = 10 ** rng.uniform(-2, 3.5, size), 10 ** rng.uniform(-2, 2, size)
    jit.prepare([gamma.draw])

    def moves(q_shape, q_rate):
        generator, sizes, elbos = Generator(SFC64(2)), [], []
        log_x, slope = np.empty(size), np.empty(size)
        for _ in range(20):
            entropy = gamma.draw(generator, q_shape, q_rate, log_x, slope)
            log_f = shape * np.log(rate) - special.gammaln(shape) + (shape - 1) * log_x - rate * np.exp(log_x)
            grad = shape - 1 - rate * np.exp(log_x)
            both = gamma.path_gradient(grad, log_x, slope, q_shape, q_rate)
            sizes.append(max(np.abs(both[0] / slope).max(), np.abs(both[1] * q_rate).max()))
            elbos.append(log_f.sum() + entropy)
        return max(sizes), np.ptp(elbos), np.abs(elbos).max()

    gradient, spread, value = moves(shape, rate)
    assert gradient < 1e-8 and spread < 1e-7 and value < 1e-7
    gradient, spread, _ = moves(shape * 1.01, rate)
    assert gradient > 1e-3 and spread > 1e-3


def test_normal_gradient_is_zero_where_q_is_the_posterior():
    rng = np.random.default_rng(4)
    centre, spread, noise = rng.normal(size=50), rng.uniform(0.1, 3, 50), rng.normal(size=50)
    for factor, expected in ((1.0, True), (1.02, False)):
        theta = centre + factor * spread * noise
        both = norm.path_gradient(-(theta - centre) / spread**2, noise, factor * spread)
        assert (np.abs(both).max() < 1e-12) == expected


@pytest.mark.parametrize("transform", ["softplus", "log"])
def test_normal_path_gradient_by_central_differences(transform, monkeypatch):
    """The objective of a step of the method: for its ξ, log p(Y, x(θ)) + log|dx/dθ| − log q(θ) with q held, along
    θ = m + s(σ)ξ, in m and in σ. Its value is the ELBO of the step."""
    model, method = smallest(), norm_sgvb.NormSGVB(transform=transform)
    rng = np.random.default_rng(1)
    centre, raw, noise = rng.normal(size=12), rng.normal(size=12), rng.normal(size=12)

    def value(m, sigma):
        theta = m + np.logaddexp(0, sigma) * noise
        x = np.exp(theta) if transform == "log" else np.log1p(np.exp(theta))
        log_jacobian = theta.sum() if transform == "log" else np.log(special.expit(theta)).sum()
        log_q = stats.norm.logpdf(theta, centre, np.logaddexp(0, raw)).sum()
        return model.log_joint(np.log(x), np.empty(12)) + log_jacobian - log_q

    climbed = []
    monkeypatch.setattr(norm_sgvb.NormSGVB, "change", lambda method, ascent, g: climbed.append(g) or np.zeros(24))
    state = method.start(model, Generator(SFC64(1)))
    state.centre, state.raw_spread = centre.copy(), raw.copy()
    method.advance(model, state, Mock(standard_normal=lambda size: noise))
    step = 1e-5 * np.eye(12)
    measured = [(value(centre + e, raw) - value(centre - e, raw)) / 2e-5 for e in step]
    measured += [(value(centre, raw + e) - value(centre, raw - e)) / 2e-5 for e in step]
    np.testing.assert_allclose(climbed[0], measured, rtol=1e-6, atol=1e-6)
    assert state.elbo[-1] == pytest.approx(value(centre, raw), rel=1e-12)


# Optimisers


def test_optimisers_by_hand():
    """Two steps of each, with momentum 0.5, of g = 2 and then 1: v = 1 and 1."""
    expected = {"sgd": (0.01, 0.01), "adagrad": (0.1, 0.1 / 2**0.5), "rmsprop": (0.01 / 0.1**0.5, 0.01 / 0.19**0.5)}
    first = (1e-4 / (0.8 + 1e-4)) ** 0.5
    expected["adadelta"] = (first, ((0.8 * first**2 + 1e-4) / (0.2 * 0.8 + 0.8 + 1e-4)) ** 0.5)
    assert set(expected) == set(NAMES)
    for name, changes in expected.items():
        ascent = Ascent(1)
        for g, change in zip((2.0, 1.0), changes, strict=True):
            measured = ascent.change(name, np.array([g]), 1.0, 0.5, 0.8)[0]
            assert measured == pytest.approx(change, rel=1e-4), name


def test_softplus_of_the_start():
    x = np.array([1e-12, 0.3, 80.0])
    np.testing.assert_allclose(softplus(softplus_inverse(x)), x, rtol=1e-9)
