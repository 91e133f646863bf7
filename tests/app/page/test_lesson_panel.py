"""Lessons on the page, without a browser: the link, the controls of a step, prose, live claims, broken files."""

import asyncio
import itertools
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Coroutine
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock, patch

import panel as pn
import panel_material_ui as pmui
import param
import pytest

from sgmcmc_lab.app import link
from sgmcmc_lab.app.lesson import course, headless_claims
from sgmcmc_lab.app.lesson.catalogue import Catalogue, about, broken, hours, item, terms
from sgmcmc_lab.app.lesson.marks import marks, summary
from sgmcmc_lab.app.lesson.names import names
from sgmcmc_lab.app.lesson.numbers import Numbers
from sgmcmc_lab.app.lesson.position import SKIPPED, CoursePosition
from sgmcmc_lab.app.lesson.progress import ProgressStore, outcome
from sgmcmc_lab.app.lesson.prose import as_html, as_words, in_line
from sgmcmc_lab.app.lesson.rules import is_hidden
from sgmcmc_lab.app.live.fair_executor import Pool
from sgmcmc_lab.app.live.lanes import scene_of
from sgmcmc_lab.app.page import measuring
from sgmcmc_lab.app.page.controls import Controls
from sgmcmc_lab.app.page.lesson_panel import Anchor, LessonPanel, Option
from sgmcmc_lab.app.page.measuring import Measuring
from sgmcmc_lab.app.page.notice import Notice
from sgmcmc_lab.app.page.shell import WELCOME
from sgmcmc_lab.app.state import AppState, first_coordinate, first_speed
from sgmcmc_lab.app.views import VIEWS, coordinates, theme
from sgmcmc_lab.lessons import headless, read
from sgmcmc_lab.lessons import outline as outline_module
from sgmcmc_lab.lessons.headless import run_step
from sgmcmc_lab.lessons.library import VARIABLE, load_outlines
from sgmcmc_lab.lessons.live import filled
from sgmcmc_lab.lessons.measures.base import Estimate
from sgmcmc_lab.lessons.outline import outline
from sgmcmc_lab.samplers import Experiment, Run, SpecError
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.lanes import first_lanes
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.course import LESSONS

# Panel 1.9 says so of every Material widget that is given a name, whatever the app does.
pytestmark = pytest.mark.filterwarnings("ignore:Both 'name' and 'label' were provided:PendingDeprecationWarning")

