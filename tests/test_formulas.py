"""Compiled draws and steps against their formulas in plain Python, on the same generator, over the registries.

A law that is off by half a per cent passes every statistical gate that a test suite has time for. Number for number
it does not. A target has its formula in its own file; a method without a formula here fails by its name.
"""

import copy
from math import exp, expm1, log, log1p, sqrt

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import special, stats

from samplers.models import METHODS, MODELS
from samplers.models.network import model as network_model
from samplers.models.run import ModelChain
from samplers.models.topics.corpus import Corpus
from samplers.models.topics.model import Topics
from samplers.spec import samplers_of
from samplers.targets import TARGETS
from tests.checks_targets import check_textbook_draw, draw_error


def formula(table, key):
    """The formula of a registered thing."""
    if key not in table:
        pytest.fail(f"{key} is registered and has no formula in tests/test_formulas.py")
    return table[key]


@pytest.mark.parametrize("key", list(TARGETS))
def test_exact_draws_are_their_formula(key):
    check_textbook_draw(key)


def test_a_typed_plane_draws_the_second_coordinate_given_the_cell_of_the_first():
    target = TARGETS["typed"](energy="theta1^2/2 + (theta2 - theta1)^2", extent=6.0)
    edges = np.linspace(-6, 6, 401)
    middles = (edges[1:] + edges[:-1]) / 2
    cdf = target.columns[0].cdf(edges)

    def draw(rng):
        one = np.interp(rng.random(), (cdf - cdf[0]) / (cdf[-1] - cdf[0]), edges)
        given = np.exp(-((middles - middles[int((one + 6) / 0.03)]) ** 2))
        return [one, np.interp(rng.random(), np.concatenate([[0], np.cumsum(given) / given.sum()]), edges)]

    assert draw_error(target, draw) < 1e-6


# A step of every method for models of data. Each formula takes the state before, changes it in plain Python, and says
# what the step counts as seen; after that the two states are the same.


def pick(p, u):
    """The topic at the share u of the weights p."""
    return min(int(np.searchsorted(np.cumsum(p), u * p.sum(), side="right")), len(p) - 1)


def local_sweep(rng, model, state, d, phi):
    """The topics of document d anew, given φ (words, topics)."""
    data, k = model.training, model.n_topics
    for i in range(data.offsets[d], data.offsets[d + 1]):
        own = state.counts[d, :k]
        own[state.topics[i]] -= 1
        state.topics[i] = pick((own + model.alpha) * phi[data.words[i]], rng.random())
        own[state.topics[i]] += 1


def collapsed_gibbs(method, model, state, rng):
    data, k = model.training, model.n_topics
    first = int(state.batch[-1]) + 1 if len(state.batch) else 0
    n = min(method.batch_size, data.n_documents)
    for d in [(first + i) % data.n_documents for i in range(n)]:
        for i in range(data.offsets[d], data.offsets[d + 1]):
            w, own, z = data.words[i], state.counts[d, :k], state.topics[i]
            for counts in (own, state.weights[w], state.totals):
                counts[z] -= 1
            p = (own + model.alpha) * (state.weights[w, :k] + model.beta)
            z = state.topics[i] = pick(p / (state.totals[:k] + model.n_words * model.beta), rng.random())
            for counts in (own, state.weights[w], state.totals):
                counts[z] += 1
    return n


def minibatch_gibbs(method, model, state, rng):
    data, k = model.training, model.n_topics
    phi = state.weights[:, :k] / state.totals[:k]
    batch = rng.choice(data.n_documents, method.batch_size, replace=False, shuffle=False)
    for d in batch:
        local_sweep(rng, model, state, d, phi)
    for w in range(model.n_words):
        for z in range(k):
            n = ((data.words == w) & (state.topics == z)).sum()
            state.weights[w, z] = rng.standard_gamma(model.beta + n)
    state.totals[:k] = state.weights[:, :k].sum(axis=0)
    return method.batch_size


