"""The spec as untrusted input: what is right survives every codec, what is wrong gets a sentence and never a crash."""

import dataclasses
import json
import random
import string
from urllib.parse import parse_qsl, quote

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from sgmcmc_lab.samplers import engine
from sgmcmc_lab.samplers.experiment import Experiment, RunSpec
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS, Sampler
from sgmcmc_lab.samplers.kernels.recipe import parameters_of
from sgmcmc_lab.samplers.lanes import max_lanes
from sgmcmc_lab.samplers.link import MAX_QUERY
from sgmcmc_lab.samplers.parameters import SpecError, declared
from sgmcmc_lab.samplers.reader import MAX_JSON
from sgmcmc_lab.samplers.recipe.presets import PRESETS
from sgmcmc_lab.samplers.settings import Settings
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.base import MANIFOLD, POSITIVE
from tests.helpers.cases import for_each, of_a_long_run
from tests.helpers.checks_samplers import OFFERED
from tests.helpers.strategies import params_of

DEFAULT = Experiment.from_dict({"target": "gaussian", "lanes": [{"sampler": "sgld"}]})


def experiment(t, lanes, **settings):
    return Experiment.from_dict({"target": t, "lanes": lanes, **settings})


@st.composite
def recipes(draw, target):
    """Parameters of a recipe that fit the target: a preset's, some with a component of the drift typed by hand."""
    fitting = [x for x in PRESETS.values() if target.dim in x.dims and (target.support == POSITIVE or not x.positive)]
    made = parameters_of(draw(st.sampled_from(fitting)).recipe(target.dim, target.formula()))
    names = {"theta": 1, "theta_r": 2, "theta_r_xi": 2}[made["layout"]] * target.dim + (made["layout"] == "theta_r_xi")
    drift = draw(st.lists(st.sampled_from(["", "0", "-(2 + 1e-3)^2", "exp( U )"]), min_size=names, max_size=names))
    made["drift_entries"] = draw(st.sampled_from([(), tuple(drift)]))
    return {**draw(params_of(SAMPLERS["recipe"], {*made, "scheme"})), **made}


def refused(error):
    """Pass over parameters that do not fit each other, such as a batch larger than the data."""
    assert error.field
    reject()


@st.composite
def experiments(draw):
    """Valid experiments over all triples, with random values of every parameter."""
    t = draw(st.sampled_from(list(TARGETS)))
    target = {"key": t, "params": draw(params_of(TARGETS[t]))}
    try:
        made = experiment(target, [{"sampler": "exact"}]).make_target()
    except SpecError as error:
        refused(error)
    lanes = []
    for s, _, g in draw(
        st.lists(st.sampled_from([x for x in OFFERED if x[1] == t]), min_size=1, max_size=max_lanes(t))
    ):
        lanes.append(
            {
                "sampler": {"key": s, "params": draw(recipes(made) if s == "recipe" else params_of(SAMPLERS[s]))},
                "gradient": {"key": g, "params": draw(params_of(GRADIENTS[g]))},
            }
        )
    data = {
        "target": target,
        "lanes": lanes,
        "seed": draw(st.integers(0, 2**32 - 1)),
        "n_chains": draw(st.integers(1, 64)),
        "n_steps": draw(st.integers(100, 10_000)),
        "burn_in": draw(st.integers(0, 1000)),
        "thin": draw(st.integers(1, 100)),
    }
    if made.support != MANIFOLD and draw(st.booleans()):
        data["start"] = draw(st.lists(st.floats(1e-3, 4.0), min_size=made.dim, max_size=made.dim))
    if draw(st.booleans()):
        data["momentum"] = draw(st.lists(st.floats(-1e3, 1e3), min_size=made.dim, max_size=made.dim))
    try:
        return Experiment.from_dict(data)
    except SpecError as error:
        refused(error)


# --- round trips -----------------------------------------------------------------------------------