HEAD = '+++\ntitle = "Mine"\nminutes = 5\n+++\n\n## One\n\nText.\n\n```toml\n'
GOOD = """views = ["marginal"]
controls = ["lane2.sampler.step_size", "n_chains"]

[experiment]
target = "gaussian"
lanes = ["sgld(step_size:0.05)~full", "sgld(step_size:0.1)~full"]
n_chains = 64
n_steps = 4000
burn_in = 100

[quick]
n_steps = 1000

[question]
ask = "What?"
options = [{ text = "$$x$$", reply = "Less than that." }, "That", { text = "More", reply = "Less than this." }]
answer = 2
why = "So."
by = "definition"

[[claim]]
says = "True."
measure = "variance"
equals = 1.0256410
errors = 4
tolerance = 0.02

[[claim]]
says = "False."
measure = "variance"
lane = 2
equals = 5
tolerance = 0.1

[[claim]]
says = "Of all draws."
measure = "chain_ks"
below = 1

[[claim]]
says = "A ratio."
measure = "variance"
lane = 2
against = 1
above = 0.9
```
"""
ON_MODEL = """views = ["scores"]
controls = ["lane2.sampler.step_size", "seed"]
[experiment]
target = "topics"
lanes = {lanes}
```
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A teacher's own folder with a lesson of two steps: the second changes a step size. Nobody saw a run of it."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(headless_claims, "_PROOFS", OrderedDict())
    again = '\n## Two\n\nMore.\n\n```toml\nviews = ["trace"]\n[change]\nlane1.sampler.step_size = 0.2\n```\n'
    (tmp_path / "01-mine.md").write_text(HEAD + GOOD + again, encoding="utf-8")
    keys = [lane["sampler"] for lane in first_lanes("topics")]
    (tmp_path / "02-real.md").write_text(HEAD + ON_MODEL.format(lanes=keys), encoding="utf-8")
    return tmp_path


@pytest.fixture
def mine(folder):
    return read(folder / "01-mine.md")


def state_of(query):
    state = AppState()
    return state, link.read_query(state, query)


def open_in(state, lesson, number=1):
    state.position.open(lesson, number)
    state.follow(lesson.steps[number - 1])


# The place and the link


def test_a_lesson_opens_at_its_own_experiment_and_waits_for_the_answer(mine):
    state, messages = state_of("?lesson=mine")
    assert messages == []
    assert state.experiment == mine.steps[0].spec
    assert state.experiment.burn_in == 100
    assert state.speed == 20
    long = replace(mine.steps[0], spec=replace(mine.steps[0].spec, burn_in=29_000))
    assert first_speed(long) == 200, "a long burn-in is over soon"
    assert state.shown_views() == ["marginal"]
    assert state.position.waiting
    assert not state.playing
    # Only an answer, or skipping it, ends the wait; no link can.
    again, _ = state_of("?lesson=mine&play=1")
    assert not again.playing
    again, _ = state_of("?lesson=mine&answer=1")
    assert again.playing


@for_each(
    ("number", "answer", "free", "present"), list(itertools.product((1, 2), (None, 0, 2), (False, True), (False, True)))
)
def test_the_link_keeps_the_place(mine, number, answer, free, present):
    state = AppState()
    open_in(state, mine, number)
    if answer is not None and number == 1:
        state.position.reply(answer)
        state.playing = True
    if free:
        state.position.try_it()
    state.present = present
    query = link.to_query(state)
    again, messages = state_of(query)
    assert messages == []
    names = ("experiment", "views", "axis", "coordinate", "speed", "present", "playing")
    assert {name: getattr(again, name) for name in names} == {name: getattr(state, name) for name in names}
    assert (again.position.lesson, again.position.number) == (mine, number)
    assert (again.position.answer, again.position.free) == (state.position.answer, free)
    assert link.to_query(again) == query


def test_the_link_holds_the_experiment_only_where_it_is_not_the_steps(mine):
    state = AppState()
    open_in(state, mine)
    assert "lane=" not in link.to_query(state)
    state.set_lane_param(1, "sampler", "step_size", 0.3)
    assert "lane=" in link.to_query(state)
    again, messages = state_of(link.to_query(state))
    assert messages == []
    assert again.experiment == state.experiment, "run lengths too"
    # A link that names only a seed changes only the seed.
    again, _ = state_of("?lesson=mine&seed=7")
    assert again.experiment == replace(mine.steps[0].spec, seed=7)


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("?lesson=nothing", ["lesson", "nothing", "mine"]),
        ("?lesson=" + "x" * 3000, ["lesson", "xxx"]),
        ("?lesson=mine&step=3", ["step", "'3'", "1 to 2", "step 2"]),
        ("?lesson=mine&step=0", ["step", "1 to 2", "step 1"]),
        ("?lesson=mine&step=one", ["step", "one"]),
        ("?lesson=mine&step=²", ["step", "²"]),
        ("?lesson=mine&answer=4", ["answer", "options"]),
        ("?lesson=mine&answer=x", ["answer"]),
        ("?lesson=mine&step=2&answer=1", ["answer", "1"]),
        ("?lesson=mine&try=yes", ["try", "yes"]),
        ("?step=2", ["step", "lesson"]),
        ("?present=maybe", ["present", "maybe"]),
        ("?lesson=mine&views=components", ["components", "marginal"]),
    ],
)
def test_a_bad_link_gets_a_sentence(folder, query, parts):
    state, messages = state_of(query)
    assert all(part in " ".join(messages) for part in parts), messages
    assert all(len(message) < 500 for message in messages)
    again, none = state_of(link.to_query(state))
    assert none == []
    assert again.experiment == state.experiment


def test_a_sampler_has_the_lessons_name_while_it_is_the_lessons(folder):
    """Fails where the page calls the samplers of a step otherwise than its text does, or goes on when one is other."""
    named = GOOD.replace("[experiment]", 'names = ["small", "large"]\n\n[experiment]', 1)
    (folder / "03-named.md").write_text(HEAD + named, encoding="utf-8")
    state, messages = state_of("?lesson=named")
    assert not messages
    assert state.lane_titles() == ("small", "large")
    state.set_lane_param(1, "sampler", "step_size", 0.2)
    assert state.lane_titles() == ("small", "SGLD ε=0.2")
    state.position.leave()
    assert state.lane_titles() == ("SGLD ε=0.05", "SGLD ε=0.2")


def test_the_page_of_a_model_keeps_its_place(folder):
    state, messages = state_of("?lesson=real")
    assert messages == []
    assert state.position.step.spec.of_model
    assert state.experiment == state.position.step.spec
    assert "target=" not in link.to_query(state)
    state.set_seed(9)
    again, messages = state_of(link.to_query(state))
    assert messages == []
    assert again.experiment == replace(state.experiment, lanes=again.experiment.lanes)
    assert again.lane_titles() == state.lane_titles()
    assert again.position.step == state.position.step


def test_answers_are_kept_from_step_to_step(mine):
    position = CoursePosition()
    position.open(mine, 1)
    position.reply(1)
    position.open(mine, 2)
    assert position.answer is None
    assert not position.waiting, "there is no question"
    with pytest.raises(SpecError, match="answer"):
        position.reply(SKIPPED)
    position.open(mine, 1)
    assert position.answer == 1
    position.leave()
    assert position.to_fields() == {}


def test_every_state_of_the_place_is_in_the_link():
    """Every parameter of CoursePosition is in the link, or is listed here."""
    assert set(CoursePosition.param) - {"name"} == {"lesson", "number", "answer", "free", "everything"}


# Controls


def labels(panel):
    """The labels of the widgets that the controls show."""
    return {
        str(one.label).partition(" ")[0]
        for one in panel.panel.select(lambda o: isinstance(o, pmui.base.MaterialComponent))
        if getattr(one, "label", "")
    }


@pytest.mark.slow
def test_a_step_shows_its_own_controls_and_the_person_frees_the_rest(mine):
    state = AppState()
    own, all_ = Controls(state, print, of_lesson=True), Controls(state, print)
    assert labels(own) == set()
    assert {"Target", "Sampler", "Step", "Chains", "Seed", "Add", "Recipe"} <= labels(all_)
    open_in(state, mine)
    assert labels(all_) == set()
    assert labels(own) == {"Step", "Chains"}
    steps = own.panel.select(lambda o: isinstance(o, pmui.DiscreteSlider) and o.label.startswith("Step"))
    assert [one.value for one in steps] == [0.1], "the second lane's only"
    state.position.try_it()
    assert labels(own) == set()
    assert {"Target", "Sampler", "Chains"} <= labels(all_)
    # The next step's controls show the next step's values.
    with pn.io.hold():
        open_in(state, mine, 2)
    steps = own.panel.select(lambda o: isinstance(o, pmui.DiscreteSlider) and o.label.startswith("Step"))
    assert [one.value for one in steps] == [0.1]
    assert state.experiment.lanes[0].sampler.values()["step_size"] == 0.2


@pytest.mark.slow
def test_the_controls_of_a_model(folder):
    state, _ = state_of("?lesson=real")
    own, all_ = Controls(state, print, of_lesson=True), Controls(state, print)
    assert labels(all_) == set()
    assert "Seed" in labels(own)
    assert "Target" not in labels(own)
    state.position.try_it()
    assert labels(own) == set()
    assert {"Target", "Method", "Seed"} <= labels(all_)


@pytest.mark.slow
@for_each("sampler", [key for key in SAMPLERS if key != "recipe"])
def test_every_parameter_of_a_sampler_is_in_the_sidebar(sampler):
    """Fails where a parameter has the name of one that is hidden for another sampler."""
    target = next(key for key, cls in TARGETS.items() if SAMPLERS[sampler].fits(cls))
    state, messages = state_of(f"?target={target}&lane={sampler}")
    assert messages == []
    shown = {one.label for one in Controls(state, print).panel.select(lambda o: hasattr(o, "label"))}
    assert {parameter.label for _, parameter in declared(SAMPLERS[sampler])} <= shown


@for_each(
    ("hide", "gone"),
    [
        ("target", {"Target", "Mean", "Standard"}),
        ("sampler", {"Sampler", "Step"}),
        ("sampler.step_size", {"Step"}),
        ("lane1.sampler.step_size", {"Step"}),
        ("gradient", {"Gradient"}),
        ("n_chains", {"Chains"}),
        ("seed", {"Seed"}),
        ("lanes", {"Add"}),
        ("workbench", {"Recipe"}),
        ("pages", {"Models"}),
    ],
)
def test_a_link_hides_any_group_of_controls(hide, gone):
    shown = labels(Controls(AppState(), print))
    state, messages = state_of(f"?hide={hide}")
    assert messages == []
    left = labels(Controls(state, print))
    assert left == shown - gone
    assert left != shown
    assert f"hide={hide}" in link.to_query(state)


@pytest.mark.slow
def test_what_goes_on_being_needed_stays_in_the_sidebar():
    def widgets(kind=pn.widgets.Widget):
        return [one for one in shown.panel.select(kind) if "Add a sampler" not in one.label]

    def steps():
        return [one for one in widgets(pmui.DiscreteSlider) if one.label == "Step size ε"]

    state, _ = state_of("?lane=sgld(step_size:0.1)&lane=sgld(step_size:0.2)")
    shown = Controls(state, print)
    before = widgets()
    # Another lane: a menu that is open now stays so.
    state.add_lane()
    assert set(before) <= set(widgets())
    sliders = steps()
    assert [one.value for one in sliders] == [0.1, 0.2, 0.1]
    # The second takes the place of the first.
    state.remove_lane(0)
    assert [one.value for one in steps()] == [0.2, 0.1]
    assert steps()[0] is sliders[0]
    # A slider shows a change that was made elsewhere, even if it has no stop for the value.
    state.set_lane_param(1, "sampler", "step_size", 0.2)
    assert steps()[1].value == 0.2
    state.set_lane_param(0, "sampler", "step_size", 0.1234)
    assert [one.value for one in steps()] == [0.1234, 0.2]
    assert 0.1234 in steps()[0].options.values(), "the page shows the first value for one that is not listed"
    state.set_seed(7)
    assert [one.value for one in shown.panel.select(pmui.TextInput) if one.label == "Seed"] == ["7"]
    assert before[0] is widgets()[0]
    # An error stands on its lane's card only.
    first, second = steps()
    shown.show_error(0, "It diverged.")
    assert "It diverged." in [one.object for one in shown.panel.select(Notice)]
    assert (steps()[0] is first, steps()[1] is second) == (False, True)
    shown.clear_errors()
    assert not shown.panel.select(Notice)


@pytest.mark.slow
@pytest.mark.parametrize(("label", "went"), [("Step size ε", 9), ("Mean μ", 0.4)])
def test_a_slider_is_not_put_back_under_the_hand_that_is_on_it(label, went):
    """Its value arrives while it is dragged, and is applied on release; the page may be drawn again in between."""
    state, _ = state_of("?target=gaussian&lane=sgld(step_size:0.1)")
    waiting = []
    shown = Controls(state, print, later=waiting.append)
    (made,) = (one for one in shown.panel.select(pn.widgets.Widget) if one.label == label)
    made.get_root()

    def go(place, *names):
        for name in names:
            made._process_events({name: place})

    def draw():
        while waiting:
            waiting.pop()()

    first = made.value
    go(went, "value", "value_throttled")
    second = made.value
    go(went / 2 if isinstance(went, float) else went - 1, "value")
    third = made.value
    assert len({first, second, third}) == 3
    # The requested value is drawn while the handle is elsewhere already.
    draw()
    assert made.value == third
    go(went / 2 if isinstance(went, float) else went - 1, "value_throttled")
    draw()
    now = state.experiment
    held = now.lanes[0].sampler.values()["step_size"] if went == 9 else now.target.values()["mean"]
    assert held == made.value == third
    # A change made elsewhere is shown, with the pointer on the widget or without.
    go(went, "value")
    state.set_lane_param(0, "sampler", "step_size", 0.2)
    state.set_target_param("mean", -1.0)
    draw()
    assert made.value == (0.2 if went == 9 else -1.0)


@pytest.mark.parametrize("query", ["?target=typed(energy:theta^4;extent:3)&lane=sgld", "?target=sparse_dirichlet"])
def test_a_text_follows_what_is_typed_elsewhere_and_keeps_what_was_refused(query):
    state, _ = state_of(query)
    shown = Controls(state, lambda *_: None)
    (box,) = (one for one in shown.panel.select(pmui.TextInput) if one.label.startswith(("Energy U", "Counts")))
    name, good = ("energy", "4 * theta^2") if "Energy" in box.label else ("observed", (3, 0, 1))
    was = box.value
    state.set_target_param(name, good)
    (now,) = (one for one in shown.panel.select(pmui.TextInput) if one.label == box.label)
    assert now.value == ("4 * theta^2" if name == "energy" else "3, 0, 1")
    assert was != now.value
    if name == "energy":
        now.value = "theta^2 +"
        state.set_seed(5)
        assert now in shown.panel.select(pmui.TextInput)
        assert now.value == "theta^2 +"


@pytest.mark.slow
@pytest.mark.parametrize("query", ["", "?target=topics"])
@pytest.mark.parametrize("typed", ["twelve", "", "1.5", "-1", "4294967296"])
def test_a_seed_that_is_no_whole_number_is_refused_in_a_sentence(query, typed):
    def seed():
        (box,) = (one for one in shown.panel.select(pmui.TextInput) if one.label == "Seed")
        return box

    state, _ = state_of(query)
    said, first = [], str(state.seed)
    shown = Controls(state, lambda kind, text: said.append((kind, text)))
    seed().value = typed
    sentence = f"seed = {typed!r}: allowed is a whole number from 0 to 4,294,967,295."
    # The text stays, to be mended.
    assert (said, seed().value, str(state.seed)) == ([("error", sentence)], typed, first)
    assert seed().error_state
    seed().value = " 12 "
    assert (state.seed, seed().value, len(said)) == (12, "12", 1)
    assert not seed().error_state


@pytest.mark.parametrize(
    ("query", "label", "typed", "sentence", "good", "shown_as", "elsewhere"),
    [
        ("?target=quartic", "Start", "0.5, x", "start = '0.5, x'", "0.5,1", "0.5, 1", ("set_start", (2.0, -1.0))),
        (
            "?target=sparse_dirichlet",
            "Counts",
            "1, -2, 3",
            "target.observed = '1, -2, 3': allowed are",
            "1,2,3",
            "1, 2, 3",
            ("set_target_param", "observed", (4, 0, 1)),
        ),
    ],
)
def test_refused_numbers_stay_until_they_are_mended_or_others_are_chosen(
    query, label, typed, sentence, good, shown_as, elsewhere
):
    """Fails where a list is gone when one number of it is refused, or hides numbers that a click chose afterwards."""
    state, _ = state_of(query)
    said = []
    shown = Controls(state, lambda kind, text: said.append(text))

    def box():
        return next(one for one in shown.panel.select(pmui.TextInput) if one.label.startswith(label))

    before = state.experiment
    box().value = typed
    assert said[-1].startswith(sentence) and state.experiment == before
    assert (box().value, box().error_state) == (typed, True)
    state.set_seed(5)
    assert box().value == typed
    box().value = good
    assert (box().value, box().error_state, said[1:]) == (shown_as, False, [])
    box().value = typed
    assert box().error_state
    change, *values = elsewhere
    getattr(state, change)(*values)
    assert (box().value, box().error_state) == (", ".join(f"{x:g}" for x in values[-1]), False)


@for_each("hide", ["nothing", "sampler.nothing", "lane3.sampler.step_size", "target.corpus", "components.x"])
def test_what_cannot_be_hidden_is_named(hide):
    state, messages = state_of(f"?hide={hide},ks")
    assert hide in messages[0]
    assert len(messages) == 1
    assert state.hidden == ["ks"]
    assert "ks" not in state.fitting_views()


def test_a_group_hides_what_is_in_it():
    assert is_hidden("lane2.sampler.step_size", ["sampler"])
    assert is_hidden("target.corpus", ["target"])
    assert not is_hidden("lane2.sampler.step_size", ["lane1.sampler.step_size", "target"])


def test_a_lesson_may_leave_entries_of_a_recipe_to_the_student(mine):
    state = AppState()
    state.open_workbench()
    own = Controls(state, lambda kind, message: messages.append(message), of_lesson=True)
    messages = []
    step = replace(mine.steps[0], spec=state.experiment, controls=("lane1.sampler.diffusion_entries",), question=None)
    open_in(state, replace(mine, steps=(step,)))
    boxes = {box.label: box for box in own.panel.select(pmui.TextInput)}
    assert list(boxes) == ["D θ θ", "D θ r", "D r r"]
    boxes["D r r"].value = "2 + theta^2"
    assert state.experiment.lanes[0].sampler.values()["diffusion_entries"][2] == "2 + theta^2"
    # A refused value is reported, and stays for correction.
    boxes["D r r"].value = "2 + nonsense("
    assert boxes["D r r"].error_state
    assert messages
    boxes["D θ θ"].value = "1"
    assert state.experiment.lanes[0].sampler.values()["diffusion_entries"] == ("1", "0", "2 + theta^2")


# Prose


def test_formulas_survive_markdown():
    html = as_html("A *word* and $$a_1 * b_2 * c < d$$ in line.\n\n$$x_1 \\qquad y_{\\qquad}$$\n\nEnd <b>bold</b>.")
    assert "<em>word</em>" in html
    assert r"\(a_1 * b_2 * c \lt  d\)" in html
    assert r"$$\begin{array}{l}\displaystyle x_1\\[.5em] \displaystyle y_{\qquad}\end{array}$$" in html
    assert "&lt;b&gt;" in html, "no HTML of the file's own"
    assert in_line("It is $$\\epsilon$$ here.") == r"It is \(\epsilon\) here."
    # No line begins with the full stop of a formula.
    assert in_line("It is $$\\epsilon$$.") == r"It is <span style='white-space:nowrap'>\(\epsilon\).</span>"
    for part in (r"\leftarrow", r"\left(x\right)", r"\begin{matrix}x\end{matrix}"):
        assert as_html(f"$$r {part} 1 \\qquad v = 2$$").count(r"\displaystyle") == 2, part
    assert r"\displaystyle" not in as_html("$$r \\left(1 \\qquad v = 2\\right)$$"), "not within brackets"
    assert as_words('"a" `b` $$c$$') == '"a" b c'


def test_a_term_is_explained_where_it_first_stands_in_a_step():
    explained = set()
    html = as_html("SGLD, `SGLD`, [HMC](https://x.org) and SGLD again; $$HMC$$.\n\nHMC & <b>.", explained)
    assert html.count("role='tooltip'") == 2
    assert html.count("<dfn class='term' tabindex='0' aria-describedby='term-1'>SGLD<span") == 1
    assert "See its introduction" in html
    assert "<code>SGLD</code>" in html
    assert '<a href="https://x.org">HMC</a>' in html
    assert "&amp; &lt;b&gt;" in html
    assert {term.name for term in explained} == {"SGLD", "HMC"}
    assert "term" not in in_line("More of SGLD.", explained)
    assert "term" not in as_html("SGLD")
    assert "Γ" in terms().object
    assert "?lesson=recipe-d&amp;step=1" in terms().object


@for_each("text", ["<script>x</script>", "[a](javascript:alert(1))", "$$<img src=x>$$", "`<b>`", "\ue0000\ue001"])
def test_no_text_becomes_code(text):
    html = as_html(text)
    assert not any(sign in html for sign in ("<script", "<img", "<b>", 'href="javascript'))


# Claims on a live run


def run_of(experiment, steps):
    runs = [Run(spec) for spec in experiment.runs()]
    for run in runs:
        run.advance(steps)
    return runs


def states(step, experiment, runs):
    return [mark.state for mark in marks(step, experiment, runs)]


def test_claims_are_pending_then_hold_or_fail(mine):
    step = mine.steps[0]
    assert states(step, step.spec, run_of(step.spec, 0)) == ["pending", "pending", "elsewhere", "pending"]
    assert states(step, step.spec, run_of(step.spec, 100)) == ["pending", "pending", "elsewhere", "pending"], "burn-in"
    assert states(step, step.spec, run_of(step.spec, 900)) == ["pending", "pending", "elsewhere", "pending"]
    found = marks(step, step.spec, run_of(step.spec, 4200))
    assert [mark.state for mark in found] == ["holds", "fails", "elsewhere", "holds"]
    assert "expected 1.02564" in found[0].detail
    assert "tolerance" in found[0].detail
    assert f"{found[0].result.measured:.5g}" in found[0].detail
    assert "away from 5" in found[1].detail
    assert found[0].detail.endswith("over 4,100 steps (4,000 asked)")
    exactly = marks(step, step.spec, run_of(step.spec, 4100))
    assert exactly[0].detail.endswith("over all 4,000 steps")
    assert theme.DARK.good in found[0].html(theme.DARK)
    assert summary(found) == "Of 4 claims 2 met, 1 not met, 1 not measured yet."
    assert summary(found[:1]) == "Of 1 claim 1 met."
    assert summary([]) == ""


def test_a_mark_says_too_early_while_chance_is_large(mine):
    """At the reduced length 64 chains know the variance well enough; 8 do not, until the full one."""
    step = mine.steps[0]
    few = replace(step.spec, n_chains=8)
    early = marks(step, step.spec, run_of(few, 1100))
    assert [mark.state for mark in early] == ["early", "fails", "elsewhere", "early"]
    assert "chance may still move it by 0." in early[0].detail
    assert summary(early) == "Of 4 claims 0 met, 2 still running, 1 not met, 1 not measured yet."
    assert states(step, step.spec, run_of(step.spec, 1100))[0] == "holds"
    # From the full length on there is no more to wait for.
    assert "early" not in states(step, step.spec, run_of(few, 4100))


def test_a_mark_says_which_number_it_is_held_against_before_the_full_length(mine):
    """And leaves out an error of 0, which chains have that are all the same."""
    step = mine.steps[0]
    about = step.claims[0]
    step = replace(step, claims=(replace(about, quick_goal=replace(about.quick_goal, equals=1.1)),))
    (early,), (late,) = (marks(step, step.spec, run_of(step.spec, steps)) for steps in (1100, 4100))
    # The sentence's own number is met long before.
    assert early.state == "holds" and "expected 1.02564," in early.detail and "after all" not in early.detail
    off = replace(about, goal=replace(about.goal, equals=1.3), quick_goal=about.goal)
    (early,) = marks(replace(step, claims=(off,)), step.spec, run_of(step.spec, 1100))
    assert "expected 1.02564," in early.detail and early.detail.endswith("; 1.3 after all 4,000 steps")
    assert "expected 1.02564," in late.detail and "after all" not in late.detail
    assert " ± " in late.detail
    alike = run_of(step.spec, 4100)
    powers = alike[0].statistics.sums.powers
    powers[:] = powers.mean(axis=1, keepdims=True)
    (same,) = marks(step, step.spec, alike)
    assert " ± " not in same.detail


@pytest.mark.parametrize("fault", [False, True])
def test_a_claim_is_on_the_way_until_its_own_goal_is_met(mine, monkeypatch, fault):
    """Fails where a check mark stands on a sentence of which only the laxer goal is met. Fault: both are one."""
    step = mine.steps[0]
    about = step.claims[0]
    strict = replace(about, goal=replace(about.goal, equals=None, errors=None, below=1.0), quick_goal=about.goal)
    own = replace(strict, reduction="at")
    step = replace(step, claims=(strict, own))
    if fault:
        judge = headless.judge
        monkeypatch.setattr(headless, "judge", lambda *given, **more: replace(judge(*given, **more), later=""))
    proof = SimpleNamespace(
        problem="", results=(None, headless.judge(own, own.quick_goal, [Estimate(1.03, 0.01)], full=False))
    )
    monkeypatch.setattr(headless_claims, "of", lambda step: proof)
    found = marks(step, step.spec, run_of(step.spec, 1100))
    if fault:
        assert [mark.state for mark in found] == ["holds", "holds"]
        return
    assert [mark.state for mark in found] == ["near", "near"]
    assert found[0].detail.endswith("; below 1 after all 4,000 steps")
    assert found[1].detail.endswith(", in a separate short run; below 1 at full length")
    assert summary(found) == "Of 2 claims 0 met, 2 on the way."
    assert theme.DARK.good not in found[0].html(theme.DARK)
    (late, _) = marks(step, step.spec, run_of(step.spec, 4100))
    assert late.state == "fails" and late.detail.endswith("It is not below 1.")


def test_a_number_that_is_none_is_not_said_to_be_measured(mine, monkeypatch):
    """Fails where a mark says “measured nan”, of the step's run or of one with other settings."""
    step = mine.steps[0]
    monkeypatch.setattr(headless, "quantity", lambda *given: Estimate(float("nan")))
    runs = run_of(step.spec, 4100)
    same, other = marks(step, step.spec, runs), marks(step, None, runs)
    assert same[0].detail.startswith("no number, expected 1.02564")
    assert other[0].detail == ""
    assert not any("nan" in mark.detail for mark in (*same, *other))


