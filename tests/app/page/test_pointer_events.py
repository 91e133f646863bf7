"""A click in a view puts the chains there, a drag throws them, moves a well or draws an energy."""

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from bokeh.document import Document

from sgmcmc_lab.app.page.pointer_events import PointerEvents, Touch, rounded
from sgmcmc_lab.app.server.message_filter import passed_on
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.app.views.base import CLICK, CURVE, HANDLE, MOST, THROW
from sgmcmc_lab.samplers import Experiment, Run, SpecError
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.base import MANIFOLD
from tests.helpers.checks_views import frames, records, scene_of

# The view, the target, a sampler, and where it is clicked.
CLICKED = [
    ("state", "double_well", "sgld", (0.7, 0.3)),
    ("state", "gamma", "cir", (-0.25, 0.1)),
    ("state", "banana", "sgld", (-0.6, 2.5)),
    ("state", "lasso", "hmc", (0.02, -0.1)),
    ("state", "sparse_dirichlet", "scir", (-5.0, -8.0)),
    ("circle", "circle_mixture", "sggmc", (-0.6, 0.8)),
    ("torus", "mises_posterior", "sggmc", (0.1, -0.3)),
    ("globe", "fisher", "gmc", (0.6, 0.0, 0.8)),
]


def clicked(key, target, sampler, point):
    """The view after a click, and the record of the lane that begins there."""
    (before,) = records(target, [sampler])
    view, spec = VIEWS[key](scene_of([before], 4 if target == "sparse_dirichlet" else 0)), before.run.spec
    assert CLICK in view.gestures
    start = rounded(view.start_at(point, spec.first_position()), TARGETS[target].support == MANIFOLD)
    data = Experiment.from_dict({**spec.to_dict(), "start": start})
    return view, records(target, [sampler], start=list(data.start))


@pytest.mark.slow
@pytest.mark.parametrize(("key", "target", "sampler", "point"), CLICKED)
def test_chains_are_seen_where_it_was_clicked(key, target, sampler, point):
    """Fails where a scale, an angle or a share is turned into another θ, or where nothing is seen before a step."""
    view, made = clicked(key, target, sampler, point)
    heads = np.array(view.compute(frames(made))["heads 0"])
    wanted = np.array(point)
    if key == "state" and target in ("double_well", "gamma"):
        # On a line the height is the density's.
        heads, wanted = heads[:1], wanted[:1]
    np.testing.assert_allclose(heads, np.repeat(wanted[:, None], heads.shape[1], axis=1), rtol=2e-3)
    # Planted fault: the target's own start is elsewhere.
    again = np.array(VIEWS[key](view.scene).compute(frames(records(target, [sampler])))["heads 0"])
    assert np.abs(again[: len(wanted)] - wanted[:, None]).max() > 0.02


def test_the_other_shares_keep_their_proportions():
    (record,) = records("sparse_dirichlet", ["scir"], target_params={"dimension": 5, "observed": [2, 2]})
    view = VIEWS["state"](scene_of([record]))
    before = np.arange(1.0, 6.0)
    start = view.start_at((np.log10(0.25), np.log10(0.5)), before)
    assert start.sum() == pytest.approx(before.sum())
    assert start[:2] / start.sum() == pytest.approx([0.25, 0.5])
    assert start[2:] / start[2:].sum() == pytest.approx(before[2:] / before[2:].sum())
    with pytest.raises(SpecError, match="together less than 1"):
        view.start_at((np.log10(0.5), np.log10(0.5)), before)


@pytest.mark.slow
@pytest.mark.parametrize(("key", "target", "sampler", "point"), CLICKED)
def test_beside_the_picture_nothing_is_put(key, target, sampler, point):
    (record,) = records(target, [sampler])
    view, before = VIEWS[key](scene_of([record])), record.run.spec.first_position()
    assert view.start_at(point[:1], before) is None
    assert view.start_at((*point, 1.0, 1.0), before) is None
    far = {"circle": (0.0, 0.0), "globe": (0.0, 0.0, 0.0)}.get(key, (1e5, 0.0))
    assert view.start_at(far, before) is None


class Asked(PointerEvents):
    """Clicks and drags in these views of a page."""

    def __init__(self, state, *views):
        self.runner, self.notify = Mock(views=list(views)), Mock()
        super().__init__(state, lambda: self.runner.views, lambda: state.position.waiting, self.notify)


