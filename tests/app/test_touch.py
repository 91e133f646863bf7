"""A click or a tap in a view puts the chains there."""

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from bokeh.document import Document

from app.guard.writes import passed_on
from app.session import Session, rounded
from app.state import AppState
from app.touch import Touch
from app.views import VIEWS
from samplers import Experiment, SpecError
from samplers.targets import TARGETS
from samplers.targets.base import MANIFOLD
from tests.checks_views import frames, records, scene_of

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
    assert view.touchable
    start = rounded(view.start_at(point, spec.first_position()), TARGETS[target].support == MANIFOLD)
    data = Experiment.from_dict({**spec.to_dict(), "start": start})
    return view, records(target, [sampler], start=list(data.start))


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


@pytest.mark.parametrize(("key", "target", "sampler", "point"), CLICKED)
def test_beside_the_picture_nothing_is_put(key, target, sampler, point):
    (record,) = records(target, [sampler])
    view, before = VIEWS[key](scene_of([record])), record.run.spec.first_position()
    assert view.start_at(point[:1], before) is None
    assert view.start_at((*point, 1.0, 1.0), before) is None
    far = {"circle": (0.0, 0.0), "globe": (0.0, 0.0, 0.0)}.get(key, (1e5, 0.0))
    assert view.start_at(far, before) is None


def session(state, *views):
    """What of a page a click asks."""
    return Mock(state=state, runner=Mock(views=views), question_first=lambda: state.place.waiting)


def test_a_click_asks_the_state_alone():
    """Fails where a click is taken that the link leaves out, or where a refused one changes something."""
    (record,) = records("double_well", ["sgld"])
    view, other = VIEWS["state"](scene_of([record])), VIEWS["ks"](scene_of([record]))
    state = AppState()
    state.set_target("double_well")
    page = session(state, view, other)
    for key in ("ks", "globe", "no view"):
        Session.put_chains(page, key, [0.5, 0.1])
    assert state.experiment.start == ()
    Session.put_chains(page, "state", [0.123456, 0.1])
    assert state.experiment.start == (0.1235,)
    state.hidden = ["start"]
    Session.put_chains(page, "state", [0.5, 0.1])
    assert state.experiment.start == (0.1235,)
    state.hidden = []
    page.runner.views = [SimpleNamespace(key="state", touchable=True, start_at=lambda *_: np.array([1e9]))]
    Session.put_chains(page, "state", [0.5, 0.1])
    page.notify.assert_called_once()
    assert state.experiment == replace(state.experiment, start=(0.1235,))


ODD = [None, 1, "state", {}, [], ["state"], ["state", None], ["state", "1"], ["state", True], ["state", [1.0]], [1.0, 2.0],
       ["state", 1.0, 2.0, 3.0, 4.0], [["state"], 1.0], ["state", 10**400], ["state", float("nan")], ["state", -1e300]]  # fmt: skip


def test_what_is_no_click_is_passed_over():
    take = Mock()
    touch = Touch(take)
    for message in ODD:
        touch._handle_msg(message)
    take.assert_not_called()
    touch._handle_msg(["state", 1, -0.5])
    take.assert_called_once_with("state", [1.0, -0.5])


def test_a_click_may_come_from_a_browser():
    """Fails where the guard refuses what the page's script sends, or takes it for another component."""
    document = Document()
    Touch(Mock()).server_doc(doc=document)
    (model,) = (one for one in document.models if getattr(one, "class_name", "") == "Touch")

    def sent(data, name="data_event"):
        values = {"type": "map", "entries": [["model", {"id": model.id}], ["data", data]]}
        data = {"type": "event", "name": name, "values": values}
        event = {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": data}
        return passed_on(document, {"events": [event]}, ()) == [event]

    assert sent(["state", 1.0, 2.0])
    assert not sent(["state", float("nan"), 2.0])
    assert not sent(["state", "x" * 70_000])
    assert not sent(["state", 1.0], name="dom_event")