def test_a_claim_that_is_wrong_fails_on_a_wrong_sampler(mine):
    """The planted fault: the claims' own experiment with a step so large that the bias is ten times the tolerance."""
    step = mine.steps[0]
    wrong = Experiment.from_dict(
        {
            **step.spec.to_dict(),
            "lanes": ["sgld", "sgld"]
            and [{"sampler": {"key": "sgld", "params": {"step_size": 0.5}}, "gradient": {"key": "full", "params": {}}}]
            * 2,
        }
    )
    assert states(step, step.spec, run_of(wrong, 4200))[0] == "fails"


def test_other_settings_are_said_to_be_other(mine):
    step = mine.steps[0]
    state = AppState()
    open_in(state, mine)
    state.set_seed(5)
    assert states(step, state.experiment, run_of(state.experiment, 4200))[0] == "holds", "a seed is none of them"
    state.set_lane_param(0, "sampler", "step_size", 0.5)
    found = marks(step, state.experiment, run_of(state.experiment, 4200))
    assert [mark.state for mark in found] == ["other", "other", "elsewhere", "other"]
    assert "measured 1.3" in found[0].detail
    state.remove_lane(1)
    assert states(step, state.experiment, run_of(state.experiment, 4200))[1] == "other"


def test_a_run_that_blew_up_fails_and_says_why(mine):
    step = mine.steps[0]
    lanes = [{"sampler": {"key": "sgld", "params": {"step_size": 2.0}}}] * 2
    wild = Experiment.from_dict({**step.spec.to_dict(), "target": "quartic", "lanes": lanes})
    runs = run_of(wild, 4200)
    assert runs[0].divergence is not None
    found = marks(step, step.spec, runs)
    assert found[0].state == "fails"
    assert runs[0].divergence.message[:20] in found[0].detail