@pytest.mark.slow
def test_a_click_asks_the_state_alone():
    """Fails where a click is taken that the link leaves out, or where a refused one changes something."""
    (record,) = records("double_well", ["sgld"])
    view, other = VIEWS["state"](scene_of([record])), VIEWS["ks"](scene_of([record]))
    state = AppState()
    state.set_target("double_well")
    page = Asked(state, view, other)
    for key in ("ks", "globe", "no view"):
        page.put_chains(key, [0.5, 0.1])
    assert state.experiment.start == ()
    page.put_chains("state", [0.123456, 0.1])
    assert state.experiment.start == (0.1235,)
    state.hidden = ["start"]
    page.put_chains("state", [0.5, 0.1])
    assert state.experiment.start == (0.1235,)
    state.hidden = []
    page.runner.views = [
        SimpleNamespace(key="state", gestures={CLICK}, start_at=lambda *_: np.array([1e9]), momentum_at=lambda *_: None)
    ]
    page.put_chains("state", [0.5, 0.1])
    page.notify.assert_called_once()
    assert state.experiment == replace(state.experiment, start=(0.1235,))


ODD = [None, 1, "state", {}, [], ["click"], ["click", "state"], ["click", "state", None], ["click", "state", "1"],
       ["click", "state", True], ["click", "state", [1.0]], [1.0, 2.0, 3.0], ["state", 1.0, 2.0], ["none", "state", 1.0],
       ["click", "state", 1.0, 2.0, 3.0, 4.0], [["click"], "state", 1.0], ["click", ["state"], 1.0], [None, "state", 1.0],
       ["click", "state", 10**400], ["click", "state", float("nan")], ["click", "state", -1e300],
       ["throw", "state", *[1.0] * 5], ["curve", "energy", *[1.0] * 401], ["curve", "energy", *[1.0] * 10**6]]  # fmt: skip


def test_what_is_no_gesture_is_passed_over():
    take = {done: Mock() for done in MOST}
    touch = Touch(take)
    for message in ODD:
        touch._handle_msg(message)
    for done, one in take.items():
        one.assert_not_called()
        touch._handle_msg([done, "state", 1, -0.5])
        one.assert_called_once_with("state", [1.0, -0.5])