@pytest.mark.slow
@for_each("s", SAMPLERS)
def test_every_pair_survives_json_and_links(s):
    """Fails where a codec drops, rounds or reorders a field of any valid pair; its gradients take turns."""
    offered: dict[str, list[str]] = {}
    for _, t, g in (triple for triple in OFFERED if triple[0] == s):
        offered.setdefault(t, []).append(g)
    for i, (t, gradients) in enumerate(offered.items()):
        survives(s, t, gradients[i % len(gradients)])


def survives(s, t, g):
    run = RunSpec.of(t, s, g, seed=7, n_chains=3, n_steps=99, burn_in=5, thin=2)
    assert RunSpec.from_json(run.to_json()) == run
    assert Experiment.from_json(run.to_json()).runs() == (run,)
    whole = experiment(t, [{"sampler": s, "gradient": g}] * 2, seed=7, n_chains=3)
    assert Experiment.from_json(whole.to_json()) == whole
    assert Experiment.from_query(whole.to_query(), DEFAULT) == (whole, [])
    # A program that passes the link on may escape what is not escaped yet.
    assert Experiment.from_query("?" + quote(whole.to_query(), safe="=&%"), DEFAULT) == (whole, [])


@pytest.mark.slow
@settings(max_examples=120)
@given(experiments())
def test_any_values_survive_json_and_links(whole):
    """Fails where a value that is allowed is lost on the way: floats to the last bit, flags, vectors of counts."""
    assert Experiment.from_json(whole.to_json()) == whole
    assert hash(Experiment.from_json(whole.to_json())) == hash(whole)
    assert Experiment.from_query(whole.to_query(), DEFAULT) == (whole, [])
    for run in whole.runs():
        assert RunSpec.from_json(run.to_json()) == run


def test_changes_survive_json():
    """Fails where a saved file forgets the changes made on the way, or puts them at other steps."""
    gaussian = {"key": "gaussian", "params": {"variance": 2.5}}
    lane = {
        "sampler": "sghmc",
        "changes": [
            {"step": 3, "sampler": {"key": "sghmc", "params": {"step_size": 0.01}}},
            {"step": 9, "sampler": "sghmc", "gradient": gaussian},
        ],
    }
    whole = experiment("quartic", [lane])
    assert [x.step for x in whole.lanes[0].changes] == [3, 9]
    assert whole.lanes[0].changes[1].gradient.values() == {"variance": 2.5}
    assert Experiment.from_json(whole.to_json()) == whole
    assert RunSpec.from_json(whole.runs()[0].to_json()) == whole.runs()[0]


def test_specs_are_frozen_and_hashable():
    """Fails where a spec can be changed after it was checked, or where equal specs hash differently."""
    run = RunSpec.of("sparse_dirichlet", "scir")
    for spec in (run, DEFAULT, DEFAULT.lanes[0]):
        with pytest.raises(dataclasses.FrozenInstanceError):
            spec.seed = 2
        with pytest.raises(AttributeError):
            spec.target.key = "gamma" if hasattr(spec, "target") else None
    assert len({run, RunSpec.of("sparse_dirichlet", "scir"), RunSpec.of("sparse_dirichlet", "scir", seed=2)}) == 2


def test_defaults_are_written_out():
    """Fails where a saved file or link leaves out a default, and so would change its meaning with it."""
    data = json.loads(RunSpec.of("gaussian", "hmc").to_json())
    assert set(data["sampler"]["params"]) == {name for name, _ in declared(SAMPLERS["hmc"])}
    assert set(data["target"]["params"]) == {name for name, _ in declared(TARGETS["gaussian"])}
    query = RunSpec.of("sparse_dirichlet", "scir")
    text = Experiment.from_json(query.to_json()).to_query()
    for name in ("dimension", "alpha", "observed", "step_size", "batch_size", "replacement", "seed", "n_chains"):
        assert f"{name}" in text