@pytest.mark.slow
def test_claims_of_all_draws_are_measured_when_asked(mine):
    state = AppState()
    panel, _ = panel_of(state)
    open_in(state, mine)
    state.position.reply(2)
    button = next(one for one in panel.panel.select(pmui.Button) if one.label.startswith("Measure"))
    assert "not measured yet" in panel.texts(state.experiment, [])[2][1]
    assert texts_of(panel).count("python -m sgmcmc_lab.lessons mine") == 1
    button.param.trigger("clicks")
    made = asked_by("127.0.0.2", mine.steps[0])
    assert asked_by("127.0.0.3", mine.steps[0]) is made, "once for all"
    end = time.monotonic() + 120
    while made.results is None and not made.problem and time.monotonic() < end:
        time.sleep(0.05)
    assert made.problem == ""
    (found,) = [mark for mark in marks(mine.steps[0], None, []) if "short run" in mark.detail]
    assert found.state == "holds"
    assert found.result == made.results[2]
    assert found.result.measured == run_step(mine.steps[0], quick=True).results[2].measured


SWEPT = """views = ["marginal"]
[experiment]
target = "gaussian"
lanes = ["sgld(step_size:0.1)~full", "sgld(step_size:0.4)~full"]
n_chains = 16
n_steps = 400
[sweep]
measure = "variance"
quantity = "bias"
[sweep.grid]
sampler.step_size = [0.2, 0.4, 0.8]
[[claim]]
says = "It grows."
lane = 1
sweep = "slope"
above = 0.1
```
"""


