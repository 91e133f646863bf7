"""Compiled draws and steps against their formulas in plain Python, on the same generator, over the registries.

A law that is off by half a per cent passes every statistical gate that a test suite has time for. Number for number
it does not. Targets and methods have their formulas in their own files.
"""

import sys
from math import exp, log

import numpy as np
import pytest
from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers import engine
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.models import METHODS, Method
from sgmcmc_lab.samplers.models.network import model as network_model
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.models.topics.method import TopicMethod
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each, of_a_long_run
from tests.helpers.checks_methods import check_step, missing, small_model, step_error
from tests.helpers.checks_samplers import reference_draws
from tests.helpers.checks_targets import check_textbook_draw, draw_error


@pytest.mark.slow
@for_each("key", list(TARGETS), apart=lambda key: key if of_a_long_run(key) else "others")
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


@pytest.mark.slow
@for_each("key", list(METHODS), apart=lambda key: METHODS[key].model)
def test_steps_are_their_formula(key):
    check_step(key)


def test_what_a_method_does_not_declare_is_named():
    class Bare(Method):
        pass

    class BareTopics(TopicMethod):
        pass

    assert missing(Bare) == [f"Bare declares no {name}" for name in ("tried_at", "textbook_step", "textbook_unknowns")]
    assert missing(BareTopics) == [
        f"BareTopics declares no {name}" for name in ("tried_at", "textbook_step", "exact_at")
    ]


RULES = [
    # A rule, the sampler, target and gradient whose kernel follows it, and the method for topics that does.
    ("sgld_step", "sgld", "gaussian", "gaussian", "lda_sgld"),
    ("sgrld_step", "sgrld", "gamma", "full", "lda_sgrld"),
    ("sghmc_kick", "sghmc", "gaussian", "full", "lda_sghmc"),
    ("transition", "cir", "gamma", "full", "lda_scir"),
    ("transition", "scir", "sparse_dirichlet", "minibatch", "lda_scir"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "s", "t", "g", "key"), RULES)
def test_an_update_rule_stands_once(rule, s, t, g, key, monkeypatch):
    """A fault planted in the rule shows in the sampler and in the method for topics, and each is right without it."""
    sampler, method = SAMPLERS[s], METHODS[key]
    runs = [engine.Run(RunSpec.of(t, s, g, n_chains=2, burn_in=5, seed=17)) for _ in range(2)]
    expected = reference_draws(runs[0], 5)[:, -1]
    # As runs have for the sampler: with the rule in plain Python below nothing that calls it would compile.
    jit.prepare(method.compiled)
    kernel_file, method_file = (sys.modules[cls.__module__] for cls in (sampler, method))
    # The interpreter runs what is compiled, so that the rule may be exchanged.
    for module in (engine, kernel_file, method_file):
        for name, value in vars(module).items():
            if hasattr(value, "py_func"):
                monkeypatch.setattr(module, name, value.py_func)
    monkeypatch.setattr(sampler, "advance", staticmethod(kernel_file.advance))
    if hasattr(method_file, "step"):
        monkeypatch.setattr(method, "step", staticmethod(method_file.step))

    def errors(run):
        run.advance(5)
        return [np.abs(run.position - expected).max(), *(step_error(method(**each), 1) for each in method.tried_at)]

    assert max(errors(runs[0])) < 1e-8
    right = getattr(kernel_file, rule)
    for module in (kernel_file, method_file):
        monkeypatch.setattr(module, rule, lambda *args: right(*args) * (1 + 1e-4))
    assert min(errors(runs[1])) > 1e-6


SCHEDULED = [key for key in samplers_of("topics") if hasattr(METHODS[key], "decay_power")]


@for_each("batch_size", [1, 4])
@for_each("key", SCHEDULED)
def test_step_sizes_decay_by_steps(key, batch_size):
    """h(1 + m/τ)^−κ with m the number of steps, whatever part of the corpus a step looks at."""
    used = []

    class Watched(METHODS[key]):
        def packed(self, step_size):
            used.append(step_size)
            return super().packed(step_size)

    h, tau, kappa = 1e-4, 2.5, 0.8
    method = Watched(batch_size=batch_size, step_size=h, decay_steps=tau, decay_power=kappa, sweeps=1)
    model = small_model(METHODS[key])
    run = ModelChain(model, method, Generator(SFC64(1)))
    for _ in range(8):
        run.method.advance(model, run.state, run.rng)
    due = h * (1 + np.arange(8) / tau) ** -kappa
    assert used == pytest.approx(due, rel=1e-12, abs=0)
    # Planted fault: by epochs.
    assert used != pytest.approx(
        h * (1 + np.arange(8) * batch_size / model.training.n_documents / tau) ** -kappa, rel=1e-3
    )


# Snapshots of methods


# The relational model is another model of the graph; its own file has its formulas.
@pytest.mark.parametrize("key", [key for key in samplers_of("network") if key != "network_irm"])
def test_a_networks_snapshot_by_its_formulas(key, monkeypatch):
    # Of 15 nodes 6 are shown.
    monkeypatch.setattr(network_model, "MAX_SHOWN", 6)
    model = small_model(METHODS[key])
    run = ModelChain(model, METHODS[key](), Generator(SFC64(4)))
    for _ in range(3):
        run.advance()
    x, seen = run.method.textbook_unknowns(model, run.state), run.snapshot()
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
    each = [sum(r[z] * w[i, z] * w[j, z] for i in range(n) for j in range(i)) for z in range(k)]
    assert seen["explained"] == pytest.approx(each)
    shares = sorted((e / sum(each) for e in each), reverse=True)
    used = exp(-sum(s * log(s) for s in shares if s > 0))
    assert run.method.follow(model, run.state) == pytest.approx([sum(each), used, *shares[:2]])
    assert len(model.followed) == len(model.columns) == 4


@for_each("key", samplers_of("topics"))
def test_a_topic_models_snapshot_by_its_formulas(key):
    model = small_model(METHODS[key])
    run = ModelChain(model, METHODS[key](batch_size=3), Generator(SFC64(4)))
    for _ in range(3):
        run.advance()
    state, seen, data = run.state, run.snapshot(), model.training
    weights = run.method.textbook_unknowns(model, state)
    phi = (weights / weights.sum(axis=0)).T
    assert seen["phi"] == pytest.approx(phi)
    assert seen["topic_shares"] == pytest.approx([(state.topics == k).mean() for k in range(3)])
    shares = sorted(((state.topics == k).mean() for k in range(3)), reverse=True)
    used = exp(-sum(s * log(s) for s in shares if s > 0))
    assert run.method.follow(model, state) == pytest.approx([used, *shares])
    assert seen["documents"].tolist() == state.batch.tolist()
    for row, d in zip(seen["proportions"], state.batch, strict=True):
        own = state.topics[data.offsets[d] : data.offsets[d + 1]]
        assert row == pytest.approx([((own == k).sum() + 0.4) / (len(own) + 3 * 0.4) for k in range(3)])
    for k in range(3):
        assert seen["top_probabilities"][k] == pytest.approx(np.sort(phi[k])[::-1])
        assert phi[k][seen["top_words"][k]] == pytest.approx(seen["top_probabilities"][k])
    if run.method.prior(model) == 0:
        # Counts are shown by a draw instead.
        due = np.histogram(np.clip(np.log10(phi), -16, 0), np.linspace(-16, 0, 65))[0]
        assert seen["sparsity"].tolist() == due.tolist()
