"""The edge partition model and its methods, over the registry: likelihood, score, seeds, snapshots."""

import itertools

import numpy as np
import pytest
from scipy import stats

from sgmcmc_lab.samplers import Change, Choice, Experiment
from sgmcmc_lab.samplers.lanes import OWN_GRADIENT, samplers_of
from sgmcmc_lab.samplers.models import METHODS, MODELS
from sgmcmc_lab.samplers.models.network.graph import karate, read_upload
from sgmcmc_lab.samplers.models.network.model import auc, partners
from sgmcmc_lab.samplers.models.run import start as start_runs
from sgmcmc_lab.samplers.models.variational.positive import log_softplus, softplus, softplus_inverse, trace
from sgmcmc_lab.samplers.parameters import Count, Option, SpecError, declared
from tests.helpers.cases import for_each

KEYS = samplers_of("network")
SHOWN = {"r", "W", "community", "shown", "P"}


def network(**values):
    return MODELS["network"](**values)


# The joint density


def dense_log_joint(model, x):
    """log p(Y, x) pair by pair and prior by prior."""
    n, k = model.data.n_nodes, model.n_communities
    w, r = model.weights(x)
    a, c, (mass, rate) = x[-2 * n - 2 : -n - 2], x[-n - 2 : -2], x[-2:]
    y = model.data.adjacency()
    held = set(map(tuple, model.held.tolist()))
    total = 0.0
    for i, j in itertools.combinations(range(n), 2):
        if (i, j) not in held:
            p = (r * w[i] * w[j]).sum()
            total += np.log1p(-np.exp(-p)) if y[i, j] else -p
    total += stats.gamma.logpdf(w, a[:, None], scale=1 / c[:, None]).sum()
    total += stats.gamma.logpdf(a, model.a_prior, scale=1 / model.a_prior).sum() + stats.expon.logpdf(c).sum()
    total += stats.gamma.logpdf(r, mass / k, scale=1 / rate).sum()
    return total + stats.gamma.logpdf(mass, model.mass_prior, scale=1 / model.mass_prior) + stats.expon.logpdf(rate)


def some_x(model, seed=0):
    return np.random.default_rng(seed).gamma(2.0, 0.4, model.n_unknowns) + 0.05


def linear_log_joint(model, x):
    grad = np.empty_like(x)
    return model.log_joint(np.log(x), grad), grad


@pytest.fixture(scope="module")
def karate_model():
    return network(graph="karate", n_communities=3, a_prior=0.3, mass_prior=0.7)


def test_joint_is_the_sum_over_pairs(karate_model):
    x = some_x(karate_model)
    assert linear_log_joint(karate_model, x)[0] == pytest.approx(dense_log_joint(karate_model, x), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["r left out", "pairs counted twice", "held-out pairs counted"])
def test_faults_of_the_joint_are_caught(karate_model, fault):
    """The paper's formula, its code, and plausible slips."""
    x = some_x(karate_model)
    value = dense_log_joint(karate_model, x)
    faulty = x.copy()
    edges, held = karate_model.edges, karate_model.held
    try:
        if fault == "r left out":
            karate_model.weights(faulty)[1][:] = 1.0
        elif fault == "pairs counted twice":
            karate_model.edges = np.concatenate([edges, edges[:, ::-1]])
        else:
            karate_model.held = held[:0]
        assert linear_log_joint(karate_model, faulty)[0] != pytest.approx(value, abs=0.1)
    finally:
        karate_model.edges, karate_model.held = edges, held


def test_gradient_by_central_differences(karate_model):
    x = some_x(karate_model, 1)
    grad, width = linear_log_joint(karate_model, x)[1], 1e-5
    measured = np.empty_like(x)
    for d in range(len(x)):
        values = []
        for sign in (1, -1):
            moved = x.copy()
            moved[d] *= np.exp(sign * width)
            values.append(linear_log_joint(karate_model, moved)[0])
        measured[d] = (values[0] - values[1]) / (2 * width)
    np.testing.assert_allclose(grad, measured, rtol=1e-5, atol=1e-5)


# The score


def test_auc_counts_ties_half():
    rng = np.random.default_rng(3)
    scores, truth = rng.integers(0, 6, 40).astype(float), rng.random(40) < 0.4
    pairs = [(a > b) + (a == b) / 2 for a in scores[truth] for b in scores[~truth]]
    assert auc(scores, truth) == pytest.approx(np.mean(pairs), abs=1e-12)
    assert auc(np.zeros(40), truth) == 0.5