def test_chains_begin_where_the_spec_says():
    """Fails where a start is read and not used, by one chain or by one lane, or where a link in a lesson loses it."""
    whole = experiment("gamma", [{"sampler": "sgrld"}, {"sampler": "cir"}], start=[0.25], n_chains=3)
    for run in whole.runs():
        assert (engine.Run(run).position == 0.25).all()
        assert (engine.Run(dataclasses.replace(run, start=())).position == run.make_target().start()).all()
    assert whole.to_query().endswith("&start=0.25")
    # A link takes from the default what it leaves out; but a target without a start has its own.
    assert Experiment.from_query("seed=5&n_chains=3", whole)[0] == dataclasses.replace(whole, seed=5)
    assert Experiment.from_query("target=gamma", whole)[0].start == ()
    mended, (message,) = Experiment.from_query(whole.to_query().replace("0.25", "-1"), DEFAULT)
    assert mended == dataclasses.replace(whole, start=())
    assert (
        message
        == "start = [-1.0]: allowed are numbers above 0, where Gamma is; the target's own start is used instead."
    )


@for_each(("target", "sampler"), [("correlated_gaussian", "sghmc"), ("fisher", "gsgnht"), ("quartic", "baoab")])
def test_chains_are_thrown_as_the_spec_says(target, sampler):
    """Fails where a momentum is read and not used, where a thermostat is taken for one, or where it is not along the
    manifold.
    """
    momentum = np.arange(1.0, 1 + TARGETS[target]().dim)
    whole = experiment(target, [{"sampler": sampler}, {"sampler": "exact"}], momentum=list(momentum), n_chains=3)
    assert Experiment.from_query(whole.to_query(), DEFAULT) == (whole, [])
    assert Experiment.from_query("seed=5&n_chains=3", whole)[0] == dataclasses.replace(whole, seed=5)
    thrown, still = (engine.Run(spec) for spec in whole.runs())
    x = thrown.position[0]
    wanted = momentum - (momentum @ x) * x if target == "fisher" else momentum
    np.testing.assert_allclose(thrown.momentum[:, : len(wanted)], np.tile(wanted, (3, 1)), atol=1e-12)
    own = engine.Run(dataclasses.replace(whole.runs()[0], momentum=()))
    assert (thrown.momentum[:, len(wanted) :] == own.momentum[:, len(wanted) :]).all()
    assert not np.allclose(own.momentum[:, : len(wanted)], thrown.momentum[:, : len(wanted)])
    # A sampler without a momentum is not moved by it, nor are the random numbers.
    assert (still.momentum == 0).all()
    assert thrown.rng.random() == own.rng.random()


# --- what is wrong gets a sentence ---------------------------------------------------------------------


def base(**changes):
    data = {
        "target": {"key": "sparse_dirichlet", "params": {}},
        "lanes": [{"sampler": {"key": "scir", "params": {}}, "gradient": {"key": "minibatch", "params": {}}}],
    }
    data.update(changes)
    return data


def with_target(key="sparse_dirichlet", **params):
    return base(target={"key": key, "params": params})


def with_lane(**parts):
    return base(lanes=[{"sampler": "scir", **parts}])


def with_step(value):
    return with_lane(sampler={"key": "scir", "params": {"step_size": value}})


def with_batch(value):
    return with_lane(gradient={"key": "minibatch", "params": {"batch_size": value}})