def over_minibatches(step):
    """A step of θ over a minibatch of documents, with the step size that the schedule has at this step."""

    def formula(method, model, state, rng):
        data, k = model.training, model.n_topics
        phi = state.weights[:, :k] / state.totals[:k]
        batch = rng.choice(data.n_documents, method.batch_size, replace=False, shuffle=False)
        counts = np.zeros((model.n_words, k))
        for d in batch:
            for _ in range(method.sweeps):
                local_sweep(rng, model, state, d, phi)
                for i in range(data.offsets[d], data.offsets[d + 1]):
                    counts[data.words[i], state.topics[i]] += 1 / method.sweeps
        size = method.step_size * (1 + state.steps / method.decay_steps) ** -method.decay_power
        scaled = counts * data.n_documents / method.batch_size
        theta, momentum = state.weights[:, :k].copy(), state.extra["momentum"][:, :k].copy()
        totals = state.totals[:k].copy()

        def normals():
            return np.array([[rng.standard_normal() for _ in range(k)] for _ in range(model.n_words)])

        made = step(method, model.beta, theta, momentum, totals, scaled, size, normals, rng)
        state.weights[:, :k] = made[0]
        if len(made) > 1:
            state.extra["momentum"][:, :k] = made[1]
        state.totals[:k] = state.weights[:, :k].sum(axis=0)
        return method.batch_size

    return formula


def reflected(x, r):
    return np.abs(x), np.where(x < 0, -r, r)


def expanded_slope(beta, theta, totals, counts):
    """∂ log p/∂θ of the expanded mean."""
    return (beta - 1 + counts) / theta - 1 - counts.sum(axis=0) / totals


def lda_sgld(method, beta, theta, momentum, totals, counts, h, normals, rng):
    if method.parameterisation == "expanded_mean":
        return (np.abs(theta + h * expanded_slope(beta, theta, totals, counts) + sqrt(2 * h) * normals()),)
    phi = theta / totals
    move = h * (beta - 1 + counts) / phi + sqrt(2 * h) * normals()
    x = np.abs(phi + move - move.mean(axis=0))
    return (x / x.sum(axis=0),)


def lda_sghmc(method, beta, theta, momentum, totals, counts, h, normals, rng):
    kept, heat = 1 - h * method.friction, sqrt(2 * h * method.friction)
    if method.parameterisation == "expanded_mean":
        r = kept * momentum + h * expanded_slope(beta, theta, totals, counts) + heat * normals()
        return reflected(theta + h * r, r)
    phi = theta / totals
    r = kept * momentum + h * (beta - 1 + counts) / phi + heat * normals()
    r = r - r.mean(axis=0)
    x, r = reflected(phi + h * r, r)
    return x / x.sum(axis=0), r


def lda_sgrld(method, beta, theta, momentum, totals, counts, h, normals, rng):
    drift = beta - theta + counts - counts.sum(axis=0) * theta / totals
    return (np.abs(theta + h * drift + np.sqrt(2 * h * theta) * normals()),)


def lda_sgrhmc(method, beta, theta, momentum, totals, counts, h, normals, rng):
    root = np.sqrt(theta)
    force = (beta - 0.5 + counts) / np.maximum(root, h) - root * (1 + counts.sum(axis=0) / totals)
    root, r = reflected(root + h / 4 * (momentum + h * force), momentum + h * force)
    kept = np.exp(-h * method.friction * root**2)
    r = kept * r + np.sqrt(1 - kept**2) * normals()
    root, r = reflected(root + h / 4 * r, r)
    return root**2, r


def lda_scir(method, beta, theta, momentum, totals, counts, h, normals, rng):
    out = np.empty_like(theta)
    for w, k in np.ndindex(*theta.shape):
        jumps = rng.poisson(theta[w, k] / expm1(h))
        out[w, k] = -expm1(-h) * rng.standard_gamma(beta + counts[w, k] + jumps)
    return (out,)


def ascended(method, ascent, g):
    """AdaDelta on a running mean of the gradients."""
    v = method.momentum * ascent.velocity + (1 - method.momentum) * g
    squares = method.rho * v**2 + (1 - method.rho) * ascent.squares
    change = method.step_size * v * np.sqrt(ascent.changes + 1e-4) / np.sqrt(squares + 1e-4)
    ascent.velocity, ascent.squares = v, squares
    ascent.changes = method.rho * change**2 + (1 - method.rho) * ascent.changes
    return change


def joint(model, log_x):
    """log p(Y, x) and its gradient in log x, which have tests of their own."""
    grad = np.empty_like(log_x)
    return model.log_joint(log_x, grad), grad


def positive(theta):
    return np.log(1 + np.exp(theta))


