"""The state of a session, without a browser: AppState, the link, the controls' stops, the exported files."""

import asyncio
import io
import itertools
import os
import re
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import numpy as np
import param
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from sgmcmc_lab.app import link
from sgmcmc_lab.app.live.fair_executor import FullError, Pool
from sgmcmc_lab.app.live.lanes import DensityLanes
from sgmcmc_lab.app.live.loop import LiveScreen, with_rates
from sgmcmc_lab.app.live.runner import Runner
from sgmcmc_lab.app.page import export
from sgmcmc_lab.app.page.controls import (
    EDITED_ELSEWHERE,
    ONE_OR_TWO,
    OWN,
    PER_DECADE,
    log_stops,
    slider,
    target_groups,
    widget,
)
from sgmcmc_lab.app.page.shell import _SPEED
from sgmcmc_lab.app.state import DEFAULT, DEFAULT_VIEWS, AppState
from sgmcmc_lab.app.views import VIEWS, axes_of
from sgmcmc_lab.app.views.base import AXIS_LABELS
from sgmcmc_lab.samplers import Change, Experiment, Lane, run
from sgmcmc_lab.samplers.choices import Choice
from sgmcmc_lab.samplers.file_format import Format
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.kernels.recipe import RecipeSampler
from sgmcmc_lab.samplers.lanes import max_lanes
from sgmcmc_lab.samplers.link import LINK_FIELDS
from sgmcmc_lab.samplers.models import MODELS
from sgmcmc_lab.samplers.parameters import Count, Real, SpecError, declared
from sgmcmc_lab.samplers.settings import ANY_TARGET, Settings
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.own import keep
from tests.helpers.cases import for_each, of_a_long_run

# Panel 1.9 says so of every Material widget that is given a name, whatever the app does.
pytestmark = pytest.mark.filterwarnings("ignore:Both 'name' and 'label' were provided:PendingDeprecationWarning")

LOGARITHMIC = [
    (f"{cls.key}.{name}", p)
    for registry in (TARGETS, SAMPLERS, GRADIENTS)
    for cls in registry.values()
    for name, p in declared(cls)
    if isinstance(p, (Real, Count)) and p.log
] + [("n_chains", dict(declared(Settings))["n_chains"]), ("speed", _SPEED)]


def state_of(query):
    state = AppState()
    return state, link.read_query(state, query)


def fields_of(state):
    """All that a link holds."""
    names = (
        "experiment",
        "playing",
        "speed",
        "slow",
        "views",
        "axis",
        "coordinate",
        "shown",
        "dark",
        "hidden",
        "present",
        "teacher",
        "room",
    )
    return {name: getattr(state, name) for name in names}


def samplers_of(state):
    return [lane.sampler.key for lane in state.experiment.lanes]


# AppState


@for_each("key", TARGETS, slow=of_a_long_run)
def test_every_target_can_be_chosen(key):
    state = AppState()
    state.add_lane()
    state.coordinate = 1
    messages = state.set_target(key)
    assert state.experiment.target.key == key
    assert all(SAMPLERS[one].fits(TARGETS[key]) for one in samplers_of(state))
    assert 0 <= state.coordinate < state.experiment.make_target().n_values
    # No lane goes away in silence.
    assert len(messages) == 2 - sum(SAMPLERS[one].fits(TARGETS[key]) for one in ("sgld", "sghmc"))
    assert all(SAMPLERS[one].title in " ".join(messages) for one in ("sgld", "sghmc") if one not in samplers_of(state))
    assert state.shown_views()


def test_the_simplex_brings_its_own_views():
    state = AppState()
    state.set_target("sparse_dirichlet")
    assert "components" in state.shown_views()
    assert state.coordinate == 4, "omega_5 of the paper"
    state.set_target("gaussian")
    assert state.views == DEFAULT_VIEWS


def test_a_start_is_of_its_target():
    """Fails where a start outlives its space, or goes with what leaves it as it is."""
    state = AppState()
    state.set_target("sparse_dirichlet")
    state.set_start([0.5] * 10)
    for change, kept in (
        (lambda: state.set_seed(7), True),
        (lambda: state.set_target_param("alpha", 0.2), True),
        (state.add_lane, True),
        (lambda: state.set_target_param("dimension", 12), False),
    ):
        change()
        assert state.experiment.start == ((0.5,) * 10 if kept else ())
    state.set_start([0.5] * 12)
    with pytest.raises(SpecError, match="start = "):
        state.set_start([0.5] * 11)
    assert state.experiment.start == (0.5,) * 12
    state.set_target("dense_dirichlet")
    assert state.experiment.start == ()