BAD = [
    # what, data, field, parts of what is allowed
    ("unknown top field", base(speed=3), "speed", ["seed", "lanes"]),
    ("unknown lane field", with_lane(colour="red"), "lane.colour", ["sampler, gradient, schedule, changes"]),
    ("unknown field of a choice", base(target={"key": "gamma", "kind": 1}), "target.kind", ["key and params"]),
    ("unknown parameter", with_target(shape=2), "target.shape", ["alpha", "observed"]),
    ("unknown sampler", with_lane(sampler="sgrdl"), "sampler", ["most like it are: ", "sgrld", "sgld"]),
    ("unknown target", base(target="gausian"), "target", ["of 4", "gaussian", "gaussian_mixture", "gamma"]),
    ("unknown gradient", with_lane(gradient="exact"), "gradient", ["minibatch"]),
    ("no target", {"lanes": [{"sampler": "sgld"}]}, "target", ["needed"]),
    ("no sampler", base(lanes=[{}]), "sampler", ["needed"]),
    ("target a number", base(target=3), "target", ["no such target", "typed"]),
    ("target a list", base(target=["gamma"]), "target", ["gamma"]),
    ("key a list", base(target={"key": ["gamma"]}), "target", ["gamma"]),
    ("params a list", base(target={"key": "gamma", "params": [1]}), "target.params", ["object"]),
    ("lane a string", base(lanes=["scir"]), "lane", ["object"]),
    ("lanes a string", base(lanes="scir"), "lanes", ["1 to 4"]),
    ("lanes an object", base(lanes={"sampler": "scir"}), "lanes", ["1 to 4"]),
    ("no lanes", base(lanes=[]), "lanes", ["1 to 4"]),
    ("five lanes", base(lanes=[{"sampler": "scir"}] * 5), "lanes", ["1 to 4"]),
    ("sampler that does not fit", base(lanes=[{"sampler": "hmc"}]), "sampler", ["sparse_dirichlet", "scir"]),
    ("gradient that does not fit", with_lane(gradient="full"), "gradient", ["minibatch"]),
    ("NaN", with_step(float("nan")), "sampler.step_size", ["0.0001 to 10"]),
    ("infinity", with_step(float("inf")), "sampler.step_size", ["0.0001 to 10"]),
    ("minus infinity", with_step(float("-inf")), "sampler.step_size", ["0.0001 to 10"]),
    ("zero step", with_step(0), "sampler.step_size", ["0.0001 to 10"]),
    ("a bool for a number", with_step(True), "sampler.step_size", ["a number"]),
    ("a string for a number", with_step("fast"), "sampler.step_size", ["a number"]),
    ("none for a number", with_step(None), "sampler.step_size", ["a number"]),
    ("a list for a number", with_step([0.1]), "sampler.step_size", ["a number"]),
    ("a huge integer", with_step(10**400), "sampler.step_size", ["0.0001 to 10"]),
    ("a huge integer for a count", with_batch(10**400), "gradient.batch_size", ["a whole number from 1"]),
    ("a fraction for a count", with_batch(2.5), "gradient.batch_size", ["a whole number"]),
    ("a bool for a count", with_batch(True), "gradient.batch_size", ["a whole number"]),
    ("a batch larger than N", with_batch(1001), "gradient.batch_size", ["at most N = 1000"]),
    ("a word for a flag", with_lane(gradient={"key": "minibatch", "params": {"replacement": "perhaps"}}), "gradient.replacement", ["true or false"]),
    ("a number for a flag", with_lane(gradient={"key": "minibatch", "params": {"replacement": 2}}), "gradient.replacement", ["true or false"]),
    ("alpha 0", with_target(alpha=0), "target.alpha", ["0.005 to 100"]),
    ("a million dimensions", with_target(dimension=10**6), "target.dimension", ["2 to 100"]),
    ("a string for a list", with_target(observed="many"), "target.observed", ["whole numbers"]),
    ("an object for a list", with_target(observed={"a": 1}), "target.observed", ["whole numbers"]),
    ("an empty list", with_target(observed=[]), "target.observed", ["1 to 100"]),
    ("nested lists", with_target(observed=[[1]]), "target.observed", ["whole numbers"]),
    ("negative counts", with_target(observed=[5, -1]), "target.observed", ["from 0"]),
    ("a list of bools", with_target(observed=[True]), "target.observed", ["whole numbers"]),
    ("no data at all", with_target(observed=[0, 0]), "target.observed", ["total from 1"]),
    ("a total that is too large", with_target(observed=[10**6, 10**6]), "target.observed", ["1,000,000"]),
    ("more counts than categories", with_target(dimension=2, observed=[1, 1, 1]), "target.observed", ["d = 2"]),
    ("a million counts", with_target(observed=[1] * 10**6), "target.observed", ["1 to 100"]),
    ("negative seed", base(seed=-1), "seed", ["from 0"]),
    ("a seed of 33 bits", base(seed=2**32), "seed", ["from 0"]),
    ("a string seed", base(seed="lucky"), "seed", ["a whole number"]),
    ("no chains", base(n_chains=0), "n_chains", ["from 1"]),
    ("a million chains", base(n_chains=10**6), "n_chains", ["10000"]),
    ("thin above n_steps", base(thin=2000), "thin", ["n_steps = 1000"]),
    ("thin 0", base(thin=0), "thin", ["from 1"]),
    ("a huge trace", base(n_steps=10**9), "n_steps", ["raise thin"]),
    ("negative burn-in", base(burn_in=-5), "burn_in", ["from 0"]),
    ("a start of two numbers on one coordinate", {"target": "gaussian", "lanes": [{"sampler": "sgld"}], "start": [1, 2]}, "start", ["one number, for Gaussian"]),
    ("a start outside of the support", base(start=[0.5] * 9 + [0]), "start", ["numbers above 0"]),
    ("a start beside the circle", {"target": "circle_mixture", "lanes": [{"sampler": "sggmc"}], "start": [1, 0.1]}, "start", ["a point of the manifold"]),
    ("a start where the energy is not finite", {"target": {"key": "typed", "params": {"energy": "theta^2 - log(abs(theta))"}}, "lanes": [{"sampler": "sgld"}], "start": [0]}, "start", ["finite"]),
    ("a start that is not finite", base(start=[float("nan")] * 10), "start", ["up to 100 numbers from -1,000,000 to 1,000,000"]),
    ("a start far away", base(start=[1e7] * 10), "start", ["1,000,000"]),
    ("a start that is a text", base(start="near 0"), "start", ["numbers"]),
    ("a start that is a table", base(start={"x": 1}), "start", ["numbers"]),
    ("a million numbers of a start", base(start=[1.0] * 10**6), "start", ["up to 100"]),
    ("a momentum of two numbers on one coordinate", {"target": "gaussian", "lanes": [{"sampler": "sghmc"}], "momentum": [1, 2]}, "momentum", ["one number, for Gaussian"]),
    ("a momentum that is not finite", base(momentum=[float("inf")] * 10), "momentum", ["up to 100 numbers"]),
    ("an odd number of a mixture's positions", {"target": {"key": "gaussian_mixture", "params": {"positions": [1.0]}}, "lanes": [{"sampler": "sgld"}]}, "target.positions", ["two numbers"]),
    ("a start of a model", {"target": "network", "lanes": [{"sampler": "network_gibbs"}], "start": [1.0]}, "start", ["no such field"]),
    ("changes a string", with_lane(changes="now"), "changes", ["list"]),
    ("changes a number", with_lane(changes=3), "changes", ["list"]),
    ("a change that is a number", with_lane(changes=[3]), "changes", ["object"]),
    ("a change without a step", with_lane(changes=[{"sampler": "scir"}]), "changes.step", ["whole number"]),
    ("changes out of order", with_lane(changes=[{"step": 5, "sampler": "scir"}, {"step": 4, "sampler": "scir"}]), "changes.step", ["in the order"]),
    ("a change of sampler", with_lane(changes=[{"step": 5, "sampler": "sgrld"}]), "changes.sampler", ["scir"]),
    ("an unknown field of a change", with_lane(changes=[{"step": 5, "sampler": "scir", "colour": 1}]), "changes.colour", ["step"]),
    ("too many changes", with_lane(changes=[{"step": 5, "sampler": "scir"}] * 1001), "changes", ["1000"]),
]  # fmt: skip


