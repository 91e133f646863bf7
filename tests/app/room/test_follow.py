"""A follower of a room has the teacher's experiment, step and views, and keeps her own settings."""

import re

import pytest

from sgmcmc_lab.app import link
from sgmcmc_lab.app.state import AppState
from tests.helpers.cases import for_each

pytestmark = pytest.mark.filterwarnings("ignore:Both 'name' and 'label' were provided:PendingDeprecationWarning")

LEADS = [
    "?target=quartic&lane=sgld(step_size:0.03)&lane=hmc&views=ks,trace&axis=gradients&seed=5&play=0",
    "?lesson=langevin&step=2&theme=dark&teacher=1&present=1&hide=export",
    "?lesson=langevin&step=2&try=1&views=ks",
    "?lesson=langevin&step=1&answer=1&lane=sgld(step_size:0.2)",
    "?target=network&views=graph&slow=0",
    "?target=gaussian&slow=4",
]
OWN = "?theme=dark&hide=readout&room=k7mq2x9d"


def opened(query):
    state = AppState()
    assert link.read_query(state, query) == []
    return state


@for_each("lead", LEADS)
def test_a_student_has_what_the_teacher_shows_and_keeps_her_own(lead):
    teacher, student = opened(lead), opened(OWN)
    shown = link.to_lead(teacher)
    # One after the other, as a class goes: nothing is left of what was there before.
    for query in (*LEADS, lead):
        assert link.follow(student, link.to_lead(opened(query))) == []
    found = link.to_lead(student)
    # A question that the student has not answered keeps her page waiting.
    plain = re.compile("&play=0|&resets=[0-9]+")
    assert plain.sub("", found) == plain.sub("", shown)
    assert student.experiment == teacher.experiment
    assert (student.dark, student.hidden, student.room, student.present, student.teacher) == (
        True,
        ["readout"],
        "k7mq2x9d",
        False,
        False,
    )


def test_another_step_size_goes_on_with_the_same_run():
    student, teacher = opened(""), opened("?lane=sgld(step_size:0.02)")
    link.follow(student, link.to_lead(teacher))
    resets = student.resets
    teacher.set_lane_param(0, "sampler", "step_size", 0.05)
    link.follow(student, link.to_lead(teacher))
    assert student.experiment == teacher.experiment
    assert student.resets == resets
    # A reset is followed, once, and asks for no other short link.
    shared = link.to_share(teacher)
    teacher.reset()
    assert link.to_share(teacher) == shared != link.to_lead(teacher)
    for _ in range(2):
        link.follow(student, link.to_lead(teacher))
        assert student.resets == resets + 1


def test_hostile_values_are_refused_as_in_links():
    student = opened(OWN)
    said = link.follow(student, "?target=quartic&lane=sgld(step_size:1e9)&views=nothing&speed=-1&evil=1&lesson=nowhere")
    for name in ("step_size", "views = 'nothing'", "speed = '-1'", "evil", "lesson = 'nowhere'"):
        assert any(name in sentence for sentence in said), name
    assert not student.playing
    assert student.experiment.lanes[0].sampler.values()["step_size"] < 1e9


@for_each("code", ["K7MQ2X9D", "k7mq2x9", "<i class=typed>", "k" * 500])
def test_a_forged_room_in_a_link_is_said(code):
    state = AppState()
    (said,) = link.read_query(state, f"?room={code}")
    assert said.startswith("room = ")
    assert not state.room