def test_what_is_saved_has_the_start():
    """Fails where what the page saves begins elsewhere than what ran."""
    whole = Experiment.from_dict({"target": "gaussian", "lanes": [{"sampler": "sgld"}], "start": [2.5]})
    assert DensityLanes(whole).recorded() == replace(whole, n_steps=1)


def test_chosen_views_stay_with_another_target():
    state = AppState(views=["trace", "ks"])
    state.set_target("sparse_dirichlet")
    assert state.views == ["trace", "ks"]


def test_lanes_are_added_up_to_four_and_removed_down_to_one():
    state = AppState()
    for n in range(2, max_lanes("quartic") + 1):
        state.add_lane()
        assert len(state.experiment.lanes) == n
    first = state.experiment
    with pytest.raises(SpecError, match="lanes = 5: allowed are 1 to 4 samplers"):
        state.add_lane()
    assert state.experiment == first
    assert len(set(samplers_of(state))) == len([k for k in SAMPLERS if SAMPLERS[k].fits(TARGETS["quartic"])][:4])
    state.remove_lane(1)
    assert samplers_of(state) == [lane.sampler.key for i, lane in enumerate(first.lanes) if i != 1]
    for _ in range(5):
        state.remove_lane(0)
    assert samplers_of(state) == [first.lanes[3].sampler.key]


@for_each(
    ("change", "names"),
    [
        (lambda s: s.set_target("nonsense"), ["target", "nonsense"]),
        (lambda s: s.set_lane_param(0, "sampler", "step_size", 1e9), ["step_size", "1000000000"]),
        (lambda s: s.set_lane_param(0, "sampler", "step_size", float("nan")), ["step_size", "nan"]),
        (lambda s: s.set_seed(None), ["seed", "None"]),
        (lambda s: s.set_seed(-1), ["seed", "-1"]),
        (lambda s: s.set_chains(0), ["n_chains", "0"]),
        (lambda s: s.set_gradient(0, "minibatch"), ["gradient", "minibatch"]),
        (lambda s: s.set_sampler(0, "scir"), ["sampler", "scir"]),
    ],
)
def test_a_refused_change_changes_nothing(change, names):
    state = AppState()
    with pytest.raises(SpecError) as error:
        change(state)
    assert all(name in str(error.value) for name in names)
    assert state.experiment == DEFAULT


@for_each("text", ["", "1,,2", "a", "-1", "1.5", "1e9", "1;2", "9" * 5000, ",".join("1" * 500)])
def test_a_bad_count_vector_is_refused(text):
    state = AppState()
    state.set_target("sparse_dirichlet")
    before = state.experiment
    with pytest.raises(SpecError, match="observed"):
        state.set_target_param("observed", text)
    assert state.experiment == before
    state.set_target_param("observed", " 5, 0 ,7 ")
    assert state.experiment.target.values()["observed"][:3] == (5, 0, 7)


@for_each(("name", "value"), [("alpha", 0), ("dimension", 10**6), ("dimension", 1), ("alpha", "x")])
def test_a_bad_dirichlet_is_refused(name, value):
    state = AppState()
    state.set_target("sparse_dirichlet")
    with pytest.raises(SpecError, match=name):
        state.set_target_param(name, value)


def test_a_coordinate_that_is_gone_is_left():
    state = AppState()
    state.set_target("sparse_dirichlet")
    state.coordinate = 9
    state.set_target_param("dimension", 5)
    assert state.coordinate == 4


def test_another_sampler_keeps_a_fitting_gradient():
    state, _ = state_of("?target=quartic&lane=sgld(step_size:0.02)~gaussian_corrected(variance:2)")
    state.set_sampler(0, "sghmc")
    assert state.experiment.lanes[0].gradient.key == "gaussian_corrected"
    state.set_sampler(0, "exact")
    assert state.experiment.lanes[0].gradient.key == "full"


def test_particles_are_fifty_until_somebody_says_how_many():
    state = AppState()
    assert state.experiment.n_chains == 4
    state.set_sampler(0, "svgd")
    assert state.experiment.n_chains == 50
    assert state_of("?target=quartic&lane=svgd")[0].experiment.n_chains == 50
    assert state_of("?target=quartic&lane=sgld&lane=svgd")[0].experiment.n_chains == 50
    state.set_sampler(0, "hmc")
    assert state.experiment.n_chains == 4
    state.set_chains(7)
    state.set_sampler(0, "svgd")
    state.set_lane_param(0, "sampler", "step_size", 0.1)
    assert state.experiment.n_chains == 7
    # A link that the page writes says the number, and so do files.
    old = "?v=3&target=quartic()&lane=svgd(step_size:0.05)~full&seed=1&n_chains=4"
    assert state_of(old)[0].experiment.n_chains == 4
    state.set_chains(4)
    assert state_of(link.to_query(state))[0].experiment.n_chains == 4
    assert '"n_chains": 4' in state.experiment.to_json()