@for_each(("what", "data", "field", "parts"), BAD, ids=[row[0] for row in BAD])
def test_bad_data_names_the_field_the_value_and_what_is_allowed(what, data, field, parts):
    """Fails where bad data is taken, crashes, or gets a message without field, value or what is allowed."""
    with pytest.raises(SpecError) as caught:
        Experiment.from_dict(data)
    assert caught.value.field == field
    message = str(caught.value)
    assert message.startswith(f"{field} = ")
    assert len(message) < 1000
    for part in parts:
        assert part in message, message


@for_each(
    "text",
    ["", "{", "[", "null", "3", "[]", '"gaussian"', "{}", '{"target":', "[" * 100_000, '{"a":' * 50_000, "\x00", "{'target': 1}",
     "NaN", "Infinity", "1e999", '{"target": NaN}', "\ufeff{}", '"\\ud800"', "9" * 5000, '{"seed": ' + "9" * 5000 + "}", "{" + " " * MAX_JSON + "}"],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
def test_text_that_is_no_spec_raises_spec_error(text):
    """Fails where truncated, nested, oversized or odd JSON raises anything but SpecError."""
    for reader in (Experiment.from_json, RunSpec.from_json):
        with pytest.raises(SpecError) as caught:
            reader(text)
        assert len(str(caught.value)) < 600


def test_every_truncation_raises_spec_error():
    """Fails where a file cut off anywhere is read as a whole one, or crashes the reader."""
    text = RunSpec.of("sparse_dirichlet", "scir").to_json()
    for end in range(len(text)):
        with pytest.raises(SpecError):
            RunSpec.from_json(text[:end])


NAMES = ["target", "lanes", "sampler", "gradient", "changes", "key", "params", "seed", "n_chains", "n_steps", "thin", "step",
         "step_size", "shape", "observed", "alpha", "batch_size", "replacement", "accept", *TARGETS, *SAMPLERS, *GRADIENTS]  # fmt: skip
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(NAMES),
    st.just(10**400),
)
DATA = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=400)
@given(DATA)
def test_arbitrary_data_raises_only_spec_error(data):
    """Fails where any tree of JSON values raises something else than SpecError from the strict readers."""
    for reader in (Experiment.from_dict, RunSpec.from_dict):
        try:
            spec = reader(data)
        except SpecError as error:
            assert error.field  # noqa: PT017
        else:
            assert reader(spec.to_dict()) == spec


