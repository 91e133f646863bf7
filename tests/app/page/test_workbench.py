"""The recipe workbench on targets whose energy is no formula, and with many coordinates."""

import asyncio
import re
from dataclasses import replace
from functools import partial
from html import unescape

import numpy as np
import pytest

from sgmcmc_lab.app import link
from sgmcmc_lab.app.page import improving as page_search
from sgmcmc_lab.app.page.equations import cards
from sgmcmc_lab.app.page.formula_box import formula_box
from sgmcmc_lab.app.page.workbench import Workbench
from sgmcmc_lab.app.state import WORKBENCH_VIEWS, AppState
from sgmcmc_lab.app.views import VIEWS, fitting
from sgmcmc_lab.app.views.recipes import RecipeView
from sgmcmc_lab.samplers import Experiment, search
from sgmcmc_lab.samplers.choices import make_sampler
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.recipe.flow import Flow
from sgmcmc_lab.samplers.recipe.presets import preset
from sgmcmc_lab.samplers.targets import TARGETS, Typed
from tests.helpers.cases import for_each
from tests.helpers.checks_views import check, experiment_of, frames, records, scene_of

DRAWN = {key for key, view in VIEWS.items() if issubclass(view, RecipeView)}


def bench(target, **params):
    """A page's state with a recipe on a target, the card, and its boxes by their labels."""
    state = AppState()
    state.set_target(target)
    for name, value in params.items():
        state.set_target_param(name, value)
    state.set_sampler(0, "recipe")
    made = Workbench(state, lambda *_: None, lambda call: call(), asyncio.run)
    (card,) = made._cards.values()
    return state, made, {box.label: box for box in card._entries.values()}


def said(made):
    return " ".join(str(pane.object) for pane in made.panel.select(lambda one: hasattr(one, "object")))


@pytest.mark.slow
def test_a_posterior_of_two_coordinates_has_the_whole_workbench():
    """Fails where an entry that is typed is not the experiment's, or a view of recipes is missing.

    Planted fault: an entry that is refused, which changes nothing.
    """
    state, made, boxes = bench("poisson_regression")
    assert set(boxes) == {"D θ₁ θ₁", "D θ₁ θ₂", "D θ₂ θ₂", "Q θ₁ θ₂", "f θ₁", "f θ₂"}
    boxes["D θ₁ θ₁"].value = "1 + theta2^2"
    assert state.experiment.lanes[0].sampler.values()["diffusion_entries"] == ("1 + theta2^2", "0", "1")
    boxes["D θ₂ θ₂"].value = "1 + theta3"
    assert boxes["D θ₂ θ₂"].error_state
    assert state.experiment.lanes[0].sampler.values()["diffusion_entries"] == ("1 + theta2^2", "0", "1")
    assert set(state.fitting_views()) >= DRAWN
    assert "no formula" in said(made) and "drawn for one or two" not in said(made)
    assert r"\partial_{1}U" in said(made)


@pytest.mark.slow
def test_a_diffusion_that_is_none_is_said_once_and_changes_nothing():
    """By the label of its box; the last good recipe goes on, and the link keeps it. Entries that need each other are
    taken together. Planted fault: the engine's refusal, which stops the chain and is in the link.
    """
    state, made, boxes = bench("quartic")
    (card,) = made._cards.values()

    def problem():
        return unescape(card.problem.object)

    before = state.experiment
    boxes["D θ₁ θ₁"].value = "-1"
    assert problem().startswith("D = ") and "positive semidefinite" in problem()
    assert boxes["D θ₁ θ₁"].error_state and state.experiment == before
    boxes["D θ₁ θ₁"].value = "1 +"
    assert problem().startswith("D θ₁ θ₁ = ") and state.experiment == before
    boxes["D θ₁ θ₁"].value = "1" * 500
    assert problem().startswith("D = ") and "up to 400 characters" in problem() and state.experiment == before
    boxes["D θ₁ θ₁"].value = "1"
    assert not card.problem.object and not boxes["D θ₁ θ₁"].error_state
    before = state.experiment
    boxes["D θ₁ θ₂"].value = "2"
    assert card.problem.object and state.experiment == before
    boxes["D θ₂ θ₂"].value = "5"
    assert not card.problem.object and not boxes["D θ₁ θ₂"].error_state
    assert state.experiment.lanes[0].sampler.values()["diffusion_entries"] == ("1", "2", "5")
    with pytest.raises(SpecError, match="positive semidefinite"):
        state.set_lane_param(0, "sampler", "diffusion_entries", ("-1", "0", "1"))