def network_sgvb(method, model, state, rng):
    a, b = positive(state.theta)
    log_y = np.empty_like(a)
    for d, shape in enumerate(a):
        log_y[d] = log(rng.standard_gamma(shape + 1)) + log1p(-rng.random()) / shape if shape < 1 else log(rng.standard_gamma(shape))  # fmt: skip
    x = np.exp(log_y) / b
    value, grad = joint(model, np.log(x))
    state.elbo.append(value - stats.gamma.logpdf(x, a, scale=1 / b).sum())
    # ∂ log y/∂a at a fixed quantile, by a central difference of the CDF.
    y = np.exp(log_y)
    moved = (special.gammainc(a + 1e-5, y) - special.gammainc(a - 1e-5, y)) / 2e-5
    slope = -moved / (y * stats.gamma.pdf(y, a))
    both = grad - (a - 1) + b * x
    g = np.stack([both * slope, -both / b]) / (1 + np.exp(-state.theta))
    state.theta = state.theta + ascended(method, state.ascent, g.ravel()).reshape(2, -1)
    return model.n_observed


def network_norm_sgvb(method, model, state, rng):
    spread = positive(state.raw_spread)
    noise = rng.standard_normal(len(spread))
    theta = state.centre + spread * noise
    x = positive(theta)
    value, grad = joint(model, np.log(x))
    slope = 1 / (1 + np.exp(-theta))
    state.elbo.append(value + np.log(slope).sum() - stats.norm.logpdf(theta, state.centre, spread).sum())
    g = grad / x * slope + (1 - slope) + noise / spread
    change = ascended(method, state.ascent, np.concatenate([g, g * noise / (1 + np.exp(-state.raw_spread))]))
    state.centre, state.raw_spread = state.centre + change[: len(g)], state.raw_spread + change[len(g) :]
    return model.n_observed


def network_map(method, model, state, rng):
    x = positive(state.theta)
    value, grad = joint(model, np.log(x))
    state.log_joint.append(value)
    state.theta = state.theta + ascended(method, state.ascent, grad / x / (1 + np.exp(-state.theta)))
    return model.n_observed


def network_hmc(method, model, state, rng):
    def energy(log_x):
        value, grad = joint(model, log_x)
        return -value - log_x.sum(), -grad - 1

    step, theta = method.step_size * rng.uniform(0.8, 1.2), state.log_x.copy()
    r = rng.standard_normal(len(theta))
    before, slope = energy(theta)
    before += (r**2).sum() / 2
    for _ in range(method.n_leapfrog):
        r = r - step / 2 * slope
        theta = theta + step * r
        after, slope = energy(theta)
        r = r - step / 2 * slope
    change = after + (r**2).sum() / 2 - before
    if change <= 0 or rng.random() < exp(-change):
        state.log_x = theta
    return method.n_leapfrog * model.n_observed


def network_gibbs(method, model, state, rng):
    n, k = state.w.shape
    w, r, a, c, top = state.w, state.r, state.a, state.c, state.top
    mine = np.zeros((n, k), dtype=int)
    for i, j in model.edges:
        counts = hidden(rng, r * w[i] * w[j])
        mine[i] += counts
        mine[j] += counts
    all_counts = mine.sum(axis=0) // 2
    held = np.zeros((n, n), dtype=bool)
    held[tuple(model.held.T)] = held[tuple(model.held.T[::-1])] = True
    np.fill_diagonal(held, True)

    def tables(count, mass):
        return sum(rng.random() * (mass + m) < mass for m in range(count))

    for i in range(n):
        others = r * w[~held[i]].sum(axis=0)
        seated = sum(tables(mine[i, z], a[i]) for z in range(k))
        e = model.a_prior
        a[i] = rng.standard_gamma(e + seated) / (e + np.log1p(others / c[i]).sum())
        w[i] = [max(rng.standard_gamma(a[i] + mine[i, z]) / (c[i] + others[z]), 1e-300) for z in range(k)]
        c[i] = rng.standard_gamma(1 + k * a[i]) / (1 + w[i].sum())
    pairs = np.argwhere(~held & (np.arange(n)[:, None] < np.arange(n)))
    both = (w[pairs[:, 0]] * w[pairs[:, 1]]).sum(axis=0)
    seated = sum(tables(all_counts[z], top[0] / k) for z in range(k))
    g = model.mass_prior
    top[0] = rng.standard_gamma(g + seated) / (g + np.log1p(both / top[1]).sum() / k)
    r[:] = [max(rng.standard_gamma(top[0] / k + all_counts[z]) / (top[1] + both[z]), 1e-300) for z in range(k)]
    top[1] = rng.standard_gamma(1 + top[0]) / (1 + r.sum())
    return model.n_observed


