"""Energy, phase plane, thermostat, and the order on the line: what they show is the chains' own."""

import numpy as np
import pytest
from bokeh.models import ContourRenderer

from sgmcmc_lab.app.views.energy import Energy
from sgmcmc_lab.app.views.order import Order, Rung
from sgmcmc_lab.app.views.phase import Phase
from sgmcmc_lab.app.views.thermostat import Thermostat
from sgmcmc_lab.samplers import Run, RunSpec
from tests.helpers.cases import for_each
from tests.helpers.checks_views import fitting, frames, records, scene_of


def moved(target, samplers, steps=200, **settings):
    made = records(target, samplers, **settings)
    for record in made:
        record.run.advance(steps)
    return made


@pytest.mark.parametrize(("target", "sampler"), [("double_well", "sgld"), ("gamma", "cir")])
def test_the_ball_lies_on_the_curve(target, sampler):
    """At (θ, U(θ)) for the chains as they are, before the first step too; the trail is of the first one."""
    for steps in (0, 50):
        made = moved(target, [sampler], steps)
        run = made[0].run
        data = Energy(scene_of(made)).compute(frames(made))
        x, y = data["ball 0"]
        theta = 10**x if run.target.columns[0].log else x
        assert theta == pytest.approx(run.position[:, 0])
        assert y == pytest.approx(-run.target.log_density(run.position))
        x, _, alpha = data["trail 0"]
        assert len(x) == (8 if steps else 0)
        assert (np.diff(alpha) > 0).all()
    last = run.statistics.tail(9)[:-1, 0, 0]
    assert (10**x if run.target.columns[0].log else x) == pytest.approx(last)


def test_the_contours_of_the_phase_plane_are_those_of_h():
    """On a contour H is one number: that of a chain far from it is another."""
    made = moved("double_well", ["sghmc"])
    view = Phase(scene_of(made))
    renderer = next(one for one in view.figure.renderers if isinstance(one, ContourRenderer))
    lines = renderer.line_renderer.data_source.data
    spreads = []
    for xs, ys in zip(lines["xs"], lines["ys"], strict=True):
        good = np.isfinite(xs) & np.isfinite(ys)
        theta, r = np.asarray(xs)[good], np.asarray(ys)[good]
        h = r**2 / 2 - made[0].run.target.log_density(theta[:, None])
        spreads.append((h.std(), (h - r**2 / 2).std()))
    assert len(spreads) == 3
    # Planted fault: without the kinetic energy it is no number of its own.
    assert all(own < 0.02 and without > 0.1 for own, without in spreads)


def test_the_phase_plane_shows_position_and_momentum_of_its_coordinate():
    made = moved("correlated_gaussian", ["sghmc"])
    run = made[0].run
    data = Phase(scene_of(made, 1)).compute(frames(made))
    assert np.array_equal(data["heads 0"], [run.position[:, 1], run.momentum[:, 1]])
    assert np.array_equal(data["path 0"], [run.position[:1, 1], run.momentum[:1, 1]])


@for_each(
    ("target", "sampler", "shown"),
    [
        ("double_well", "sghmc", True),
        ("double_well", "sgld", False),
        ("double_well", "hmc", True),
        ("fisher", "sggmc", False),
        (
            "double_well",
            ("recipe", {"layout": "theta_r", "diffusion_entries": ("0", "0", "1"), "curl_entries": ("-1",)}),
            True,
        ),
    ],
)
def test_who_has_a_phase_plane(target, sampler, shown):
    """Only where there is a momentum; a manifold's velocity is no coordinate's."""
    assert (Phase in fitting(records(target, [sampler]))) == shown


def test_a_momentum_that_is_drawn_anew_is_at_rest_between_steps():
    """Its path would join what has nothing to do with each other."""
    made = moved("double_well", ["hmc", "sghmc"])
    view = Phase(scene_of(made))
    data = view.compute(frames(made))
    assert data["heads 0"][0] == made[0].run.position[0] and data["heads 0"][1] == 0
    assert made[0].run.momentum[0] != 0
    assert "path 0" not in data and "path 1" in data


@pytest.mark.parametrize(("sampler", "column"), [("gsgnht", 2), ("msgnht", 3)])
def test_xi_is_that_of_the_first_chain(sampler, column):
    """For mSGNHT it is that of the coordinate which is shown."""
    made = moved("correlated_gaussian", [sampler])
    run = made[0].run
    view = Thermostat(scene_of(made, 1))
    data = view.compute(frames(made))
    assert data["lane 0"][1] == run.momentum[0, column]
    assert data["first 0"][0] == run.sampler.friction
    # Nothing new without a step.
    assert view.compute(frames(made)) == {}
    assert Thermostat not in fitting(records("correlated_gaussian", ["sghmc"]))


def test_the_bias_on_a_line_is_that_of_the_discretised_chain():
    """SGLD on N(0, 1) has the variance 1/(1 − ε/2): to four standard errors, where the target's 1 is 20 away."""
    view = Order(scene_of(records("gaussian", ["sgld"])))
    rung = Rung(0.5, Run(RunSpec.of("gaussian", "sgld", sampler_params={"step_size": 0.5}, n_chains=200)))
    for _ in range(30):
        rung.advance(view._from_sums)
    means = np.array(rung.means)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    assert (np.abs(means.mean(axis=0) - [0, 1 / (1 - 0.25)]) < 4 * error).all()
    assert means.mean(axis=0)[1] - 1 > 20 * error[1]


@for_each(
    ("target", "sampler", "shown"),
    [
        ("double_well", "sgld", True),
        ("gamma", "sgrld", True),
        ("double_well", "exact", False),
        ("sparse_dirichlet", "sgrld", False),
        ("linear_regression", "sgld", False),
    ],
)
def test_where_the_order_can_be_seen(target, sampler, shown):
    """Not where the start is forgotten slowly, or the law is no number's."""
    assert (Order in fitting(records(target, [sampler]))) == shown