@pytest.mark.slow
def test_a_sweep_is_drawn_as_it_is_measured(folder, monkeypatch):
    """With its slope in the end; nobody waits any more after a cancel, and what had been measured is not kept."""
    (folder / "03-swept.md").write_text(HEAD + SWEPT, encoding="utf-8")
    step = read(folder / "03-swept.md").steps[0]
    going, first = threading.Event(), threading.Event()
    told = headless_claims.Proof._measured

    def slowly(self, *one):
        told(self, *one)
        first.set()
        going.wait(600)

    monkeypatch.setattr(headless_claims.Proof, "_measured", slowly)
    monkeypatch.setattr("sgmcmc_lab.app.page.measuring.EACH_SECONDS", 0.01)
    waiting = []
    made = Measuring(step, ("one", "two"), theme.LIGHT, "python -m sgmcmc_lab.lessons swept", waiting.append)
    assert "python -m sgmcmc_lab.lessons swept" in str([one.object for one in made.panel.select(pn.pane.HTML)])

    def points():
        return sum(len(source.data["y"]) for source in made.picture.sources[1::3])

    made.begin()
    made.begin()
    begun = headless_claims.of(step)
    assert begun.waiting == 1
    assert first.wait(600)
    made._draw()
    assert points() == 1
    assert [one.label for one in made.panel.select(pmui.Button)] == ["Cancel"]
    made.cancel()
    assert headless_claims.of(step) is None
    assert [one.label for one in made.panel.select(pmui.Button)] == ["Measure them here"]
    going.set()
    asyncio.run(waiting.pop())
    made.begin()
    assert headless_claims.of(step) is not begun
    asyncio.run(waiting.pop())
    assert points() == 6
    assert begun.results is None, "what was given up has ended"
    found = headless_claims.of(step).results[0].measured
    assert made.picture.captions[0].text == f"● one, slope {found:.2f}"
    assert made.picture.figure.html_attributes["aria-label"].startswith(
        "|Variance: bias| against Step size ε: one, slope"
    )
    assert made.panel.select(pmui.Button) == []


def asked_by(address, step):
    """The runs of a step, for which a page of this address asks."""
    with patch.object(measuring, "address_of", lambda _: address):
        Measuring(step, (), theme.LIGHT, "", Coroutine.close).begin()
    return headless_claims.of(step)