def hidden(rng, rates):
    """Poisson counts with these rates, given that they are not all zero."""
    if rates.sum() >= 1:
        while True:
            counts = np.array([rng.poisson(rate) for rate in rates])
            if counts.any():
                return counts
    while True:
        n = 1 + rng.poisson(rates.sum())
        if rng.random() * n < 1:
            break
    counts = np.zeros(len(rates), dtype=int)
    for _ in range(n):
        counts[pick(rates, rng.random())] += 1
    return counts


FEW = {"batch_size": 3, "decay_steps": 4.0, "decay_power": 0.5, "sweeps": 2}
STEPS = {
    "collapsed_gibbs": (collapsed_gibbs, [{"batch_size": 3}]),
    "minibatch_gibbs": (minibatch_gibbs, [{"batch_size": 3}]),
    "lda_scir": (over_minibatches(lda_scir), [FEW]),
    "lda_sgrld": (over_minibatches(lda_sgrld), [{**FEW, "step_size": 0.2}]),
    "lda_sgrhmc": (over_minibatches(lda_sgrhmc), [{**FEW, "step_size": 0.4, "friction": 2.0}]),
    "lda_sghmc": (
        over_minibatches(lda_sghmc),
        [{**FEW, "step_size": 0.1}, {**FEW, "parameterisation": "original", "step_size": 0.02}],
    ),
    "lda_sgld": (
        over_minibatches(lda_sgld),
        [{**FEW, "step_size": 0.1}, {**FEW, "parameterisation": "original", "step_size": 1e-3}],
    ),
    "network_gibbs": (network_gibbs, [{}]),
    "network_sgvb": (network_sgvb, [{}]),
    "network_norm_sgvb": (network_norm_sgvb, [{}]),
    "network_map": (network_map, [{}]),
    "network_hmc": (network_hmc, [{"n_leapfrog": 3}]),
}


def small_model(key):
    if METHODS[key].model == "network":
        return MODELS["network"](graph="florentine", n_communities=3, a_prior=0.5, mass_prior=0.8)
    lengths = np.array([3, 5, 4, 6, 2, 7, 4])
    words = np.random.default_rng(2).integers(5, size=lengths.sum()).astype(np.int32)
    corpus = Corpus(np.concatenate([[0], lengths.cumsum()]), words, tuple("abcde"), tuple(map(str, lengths)))
    return Topics(corpus, corpus="uploaded", n_topics=3, alpha=0.4, beta=0.7, min_documents=1, max_share=1.0)


def numbers(state):
    """Everything in a state that is a number or an array of such, by its name."""
    values = {**vars(state), **vars(state).get("extra", {})}
    if hasattr(state, "ascent"):
        values |= vars(state.ascent)
    wanted = ("weights", "totals", "topics", "counts", "momentum", "w", "r", "a", "c", "top", "theta", "centre",
              "raw_spread", "log_x", "velocity", "squares", "changes", "elbo", "log_joint")  # fmt: skip
    return {name: np.array(values[name], dtype=float) for name in wanted if name in values}


def step_error(key, params, step):
    """How far four steps of a method are from the formula's, relative to what is there."""
    model = small_model(key)
    run = ModelChain(model, METHODS[key](**params), Generator(SFC64(SeedSequence(4))))
    worst = 0.0
    for _ in range(4):
        state, rng = copy.deepcopy(run.state), copy.deepcopy(run.rng)
        seen = step(run.method, model, state, rng)
        assert run.method.advance(model, run.state, run.rng) == seen
        one, two = numbers(run.state), numbers(state)
        # A method with counts of its own for the topics writes them in another place.
        for name in one.keys() & two.keys() - (
            {"counts"} if key.startswith("lda") or key == "minibatch_gibbs" else set()
        ):
            scale = max(np.abs(two[name]).max(), 1e-12) if two[name].size else 1.0
            worst = max(worst, float(np.abs(one[name] - two[name]).max(initial=0.0)) / scale)
        assert (
            run.rng.bit_generator.state["state"]["state"].tolist() == rng.bit_generator.state["state"]["state"].tolist()
        )
    return worst


@pytest.mark.parametrize("key", list(METHODS))
def test_steps_are_their_formula(key):
    step, variants = formula(STEPS, key)
    for params in variants:
        # The slope of a gamma draw is by a difference here.
        assert step_error(key, params, step) < (1e-6 if key == "network_sgvb" else 1e-9), params


