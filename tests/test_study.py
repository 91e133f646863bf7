"""Studies as untrusted input, and their runs: what is right survives every codec and gives the same draws again."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samplers.choices import MAX_JSON, MAX_QUERY
from samplers.models import METHODS, MODELS
from samplers.models.study import MAX_METHODS, SCORE_SPACING, Study, default_methods, methods_of
from samplers.parameters import SpecError
from tests.test_spec import params_of

SMALL = {"corpus": "bars", "n_topics": 5}


@st.composite
def studies(draw):
    model = draw(st.sampled_from(list(MODELS)))
    keys = draw(st.lists(st.sampled_from(methods_of(model)), min_size=1, max_size=MAX_METHODS))
    methods = [{"key": key, "params": draw(params_of(METHODS[key]))} for key in keys]
    return Study.from_dict(
        {
            "model": {"key": model, "params": draw(params_of(MODELS[model]))},
            "methods": methods,
            "seed": draw(st.integers(0, 2**32 - 1)),
        }
    )


@settings(max_examples=50)
@given(studies())
def test_json_and_back(study):
    assert Study.from_json(study.to_json()) == study
    assert Study.from_dict(json.loads(json.dumps(study.to_dict()))) == study


@settings(max_examples=50)
@given(studies())
def test_link_and_back(study):
    query = study.to_query()
    assert Study.from_query(query) == (study, [])
    assert Study.from_query("?" + query) == (study, [])


def test_every_part_of_a_study_is_in_its_link():
    one = Study.of("topics", {"lda_scir": {}}, seed=1)
    others = [
        Study.of("topics", {"lda_scir": {}}, seed=2),
        Study.of("topics", {"lda_sgrld": {}}, seed=1),
        Study.of("topics", {"lda_scir": {"step_size": 0.25}}, seed=1),
        Study.of("topics", {"lda_scir": {}}, seed=1, n_topics=21),
    ]
    assert len({x.to_query() for x in [one, *others]}) == 5


@pytest.mark.parametrize("model", MODELS)
def test_a_model_has_methods_and_an_empty_link_begins_with_three(model):
    assert len(methods_of(model)) >= 3
    study, messages = Study.from_query(f"model={model}")
    assert [m.key for m in study.methods] == [m["key"] for m in default_methods(model)] == methods_of(model)[:3]
    assert not messages


CHANGE = {"method": 1, "step": 4, "params": {"step_size": 0.1}}
GOOD = {"model": "topics", "methods": [{"key": "lda_scir"}], "seed": 1}
BAD = {
    "no object": ([], "study", "an object"),
    "no model": ({"methods": ["lda_scir"]}, "model", "this field is needed"),
    "an unknown model": (GOOD | {"model": "topic"}, "model", "topics"),
    "an unknown parameter": (GOOD | {"model": {"key": "topics", "params": {"k": 3}}}, "model.k", "n_topics"),
    "too many topics": (GOOD | {"model": {"key": "topics", "params": {"n_topics": 501}}}, "n_topics", "2 to 500"),
    "half a topic": (GOOD | {"model": {"key": "topics", "params": {"n_topics": 2.5}}}, "n_topics", "a whole number"),
    "an unknown corpus": (GOOD | {"model": {"key": "topics", "params": {"corpus": "x"}}}, "corpus", "reuters, bars"),
    "no methods": (GOOD | {"methods": []}, "methods", "1 to 6"),
    "seven methods": (GOOD | {"methods": ["lda_scir"] * 7}, "methods", "1 to 6"),
    "methods as text": (GOOD | {"methods": "lda_scir"}, "methods", "1 to 6"),
    "an unknown method": (GOOD | {"methods": ["scir"]}, "method", "lda_scir"),
    "a method's value": (GOOD | {"methods": [{"key": "lda_scir", "params": {"step_size": -1}}]}, "step_size", "0.0001"),
    "not a number": (GOOD | {"methods": [{"key": "lda_scir", "params": {"step_size": "nan"}}]}, "step_size", "number"),
    "a negative seed": (GOOD | {"seed": -1}, "seed", "0 to"),
    "an unknown field": (GOOD | {"lanes": 1}, "lanes", "model, methods, seed"),
    "too many seeds": (GOOD | {"seeds": 6}, "seeds", "1 to 5"),
    "steps of two methods": (GOOD | {"n_steps": [3, 4]}, "n_steps", "one for each of the 1 methods"),
    "half a step": (GOOD | {"n_steps": 0.5}, "n_steps", "a whole number"),
    "changes as text": (GOOD | {"changes": "x"}, "changes", "a list of up to 1000"),
    "too many changes": (GOOD | {"changes": [{}] * 1001}, "changes = 1001", "a list of up to 1000"),
    "a change of nothing": (GOOD | {"changes": [3]}, "changes", "an object"),
    "a change of the model": (GOOD | {"changes": [CHANGE | {"model": 1}]}, "changes.model", "method, step and params"),
    "a change without a step": (GOOD | {"changes": [{"method": 1}]}, "changes.step", "whole number"),
    "a change of no method": (GOOD | {"changes": [CHANGE | {"method": 2}]}, "changes.method", "from 1 to 1"),
    "a change to what is not allowed": (
        GOOD | {"changes": [CHANGE | {"params": {"step_size": 99}}]},
        "step_size",
        "10",
    ),
    "changes in another order": (
        GOOD | {"changes": [CHANGE | {"step": 5}, CHANGE]},
        "changes.step",
        "its last was at 5",
    ),
}


@pytest.mark.parametrize(("data", "field", "allowed"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_named(data, field, allowed):
    with pytest.raises(SpecError) as caught:
        Study.from_dict(data)
    assert field in str(caught.value)
    assert allowed in str(caught.value)


def test_the_good_one_is_good():
    assert Study.from_dict(GOOD).methods[0].key == "lda_scir"


def test_a_file_holds_what_happened_and_a_link_does_not():
    data = GOOD | {"methods": ["lda_scir", "lda_sgrld"], "seeds": 2, "n_steps": [7, 9], "changes": [CHANGE]}
    study = Study.from_dict(data)
    assert Study.from_json(study.to_json()) == study
    assert (study.seeds, study.n_steps) == (2, (7, 9))
    assert [one.seed for one in study.of_seeds()] == [1, 2]
    assert study.changes[0].choice.values()["step_size"] == 0.1
    assert Study.from_query(study.to_query()) == (
        Study.from_dict({k: data[k] for k in ("model", "methods", "seed")}),
        [],
    )
    assert Study.from_dict(data | {"n_steps": 7}).n_steps == (7, 7)


@pytest.mark.parametrize("text", ["", "{", "[1]", "{" * 100_000, "9" * 5000, " " * (MAX_JSON + 1)])
def test_json_that_holds_no_study_is_refused(text):
    with pytest.raises(SpecError):
        Study.from_json(text)


def test_a_link_is_mended_and_says_so():
    study, messages = Study.from_query(
        "model=topics(n_topics:1000;corpus:bars;x:1)&method=scir&method=lda_scir(step_size:99)&seed=x"
    )
    assert study.model.values()["n_topics"] == 500
    assert study.model.values()["corpus"] == "bars"
    assert [m.key for m in study.methods] == [methods_of("topics")[0], "lda_scir"]
    assert study.methods[1].values()["step_size"] == 10.0
    assert study.seed == 1
    for part in ("n_topics = '1000'", "model.x", "method = 'scir'", "step_size", "seed"):
        assert any(part in message for message in messages), (part, messages)


def test_a_link_that_is_too_long_is_said_and_not_read():
    study, messages = Study.from_query("model=topics&x=" + "9" * MAX_QUERY)
    assert "characters" in messages[0]
    assert study.model.key == next(iter(MODELS))


@settings(max_examples=100)
@given(st.text(max_size=200))
def test_no_link_crashes(text):
    study, _ = Study.from_query("model=topics&method=" + text)
    assert Study.from_query(study.to_query()) == (study, [])


# Runs


def draws(study, steps):
    """What each run has after so many steps: the arrays of its snapshot, and its scores but for the clock."""
    out = []
    for run in study.runs(study.make_model()):
        while run.steps < steps:
            run.advance()
        snapshot = {name: np.asarray(value) for name, value in run.snapshot().items()}
        out.append((snapshot, [(s.step, s.data_seen, s.value) for s in run.scores]))
    return out


def same(a, b):
    return a[1] == b[1] and all(np.array_equal(a[0][name], b[0][name]) for name in a[0])


def test_the_same_study_gives_the_same_draws():
    study = Study.of("topics", {"collapsed_gibbs": {}, "lda_scir": {}}, **SMALL)
    one, two = draws(study, 12), draws(Study.from_query(study.to_query())[0], 12)
    assert all(same(a, b) for a, b in zip(one, two, strict=True))
    other = draws(Study.of("topics", {"collapsed_gibbs": {}, "lda_scir": {}}, seed=2, **SMALL), 12)
    assert not any(same(a, b) for a, b in zip(one, other, strict=True))


def test_equal_methods_have_generators_of_their_own():
    study = Study.from_dict(
        {"model": {"key": "topics", "params": SMALL}, "methods": ["collapsed_gibbs", "collapsed_gibbs"]}
    )
    one, two = draws(study, 5)
    assert not same(one, two)


def test_taking_the_score_or_a_snapshot_more_often_changes_no_draw():
    study = Study.of("topics", {"lda_sgrld": {}}, **SMALL)
    model = study.make_model()
    (calm,), (watched,) = study.runs(model), study.runs(model)
    for _ in range(8):
        calm.advance()
        watched.advance()
        watched.score()
        watched.snapshot()
    assert np.array_equal(calm.state.weights, watched.state.weights)


def test_scores_are_taken_at_steps_evenly_spaced_on_a_log_axis():
    (run,) = Study.of("topics", {"collapsed_gibbs": {"batch_size": 10}}, **SMALL).runs(Study.of("topics", {"collapsed_gibbs": {}}, **SMALL).make_model())  # fmt: skip
    for _ in range(200):
        run.advance()
    steps = [s.step for s in run.scores]
    assert steps[:6] == [0, 1, 2, 3, 4, 5]
    assert all(b >= min(a * SCORE_SPACING, a + 1) and b <= a * SCORE_SPACING + 1 for a, b in itertools.pairwise(steps[1:]))  # fmt: skip
    assert [s.data_seen for s in run.scores] == [10 * step for step in steps]
    assert all(np.diff([s.seconds for s in run.scores]) >= 0)


def test_a_change_goes_on_from_where_the_run_is():
    study = Study.of("topics", {"lda_scir": {}}, **SMALL)
    (run,) = study.runs(study.make_model())
    for _ in range(3):
        run.advance()
    before = run.state.weights.copy()
    run.change(Study.of("topics", {"lda_scir": {"step_size": 1e-4}}).methods[0])
    assert np.array_equal(run.state.weights, before)
    run.advance()
    assert run.steps == 4
    assert [(step, choice.values()["step_size"]) for step, choice in run.changes] == [(3, 1e-4)]
    # So small a step hardly moves what is large; the first step size would have redrawn it.
    large = before > 5
    assert np.abs(run.state.weights[large] / before[large] - 1).max() < 0.2


def test_a_method_that_leaves_the_numbers_stops_with_a_sentence():
    study = Study.of("topics", {"lda_sghmc": {"step_size": 1.0, "friction": 1e6}}, **SMALL)
    (run,) = study.runs(study.make_model())
    for _ in range(200):
        run.advance()
    assert run.divergence is not None
    assert "SGHMC" in run.divergence.message
    steps = run.steps
    run.advance()
    assert run.steps == steps
    assert all(np.isfinite(s.value) for s in run.scores)