def test_a_preset_brings_its_gradient_where_none_was_chosen():
    """Naive SGHMC has no noise but its gradient's: with the full one it would stand on a circle of constant H."""
    state, _ = state_of("?target=gaussian&lane=sgld&lane=recipe~full&lane=recipe~gaussian_corrected(variance:3.0)")
    for lane in (1, 2):
        state.set_preset(lane, "naive_sghmc")
    assert [lane.gradient.key for lane in state.experiment.lanes] == ["full", "gaussian", "gaussian_corrected"]
    assert state.experiment.lanes[2].gradient.values()["variance"] == 3.0
    state.set_preset(2, "sghmc")
    assert state.experiment.lanes[2].gradient.key == "gaussian_corrected"


def test_equal_samplers_have_different_titles():
    state, messages = state_of("?target=quartic&lane=sgld(step_size:0.02)~full&lane=sgld(step_size:0.1)~full&lane=hmc")
    assert not messages
    titles = state.lane_titles()
    assert len(set(titles)) == 3
    assert "0.02" in titles[0]
    assert "0.1" in titles[1]


@for_each(
    ("lanes", "titles"),
    [
        (("sgld()~minibatch", "sgld()~minibatch_cv"), ("SGLD · Minibatch", "SGLD · control variates")),
        (("sgld(step_size:0.001)~full", "sgld(step_size:0.0005)~full"), ("SGLD ε=0.001", "SGLD ε=0.0005")),
        (("sgld()~minibatch(batch_size:5)", "sgld()~minibatch(batch_size:20)"), ("SGLD n=5", "SGLD n=20")),
        (("sgld()~full", "sgld()~full", "hmc()~full"), ("SGLD (1)", "SGLD (2)", "HMC")),
        (("hmc(accept:true)~full", "hmc(accept:false)~full"), ("HMC accept step on", "HMC accept step off")),
        (
            ("sghmc(step_size:0.01;friction:1)~full", "sghmc(step_size:0.02;friction:2)~minibatch"),
            ("SGHMC · Full ε=0.01 C=1", "SGHMC · Minibatch ε=0.02 C=2"),
        ),
    ],
)
def test_titles_say_what_is_not_the_same(lanes, titles):
    state, messages = state_of("?target=linear_regression&" + "&".join(f"lane={lane}" for lane in lanes))
    assert not messages
    assert state.lane_titles() == titles


@for_each("key", MODELS)
def test_a_model_that_is_chosen_opens_on_real_data(key):
    """A link that leaves the data out goes on meaning the parameter's default."""
    state, model = AppState(), MODELS[key]
    state.set_target(key)
    default = dict(declared(model))[model.data_parameter].default
    assert state.experiment.target.values()[model.data_parameter] == (model.real_data or default)
    made_up = {"blocks", "five", "synthetic", "made", "known", "bars", "stream"}
    assert (model.real_data or default) not in made_up
    assert state_of(f"?target={key}")[0].experiment.target.values()[model.data_parameter] == default


def test_each_target_is_in_one_group_of_the_menu():
    groups = target_groups()
    assert sorted(key for group in groups.values() for key in group.values()) == sorted(ANY_TARGET)
    assert all(groups.values())
    assert "gaussian" in groups[ONE_OR_TWO].values()
    assert "typed" in groups[OWN].values()


# The link


def a_state(target, views, axis, dark, playing, speed, slow, hidden, n_lanes, seed):
    state = AppState()
    state.set_target(target)
    for _ in range(n_lanes - 1):
        state.add_lane()
    state.set_seed(seed)
    fits = state.fitting_views()
    state.param.update(
        views=[key for key in fits if key in views] or fits[:1],
        axis=axis if axis in axes_of(state.experiment) else "steps",
        dark=dark,
        follows_device=False,
        playing=playing,
        speed=speed,
        slow=slow,
        hidden=hidden,
    )
    state.coordinate = state.experiment.make_target().n_values - 1
    return state


STATES = st.builds(
    a_state,
    st.sampled_from(list(TARGETS)),
    st.sets(st.sampled_from(list(VIEWS))),
    st.sampled_from(list(AXIS_LABELS)),
    st.booleans(),
    st.booleans(),
    st.integers(1, 10**6),
    st.integers(0, 8),
    st.lists(st.sampled_from(link.HIDEABLE), unique=True),
    st.integers(1, 4),
    st.integers(0, 2**32 - 1),
)


@pytest.mark.slow
@given(STATES)
def test_the_link_holds_the_whole_state(state):
    query = link.to_query(state)
    again, messages = state_of(query)
    assert messages == []
    assert fields_of(again) == fields_of(state)
    assert link.to_query(again) == query


