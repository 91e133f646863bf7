"""The sidebar's temperature: where it is shown, and how it goes with the target and the link."""

from dataclasses import replace

import pytest

from sgmcmc_lab.app.live import runner
from sgmcmc_lab.app.live_page import document, sweeping
from sgmcmc_lab.app.live_page.kinds import alone
from sgmcmc_lab.app.page.controls import Controls
from sgmcmc_lab.app.page.equations import about, cards, energy_of
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views.energies import energy_label
from sgmcmc_lab.lessons.measures import MEASURES
from sgmcmc_lab.samplers import Choice, Experiment
from sgmcmc_lab.samplers.live import description
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets import TARGETS
from tests.browser.live import few_figures
from tests.helpers.cases import for_each
from tests.helpers.course import LESSONS


def page(target, **settings):
    data = {"target": target, "lanes": [{"sampler": "sgld"}], **settings}
    return AppState(experiment=Experiment.from_dict(data))


def has_slider(state):
    controls = Controls(state, lambda *_: None)
    return any(key[0] == "settings" and key[2] for key in controls.parts())


@pytest.mark.slow
def test_the_slider_is_there_where_the_target_has_answers_at_other_temperatures(monkeypatch):
    assert has_slider(page("quartic")) and has_slider(page("typed"))
    assert has_slider(page("posterior")) and has_slider(page("student_mean"))
    torus = page("mises_posterior", lanes=[{"sampler": "exact"}])
    assert has_slider(torus)
    monkeypatch.setattr(TARGETS["mises_posterior"], "has_temperatures", classmethod(lambda cls: False))
    assert not has_slider(torus)


def test_another_temperature_is_in_the_link_starts_again_and_fits_the_first_step():
    state = page("linear_regression")
    before, first = state.experiment, dict(state.experiment.lanes[0].sampler.params)["step_size"]
    state.set_temperature(0.1)
    assert state.experiment.to_query().endswith("&temperature=0.1")
    assert dict(state.experiment.lanes[0].sampler.params)["step_size"] < first
    assert runner._structure(state.experiment) != runner._structure(before)
    state.set_temperature(1)
    assert state.experiment == before


@for_each("target", ["linear_regression", "lasso"])
def test_another_target_gets_the_first_step_of_the_temperature(target):
    """That of T = 1, a planted fault, is ten times as long."""
    there, whole = page(target, temperature=0.1), page(target)
    (step,), (other,) = ([dict(x.sampler.params)["step_size"] for x in y.experiment.lanes] for y in (there, whole))
    state = page("gaussian", temperature=0.1)
    assert state.set_target(target) == []
    (moved,) = (dict(lane.sampler.params)["step_size"] for lane in state.experiment.lanes)
    assert moved == step < 0.2 * other and state.experiment.temperature == 0.1


def test_a_parameter_of_the_target_leaves_the_first_step_of_the_temperature():
    state = page("linear_regression", temperature=0.1)
    before = dict(state.experiment.lanes[0].sampler.params)["step_size"]
    assert state.set_target_param("items", 50) == []
    assert dict(state.experiment.lanes[0].sampler.params)["step_size"] == before


@pytest.mark.slow
def test_the_sliders_value_is_the_temperature():
    state = page("quartic", temperature=2.0)
    parts = Controls(state, lambda *_: None).parts()
    ((made,),) = (make() for key, make in parts.items() if key[0] == "settings")
    named = made.select(lambda one: str(getattr(one, "label", "")).startswith("Temperature"))
    assert 2.0 in [one.value for one in named]


@pytest.mark.slow
def test_a_target_without_answers_there_goes_back_to_one_with_a_sentence():
    state = page("quartic", temperature=0.25)
    (_, said) = state.set_target("gamma")
    assert "Gamma has no finite integral at 0" in said and state.experiment.temperature == 1


@pytest.mark.slow
def test_the_torus_keeps_its_temperature_and_refuses_one_at_which_its_density_jumps():
    state = page("mises_posterior", lanes=[{"sampler": "geodesic_sgld"}])
    first = dict(state.experiment.lanes[0].sampler.params)["step_size"]
    state.set_temperature(4.0)
    target = state.experiment.make_target()
    assert dict(state.experiment.lanes[0].sampler.params)["step_size"] > first
    assert target.temperature == 4 and target.columns[0].shown[0] < -0.5
    few = {"key": "mises_posterior", "params": {"items": 10, "concentration": 10.0}}
    other = page(few, lanes=[{"sampler": "exact"}])
    with pytest.raises(SpecError, match="v₂ = −v₁ and U jumps"):
        other.set_temperature(10.0)
    assert other.experiment.temperature == 1