@pytest.mark.slow
@settings(max_examples=400)
@given(experiments(), st.data())
def test_damaged_data_raises_only_spec_error(whole, data):
    """Fails where a valid spec with one value replaced by an odd one crashes the reader or is taken as another."""
    tree = json.loads(whole.to_json())
    places = []

    def walk(node):
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    walk(tree)
    node, key = data.draw(st.sampled_from(places))
    node[key] = data.draw(DATA)
    try:
        again = Experiment.from_json(json.dumps(tree))
    except SpecError as error:
        assert error.field  # noqa: PT017
    else:
        assert Experiment.from_json(again.to_json()) == again


# --- links --------------------------------------------------------------------------------------------------


def is_valid(whole):
    """Whether the strict reader takes it as it is."""
    return Experiment.from_dict(whole.to_dict()) == whole


# A link, and a part of each message that must be there; every one must name the key of what was replaced.
MENDED = [
    ("target=gaussian&lane=sgld(step_size:99)~full", ["sampler.step_size", "2.0 is used"]),
    ("target=gaussian&lane=sgld(step_size:nan)~full", ["sampler.step_size"]),
    ("target=gaussian&lane=sgld(step_size:)~full", ["sampler.step_size"]),
    ("target=gaussian&lane=sgld(speed:1)~full", ["sampler.speed"]),
    ("target=gaussian&lane=walk~full", ["walk", "there is no such sampler"]),
    ("target=gaussian&lane=scir~full", ["scir", "does not fit the target gaussian"]),
    ("target=cauchy&lane=sgld~full", ["cauchy", "there is no such target"]),
    ("target=gaussian&lane=sgld~minibatch", ["minibatch", "does not fit sgld"]),
    ("target=gaussian&lane=sgld~magic", ["magic"]),
    ("target=sparse_dirichlet(observed:5,5)&lane=scir~minibatch(batch_size:11)", ["batch_size", "at most N = 10"]),
    ("target=sparse_dirichlet(observed:0)&lane=scir", ["target.observed"]),
    ("target=sparse_dirichlet(dimension:2)&lane=scir", ["target.observed"]),
    ("target=gaussian&lane=sgld&lane=sgld&lane=sgld&lane=sgld&lane=hmc", ["lanes", "5"]),
    ("target=gaussian&lane=sgld&seed=-3", ["seed", "0 is used"]),
    ("target=gaussian&lane=sgld&seed=abc", ["seed"]),
    ("target=gaussian&lane=sgld&n_chains=1e9", ["n_chains", "10,000 is used"]),
    ("target=gaussian&lane=sgld&n_chains=" + "9" * 5000, ["n_chains"]),
    ("target=gaussian(mean:1&lane=sgld", ["closing bracket"]),
    ("target=gaussian(1)&lane=sgld", ["name:value"]),
    ("target=gaussian&target=quartic&lane=sgld", ["target"]),
    ("target=gaussian&lane=sgld&seed=1&seed=2", ["seed"]),
    ("target=gaussian(mean:1;mean:2)&lane=sgld", ["mean"]),
    ("target=gaussian&lane=", ["sampler"]),
    ("target=&lane=sgld", ["target"]),
    ("target=sparse_dirichlet(dimension:100)&lane=scir&n_chains=10000&n_steps=1000", ["n_steps"]),
    ("target=gaussian&lane=sgld&n_steps=5&thin=10", ["thin"]),
    (
        "target=logistic_large(items:1000000;features:10)&lane=hmc(n_leapfrog:1000)&n_chains=10",
        ["a step of HMC looks at 10,010,000,000 numbers", "allowed is 1 chain"],
    ),
    (
        "target=logistic_tumours&lane=nuts(max_depth:10)&n_chains=111",
        ["a step of NUTS looks at 18,062,336 numbers", "allowed are 110 chains"],
    ),
    ("x" * (MAX_QUERY + 1), ["characters"]),
]