def test_the_link_holds_every_parameter_of_the_state():
    """A parameter that is added to AppState must be in the link, or be listed here."""
    # Of a file of the person's own the link says only that there was one.
    assert set(AppState.param) - {"name", "resets", "upload", "brought", "follows_device"} == set(
        fields_of(AppState(room="k7mq2x9d"))
    )


def test_each_part_of_the_state_changes_the_link():
    changes = {
        "playing": False,
        "speed": 21,
        "slow": 3,
        "views": ["trace"],
        "axis": "seconds",
        "coordinate": 1,
        "dark": True,
        "hidden": ["export"],
        "present": True,
        "teacher": True,
        "room": "k7mq2x9d",
    }
    links = [
        link.to_query(AppState(**{"follows_device": False, **change}))
        for change in ({}, *({k: v} for k, v in changes.items()))
    ]
    assert len(set(links)) == len(changes) + 1


def test_no_views_at_all_survive_a_reload():
    again, messages = state_of(link.to_query(AppState(views=[])))
    assert messages == []
    assert again.views == []


def test_views_that_do_not_fit_are_named():
    state, messages = state_of("?target=quartic&lane=sgld&views=components")
    assert state.shown_views(), "a page without views"
    assert "components" in " ".join(messages)


BAD_LINKS = [
    ("?target=nonsense&lane=sgld", ["target", "nonsense"]),
    ("?target=sparse_dirichlet&lane=sgld", ["sampler", "sgld", "scir"]),
    ("?target=quartic&lane=sgld(step_size:1e9)", ["sampler.step_size", "1e9", "2"]),
    ("?target=quartic&lane=sgld(step_size:nan)", ["sampler.step_size", "nan"]),
    ("?target=quartic&" + "&".join(["lane=sgld"] * 5), ["lanes", "5", "4"]),
    ("?views=foo", ["views", "foo"]),
    ("?axis=parsecs", ["axis", "parsecs", "seconds"]),
    ("?theme=pink", ["theme", "pink"]),
    ("?play=perhaps", ["play", "perhaps"]),
    ("?speed=0", ["speed", "'0'", "1"]),
    ("?speed=1e3", ["speed", "1e3"]),
    ("?slow=9", ["slow", "'9'", "8"]),
    ("?target=network&lane=network_map&slow=2", ["slow", "'2'", "0"]),
    ("?speed=" + "9" * 5000, ["speed"]),
    ("?target=quartic&coordinate=7", ["coordinate", "7", "2"]),
    ("?hide=everything", ["hide", "everything"]),
    ("?colour=red", ["colour", "red"]),
    ("?target=%ff%fe%&lane=%zz", ["target", "sampler"]),
    ("?target=sparse_dirichlet(alpha:0)&lane=scir", ["target.alpha", "0"]),
    ("?target=sparse_dirichlet(dimension:1000000)&lane=scir", ["target.dimension", "1000000"]),
    ("?seed=-3", ["seed", "-3"]),
    ("?n_chains=0", ["n_chains", "0"]),
    ("?views=state&x=" + "y" * 10_000, ["characters", "8,000"]),
]


@for_each(("query", "parts"), BAD_LINKS, ids=[query[:40] for query, _ in BAD_LINKS])
def test_a_bad_link_says_what_it_did(query, parts):
    state, messages = state_of(query)
    assert messages
    assert all(part in " ".join(messages) for part in parts), messages
    assert all(len(message) < 500 for message in messages)
    # The mended state is a good one.
    again, none = state_of(link.to_query(state))
    assert none == []
    assert fields_of(again) == fields_of(state)
    assert state.shown_views()


@pytest.mark.slow
@given(
    st.text(max_size=80),
    st.sampled_from(["target", "lane", "views", "axis", "coordinate", "speed", "theme", "play", "hide", "seed"]),
)
def test_no_link_stops_the_page(text, field):
    state, _ = state_of(f"?{field}={text}")
    assert state.experiment.runs()
    assert state.experiment.of_model or state.coordinate < state.experiment.make_target().n_values


def test_the_links_own_fields_do_not_clash_with_the_experiments():
    own = {
        "v",
        "views",
        "axis",
        "coordinate",
        "speed",
        "theme",
        "play",
        "hide",
        "present",
        "lesson",
        "step",
        "answer",
        "try",
    }
    assert not own & set(LINK_FIELDS)


# The controls


