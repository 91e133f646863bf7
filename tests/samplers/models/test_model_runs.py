"""Experiments on models of data: every codec keeps them, untrusted input is refused, runs give the same draws again."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgmcmc_lab.samplers import Change, Choice, Experiment
from sgmcmc_lab.samplers.lanes import OWN_GRADIENT, first_lanes, max_lanes, samplers_of
from sgmcmc_lab.samplers.models import METHODS, MODELS
from sgmcmc_lab.samplers.models.run import SCORE_SPACING, run_models, start
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.cases import for_each
from tests.helpers.strategies import params_of

SMALL = {"corpus": "bars", "n_topics": 5}
NOWHERE = Experiment.of("gaussian", {"sgld": {}})
"""The default against which links are read."""


def on_bars(*methods, **settings):
    """An experiment on a few bars, with methods as names or (name, values)."""
    listed = [(method, {}) if isinstance(method, str) else method for method in methods]
    lanes = [{"sampler": {"key": key, "params": values}} for key, values in listed]
    return Experiment.from_dict({"target": {"key": "topics", "params": SMALL}, "lanes": lanes, **settings})


@st.composite
def experiments(draw):
    model = draw(st.sampled_from(list(MODELS)))
    keys = draw(st.lists(st.sampled_from(samplers_of(model)), min_size=1, max_size=max_lanes(model)))
    lanes = [{"sampler": {"key": key, "params": draw(params_of(METHODS[key]))}} for key in keys]
    target = {"key": model, "params": draw(params_of(MODELS[model]))}
    seed, n_chains = draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, 5))
    return Experiment.from_dict({"target": target, "lanes": lanes, "seed": seed, "n_chains": n_chains})


@pytest.mark.slow
@settings(max_examples=50)
@given(experiments())
def test_json_and_back(experiment):
    assert Experiment.from_json(experiment.to_json()) == experiment
    assert Experiment.from_dict(json.loads(json.dumps(experiment.to_dict()))) == experiment


@pytest.mark.slow
@settings(max_examples=50)
@given(experiments())
def test_link_and_back(experiment):
    query = experiment.to_query()
    assert Experiment.from_query(query, NOWHERE) == (experiment, [])
    assert Experiment.from_query("?" + query, NOWHERE) == (experiment, [])


@for_each("model", MODELS)
def test_a_model_has_methods_and_an_empty_link_begins_with_three(model):
    assert len(samplers_of(model)) >= 3
    experiment, messages = Experiment.from_query(f"target={model}", NOWHERE)
    assert [{"sampler": lane.sampler.key} for lane in experiment.lanes] == first_lanes(model)
    assert len(experiment.lanes) == 3
    assert not messages


CHANGE = {"step": 4, "sampler": {"key": "lda_scir", "params": {"step_size": 0.1}}}
GOOD = {"target": "topics", "lanes": [{"sampler": "lda_scir"}], "seed": 1}


def lane(**fields):
    return GOOD | {"lanes": [{"sampler": "lda_scir"} | fields]}


BAD = {
    "an unknown parameter": (GOOD | {"target": {"key": "topics", "params": {"k": 3}}}, "target.k", "n_topics"),
    "too many topics": (GOOD | {"target": {"key": "topics", "params": {"n_topics": 501}}}, "n_topics", "2 to 500"),
    "half a topic": (GOOD | {"target": {"key": "topics", "params": {"n_topics": 2.5}}}, "n_topics", "a whole number"),
    "an unknown corpus": (
        GOOD | {"target": {"key": "topics", "params": {"corpus": "x"}}},
        "corpus",
        "reuters, docstrings, bars",
    ),
    "no lanes": (GOOD | {"lanes": []}, "lanes", "1 to 6"),
    "seven lanes": (GOOD | {"lanes": [{"sampler": "lda_scir"}] * 7}, "lanes", "1 to 6"),
    "an unknown method": (lane(sampler="lda"), "sampler", "lda_scir"),
    "a kernel": (lane(sampler="scir"), "sampler", "these do: collapsed_gibbs"),
    "another model's method": (lane(sampler="network_gibbs"), "sampler", "these do: collapsed_gibbs"),
    "a gradient": (lane(gradient="full"), "lane.gradient", "sampler, changes, n_steps"),
    "a method's value": (lane(sampler={"key": "lda_scir", "params": {"step_size": -1}}), "step_size", "0.0001"),
    "a burn-in": (GOOD | {"burn_in": 3}, "burn_in", "lanes, n_chains, n_steps, seed, target"),
    "too many runs": (GOOD | {"n_chains": 6}, "n_chains", "1 to 5"),
    "half a step": (GOOD | {"n_steps": 0.5}, "n_steps", "a whole number"),
    "half a lane's step": (lane(n_steps=0.5), "lane.n_steps", "a whole number"),
    "a lane's steps on a density": (
        {"target": "gaussian", "lanes": [{"sampler": "sgld", "n_steps": 3}]},
        "lane.n_steps",
        "sampler, gradient, schedule, changes",
    ),
    "a density's method": ({"target": "gaussian", "lanes": [{"sampler": "lda_scir"}]}, "sampler", "these do: sgld"),
    "changes as text": (lane(changes="x"), "changes", "a list of up to 1000"),
    "too many changes": (lane(changes=[{}] * 1001), "changes = 1001", "a list of up to 1000"),
    "a change of nothing": (lane(changes=[3]), "changes", "an object"),
    "a change of the target": (lane(changes=[CHANGE | {"target": "topics"}]), "changes.target", "step, sampler"),
    "a change without a step": (lane(changes=[{"sampler": "lda_scir"}]), "changes.step", "whole number"),
    "a change of the method": (lane(changes=[CHANGE | {"sampler": "lda_sgrld"}]), "changes.sampler", "lda_scir"),
    "changes in another order": (lane(changes=[CHANGE | {"step": 5}, CHANGE]), "changes.step", "the last was at 5"),
}


@for_each(("data", "field", "allowed"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_named(data, field, allowed):
    with pytest.raises(SpecError) as caught:
        Experiment.from_dict(data)
    assert field in str(caught.value)
    assert allowed in str(caught.value)


def test_the_good_one_is_good():
    assert Experiment.from_dict(GOOD).lanes[0].sampler.key == "lda_scir"


def test_a_file_holds_what_happened_and_a_link_does_not():
    lanes = [{"sampler": "lda_scir", "n_steps": 7, "changes": [CHANGE]}, {"sampler": "lda_sgrld"}]
    data = GOOD | {"lanes": lanes, "n_chains": 2, "n_steps": 9}
    experiment = Experiment.from_dict(data)
    assert Experiment.from_json(experiment.to_json()) == experiment
    assert [run.n_steps for run in experiment.runs()] == [7, 9]
    assert experiment.lanes[0].changes[0].sampler.values()["step_size"] == 0.1
    plain = Experiment.from_dict(data | {"lanes": [{"sampler": "lda_scir"}, {"sampler": "lda_sgrld"}]})
    assert Experiment.from_query(experiment.to_query(), NOWHERE) == (plain, [])


def test_a_link_is_mended_and_says_so():
    experiment, messages = Experiment.from_query(
        "target=topics(n_topics:1000;corpus:bars;x:1)&lane=scir&lane=lda_scir(step_size:99)~full&seed=x&burn_in=3",
        NOWHERE,
    )
    assert experiment.target.values()["n_topics"] == 500
    assert experiment.target.values()["corpus"] == "bars"
    assert [lane.sampler.key for lane in experiment.lanes] == [samplers_of("topics")[0], "lda_scir"]
    assert experiment.lanes[1].sampler.values()["step_size"] == 10.0
    assert experiment.seed == 1
    for part in ("n_topics = '1000'", "target.x", "sampler = 'scir'", "step_size", "lane.gradient", "seed", "burn_in"):
        assert any(part in message for message in messages), (part, messages)


@pytest.mark.slow
@settings(max_examples=100)
@given(st.text(max_size=200))
def test_no_link_crashes(text):
    experiment, _ = Experiment.from_query("target=topics&lane=" + text, NOWHERE)
    assert Experiment.from_query(experiment.to_query(), NOWHERE) == (experiment, [])


# Runs


def draws(experiment, steps):
    """The state of each chain of each lane after so many steps: its snapshot, and its scores without the times."""
    out = []
    for run in start(experiment, experiment.make_model()):
        run.advance(steps)
        for chain in run.chains:
            snapshot = {name: np.asarray(value) for name, value in chain.snapshot().items()}
            out.append((snapshot, [(s.step, s.data_seen, s.value) for s in chain.scores]))
    return out


def same(a, b):
    return a[1] == b[1] and all(np.array_equal(a[0][name], b[0][name]) for name in a[0])


@pytest.mark.slow
def test_the_same_experiment_gives_the_same_draws():
    experiment = on_bars("collapsed_gibbs", "lda_scir")
    one, two = draws(experiment, 12), draws(Experiment.from_query(experiment.to_query(), NOWHERE)[0], 12)
    assert all(same(a, b) for a, b in zip(one, two, strict=True))
    other = draws(on_bars("collapsed_gibbs", "lda_scir", seed=2), 12)
    assert not any(same(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.slow
def test_the_second_chain_is_the_first_of_the_next_seed():
    both, next_seed = (
        draws(on_bars("collapsed_gibbs", "lda_scir", n_chains=2), 5),
        draws(on_bars("collapsed_gibbs", "lda_scir", seed=2), 5),
    )
    assert same(both[1], next_seed[0])
    assert same(both[3], next_seed[1])
    assert not same(both[0], both[1])


def test_equal_methods_have_generators_of_their_own():
    one, two = draws(on_bars("collapsed_gibbs", "collapsed_gibbs"), 5)
    assert not same(one, two)


@pytest.mark.slow
def test_steps_in_pieces_or_whole_with_a_change_on_the_way_are_the_same():
    """The change holds from its step on in every chain, however it comes there; a step later it is another run."""

    def ends(step):
        lanes = [{"sampler": "lda_scir", "n_steps": 9, "changes": [CHANGE | {"step": step}]}]
        experiment = Experiment.from_dict({"target": {"key": "topics", "params": SMALL}, "lanes": lanes, "n_chains": 2})
        (whole,) = run_models(experiment)
        (live,) = start(on_bars("lda_scir", n_chains=2), whole.model)
        return whole, live

    whole, live = ends(4)
    live.advance(3)
    live.step(live.next)
    # One chain has made 4 steps, the other 3: the second makes its fourth as before.
    live.change(
        Change(0, Choice("lda_scir", tuple({**whole.spec.sampler.values(), "step_size": 0.1}.items())), OWN_GRADIENT)
    )
    live.advance(5)
    assert [chain.steps for chain in live.chains] == [9, 9]
    assert live.changes == whole.changes
    for a, b in zip(whole.chains, live.chains, strict=True):
        assert np.array_equal(a.state.weights, b.state.weights)
    later, _ = ends(5)
    for a, b in zip(whole.chains, later.chains, strict=True):
        assert not np.array_equal(a.state.weights, b.state.weights)


@pytest.mark.slow
def test_taking_the_score_or_a_snapshot_more_often_changes_no_draw():
    experiment = on_bars("lda_sgrld")
    model = experiment.make_model()
    calm, watched = (start(experiment, model)[0].chains[0] for _ in range(2))
    for _ in range(8):
        calm.advance()
        watched.advance()
        watched.score()
        watched.snapshot()
    assert np.array_equal(calm.state.weights, watched.state.weights)


@pytest.mark.slow
def test_scores_are_taken_at_steps_evenly_spaced_on_a_log_axis():
    experiment = on_bars(("collapsed_gibbs", {"batch_size": 10}))
    (run,) = start(experiment, experiment.make_model())
    run.advance(200)
    scores = run.chains[0].scores
    steps = [s.step for s in scores]
    assert steps[:6] == [0, 1, 2, 3, 4, 5]
    assert all(
        b >= min(a * SCORE_SPACING, a + 1) and b <= a * SCORE_SPACING + 1 for a, b in itertools.pairwise(steps[1:])
    )
    assert [s.data_seen for s in scores] == [10 * step for step in steps]
    assert all(np.diff([s.seconds for s in scores]) >= 0)


def test_a_change_goes_on_from_where_the_run_is():
    experiment = on_bars("lda_scir")
    (run,) = start(experiment, experiment.make_model())
    run.advance(3)
    before = run.chains[0].state.weights.copy()
    run.change(Change(0, on_bars(("lda_scir", {"step_size": 1e-4})).lanes[0].sampler, OWN_GRADIENT))
    assert np.array_equal(run.chains[0].state.weights, before)
    run.advance(1)
    assert run.steps == 4
    assert [(change.step, change.sampler.values()["step_size"]) for change in run.changes] == [(3, 1e-4)]
    # So small a step hardly moves what is large; the first step size would have redrawn it.
    large = before > 5
    assert np.abs(run.chains[0].state.weights[large] / before[large] - 1).max() < 0.2


@pytest.mark.slow
def test_of_several_changes_at_one_step_the_last_is_recorded():
    """A slider that is dragged on a paused page leaves one change, also for a chain that is a step behind."""
    (live,) = start(on_bars("lda_scir", n_chains=2), on_bars("lda_scir").make_model())
    live.advance(2)
    live.step(live.next)
    for k in range(2000):
        live.change(Change(0, on_bars(("lda_scir", {"step_size": 0.1 + k / 1e4})).lanes[0].sampler, OWN_GRADIENT))
    live.advance(3)
    assert [(change.step, change.sampler.values()["step_size"]) for change in live.changes] == [(3, 0.1 + 1999 / 1e4)]
    spec = live.spec.to_dict()
    data = {"target": spec["target"], "n_chains": 2, "n_steps": 6, "lanes": [{"sampler": spec["sampler"]}]}
    data["lanes"][0]["changes"] = [
        {"step": 3, "sampler": {"key": "lda_scir", "params": live.changes[0].sampler.values()}}
    ]
    (whole,) = run_models(Experiment.from_dict(data))
    for a, b in zip(whole.chains, live.chains, strict=True):
        assert np.array_equal(a.state.weights, b.state.weights)


@pytest.mark.slow
def test_a_method_that_leaves_the_numbers_stops_with_a_sentence():
    experiment = on_bars(("lda_sghmc", {"step_size": 1.0, "friction": 1e6}), n_chains=2)
    (run,) = start(experiment, experiment.make_model())
    run.advance(200)
    assert run.divergence is not None
    assert "SGHMC" in run.divergence.message
    steps = run.steps
    run.advance(1)
    assert run.next is None
    assert run.steps == steps
    assert all(np.isfinite(s.value) for chain in run.chains for s in chain.scores)