@pytest.mark.slow
def test_the_energy_that_is_typed_has_the_temperature_in_its_formula():
    state = page("quartic", temperature=4)
    state.type_energy()
    assert state.experiment.temperature == 1
    assert dict(state.experiment.target.params)["energy"].endswith("/4.0")


@pytest.mark.slow
def test_what_is_of_the_energy_or_of_temperature_1_is_said_to_be():
    for temperature, label, entry in ((1, "U(θ)", "Distribution<"), (2, "U(θ)/T", "Distribution at T = 1<")):
        state = page("gaussian_mixture", temperature=temperature)
        target = state.experiment.make_target()
        assert energy_label(target) == label and entry in about(target, {}, temperature)


@for_each("target", ["gaussian", "correlated_gaussian", "banana", "typed", "eight_schools"])
def test_the_card_of_any_target_has_the_distribution_at_the_temperature(target):
    """Fails where a target that stays of its family at T has the card of T = 1."""
    state = page(target)
    plain = energy_of(state.experiment)
    state.set_temperature(0.25)
    shown = [str(part.object) for part in cards(state)[0].select(lambda one: hasattr(one, "object"))]
    whole = " ".join(shown)
    assert (
        "U(" in plain and energy_of(state.experiment) == plain + r",\quad p(\theta) \propto e^{-U(\theta)/T},\ T = 0.25"
    )
    assert r"\propto" in whole and "T = 0.25" in whole and "Distribution at T = 1" in whole
    assert "e^{−U/T}" not in whole, "the sentence beside it is about T = 1"
    state.set_temperature(1)
    assert energy_of(state.experiment) == plain


@pytest.mark.slow
def test_a_live_page_at_another_temperature_has_a_slider_with_the_target_at_each():
    """A page that begins at T = 1 has none: the exact answers of each temperature take time."""

    def stops(temperature):
        state = page("gaussian", temperature=temperature)
        with few_figures("marginal", stops=True):
            made = document._page(state, alone(state.experiment, False), True)
        return made, dict(made["stops"].get("temperature", {"stops": []})["stops"])

    made, found = stops(0.25)
    assert made["target"]["temperature"] == 0.25 and made["target"]["base"]["params"]["values"][1] == 0.5
    assert set(found) == set(document.HEATS) and found.pop(0.25) is None
    # A Gaussian stays one, with the standard deviation √T.
    assert all(stop["target"]["params"]["values"][1] == pytest.approx(heat**0.5) for heat, stop in found.items())
    assert stops(1)[1] == {}


@pytest.mark.slow
def test_a_live_page_starts_at_each_temperature_where_its_distribution_is():
    """θ of the gamma distribution starts at a′T. Planted fault: every stop starts where T = 2 does."""
    state = page("gamma", lanes=[{"sampler": "sgrld"}], temperature=2.0)
    with few_figures("marginal", stops=True):
        made = document._page(state, alone(state.experiment, False), True)
    runs = {heat: stop["runs"][0] for heat, stop in made["stops"]["temperature"]["stops"] if stop is not None}
    for heat, run in runs.items():
        there = made_at(state, heat).runs()[0].first_positions()
        assert run["start"] == description.packed(there), heat


def made_at(state, heat):
    return Experiment.from_dict({**state.experiment.to_dict(), "temperature": heat})


@pytest.mark.slow
def test_a_picture_before_the_scripts_says_its_temperature():
    for heat, says in ((1.0, "of Quartic in θ₁"), (2.0, "of Quartic at temperature T = 2 in θ₁")):
        assert says.replace("Quartic", TARGETS["quartic"].title) in document._still(page("quartic", temperature=heat))


def test_no_live_page_sweeps_over_temperatures():
    """The targets of a sweep over T are others than the page's own; the mean can be measured there."""
    step = LESSONS["temperature"].steps[1]
    own = replace(step, sweep=replace(step.sweep, measure=Choice("mean", (("column", 1),))))
    assert [axis.name for axis in own.sweep.axes] == ["temperature"]
    assert sweeping.can_measure(MEASURES["mean"](), step.quick_spec)
    assert not sweeping.is_possible(own)