@pytest.mark.parametrize("other", ["127.0.0.2", "127.0.0.1"])
def test_no_address_waits_for_the_runs_that_another_asked_for(mine, monkeypatch, other):
    """Thirty steps from 127.0.0.1, then one from 127.0.0.2, and a step of the first that both want. Fails where the
    thirty come before them. Fault: both are one address.
    """
    begun, go_on = [], threading.Event()

    def run(step, **_):
        begun.append(step.title)
        go_on.wait(60)
        return Mock(results=())

    monkeypatch.setattr(headless_claims, "run_step", run)
    monkeypatch.setattr(headless_claims, "_PROOFS", OrderedDict())
    monkeypatch.setattr(measuring, "WORKER", Pool(1, "test", most_of_address=1))
    steps = [replace(mine.steps[0], title=str(k), sweep=None) for k in range(31)]
    proofs = [asked_by("127.0.0.1", step) for step in steps[:30]]
    assert asked_by(other, steps[29]) is proofs[29]
    proofs.append(asked_by(other, steps[30]))
    apart = other != "127.0.0.1"
    while len(begun) < 1 + apart:
        time.sleep(0.01)
    assert begun == ["0", "29"][: 1 + apart]
    # Nobody waits for these any more: they are not begun.
    for step in steps[1:28]:
        headless_claims.cancel(step)
    go_on.set()
    while any(proofs[k].running for k in (0, 28, 29, 30)):
        time.sleep(0.01)
    assert sorted(begun, key=int) == ["0", "28", "29", "30"]
    assert proofs[29].waiting == 2


def test_runs_that_fail_say_so(mine, monkeypatch):
    """The planted fault: runs that raise."""
    monkeypatch.setattr(headless_claims, "run_step", Mock(side_effect=RuntimeError("broken")))
    step = replace(mine.steps[0])
    made = headless_claims.Proof(step)
    made.make()
    monkeypatch.setattr(headless_claims, "of", lambda _: made)
    assert states(step, step.spec, run_of(step.spec, 10))[2] == "fails"


# The panel


def panel_of(state, **actions):
    calls = []
    made = LessonPanel(
        state,
        Controls(state, print, of_lesson=True),
        lambda lesson, number: calls.append((lesson.key, number)),
        lambda key: calls.append((key, 1)),
        actions.get("follow", lambda: None),
        lambda: calls.append("contents"),
        actions.get("later", Coroutine.close),
    )
    return made, calls


def texts_of(panel):
    return " ".join(str(one.object) for one in panel.panel.select(pn.pane.HTML))


@pytest.mark.slow
def test_the_panel_shows_the_answer_only_after_it_was_given(mine):
    state = AppState()
    panel, _ = panel_of(state)
    assert not panel.panel.visible
    open_in(state, mine)
    assert panel.panel.visible
    assert "What?" in texts_of(panel)
    assert "So." not in texts_of(panel)
    assert "True." not in texts_of(panel), "claims may tell the answer"
    assert panel.texts(state.experiment, run_of(state.experiment, 10)) == []
    options = panel.panel.select(Option)
    assert [one.state for one in options] == ["open"] * 3
    assert "Less than" not in texts_of(panel)
    # They stand in an order of their own; an answer is the option's number in the file.
    first = next(one for one in options if one.words == "x")
    first._handle_msg("anything")
    assert state.position.answer is None
    first._handle_msg("chosen")
    assert state.position.answer == 1
    assert state.playing
    assert {one.words: one.state for one in panel.panel.select(Option)} == {
        "x": "wrong",
        "That": "right",
        "More": "other",
    }
    assert "So. True by definition." in texts_of(panel)
    assert "Less than that." in texts_of(panel) and "Less than this." not in texts_of(panel)
    assert "True." in texts_of(panel)
    live = panel.texts(state.experiment, run_of(state.experiment, 4200))
    assert len(live) == 5
    assert "holds" in live[0][1]
    assert live[4][1] == "Of 4 claims 2 met, 1 not met, 1 not measured yet."


@pytest.mark.slow
def test_next_and_back_and_the_end(mine):
    state = AppState()
    panel, calls = panel_of(state)
    panel.next()
    panel.back()
    assert calls == []
    open_in(state, mine)
    panel.back()
    panel.next()
    assert calls == [("mine", 2)]
    open_in(state, mine, 2)
    panel.next()
    panel.back()
    assert calls[1:] == ["contents", ("mine", 1)]
    panel, calls = panel_of(state, follow=lambda: "real")
    open_in(state, mine, 2)
    panel.next()
    assert calls == [("real", 1)]


# Every lesson that there is, and broken ones


@for_each("key", LESSONS)
def test_a_lesson_asks_only_for_what_the_page_has(key):
    """Views exist and fit, axes and coordinates exist, and each control of each step has its widget."""
    lesson = LESSONS[key]
    assert course.problems(lesson) == []
    for step in lesson.steps:
        state = AppState()
        controls = Controls(state, print, of_lesson=True)
        open_in(state, lesson, step.number)
        assert set(state.shown_views()) == set(step.views)
        if step.spec is not None:
            wanted = set(step.controls) - {"speed"}
            assert bool(labels(controls)) == bool(wanted), (step.number, wanted)


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ('views = ["nothing"]', 6, "nothing"),
        ('views = ["components"]', 6, "components"),
        ('page = { axis = "parsecs" }', 6, "parsecs"),
        ("page = { coordinate = 9 }", 6, "coordinate"),
        ('controls = ["lane1.sampler.nothing"]', None, "nothing"),
        ("views = [", None, ""),
        ('controls = ["n_steps"]', 6, "n_steps"),
    ],
)
def test_a_broken_file_is_reported_with_its_line_and_stops_no_other(folder, text, line, part):
    preset = 'experiment = { target = "gaussian", lanes = [ { preset = "sgld" } ] }\n'
    (folder / "03-broken.md").write_text(HEAD + text + "\n" + preset + "```\n", encoding="utf-8")
    found = course.library()
    (problem,) = found.problems
    assert problem.startswith(f"03-broken.md:{line or ''}"), problem
    assert part in problem
    assert {"mine", "real"} <= set(found.lessons)
    shown = broken(found.problems)
    assert "03-broken.md" in shown
    assert broken(()) == ""
    state, messages = state_of("?lesson=mine")
    assert messages == []
    if "broken" in found.lessons:
        # One that names what the page has not opens without it.
        state, messages = state_of("?lesson=broken")
        assert messages == []
        assert state.position.lesson is not None


def test_a_changed_file_is_read_again(folder, monkeypatch):
    """Fails where the course is made anew for one file, for two seconds; the planted fault forgets the others."""
    before = course.library()
    assert course.library() is before
    path, read, seen = folder / "01-mine.md", course.read, []
    monkeypatch.setattr(course, "read", lambda path: seen.append(path.name) or read(path))
    path.write_text(path.read_text(encoding="utf-8").replace('"Mine"', '"Another"'), encoding="utf-8")
    assert course.library().lessons["mine"].title == "Another"
    assert seen == ["01-mine.md"]
    monkeypatch.setattr(course, "_FILES", {})
    path.touch()
    course.library()
    assert len(seen) > 20


def test_a_changed_file_is_read_again_beside_a_link_to_nowhere(folder):
    """An editor's lock beside a file being written is such a link; nothing was read again while it lay there."""
    (folder / "02-gone.md").symlink_to(folder / "none")
    (folder / ".#01-mine.md").symlink_to("somebody@host.1")
    course.library()
    path = folder / "01-mine.md"
    path.write_text(path.read_text(encoding="utf-8").replace('"Mine"', '"Another"'), encoding="utf-8")
    assert course.library().lessons["mine"].title == "Another"


