"""The compiled readings that figures call are those that a page waits for before it moves."""

import pytest

from sgmcmc_lab.app.live.lanes import scene_of
from sgmcmc_lab.app.live.lanes.base import Progress
from sgmcmc_lab.app.live.lanes.densities import DensityLanes
from sgmcmc_lab.app.live.readings import LATER, of_figures
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views import VIEWS, fitting
from sgmcmc_lab.samplers.compile import jit
from tests.helpers.stages import experiment_of

TESTED = ("plane", "line", "simplex", "sphere")
HEAVY = ("moments", "mgf")
"""Views of ensembles, whose batches take seconds."""


@pytest.fixture
def called(monkeypatch):
    """The modules of the later readings that are called: each is prepared before its call, in case that it is not."""
    found, prepare = set(), jit.prepare

    def spy(functions, *progress):
        functions = list(functions)
        found.update({f.py_func.__module__ for f in functions} & LATER)
        prepare(functions, *progress)

    monkeypatch.setattr(jit, "prepare", spy)
    return found


def shown(experiment, key, called, frames=3):
    """The modules of later readings that a view's figure calls, from its making on."""
    state = AppState(experiment=experiment, views=[key])
    lanes = DensityLanes.prepare(Progress(), experiment)
    called.clear()
    view = VIEWS[key](scene_of(state, lanes))
    for _ in range(frames):
        for run in lanes.runs:
            run.advance(40)
        view.compute(lanes.frame(state))
    return set(called)


@pytest.mark.slow
@pytest.mark.parametrize("stage", TESTED)
def test_a_figure_calls_no_reading_that_its_view_does_not_declare(stage, called):
    experiment = experiment_of(stage)
    for key in fitting(experiment):
        declared = {module.__name__ for module in VIEWS[key].reads}
        assert shown(experiment, key, called, 1 if key in HEAVY else 3) <= declared, key


def test_a_page_waits_for_the_readings_that_its_views_declare():
    without = of_figures(["state", "marginal", "ks"])
    assert {f.py_func.__module__ for f in without}.isdisjoint(LATER)
    assert {f.py_func.__module__ for f in of_figures(["moments"])} & LATER == {
        "sgmcmc_lab.samplers.diagnostics.moments"
    }
    assert set(of_figures(VIEWS)) < set(jit.readings())


def test_the_spy_sees_a_call(called):
    """Fault: a view whose figure calls one that is not declared."""
    from sgmcmc_lab.samplers import convergence

    experiment = experiment_of("line")
    lanes = DensityLanes.prepare(Progress(), experiment)
    lanes.runs[0].advance(400)
    called.clear()
    convergence.summary(lanes.runs[0].statistics.history(), 0)
    assert called == {"sgmcmc_lab.samplers.convergence"}