def test_a_click_may_come_from_a_browser():
    """Fails where the guard refuses what the page's script sends, or takes it for another component."""
    document = Document()
    Touch({}).server_doc(doc=document)
    (model,) = (one for one in document.models if getattr(one, "class_name", "") == "Touch")

    def sent(data, name="data_event"):
        values = {"type": "map", "entries": [["model", {"id": model.id}], ["data", data]]}
        data = {"type": "event", "name": name, "values": values}
        event = {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": data}
        return passed_on(document, {"events": [event]}, ()) == [event]

    assert sent(["click", "state", 1.0, 2.0])
    # The longest curve that a page sends, and one that is longer than any.
    assert sent(["curve", "energy", *[-1.234567890123] * MOST["curve"]])
    assert not sent(["curve", "energy", *[0.5] * 10_000])
    assert not sent(["click", "state", float("nan"), 2.0])
    assert not sent(["click", "state", "x" * 70_000])
    assert not sent(["click", "state", 1.0], name="dom_event")


# Drags

THROWN = [
    # The view, the target, a sampler, the ends of a drag, and the momentum of each chain.
    ("state", "double_well", "sghmc", (0.5, 0.3, -0.25, 0.9), [-0.75]),
    ("state", "correlated_gaussian", "baoab", (0.5, 1.0, 1.5, -1.0), [1.0, -2.0]),
    ("energy", "double_well", "sghmc", (0.5, 1.0, 1.25, 4.0), [0.75]),
    ("circle", "circle_mixture", "sggmc", (1.0, 0.0, 1.6, 0.6), [0.0, 2.0]),
    ("torus", "mises_posterior", "sggmc", (0.0, 0.1, 0.3, 0.0), [0.0, 0.3, 0.1 * np.sin(0.1), -0.1 * np.cos(0.1)]),
]


def asked(key, target, sampler):
    """A page with one view, and the state that it asks."""
    made = records(target, [sampler])
    state = AppState()
    state.set_target(target)
    state.set_sampler(0, sampler)
    return Asked(state, VIEWS[key](scene_of(made))), state


@pytest.mark.slow
@pytest.mark.parametrize(("key", "target", "sampler", "ends", "momentum"), THROWN)
def test_a_drag_throws_the_chains(key, target, sampler, ends, momentum):
    """Fails where a drag begins elsewhere than it was seen to, or its momentum is another one in the run or link."""
    page, state = asked(key, target, sampler)
    assert THROW in page.runner.views[0].gestures
    page.throw_chains(key, list(ends))
    (spec,) = state.experiment.runs()
    assert spec.momentum == pytest.approx(momentum, abs=1e-9)
    run = Run(spec)
    np.testing.assert_allclose(run.momentum[:, : len(momentum)], np.tile(momentum, (4, 1)), atol=1e-8)
    assert Experiment.from_query(state.experiment.to_query(), state.experiment) == (state.experiment, [])
    # A click takes the momentum away again, and begins at the same place.
    page.put_chains(key, list(ends[:2]))
    assert (state.experiment.start, state.experiment.momentum) == (spec.start, ())


@pytest.mark.slow
def test_only_what_carries_a_momentum_can_be_thrown():
    page, state = asked("state", "double_well", "hmc")
    assert THROW not in page.runner.views[0].gestures
    page.throw_chains("state", [0.5, 0.1, 0.6, 0.1])
    assert state.experiment.momentum == ()
    # Nor where the link leaves the momentum out, or from beside the picture, or with a number too few.
    page, state = asked("state", "double_well", "sghmc")
    for ends in ([99.0, 0.1, 0.6, 0.1], [0.5, 0.1, 0.6], [0.5]):
        page.throw_chains("state", ends)
    state.hidden = ["momentum"]
    page.throw_chains("state", [0.5, 0.1, 0.6, 0.1])
    assert state.experiment.momentum == () and state.experiment.start == ()


@pytest.mark.slow
def test_a_click_in_the_phase_plane_gives_both():
    page, state = asked("phase", "correlated_gaussian", "sghmc")
    page.put_chains("phase", [0.5, -1.5])
    assert state.experiment.start[0] == 0.5 and state.experiment.momentum == (-1.5, 0.0)
    page, state = asked("phase", "double_well", "hmc")
    page.put_chains("phase", [0.5, -1.5])
    assert state.experiment.start == (0.5,) and state.experiment.momentum == ()


def test_another_space_takes_the_momentum_away():
    page, state = asked("state", "correlated_gaussian", "sghmc")
    page.throw_chains("state", [0.5, 0.5, 1.0, 1.0])
    state.set_target("double_well")
    assert state.experiment.momentum == ()


@pytest.mark.slow
def test_a_well_is_dragged():
    """Fails where another well moves, or the others do, or where the move is not the target's."""
    page, state = asked("state", "gaussian_mixture", "sgld")
    before = state.experiment.make_target().centres
    assert HANDLE in page.runner.views[0].gestures
    page.move_handle("state", [2.0, 1.0, -0.5])
    after = state.experiment.make_target().centres
    assert after[2].tolist() == [1.0, -0.5]
    np.testing.assert_allclose(np.delete(after, 2, 0), np.delete(before, 2, 0), atol=1e-3)
    assert Experiment.from_query(state.experiment.to_query(), state.experiment) == (state.experiment, [])
    # The well goes on with what was dragged before it.
    page.move_handle("state", [0.0, 3.0, 3.0])
    assert state.experiment.make_target().centres[[0, 2]].tolist() == [[3.0, 3.0], [1.0, -0.5]]
    there = state.experiment
    for odd in (
        [9.0, 0.0, 0.0],
        [-1.0, 0.0, 0.0],
        [0.5, 0.0, 0.0],
        [1.0, 99.0, 0.0],
        [1.0],
        [1.0, 2.0],
        [1e9, 1.0, 1.0],
    ):
        page.move_handle("state", odd)
    state.hidden = ["target.positions"]
    page.move_handle("state", [0.0, 1.0, 1.0])
    assert state.experiment == there


@pytest.mark.slow
def test_an_energy_is_drawn():
    """Fails where θ and U change places, or where what is refused changes something."""
    page, state = asked("energy", "typed", "sghmc")
    assert CURVE in page.runner.views[0].gestures
    theta = np.linspace(-2, 2, 150)
    page.draw_energy("energy", np.stack([theta, 2 * theta**2 - 1], axis=1).ravel().tolist())
    target = state.experiment.make_target()
    off = target._energy_at(theta[:, None]) - (2 * theta**2 - 1)
    assert np.abs(off).max() < 0.1
    assert Experiment.from_query(state.experiment.to_query(), state.experiment) == (state.experiment, [])
    there = state.experiment
    for odd in ([0.0], [0.0, 1.0], [0.0, 1.0] * 100, list(np.linspace(-90, 90, 60))):
        page.draw_energy("energy", odd)
    assert page.notify.call_count == 4
    state.hidden = ["target"]
    page.draw_energy("energy", np.stack([theta, theta**2], axis=1).ravel().tolist())
    assert state.experiment == there
    # Other energies are what they are.
    page, _ = asked("energy", "double_well", "sgld")
    assert CURVE not in page.runner.views[0].gestures