@pytest.mark.slow
def test_a_text_that_is_no_number_is_refused_by_its_field():
    """*A* and *λ*: the sentence names the field, the text and what is allowed; the text stays, and the chain goes on.
    Fails with a field for numbers, which drops other text.
    """
    state, made, _ = bench("double_well")
    state.set_preset(0, "sgnht")
    made.refresh()
    (card,) = made._cards.values()
    boxes = {box.label: box for box in card._entries.values()}
    for label, name, text in (("A", "thermostat", "two"), ("λ", "refresh", "-1"), ("A", "thermostat", "")):
        before = state.experiment
        boxes[label].value = text
        said = unescape(card.problem.object)
        assert f"{label} = '{text}': allowed is a number from 0 to" in said and name not in said
        assert boxes[label].error_state and state.experiment == before
        made.refresh()
        assert boxes[label].value == text
        boxes[label].value = "0.25"
        assert not card.problem.object and state.experiment.lanes[0].sampler.values()[name] == 0.25


@pytest.mark.slow
def test_the_curl_of_a_typed_drift_is_put_into_the_grid():
    """Fails where the drift by hand stays beside the Q that writes it. Planted fault: a drift that no Q writes, of
    which the card says why and changes nothing."""
    state, made, boxes = bench("double_well")
    made._cards[0].layout.value = "theta_r"
    (card,) = made._cards.values()
    (find,) = card.panel.select(lambda one: getattr(one, "label", "") == "Find Q")
    before = state.experiment.lanes[0].sampler.values()
    drift = {"D θ θ": "0", "D r r": "2", "Q θ r": "0", "f θ": "r", "f r": "-4*theta^3 + 4*theta - r"}
    boxes = {box.label: box for box in card._entries.values()}
    for label, text in drift.items():
        boxes[label].value = text
    find.clicks += 1
    assert "does not leave e⁻ᴴ invariant" in card.problem.object
    assert state.experiment.lanes[0].sampler.values()["drift_entries"] == ("r", "-4*theta^3 + 4*theta - r")
    boxes["f r"].value = "-4*theta^3 + 4*theta - 2*r"
    find.clicks += 1
    now = state.experiment.lanes[0].sampler.values()
    assert not card.problem.object
    assert (now["curl_entries"], now["drift_entries"]) == (("-1",), ())
    assert now["diffusion_entries"] == ("0", "0", "2") and now["step_size"] == before["step_size"]


@pytest.mark.slow
def test_a_posterior_of_many_has_the_entries_of_one_coordinate():
    """Fails where a state of 21 numbers has 441 boxes, or views are offered that have no picture of it."""
    state, made, boxes = bench("logistic_large")
    assert set(boxes) == {"D θ θ", "f θ"}
    made._cards[0].layout.value = "theta_r_xi"
    (card,) = made._cards.values()
    boxes = {box.label: box for box in card._entries.values()}
    assert set(boxes) == {"D θ θ", "D θ r", "D θ ξ", "D r r", "D r ξ", "D ξ ξ", "Q θ r", "Q θ ξ", "Q r ξ", "f θ", "f r", "f ξ", "A", "λ"}  # fmt: skip
    assert boxes["Q r ξ"].value == "r/10"
    assert card.preset.value == "sgnht"
    assert not set(state.fitting_views()) & DRAWN
    assert "all 10 have them" in said(made) and "drawn for one or two" in said(made)