@pytest.mark.slow
def test_of_two_lessons_with_one_title_the_one_that_was_clicked_opens(folder):
    (folder / "02-twin.md").write_text((folder / "01-mine.md").read_text(encoding="utf-8"), encoding="utf-8")
    opened = []
    catalogue = Catalogue(opened.append)
    catalogue.open()
    menu = catalogue._dialog.objects[-1]
    for key in ("twin", "mine"):
        menu._handle_msg(list(course.library().lessons).index(key))
    for wrong in (-1, 1000, True, "0", None, {}):
        menu._handle_msg(wrong)
    assert opened == ["twin", "mine"]


def read_alone(key):
    course.outlines()
    return course.lesson_of(key)


@pytest.mark.parametrize(("by", "alone"), [(read_alone, True), (lambda key: course.library().lessons[key], False)])
def test_a_page_of_a_lesson_reads_no_other(by, alone, monkeypatch):
    """Fails where a first page waits until the functions of the last lesson are compiled. Fault: all are read."""
    made, read = [], course.read
    for name in ("_READ", "_FILES", "_OUTLINES"):
        monkeypatch.setattr(course, name, {})
    monkeypatch.setattr(course, "read", lambda path: made.append(path.name) or read(path))
    assert by("langevin").key == "langevin"
    assert (made == ["01-langevin.md"]) == alone


def counted(lesson):
    return [(one.title, one.question is not None, sum(c.live for c in one.claims)) for one in lesson.steps]


@pytest.mark.slow
@pytest.mark.parametrize("fault", [False, True])
def test_an_outline_says_what_the_lesson_does(fault, monkeypatch):
    """Fails where the list counts other claims than the lesson has. Fault: all claims are live."""
    monkeypatch.setattr(outline_module, "_live", (lambda *_: True) if fault else outline_module._live)
    outline_module._outline.cache_clear()
    found, problems = load_outlines()
    assert problems == ()
    outline_module._outline.cache_clear()
    assert list(found) == list(LESSONS)
    same = []
    for key, lesson in LESSONS.items():
        one = found[key]
        assert all(
            getattr(one, name) == getattr(lesson, name)
            for name in ("key", "title", "minutes", "summary", "needs", "file", "order")
        )
        same.append([(step.title, step.question, step.live_claims) for step in one.steps] == counted(lesson))
    assert all(same) == (not fault)


def read_own(folder):
    asyncio.run(course.own_lessons_apart())


def read_nothing(folder):
    """The planted fault."""


def listed(catalogue):
    """The titles in the list, and the text of what is wrong."""
    *parts, menu = catalogue._dialog.objects
    assert all(part.visible for part in parts), "one that is shown again before it is drawn fails in the browser"
    said = [part.object for part in parts if "lesson-problems" in part.css_classes]
    return [lesson["title"] for lesson in menu.lessons], "".join(said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "seen"),
    [
        (lambda _: course.library(), True),
        (read_own, True),
        (lambda _: state_of("?lesson=broken"), True),
        (read_nothing, False),
    ],
    ids=["all are read", "the teacher's own are read", "it is opened", "fault"],
)
def test_a_broken_step_is_reported_when_it_is_read(by, seen, folder):
    """Fails where an author waits for the whole course to see an error, or where a broken lesson stays in the list."""
    (folder / "03-broken.md").write_text(HEAD.replace("Mine", "Broken") + "views = [1]\n```\n", encoding="utf-8")
    assert "broken" in course.outlines()
    catalogue = Catalogue(print)
    catalogue.open()
    titles, said = listed(catalogue)
    assert ("Broken" in titles, said) == (True, ""), "nothing is read yet"
    children = [*catalogue._dialog.objects]
    by(folder)
    catalogue.update()
    titles, said = listed(catalogue)
    assert all(a is b for a, b in zip(children, catalogue._dialog.objects, strict=True)), "they may be being drawn"
    assert ("Broken" in titles) == (not seen)
    assert ("03-broken.md:11" in said) == seen
    assert ("broken" not in course.outlines()) == seen
    state, (message,) = state_of("?lesson=broken")
    assert state.position.lesson is None
    assert "03-broken.md:11" in message


def test_the_list_has_paths_for_a_teacher():
    for teacher in (False, True):
        catalogue = Catalogue(print, lambda teacher=teacher: teacher)
        catalogue.open()
        shown = "".join(str(getattr(part, "object", "")) for part in catalogue._dialog.objects)
        assert ("45 minutes through the course" in shown) == teacher
        assert ("<a href='?lesson=langevin&amp;step=1&amp;teacher=1'>Downhill</a>" in shown) == teacher


def test_the_list_says_minutes_and_needs(folder):
    assert [hours(minutes) for minutes in (20, 60, 382, 420)] == ["½ hour", "1 hour", "6½ hours", "7 hours"]
    other = replace(outline(folder / "01-mine.md"), needs=("langevin", "gone"), summary="About $$x$$.")
    text = about(other, course.outlines())
    assert text == "5 minutes, 2 steps. About x. Needs: From gradient descent to Langevin, gone."


def test_the_list_knows_what_there_is_to_be_done(folder):
    assert item(outline(folder / "01-mine.md"), {})["steps"] == [
        {"question": True, "claims": 3},
        {"question": False, "claims": 0},
    ]


@pytest.mark.slow
def test_the_browser_is_told_of_answers_and_claims_that_are_met(mine, monkeypatch):
    state = AppState()
    panel, _ = panel_of(state)
    monkeypatch.setattr(ProgressStore, "ids", ["id"])
    open_in(state, mine)
    assert panel.texts(state.experiment, []) == [], "nothing is done before the answer"
    state.position.reply(1)
    told = panel.texts(state.experiment, run_of(state.experiment, 4200))[-1]
    assert told == ("id", '{"lesson": "mine", "steps": {"1": ["wrong", 2]}}')
    state.position.reply(2)
    open_in(state, mine, 2)
    told = panel.texts(state.experiment, run_of(state.experiment, 1))[-1]
    assert told == ("id", '{"lesson": "mine", "steps": {"2": ["none", 0], "1": ["right", 0]}}')
    assert outcome(mine.steps[0], SKIPPED) == "skipped"


def test_right_answers_stand_in_every_place():
    """The order is the lesson's and the step's own, and the same in every process."""
    orders = [
        (lesson.shuffled(step.number), step.question)
        for lesson in LESSONS.values()
        for step in lesson.steps
        if step.question
    ]
    assert all(sorted(order) == list(range(1, len(question.options) + 1)) for order, question in orders)
    places = [order.index(question.answer) for order, question in orders if len(question.options) == 3]
    assert all(places.count(place) > len(places) / 5 for place in range(3)), "in the files most are the second"
    assert [LESSONS["langevin"].shuffled(number) for number in (1, 2)] == [(2, 3, 1), (2, 3, 1, 4)]