def test_partners():
    first, other = partners(np.array([[0, 2], [1, 2], [2, 3]]), 5)
    assert [sorted(other[first[i] : first[i + 1]]) for i in range(5)] == [[2], [2], [0, 1, 3], [2], []]


def test_softplus():
    theta = np.array([-900.0, -40.0, -29.9, -1.0, 0.0, 50.0])
    np.testing.assert_allclose(log_softplus(theta[2:]), np.log(softplus(theta[2:])), rtol=1e-13)
    np.testing.assert_allclose(log_softplus(theta[:2]), theta[:2], rtol=1e-15)
    np.testing.assert_allclose(softplus_inverse(softplus(theta[1:])), theta[1:], rtol=1e-10, atol=1e-12)


def test_trace_keeps_the_mean():
    from array import array

    values = array("d", np.arange(1007.0))
    curve = trace(values)
    assert len(curve["elbo"]) == 400 and curve["elbo_steps"][-1] == 1007
    lengths = np.diff(curve["elbo_steps"], prepend=0)
    assert (curve["elbo"] * lengths).sum() == pytest.approx(sum(values))
    assert len(trace(array("d"))["elbo"]) == 0


# The model


def test_facts_and_limits():
    facts = network(graph="karate").facts()
    assert facts["nodes"] == "34" and facts["edges"].startswith("78 of 561") and facts["known groups"].startswith("2:")
    with pytest.raises(SpecError, match="no file has been uploaded"):
        network(graph="uploaded")
    with pytest.raises(SpecError, match=r"model\.n_communities"):
        network(n_communities=0)
    with pytest.raises(SpecError, match=r"allowed is one of karate"):
        network(graph="nips")


def test_an_uploaded_graph_is_the_models_own():
    text = "\n".join(f"{i},{j}" for i, j in karate().edges)
    uploaded = read_upload("k.csv", text.encode())
    ours = MODELS["network"](uploaded, graph="uploaded")
    built_in = network(graph="karate")
    assert (ours.edges == built_in.edges).all() and (ours.held == built_in.held).all()


def test_a_large_graph_is_shown_by_a_sample():
    rng = np.random.default_rng(0)
    text = "\n".join(f"{i},{rng.integers(i)}" for i in range(1, 500))
    experiment = Experiment.of(
        "network", {"network_gibbs": {}}, target_params={"graph": "uploaded", "n_communities": 3}
    )
    (run,) = start_runs(experiment, experiment.make_model(read_upload("tree.csv", text.encode())))
    shown = run.chains[0].snapshot()
    assert shown["P"].shape == (300, 300) and shown["W"].shape == (500, 3) and len(set(shown["shown"])) == 300
    i, j = shown["shown"][[3, 7]]
    rate = (shown["r"] * shown["W"][i] * shown["W"][j]).sum()
    assert shown["P"][3, 7] == pytest.approx(1 - np.exp(-rate))


# Every method


def start_run(key, seed=1, **values):
    of_model = {"graph": "blocks", "n_communities": 6}
    experiment = Experiment.of("network", {key: values}, target_params=of_model, seed=seed)
    return start_runs(experiment, experiment.make_model())[0]


def start(key, seed=1, **values):
    return start_run(key, seed, **values).chains[0]


@for_each("key", KEYS)
def test_same_seed_same_draws(key):
    def after(seed):
        run = start(key, seed)
        for step in range(12):
            run.advance()
            if step == 5:
                run.snapshot()
        return run.snapshot(), run.scores

    first, again, other = after(1), after(1), after(2)
    for name in first[0]:
        assert (first[0][name] == again[0][name]).all(), name
    assert [s.value for s in first[1]] == [s.value for s in again[1]]
    assert (first[0]["W"] != other[0]["W"]).any()


@for_each("key", KEYS)
def test_snapshot(key):
    run = start(key)
    for _ in range(3):
        run.advance()
    shown = run.snapshot()
    assert set(shown) >= SHOWN
    assert shown["r"].shape == (6,) and shown["W"].shape == (60, 6) and shown["P"].shape == (60, 60)
    assert (shown["W"] >= 0).all() and np.isfinite(shown["W"]).all() and ((shown["P"] >= 0) & (shown["P"] <= 1)).all()
    assert (shown["P"] == shown["P"].T).all() and not shown["P"].diagonal().any()
    links = np.einsum("k,ik,jk->ik", shown["r"], shown["W"], shown["W"])
    assert (shown["community"] == links.argmax(axis=1)).all()
    kept = shown["W"].copy()
    for _ in range(3):
        run.advance()
    assert (shown["W"] == kept).all(), "a snapshot is a copy"