def test_too_many_coordinates_are_refused_by_name():
    state = AppState()
    state.set_target("curve_network")
    with pytest.raises(ValueError, match="with its 31 coordinates, of which it takes 12"):
        state.set_sampler(0, "recipe")
    state.set_target_param("hidden", 3)
    state.set_sampler(0, "recipe")
    with pytest.raises(ValueError, match="with its 13 coordinates, of which it takes 12"):
        state.set_target_param("hidden", 4)
    assert state.experiment.make_target().dim == 10
    assert state.set_target("curve_network") == [
        "Recipe does not fit Neural network on a curve with a gap; SGLD takes its place."
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "recipe"), [("poisson_regression", {}), ("tied_means", {}), ("skew_normal", {})])
def test_every_view_of_a_recipe_on_a_compiled_energy(target, recipe):
    """Fails where a view that fits raises, or gives data that are not sound; where the drift is not −∇U for D = 1."""
    made = records(target, [("recipe", recipe)])
    made[0].run.advance(200)

    scene = replace(scene_of(made), layouts=("theta",))
    for key in set(fitting(experiment_of(made))) & DRAWN:
        view = VIEWS[key](scene)
        for _ in range(3):
            view.background(frames(made))
        check(view, view.compute(frames(made)))
        view.captions(frames(made))
        if key == "drift" and scene.target.dim == 1:
            x, f = view._sums["sum 0"]
            np.testing.assert_allclose(f, -scene.target.gradient_at(x[:, None])[:, 0], rtol=1e-12)
            assert not np.allclose(f, 0)


def test_the_spectrum_of_a_compiled_energy_is_the_formula_s(monkeypatch):
    """Planted fault: without the energy's values the gap is another one."""
    energy = "theta^4 - 2*theta^2"
    target = Typed(energy=energy)
    gaps = [Flow(preset("gsgrhmc", 1, text), target, 40).spectrum.gap for text in (energy, "U")]
    assert gaps[0] == pytest.approx(gaps[1], rel=1e-9)
    monkeypatch.setattr(Typed, "energies_at", lambda self, theta: theta[:, 0] ** 2)
    assert Flow(preset("gsgrhmc", 1, "U"), target, 40).spectrum.gap != pytest.approx(gaps[0], rel=1e-2)


def test_the_card_of_scir_follows_its_gradient():
    """Fails where the card shows â = α + N̂ while control variates are used. Planted fault: without them."""
    state = AppState()
    state.set_target("sparse_dirichlet")
    state.set_sampler(0, "scir")
    for gradient, varied in (("minibatch", False), ("minibatch_cv", True)):
        state.set_gradient(0, gradient)
        texts = " ".join(
            str(pane.object) for card in cards(state) for pane in card.select(lambda one: hasattr(one, "object"))
        )
        assert (r"\tfrac{\theta_t}{\hat\theta}(\hat N - N)" in texts) == varied
    assert "dirichlet" in TARGETS["sparse_dirichlet"].key


def test_the_card_of_hmc_follows_its_accept_step():
    """Fails where the card shows an accept step that is off, or two lanes that differ in it alone have one card."""
    state = AppState()
    state.set_sampler(0, "hmc")
    state.add_lane()
    state.set_sampler(1, "hmc")
    assert len(cards(state)) == 2
    state.set_lane_param(0, "sampler", "accept", False)
    texts = [
        " ".join(str(pane.object) for pane in card.select(lambda one: hasattr(one, "object"))) for card in cards(state)
    ]
    assert ["accept with probability" in text for text in texts[1:]] == [False, True]


def test_the_card_of_a_recipe_shows_its_own_formulas():
    """Each lane's D and f as they were typed. Fails where all recipes have one general card."""
    state, lane = AppState(), {"gradient": {"key": "full"}}
    state.set_target("double_well")
    drifts = ("-(1 + theta^2)*4*theta^3", "-theta^5")
    lanes = [
        lane | {"sampler": {"key": "recipe", "params": {"diffusion_entries": ["1 + theta^2"], "drift_entries": [f]}}}
        for f in drifts
    ]
    state.open(Experiment.from_dict(state.experiment.to_dict() | {"lanes": [*lanes, lanes[0]]}))
    made = cards(state)
    # That of the target, and one for each different recipe.
    assert len(made) == 3
    texts = [" ".join(str(pane.object) for pane in card.select(lambda one: hasattr(one, "object"))) for card in made]
    assert all(r"D = \begin{pmatrix}" in text and r"\text{(typed)}" in text for text in texts[1:])
    # As many powers of θ as were typed.
    assert [r"{5}" in text.split("f =")[1] for text in texts[1:]] == [False, True]