@for_each(("query", "parts"), MENDED, ids=lambda x: x[:40] if isinstance(x, str) else "", slow=of_a_long_run)
def test_a_link_is_mended_and_says_so(query, parts):
    """Fails where something in a link is replaced in silence, or where a link raises."""
    whole, messages = Experiment.from_query(query, DEFAULT)
    assert is_valid(whole)
    text = "\n".join(messages)
    for part in parts:
        assert part in text, messages
    assert all(message.endswith(".") for message in messages)


def test_links_without_an_experiment_give_the_default():
    """Fails where fields of other parts of the link disturb it, or where a bare link does not open the default."""
    for query in ("", "?", "theme=dark&view=trace", "?utm_source=mail"):
        assert Experiment.from_query(query, DEFAULT) == (DEFAULT, [])


def test_what_a_link_leaves_out_is_the_default_or_fits():
    """Fails where a link without lanes does not get one that its target accepts, or one without a target not the
    default's; neither is a mistake, so there is nothing to say."""
    for t in TARGETS:
        whole, messages = Experiment.from_query(f"target={t}", DEFAULT)
        assert (whole.target.key, len(whole.lanes), messages) == (t, 1, [])
        assert is_valid(whole)
    whole, messages = Experiment.from_query("lane=sghmc~full", DEFAULT)
    assert (whole.target, whole.lanes[0].sampler.key, messages) == (DEFAULT.target, "sghmc", [])