STEPS = {"network_gibbs": 200, "network_hmc": 250, "network_irm": 200}


@pytest.mark.slow
@pytest.mark.parametrize("key", [key for key in KEYS if key != "network_map"])
def test_score_rises_on_the_block_graph(key):
    """From a random order of the pairs to one that knows the blocks. The best that can be known is 0.83."""
    run = start(key)
    for _ in range(STEPS.get(key, 1000)):
        run.advance()
    assert run.divergence is None
    values = [score.value for score in run.scores]
    assert np.isfinite(values).all() and 0.25 < values[0] < 0.75
    assert values[-1] > values[0] + 0.2
    assert values[-1] > 0.7


@pytest.mark.slow
def test_map_has_no_good_mode_in_any_coordinates():
    """As its docstring says: in x it climbs without end. In log x it comes to rest where no community is left."""
    gains, spreads = {}, {}
    for density in ("x", "log x"):
        run = start("network_map", density=density)
        for _ in range(2000):
            run.advance()
        assert run.divergence is None and np.isfinite([score.value for score in run.scores]).all()
        gains[density] = run.state.log_joint[-1] - run.state.log_joint[-500]
        w = run.snapshot()["W"]
        spreads[density] = (w.std(axis=1) / w.mean(axis=1)).mean()
    assert gains["x"] > 1e4 and spreads["x"] > 1
    assert 0 < gains["log x"] < 20 and spreads["log x"] < 0.1


def test_scoring_changes_no_draw():
    for key in KEYS:
        scored, plain = start(key), start(key)
        for _ in range(5):
            for run in (scored, plain):
                run.method.advance(run.model, run.state, run.rng)
            scored.method.score(scored.model, scored.state)
        assert (scored.snapshot()["W"] == plain.snapshot()["W"]).all(), key


def test_a_link_holds_the_experiment():
    methods = {key: {} for key in KEYS} | {"network_map": {"density": "log x"}}
    of_model = {"graph": "davis", "n_communities": 4, "held_out": 0.3}
    experiment = Experiment.of("network", methods, target_params=of_model, seed=4)
    assert Experiment.from_query(experiment.to_query(), Experiment.of("gaussian", {"sgld": {}})) == (experiment, [])


def other_value(parameter):
    if isinstance(parameter, Option):
        return next(value for value in parameter.objects if value != parameter.default)
    return parameter.default // 2 if isinstance(parameter, Count) else parameter.default * 0.7


@pytest.mark.slow
@for_each(("key", "name"), [(key, name) for key in KEYS for name, _ in declared(METHODS[key])])
def test_every_parameter_may_change_while_it_runs(key, name):
    """From that step on the draws are others; nothing jumps, and what was there before is kept."""
    changed, plain = start_run(key), start_run(key)
    for run in (changed, plain):
        run.advance(20)
    before = weights(changed)
    choice = Choice(key, ((name, other_value(METHODS[key].param[name])),))
    changed.change(Change(0, choice, OWN_GRADIENT))
    assert (weights(changed) == before).all()
    for run in (changed, plain):
        run.advance(1)
    assert np.median(np.abs(np.log(weights(changed) / before))) < 0.5
    for run in (changed, plain):
        run.advance(20)
    assert changed.divergence is None
    assert (changed.chains[0].snapshot()["P"] != plain.chains[0].snapshot()["P"]).any()


def weights(run):
    # The smallest change nothing that is seen, and those of the IRM are 0 or 1.
    return run.chains[0].snapshot()["W"] + 1e-9


@pytest.mark.parametrize("key", ["network_sgvb", "network_norm_sgvb"])
def test_too_large_a_step_ends_in_a_sentence(key):
    run = start(key, optimiser="sgd", step_size=10.0, momentum=0.0)
    for _ in range(300):
        run.advance()
    assert run.divergence is not None
    assert "no longer finite" in run.divergence.message and "step size" in run.divergence.message


def test_hmc_rejects_what_is_not_finite():
    run = start("network_hmc", step_size=1.0, n_leapfrog=200)
    for _ in range(20):
        run.advance()
    assert run.divergence is None and run.snapshot()["accepted"] == 0
