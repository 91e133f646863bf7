"""The sidebar's schedules: the menu, its parameters, and the words of the views."""

import panel_material_ui as pmui
import pytest

from sgmcmc_lab.app.live.runner import _structure
from sgmcmc_lab.app.page.controls import Controls
from sgmcmc_lab.app.page.equations import cards
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.schedules import Polynomial


@pytest.fixture
def page():
    state = AppState()
    return state, Controls(state, lambda level, text: pytest.fail(text))


def labelled(controls, label):
    return [one for one in controls.panel.select(pmui.widgets.base.MaterialWidget) if one.label == label]


def test_the_menu_gives_a_lane_a_schedule_with_its_parameters(page):
    state, controls = page
    (menu,) = labelled(controls, "Step-size schedule")
    assert not labelled(controls, "Exponent γ")
    menu.value = "polynomial"
    assert state.experiment.lanes[0].schedule.key == "polynomial"
    (slider,) = labelled(controls, "Exponent γ")
    assert labelled(controls, "Offset b")
    before = state.experiment
    slider.value_throttled = 0.5
    assert state.experiment.lanes[0].schedule.values()["exponent"] == 0.5
    # The steps are counted from the start: another exponent begins the runs again.
    assert _structure(before) != _structure(state.experiment)


def test_a_sampler_without_a_step_size_has_no_menu(page):
    state, controls = page
    state.set_sampler(0, "exact")
    assert not labelled(controls, "Step-size schedule")


def test_the_card_shows_the_schedule(page):
    """A lane that differs from another in its schedule alone has a card of its own."""
    state, _ = page

    def formulas():
        parts = [part for one in cards(state) for part in one.select()]
        return "\n".join(str(part.object) for part in parts if hasattr(part, "object"))

    assert Polynomial.update not in formulas()
    before = state.experiment.to_dict()
    falling = {"sampler": "sgld", "schedule": "polynomial"}
    state.open(Experiment.from_dict({**before, "lanes": [*before["lanes"], falling]}))
    assert Polynomial.update in formulas()