def test_a_formula_that_is_longer_than_its_box_stands_below_it():
    """Planted fault: a box that looks at its first value alone."""
    box = formula_box("theta", 10, label="U")
    assert box.helper_text == ""
    box.value = "theta^4 - 2*theta^2"
    assert box.helper_text == box.value


def test_the_workbench_keeps_a_table_of_ones_own():
    """Fails where it opens on other data, or drops the file that the person uploaded.

    Planted fault: another target, with which the file goes.
    """
    state = AppState()
    state.set_target("linear_table")
    state.bring({"mine.csv": b"dose,age,effect\n" + b"".join(b"%d,%d,%d\n" % (k, k * k % 7, 3 * k) for k in range(14))})
    before, upload = state.experiment.target, state.own_data
    state.open_workbench()
    assert (state.experiment.target, state.own_data) == (before, upload)
    assert upload is not None and len(state.experiment.make_target().data()) == 14
    assert state.experiment.lanes[0].sampler.key == "recipe"
    state.set_target("double_well")
    assert state.own_data is None


@for_each(
    ("query", "target", "views"),
    [
        ("?target=logistic_regression(items:100)", "logistic_regression", WORKBENCH_VIEWS),
        ("?target=linear_table", "linear_table", None),
        ("?target=sparse_dirichlet", "double_well", WORKBENCH_VIEWS),
        ("?target=quartic", "double_well", WORKBENCH_VIEWS),
    ],
)
def test_the_workbench_opens_on_the_data_that_are_there(query, target, views):
    """Fails where a posterior of data is lost, with its parameters; where no recipe fits it is the double well."""
    state = AppState()
    assert link.read_query(state, query) == []
    before = state.experiment.target
    state.open_workbench()
    now = state.experiment
    assert (now.target.key, now.lanes[0].sampler.key) == (target, "recipe")
    assert (now.target == before) == (target == before.key)
    if views is not None:
        assert state.shown_views() == views
    else:
        assert "drift" not in state.shown_views() and len(state.shown_views()) == 3


@pytest.mark.slow
def test_a_lessons_step_makes_no_workbench_before_it_is_asked_for(monkeypatch):
    """Fails where hidden cards are made with each lesson's page, or are not there when the person asks for everything.

    Planted fault: a step that leaves nothing out.
    """

    def counts():
        state = AppState()
        link.read_query(state, "?lesson=langevin&step=2&answer=0")
        made = Workbench(state, lambda *_: None, lambda call: call(), asyncio.run)
        before = len(made._cards), made.panel.visible
        state.position.param.update(free=True, everything=True)
        return *before, len(made._cards), made.panel.visible

    assert counts() == (0, False, 3, True)
    monkeypatch.setattr(AppState, "shows", lambda self, name: True)
    assert counts()[:2] == (3, True)


def improving(monkeypatch, target="double_well", kind="varying", most=15):
    """A state, its card's search of a few recipes, and all that it has said."""
    state = AppState()
    state.open_workbench()
    if target != "double_well":
        state.set_target(target)
    monkeypatch.setattr(page_search, "climb", partial(search.climb, each=most))
    monkeypatch.setattr(search, "MEMORIES", 500)
    monkeypatch.setattr(page_search, "SHOWN_SECONDS", 0.0)
    made = Workbench(state, lambda *_: None, lambda call: call(), asyncio.run)
    own = made._cards[0].improving
    own.family.value = kind
    heard: list[str] = []
    own.result.param.watch(lambda event: heard.append(unescape(event.new)), "object")
    return state, made, own, heard