def test_a_step_names_its_lanes_for_as_long_as_the_names_are_true(mine):
    step = replace(mine.steps[0], names=("small steps", "ε = 0.1"))
    lesson = replace(mine, steps=(step, mine.steps[1]))
    state = AppState()
    open_in(state, lesson)
    assert state.lane_titles() == ("small steps", "ε = 0.1")
    assert scene_of(state, None).lanes == state.lane_titles(), "views and their captions"
    state.set_chains(8)
    assert state.lane_titles() == ("small steps", "ε = 0.1")
    state.set_lane_param(1, "sampler", "step_size", 0.2)
    assert state.lane_titles() == ("small steps", "SGLD ε=0.2"), "in what sets it apart from the first it is another"
    state.set_sampler(0, "sghmc")
    assert state.lane_titles() == ("SGHMC", "SGLD")
    state.position.leave()
    open_in(state, replace(lesson, steps=(replace(step, names=("A", "B")),)))
    state.add_lane()
    assert state.lane_titles()[:2] == ("A", "B")
    state.position.leave()
    assert "A" not in state.lane_titles()
    # Of one lane alone a name without a value stays true, one with a value does not.
    alone = replace(step.spec, lanes=step.spec.lanes[:1])
    other = Experiment.from_dict(
        {**alone.to_dict(), "lanes": [{"sampler": {"key": "sgld", "params": {"step_size": 0.3}}}]}
    )
    for name, still in (("Langevin", "Langevin"), ("ε = 0.05", "")):
        assert names(replace(step, spec=alone, names=(name,)), alone) == [name]
        assert names(replace(step, spec=alone, names=(name,)), other) == [still]


def test_trying_it_keeps_the_views_of_the_step(mine):
    state = AppState()
    assert state.offered_views() == state.fitting_views()
    assert state.shows("workbench")
    open_in(state, mine)
    state.position.try_it()
    assert state.shown_views() == ["marginal"]
    assert state.offered_views() == ["marginal"]
    assert not state.shows("workbench")
    assert state.shows("target")
    state.position.everything = True
    assert state.offered_views() == state.fitting_views()
    assert state.shows("workbench")
    again, messages = state_of(link.to_query(state))
    assert (messages, again.position.free, again.position.everything) == ([], True, True)
    state.position.open(mine, 2)
    assert not state.position.everything


@pytest.mark.slow
def test_an_answer_leaves_the_text_where_it_is_and_shows_what_is_new(mine):
    state = AppState()
    panel, _ = panel_of(state)
    open_in(state, mine)
    before = panel.panel.objects[:3]
    assert [one.fresh for one in panel.panel.select(Anchor)] == [True], "a new step begins at its top"
    panel.reply(1)
    assert panel.panel.objects[:3] == before
    assert [one.fresh for one in panel.panel.select(Anchor)] == [True, True]
    state.dark = True
    assert [one.fresh for one in panel.panel.select(Anchor)] == [True, False], "what was read is not scrolled to again"


def test_numbers_in_the_text_follow_the_controls(folder):
    text = (folder / "01-mine.md").read_text(encoding="utf-8")
    text = text.replace("Text.", "It is {= 1/(1 - step_size/2) =}, not *{= step_size2 =}*; a {= 2*pi =} < b.", 1)
    (folder / "03-live.md").write_text(
        text.replace("views = [", 'watch = "At {= step_size =}."\nviews = [', 1), encoding="utf-8"
    )
    lesson = read(folder / "03-live.md")
    state = AppState()
    panel, _ = panel_of(state)
    with param.parameterized.batch_call_watchers(state.position):
        open_in(state, lesson)
    assert "<span class='live-number' data-n='0' title='1/(1 - step_size/2)'>1.026</span>" in texts_of(panel)
    assert "<em><span class='live-number' data-n='1' title='step_size2'>0.1</span></em>" in texts_of(panel)
    state.position.reply(2)
    assert "At <span class='live-number' data-n='3' title='step_size'>0.05</span>." in texts_of(panel)
    numbers = panel.panel.select(Numbers)[0]
    assert numbers.values == ["1.026", "0.1", "6.283", "0.05"]
    state.set_lane_param(0, "sampler", "step_size", 0.5)
    assert numbers.values == ["1.333", "0.1", "6.283", "0.5"]
    state.remove_lane(1)
    assert numbers.values[1] == "–"
    # Without a page they are those of the step.
    assert filled("A {= step_size2 + 1 =}.", lesson.steps[0].spec) == "A 1.1."
    assert filled("{= -step_size2 =}", lesson.steps[0].spec).startswith("−"), "a minus sign, not a hyphen"
    assert "1/0" in as_html("{= 1/0 =}"), "what nobody gives a value stays as it is"


@pytest.mark.slow
def test_solutions_and_notes_are_the_teachers(folder):
    text = (folder / "01-mine.md").read_text(encoding="utf-8")
    solved = 'teacher = "Ask *first*."\nexercise = [{ text = "Do it.", solution = "So.", experiment = "target=gaussian&lane=sgld(step_size:0.3)~full" }]\n'
    (folder / "03-taught.md").write_text(text.replace("views = [", solved + "views = [", 1), encoding="utf-8")
    for query, told in (("", False), ("&teacher=1", True)):
        state, messages = state_of(f"?lesson=taught&answer=2{query}")
        assert messages == []
        panel, _ = panel_of(state)
        assert "<b>Exercise 1.</b> Do it." in texts_of(panel)
        assert ("Ask <em>first</em>." in texts_of(panel)) == told
        assert ("<b>Solution.</b> So. <a href='?" in texts_of(panel)) == told
        assert ("sgld(step_size:0.3)" in texts_of(panel)) == told
        assert ("teacher=1" in link.to_query(state)) == told
    _, messages = state_of("?lesson=taught&teacher=2")
    assert "allowed is one of 0, 1" in messages[0]


def test_a_newcomer_is_led_to_the_first_lesson():
    first = next(iter(course.load_all().lessons))
    assert f"?lesson={first}{{}}'" in WELCOME


# Presenter mode


@for_each("key", ["marginal", "trace", "ks"])
def test_type_is_larger_in_presenter_mode(key):
    from sgmcmc_lab.app.views.base import Scene

    target = TARGETS["quartic"]()

    def sizes(large):
        figure = VIEWS[key](Scene(target, ("SGLD",), 0, "steps", False, (), large)).figure
        return [float(axis.major_label_text_font_size.removesuffix("px")) for axis in figure.axis]

    assert all(large > 1.3 * small for large, small in zip(sizes(True), sizes(False), strict=True))


OF_A_COORDINATE = {"marginal", "autocorrelation", "trace", "ks", "kl", "rank", "quantiles", "mgf", "variational"}


def names_another(step):
    """Whether the text of a step names coordinates, but not the one that its views show."""
    if step.spec is None or not OF_A_COORDINATE & set(step.views):
        return False
    names = coordinates(step.spec)
    shown = names[step.page.get("coordinate", first_coordinate(step.spec) + 1) - 1]
    text = " ".join([step.watch, *(claim.says for claim in step.claims)])
    named = [name for name in names if re.search(re.escape(name) + r"(?![₀-₉\w])", text)]
    return bool(named) and shown not in named


@pytest.mark.slow
def test_the_views_of_a_step_show_a_coordinate_that_its_text_names():
    """Fails where a step goes on with the coordinate of the step before. Planted fault: one that it does not name."""
    assert [(key, step.title) for key, lesson in LESSONS.items() for step in lesson.steps if names_another(step)] == []
    last = LESSONS["sweep"].steps[3]
    assert names_another(replace(last, page={**last.page, "coordinate": 5}))