SCHEDULED = [key for key in samplers_of("topics") if hasattr(METHODS[key], "decay_power")]


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("key", SCHEDULED)
def test_step_sizes_decay_by_steps(key, batch_size):
    """h(1 + m/τ)^−κ with m the number of steps, whatever part of the corpus a step looks at."""
    used = []

    class Watched(METHODS[key]):
        def packed(self, step_size):
            used.append(step_size)
            return super().packed(step_size)

    h, tau, kappa = 1e-4, 2.5, 0.8
    method = Watched(batch_size=batch_size, step_size=h, decay_steps=tau, decay_power=kappa, sweeps=1)
    model = small_model(key)
    run = ModelChain(model, method, Generator(SFC64(SeedSequence(1))))
    for _ in range(8):
        run.method.advance(model, run.state, run.rng)
    due = h * (1 + np.arange(8) / tau) ** -kappa
    assert used == pytest.approx(due, rel=1e-12, abs=0)
    # Planted fault: by epochs.
    assert used != pytest.approx(
        h * (1 + np.arange(8) * batch_size / model.training.n_documents / tau) ** -kappa, rel=1e-3
    )


# What a method shows of itself


def half_means(state):
    a, b = positive(state.theta)
    return a / b


UNKNOWNS = {
    "network_gibbs": lambda state: np.concatenate([state.w.ravel(), state.r]),
    "network_sgvb": half_means,
    "network_norm_sgvb": lambda state: positive(state.centre),
    "network_map": lambda state: positive(state.theta),
    "network_hmc": lambda state: np.exp(state.log_x),
}


@pytest.mark.parametrize("key", samplers_of("network"))
def test_a_networks_snapshot_by_its_formulas(key, monkeypatch):
    # Of 15 nodes 6 are shown.
    monkeypatch.setattr(network_model, "MAX_SHOWN", 6)
    model = small_model(key)
    run = ModelChain(model, METHODS[key](), Generator(SFC64(SeedSequence(4))))
    for _ in range(3):
        run.advance()
    x, seen = formula(UNKNOWNS, key)(run.state), run.snapshot()
    n, k = 15, 3
    w, r = x[: n * k].reshape(n, k), x[n * k : n * k + k]
    assert seen["W"] == pytest.approx(w)
    assert seen["r"] == pytest.approx(r)
    assert len(seen["shown"]) == 6
    for a, i in enumerate(seen["shown"]):
        for b, j in enumerate(seen["shown"]):
            rate = sum(r[z] * w[i, z] * w[j, z] for z in range(k))
            assert seen["P"][a, b] == pytest.approx(1 - exp(-rate) if i != j else 0.0, abs=1e-12)
    through = [[r[z] * w[i, z] * sum(w[j, z] for j in range(n)) for z in range(k)] for i in range(n)]
    assert seen["community"].tolist() == np.argmax(through, axis=1).tolist()


@pytest.mark.parametrize("key", samplers_of("topics"))
def test_a_topic_models_snapshot_by_its_formulas(key):
    model = small_model(key)
    run = ModelChain(model, METHODS[key](**({"batch_size": 3})), Generator(SFC64(SeedSequence(4))))
    for _ in range(3):
        run.advance()
    state, seen, data = run.state, run.snapshot(), model.training
    weights = state.weights[:, :3] + (model.beta if key == "collapsed_gibbs" else 0.0)
    phi = (weights / weights.sum(axis=0)).T
    assert seen["phi"] == pytest.approx(phi)
    assert seen["topic_shares"] == pytest.approx([(state.topics == k).mean() for k in range(3)])
    assert seen["documents"].tolist() == state.batch.tolist()
    for row, d in zip(seen["proportions"], state.batch, strict=True):
        own = state.topics[data.offsets[d] : data.offsets[d + 1]]
        assert row == pytest.approx([((own == k).sum() + 0.4) / (len(own) + 3 * 0.4) for k in range(3)])
    for k in range(3):
        assert seen["top_probabilities"][k] == pytest.approx(np.sort(phi[k])[::-1])
        assert phi[k][seen["top_words"][k]] == pytest.approx(seen["top_probabilities"][k])
    if key != "collapsed_gibbs":
        # Counts are shown by a draw instead.
        due = np.histogram(np.clip(np.log10(phi), -16, 0), np.linspace(-16, 0, 65))[0]
        assert seen["sparsity"].tolist() == due.tolist()