@pytest.mark.slow
def test_improve_types_better_recipes_into_the_fields(monkeypatch):
    """Fails where the boxes, the experiment and the step are not those of the best recipe, or no τ is said.

    Planted fault: a search that tries nothing but what was typed, which changes no entry.
    """
    state, made, own, heard = improving(monkeypatch)
    seen, resets = [], state.resets
    state.param.watch(lambda event: seen.append(event.new), "experiment")
    own.button.clicks += 1
    values = state.experiment.lanes[0].sampler.values()
    recipe = make_sampler(state.experiment.lanes[0].sampler).recipe(TARGETS["double_well"]())
    found = search.score(recipe, TARGETS["double_well"]())
    before = search.score(preset("sghmc", 1, "theta^4 - 2*theta^2"), TARGETS["double_well"]())
    assert len(seen) > 1 and state.resets == resets + 1
    assert found.per_gradient > 1.5 * before.per_gradient
    assert values["step_size"] == pytest.approx(found.step_size, rel=0.01) and values["scheme"] == "semi_implicit"
    boxes = {box.label: box.value for box in made._cards[0]._entries.values()}
    assert (boxes["D r r"], boxes["Q θ r"]) == (values["diffusion_entries"][2], values["curl_entries"][0])
    assert not own.running and own.button.label == "Improve" and not own.bar.visible
    gaps = [float(text) for text in re.findall(r"gradient ([\d.]+) → ([\d.]+),", heard[-1])[0]]
    assert gaps == pytest.approx([before.per_gradient, found.per_gradient], rel=0.15)
    assert heard[-1].count("predicted") == 2 and "± " in heard[-1]
    # Another recipe has none of these figures.
    made.refresh()
    assert "predicted" in own.result.object
    state.set_recipe(0, diffusion_entries=("0", "0", "7"))
    assert own.result.object == "" and not own.result.visible
    state, made, own, heard = improving(monkeypatch, most=1)
    before = state.experiment.lanes[0].sampler.values()
    own.button.clicks += 1
    after = state.experiment.lanes[0].sampler.values()
    assert {name for name in after if after[name] != before[name]} <= {"step_size", "scheme"}


@pytest.mark.slow
def test_a_search_is_of_the_temperature(monkeypatch):
    """Its recipes, its check by chains, and its result beside the recipe. At T = 4 the barrier hardly counts.

    Planted fault: the figures of T = 4 stay beside another temperature.
    """
    state, made, own, heard = improving(monkeypatch, most=1)
    checked = []

    def spied(recipe, target, step_size, **more):
        checked.append(more)
        return search.check(recipe, target, step_size, **more)

    monkeypatch.setattr(page_search, "check", spied)
    state.set_temperature(4.0)
    own.button.clicks += 1
    assert checked == [{"temperature": 4.0}] * 2
    sampler, shown = (
        make_sampler(state.experiment.lanes[0].sampler),
        float(re.findall(r"gradient ([\d.]+) →", heard[-1])[0]),
    )
    hot, cold = (
        search.score(sampler.recipe(target), target).per_gradient
        for target in (state.experiment.make_target(), TARGETS["double_well"]())
    )
    assert shown == pytest.approx(hot, rel=0.15) and not 0.6 < cold / hot < 1.6
    made.refresh()
    assert "predicted" in own.result.object
    state.set_temperature(2.0)
    made.refresh()
    assert own.result.object == ""


@pytest.mark.slow
def test_a_search_that_is_stopped_keeps_the_best_recipe(monkeypatch):
    """And one whose recipe was edited keeps the edit. Planted fault: a search that goes on, which checks by chains."""
    state, _, own, heard = improving(monkeypatch)
    state.param.watch(lambda *_: own.button.param.trigger("clicks"), "experiment")
    own.button.clicks += 1
    assert not own.running and "measured" not in heard[-1] and "→" in heard[-1]
    assert "exp(" in state.experiment.lanes[0].sampler.values()["curl_entries"][0]

    state, _, own, heard = improving(monkeypatch)
    edits = iter([True])

    def edit(*_):
        if next(edits, False):
            state.set_recipe(0, diffusion_entries=("0", "0", "7"))

    own.result.param.watch(edit, "object")
    own.button.clicks += 1
    assert "the recipe was changed" in heard[-1] and not own.running
    assert state.experiment.lanes[0].sampler.values()["diffusion_entries"] == ("0", "0", "7")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "layout", "kind", "sentence"),
    [
        ("double_well", "theta", "curl", "With one coordinate Q is 0"),
        ("double_well", "theta_r_xi", "varying", "z has 3 coordinates"),
        ("logistic_large", "theta", "constant", "z has 10 coordinates"),
    ],
)
def test_a_search_that_is_none_is_said_and_changes_nothing(target, layout, kind, sentence, monkeypatch):
    state, made, _, _ = improving(monkeypatch, target)
    made._cards[0].layout.value = layout
    own = made._cards[0].improving
    own.family.value = kind
    before = state.experiment
    own.button.clicks += 1
    assert sentence in unescape(own.result.object) and not own.running
    assert state.experiment == before
