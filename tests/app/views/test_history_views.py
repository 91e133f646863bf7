"""The views of the thinned history: their curves over another scene, their words where nothing is shown, and when they
read again.
"""

from dataclasses import replace

import numpy as np
import pytest

from sgmcmc_lab.app.views import VIEWS
from tests.helpers.cases import for_each
from tests.helpers.checks_views import experiment_of, fitting, frames, records, scene_of


def turn(view, made, steps):
    for record in made:
        record.run.advance(steps)
    now = frames(made)
    view.compute(now)
    view.background(now)
    return view.compute(now)


@pytest.mark.slow
def test_the_curve_of_a_run_goes_on_in_another_scene():
    """On another axis the points are those of before; another run has none of them."""
    made = records("gaussian", ["sgld", "hmc"])
    view = VIEWS["ksd"](scene_of(made))
    for _ in range(3):
        turn(view, made, 100)
    steps = [point.position.steps for point in view.known[0][1]]
    assert steps == [100, 200, 300]
    other = VIEWS["ksd"](replace(view.scene, axis="gradients"), view)
    data = other.compute(frames(made))
    assert data["lane 0"][0].tolist() == steps
    assert data["lane 1"][0].tolist() == [11 * n for n in steps]
    # The lanes change places.
    swapped = VIEWS["ksd"](view.scene, view).compute(frames(made[::-1]))
    np.testing.assert_array_equal(swapped["lane 1"][1], data["lane 0"][1])
    again = records("gaussian", ["sgld", "hmc"])
    assert "lane 0" not in VIEWS["ksd"](view.scene, view).compute(frames(again))


@for_each("key", ["ranks", "quantile_ess", "ess_growth"])
def test_a_history_is_read_again_when_it_is_longer(key):
    """Not for a few steps more; and when the statistics begin again the picture is empty."""
    made = records("gaussian", ["sgld"])
    view = VIEWS[key](scene_of(made))
    assert turn(view, made, 1000)
    assert not turn(view, made, 50)
    assert turn(view, made, 100)
    made[0].run.restart_statistics()
    data = turn(view, made, 0)
    assert not sum(columns[0].size for name, columns in data.items() if name.split()[0] in ("lane", "bulk", "tail"))
    assert next(iter(view.captions(frames(made)).values())).endswith("no draws yet")


@pytest.mark.slow
def test_what_has_no_ranks_says_why():
    for sampler, n_chains, why in (("svgd", 4, "interacting particles are not chains"), ("sgld", 1, "ranks need 2 chains")):  # fmt: skip
        made = records("gaussian", [sampler], n_chains)
        view = VIEWS["ranks"](scene_of(made))
        turn(view, made, 200)
        assert why in next(iter(view.captions(frames(made)).values()))


@pytest.mark.slow
def test_the_discrepancy_is_offered_where_it_is_defined():
    for target, sampler, there in (("quartic", "sgld", True), ("logistic_tumours", "sgld", True), ("gamma", "cir", False), ("sparse_dirichlet", "scir", False), ("fisher", "gmc", False)):  # fmt: skip
        assert (VIEWS["ksd"] in fitting(records(target, [sampler]))) == there, target
    assert VIEWS["pareto"].fits(experiment_of(records("posterior", ["hmc"])))
    assert not VIEWS["pareto"].fits(experiment_of(records("quartic", ["hmc"])))