PIECES = ["target=", "lane=", "&", "~", "(", ")", ";", ":", ",", "seed=", "n_chains=", "n_steps=", "thin=", "burn_in=", "%", "%00", "+",
          "=", "?", "nan", "inf", "-1", "1e400", "1e-400", "9" * 30, "true", "0x10", "١٢", "½", "1_000", "𝟙", " ", "\n", "\x00", "é", *NAMES]  # fmt: skip


@pytest.mark.slow
def test_arbitrary_links_never_raise_and_never_change_the_sampler_in_silence():
    """Fails where any of 2500 random or damaged links raises, gives an experiment that the strict reader refuses, or
    shows another target or sampler than the link names without saying so."""
    rng = random.Random(20)
    sound = [experiment(t, [{"sampler": s, "gradient": g}], seed=3).to_query() for s, t, g in OFFERED]
    quiet = mended = 0
    for n in range(2500):
        if n % 3 == 0:
            query = "".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 14)))
        elif n % 3 == 1:
            text = list(rng.choice(sound))
            for _ in range(rng.randrange(1, 4)):
                text[rng.randrange(len(text))] = rng.choice([*PIECES, rng.choice(string.printable), ""])
            query = "".join(text)
        else:
            query = (
                rng.choice(sound)[: rng.randrange(120)] + rng.choice(PIECES) + rng.choice(sound)[rng.randrange(60) :]
            )
        whole, messages = Experiment.from_query(query, DEFAULT)
        assert is_valid(whole), query
        assert all(isinstance(message, str) and len(message) < 1000 for message in messages)
        if messages:
            mended += 1
        elif "target=" in query or "lane=" in query:
            quiet += 1
            again, _ = Experiment.from_query(whole.to_query(), DEFAULT)
            assert again.lanes == whole.lanes
            named = {name for name, _ in parse_qsl(query.lstrip("?"), keep_blank_values=True)}
            if "lane" in named:
                for lane in whole.lanes:
                    assert lane.sampler.key in query, query
            if "target" in named:
                assert whole.target.key in query, query
    assert mended > 1000
    assert quiet > 20


def test_a_mended_link_runs():
    """Fails where the experiment of a mended link cannot be started."""
    whole, messages = Experiment.from_query("target=gamma(shape:-1)&lane=cir(step_size:1e9)~full&lane=sgrld", DEFAULT)
    assert len(messages) == 2
    for run in whole.runs():
        assert engine.run(run, keep_draws=False).statistics.n_steps == run.n_steps


def test_what_is_nested_deeply_is_said_and_not_written_out():
    nested = []
    for _ in range(100_000):
        nested = [nested]
    assert (
        str(SpecError("target", nested, "allowed is a name"))
        == "target = what is nested too deeply: allowed is a name."
    )


def test_settings_names_are_unique():
    """Fails where a parameter of a run shadows a field of the spec."""
    assert {name for name, _ in declared(Settings)}.isdisjoint({"target", "lanes", "sampler", "gradient", "changes"})


@pytest.mark.parametrize("fault", [False, True])
def test_a_step_of_a_sampler_takes_no_more_gradients_than_it_says(fault, monkeypatch):
    """Trajectories that do not turn, as long as they may be. Fails where a link makes steps of minutes. Planted fault:
    those that a kernel counts by itself are left out."""
    if fault:
        monkeypatch.setattr(SAMPLERS["nuts"], "most_gradients", Sampler.most_gradients)
    params = {
        "hmc": {"n_leapfrog": 1000},
        "nuts": {"max_depth": 10},
        "rmhmc": {"n_leapfrog": 1000},
        "gmc": {"n_leapfrog": 1000},
    }
    within = {}
    for key, values in params.items():
        target = {"rmhmc": "gamma", "gmc": "fisher"}.get(key, "gaussian")
        run = engine.Run(RunSpec.of(target, key, sampler_params={**values, "step_size": 1e-4}, n_chains=1))
        run.advance(1)
        within[key] = 1000 < run.gradients <= run.sampler.most_gradients()
    assert within == dict.fromkeys(params, True) | {"nuts": not fault}