def check_stops(parameter, value, stops):
    """The promises of a logarithmic slider."""
    low, high = parameter.bounds
    assert stops == sorted(set(stops))
    assert stops[0] == low
    assert stops[-1] == high
    assert value in stops
    assert all(type(x) is (int if isinstance(parameter, Count) else float) or x == value for x in stops)
    ratios = [b / a for a, b in itertools.pairwise(stops)]
    # Two digits are kept, so that neighbours differ by about a fifth; whole numbers by one at least.
    most = 2.0 if isinstance(parameter, Count) else 1.35
    assert max(ratios) <= most
    if not isinstance(parameter, Count):
        assert len(stops) <= PER_DECADE * np.log10(high / low) + 4


@for_each(("name", "parameter"), LOGARITHMIC, ids=[name for name, _ in LOGARITHMIC])
def test_stops_of_logarithmic_sliders(name, parameter):
    low, high = parameter.bounds
    assert low > 0
    between = (low * high) ** 0.5 * 1.0123456
    for value in (parameter.default, low, high, round(between) if isinstance(parameter, Count) else between):
        check_stops(parameter, value, log_stops(parameter, value))


def test_the_check_of_stops_catches_a_linear_scale():
    parameter = dict(LOGARITHMIC)["sgld.step_size"]
    linear = np.linspace(*parameter.bounds, 77).tolist()
    with pytest.raises(AssertionError):
        check_stops(parameter, linear[3], linear)


@for_each("value", [0.0199999999, 0.02000000001, 0.02, 1e-6, 2.0, 0.123456789])
def test_a_slider_holds_the_value_of_the_link(value):
    """Values that look alike at six digits are still different stops."""
    parameter = dict(LOGARITHMIC)["sgld.step_size"]
    made = widget(parameter, value, lambda _: None)
    assert made.value == value
    assert value in list(made.options.values())


def every_parameter():
    for registry in (TARGETS, SAMPLERS, GRADIENTS):
        for cls in registry.values():
            for name, parameter in declared(cls):
                if cls is not RecipeSampler or name not in EDITED_ELSEWHERE:
                    yield pytest.param(parameter, id=f"{cls.key}.{name}")


@for_each("parameter", [*every_parameter()])
def test_every_parameter_has_a_control_with_help(parameter):
    heard = []
    made = widget(parameter, parameter.default, heard.append)
    assert made.name == parameter.label
    assert made.description == parameter.doc
    assert len(parameter.doc) > 5
    if isinstance(parameter, (Real, Count)):
        with param.edit_constant(made):
            if parameter.log:
                made.param.update(value=next(iter(made.options.values())), value_throttled=0)
            else:
                made.value_throttled = made.start if parameter.default == made.end else made.end
        assert heard, "the control does nothing"
        low, high = parameter.bounds
        assert low <= heard[-1] <= high


def test_every_stop_of_a_slider_is_heard():
    """A page names a place by its number among the options, whatever the value was, and may name one twice."""
    heard = []
    made = slider({f"{x}": x for x in (1, 2, 3, 4, 5, 6, 8)}, 4, heard.append)
    made.get_root()
    for place in (4, 3, 3, 6, 0):
        # While the handle is held, and when it is released.
        for name in ("value", "value_throttled"):
            made._process_events({name: place})
    assert heard == [5, 4, 4, 8, 1]
    # A client may send anything in the place's stead; what counts is the value.
    made._process_events({"value_throttled": "x"})
    assert heard[5:] == [1]


# The runner's account of the experiment, and the files made of it


def exported(state, steps, change=None):
    """The page's export after ``steps`` of its lanes, with a change of the first lane half way."""
    runner = Runner(state, Mock(spec=LiveScreen))
    runner.lanes = DensityLanes(state.experiment)
    for i, record in enumerate(runner.lanes.records):
        record.run.advance(steps // 2)
        if change and i == 0:
            record.run.change(change)
        record.run.advance(steps - steps // 2)
    return runner


SLOWER = Change(0, Choice("sgld", (("step_size", 0.005),)), Choice("full", ()))


def test_the_exported_experiment_gives_the_draws_of_the_page():
    state, _ = state_of("?target=quartic&lane=sgld~full&lane=hmc~full&seed=7&n_chains=3")
    runner = exported(state, 501, SLOWER)
    experiment = Experiment.from_json(runner.experiment().to_json())
    for spec, record in zip(experiment.runs(), runner.lanes.records, strict=True):
        trace = run(spec)
        np.testing.assert_array_equal(trace.draws[:, -1], record.run.position)
    # Without the change the draws are others: the comparison can fail.
    plain = replace(experiment, lanes=(replace(experiment.lanes[0], changes=()), *experiment.lanes[1:]))
    assert not np.array_equal(run(plain.runs()[0]).draws[:, -1], runner.lanes.runs[0].position)


def test_the_export_before_the_first_step_is_an_experiment():
    state = AppState()
    assert Experiment.from_json(exported(state, 0).experiment().to_json()).n_steps == 1


def menu_after(steps):
    """The export menu of a page that made so many steps, and what it says."""
    runner = exported(AppState(), 2)
    runner.lanes.runs[0].steps = steps
    runner.bus.send_file = AsyncMock()
    notify = Mock()
    return export.ExportMenu(runner.state, runner, notify), notify


@pytest.mark.parametrize(("port", "address"), [("5017", "http://10.0.0.5:5017/app"), ("", "http://10.0.0.5/app")])
def test_a_live_page_has_the_address_of_its_server(port, address, monkeypatch):
    """Planted fault: the address of a lab on the reader's computer."""
    made = Mock(return_value="")
    monkeypatch.setattr(export, "live_page", made)
    where = SimpleNamespace(protocol="http:", hostname="10.0.0.5", port=port, pathname="/app")
    monkeypatch.setattr(export, "pn", SimpleNamespace(state=SimpleNamespace(location=where)))
    menu, _ = menu_after(2)
    asyncio.run(menu._live())
    assert made.call_args.kwargs["lab"] == address


@pytest.mark.parametrize("other", ["127.0.0.2", "127.0.0.1"])
def test_no_address_waits_for_the_files_of_another(monkeypatch, other):
    """Fails where one address has all threads for files, or as many wait for it as it likes: its next one has a
    sentence. Fault: both are one address.
    """
    monkeypatch.setattr(export, "_WRITERS", Pool(1, "test", most_of_address=1, most_waiting=1))
    go_on, (menu, notify), (elsewhere, _) = threading.Event(), menu_after(2), menu_after(2)
    menu.runner.address, elsewhere.runner.address = "127.0.0.1", other

    async def make():
        files = [asyncio.create_task(menu._in_turn(partial(go_on.wait, 60)))]
        while not export._WRITERS._queue.running:
            await asyncio.sleep(0.01)
        files.append(asyncio.create_task(menu._in_turn(partial(go_on.wait, 60))))
        await asyncio.sleep(0)
        monkeypatch.setattr(export, "draws", Mock(return_value=("draws.csv", b"")))
        await menu._clicked({"label": "Draws (CSV)"})
        assert notify.call_args.args == ("error", export.TOO_MANY)
        try:
            return await elsewhere._in_turn(lambda: True)
        except FullError:
            return False
        finally:
            go_on.set()
            await asyncio.gather(*files)

    assert asyncio.run(make()) == (other != "127.0.0.1")


@for_each("steps", [10**7, 10**8, 5 * 10**9])
def test_the_json_of_a_long_run_can_be_read(steps):
    """The command line takes the file that the menu saves after a long run."""
    menu, _ = menu_after(steps)
    asyncio.run(menu._json())
    _, content = menu.runner.bus.send_file.await_args.args
    assert Experiment.from_json(content.decode()).n_steps == min(steps, 10**9)


def test_the_script_of_a_long_run_is_not_refused():
    menu, _ = menu_after(10**8)
    asyncio.run(menu._script())
    assert b"100,000,000 steps" in menu.runner.bus.send_file.await_args.args[1]


def test_draws_of_a_run_too_long_for_the_page_are_refused_with_advice():
    menu, notify = menu_after(10**8)
    asyncio.run(menu._draws(".csv"))
    menu.runner.bus.send_file.assert_not_awaited()
    kind, message = notify.call_args.args
    assert kind == "error"
    assert "100,000,000 steps" in message
    assert "python -m sgmcmc_lab.samplers run" in message


@for_each(("steps", "chains"), [(1, 1), (200_000, 1), (200_001, 1), (50_001, 4), (3, 10_000), (2000, 10_000)])
def test_files_hold_a_bounded_number_of_draws(steps, chains):
    saved = export.saved(replace(DEFAULT, n_steps=steps, n_chains=chains))
    kept = steps // saved.thin * chains
    assert 0 < kept <= export.MAX_ROWS
    assert kept >= min(steps * chains, export.MAX_ROWS // 2) * 0.9


def test_files_of_many_coordinates_hold_a_bounded_number_of_numbers():
    """Planted fault: as many draws as of few coordinates, of a hundred of which a file is 400 MB."""
    large = {"key": "logistic_large", "params": {"items": 5000, "features": 100}}
    whole = Experiment.from_dict({"target": large, "lanes": [{"sampler": "sgld"}], "n_steps": 200_000, "n_chains": 1})
    kept = 200_000 // export.saved(whole).thin * 100
    assert export.MAX_NUMBERS / 2 < kept <= export.MAX_NUMBERS < export.MAX_ROWS * 100


TWO_LANES = Experiment.from_dict(
    {
        "target": "sparse_dirichlet",
        "lanes": [{"sampler": "scir"}, {"sampler": "sgrld"}],
        "n_steps": 20,
        "n_chains": 2,
    }
)


def test_a_file_for_each_lane():
    name, content = export.draws(TWO_LANES, ".csv")
    assert name.endswith(".csv.zip")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["lane-1-scir.csv", "lane-2-sgrld.csv"]
        for spec, file in zip(TWO_LANES.runs(), archive.namelist(), strict=True):
            table = np.genfromtxt(io.BytesIO(archive.read(file)), delimiter=",", names=True)
            draws = run(spec).draws
            assert len(table) == 40
            np.testing.assert_array_equal(table["theta_1"], draws[..., 0].ravel())
            np.testing.assert_allclose(sum(table[f"omega_{j + 1}"] for j in range(10)), 1.0, rtol=1e-12)


@pytest.mark.slow
def test_the_netcdf_of_one_lane(tmp_path):
    experiment = replace(TWO_LANES, lanes=TWO_LANES.lanes[:1])
    name, content = export.draws(experiment, ".nc")
    (tmp_path / name).write_bytes(content)
    with xr.open_datatree(tmp_path / name) as tree:
        assert Experiment.from_json(tree.attrs["spec"]).lanes == experiment.lanes
        np.testing.assert_array_equal(tree["posterior"]["theta"], run(experiment.runs()[0]).draws)


def run_script(text, folder, *files):
    (folder / "experiment.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "experiment.py", *files],
        cwd=folder,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_script_makes_the_same_draws(tmp_path):
    """With a change on the way, and a lane of each kind of target values."""
    lanes = (Lane(DEFAULT.lanes[0].sampler, DEFAULT.lanes[0].gradient, (SLOWER._replace(step=30),)),)
    experiment = replace(DEFAULT, lanes=lanes, n_steps=60, seed=11)
    said = run_script(export.script(experiment), tmp_path)
    assert "60 draws of 4 chains" in said
    with xr.open_datatree(tmp_path / "lane-1-sgld.nc") as tree:
        np.testing.assert_array_equal(tree["posterior"]["theta"], run(experiment.runs()[0]).draws)


@pytest.mark.slow
def test_the_script_of_ones_own_table_takes_the_table(tmp_path):
    """Read as it was on the page, where the answer is another column than would be guessed."""
    content = b"effect,dose\n" + b"".join(b"%d,%d\n" % (k * k % 7, k) for k in range(12))
    (tmp_path / "trial.csv").write_bytes(content)
    table = keep(TARGETS["linear_table"].read({"trial.csv": content}, Format(column="effect")))
    target = {"key": "linear_table", "params": {"table": table.key}}
    experiment = Experiment.from_dict({"target": target, "lanes": [{"sampler": "sgld"}], "n_steps": 20})
    assert "20 draws of 4 chains" in run_script(export.script(experiment), tmp_path, "trial.csv")
    with xr.open_datatree(tmp_path / "lane-1-sgld.nc") as tree:
        np.testing.assert_array_equal(tree["posterior"]["theta"], run(experiment.runs()[0]).draws)
    with pytest.raises(AssertionError, match="the program does not contain it"):
        run_script(export.script(experiment), tmp_path)
    # Planted fault: the format is guessed again, and the digest is another table's.
    guessed = re.sub(r"form = .*", "form = Format()", export.script(experiment))
    with pytest.raises(AssertionError, match="somebody's own"):
        run_script(guessed, tmp_path, "trial.csv")


def test_a_typed_energy_has_no_minibatches():
    """Fails where a lane with a minibatch keeps its target from being typed, or loses more than its gradient."""
    lanes = [{"sampler": "recipe", "gradient": "minibatch_fisher"}, {"sampler": "sgld", "gradient": "gaussian"}]
    state = AppState(experiment=Experiment.from_dict({"target": "linear_regression", "lanes": lanes}))
    before = state.experiment.lanes
    state.type_energy()
    assert state.experiment.target.key == "typed"
    assert [lane.gradient.key for lane in state.experiment.lanes] == ["full", "gaussian"]
    assert [lane.sampler for lane in state.experiment.lanes] == [lane.sampler for lane in before]


@pytest.mark.slow
def test_another_value_of_a_target_leaves_a_step_that_was_chosen():
    """Only where the target becomes steeper, as with more data, is it made to fit; one that nobody chose goes along."""
    state = AppState(experiment=Experiment.from_dict({"target": "lasso", "lanes": [{"sampler": "sgld"}]}))
    state.set_lane_param(0, "sampler", "step_size", 1e-3)
    state.set_target_param("shrinkage", 6.0)
    assert state.experiment.lanes[0].sampler.values()["step_size"] == 1e-3
    state = AppState(experiment=Experiment.from_dict({"target": "logistic_large", "lanes": [{"sampler": "sgld"}]}))

    def step():
        return state.experiment.lanes[0].sampler.values()["step_size"]

    first = step()
    state.set_target_param("items", 100_000)
    assert step() == 1.6e-5
    state.set_target_param("items", 10_000)
    assert step() == first > 1.6e-5
    state.set_target("gaussian")
    assert step() == dict(declared(SAMPLERS["sgld"]))["step_size"].default
    state.set_lane_param(0, "sampler", "step_size", 2e-3)
    state.set_target("logistic_large")
    assert step() == first
    state.set_lane_param(0, "sampler", "step_size", first / 2)
    state.set_target_param("items", 1000)
    assert step() == first / 2, "it was chosen"


def test_a_typed_posterior_alone_goes_out_as_stan():
    """Fails where another target has the item, or the file is of another model than the page's."""
    menu, _ = menu_after(2)
    assert "Model (Stan)" not in menu.actions()
    menu.state.set_target("posterior")
    menu.state.set_target_param("table", "counts")
    asyncio.run(menu.actions()["Model (Stan)"][1]())
    name, content = menu.runner.bus.send_file.await_args.args
    assert name == "model.stan" and b"target += poisson_log_lpmf(y[n] | a + b * x[n]);" in content


def test_a_readout_breaks_between_its_numbers():
    """Fails where a number and its unit may stand on two lines."""
    text = with_rates("step 1,200", {"steps/s": 612.3, "frames/s": 30})
    assert text.split(" ") == [
        "step",
        "1,200",
        "·",
        "612\N{NO-BREAK SPACE}steps/s",
        "·",
        "30\N{NO-BREAK SPACE}frames/s",
    ]


def test_a_number_of_chains_that_nobody_chose_follows_the_samplers():
    """Fails where the first number of particles, or as many as a gradient allows, stays with another sampler."""
    state, _ = state_of("?target=logistic_large&lane=sgld~full")
    usual = state.experiment.n_chains
    state.set_sampler(0, "svgd")
    particles = state.experiment.n_chains
    state.set_gradient(0, "minibatch_saga")
    allowed = state.experiment.n_chains
    state.set_gradient(0, "full")
    assert usual < allowed < particles == state.experiment.n_chains
    state.set_sampler(0, "sgld")
    assert state.experiment.n_chains == usual
    state.set_chains(7)
    state.set_sampler(0, "svgd")
    assert state.experiment.n_chains == 7


def test_figures_stand_in_the_order_in_which_a_step_names_them():
    """Fails where they stand in the menu's. A view that the person adds comes last."""
    state = AppState()
    link.read_query(state, "?lesson=own&step=3")
    step = state.position.step
    assert state.shown_views() == [*step.views] == ["marginal", "state", "trace"]
    assert state.fitting_views().index("state") < state.fitting_views().index("marginal")
    state.views = [*state.views, "components"]
    assert state.shown_views() == [*step.views, "components"]


# --- step-size schedules -------------------------------------------------------------------------------------------


def test_a_schedule_is_of_a_lane_and_stays_with_samplers_that_have_a_step_size():
    state = AppState()
    state.set_schedule(0, "polynomial")
    state.set_lane_param(0, "schedule", "exponent", 0.5)
    assert state.experiment.lanes[0].schedule.values()["exponent"] == 0.5
    state.set_sampler(0, "sghmc")
    assert state.experiment.lanes[0].schedule.key == "polynomial"
    state.set_sampler(0, "exact")
    assert state.experiment.lanes[0].schedule.key == "constant"
    with pytest.raises(SpecError, match="has no step size"):
        state.set_schedule(0, "polynomial")


def test_lanes_with_different_schedules_have_different_titles():
    lanes = [{"sampler": "sgld"}, {"sampler": "sgld", "schedule": "polynomial"}]
    state = AppState(experiment=Experiment.from_dict({"target": "gaussian", "lanes": lanes}))
    assert state.lane_titles() == ("SGLD · constant ε", "SGLD · falling ε")
    state.set_schedule(0, "polynomial")
    state.set_lane_param(0, "schedule", "exponent", 0.5)
    assert state.lane_titles() == ("SGLD γ=0.5", "SGLD γ=0.333333")


def test_views_of_a_constant_step_are_not_offered_with_a_schedule():
    state = AppState()
    assert "order" in state.fitting_views()
    state.set_schedule(0, "polynomial")
    assert "order" not in state.fitting_views()
    state.set_lane_param(0, "schedule", "exponent", 0.0)
    assert "order" in state.fitting_views()
