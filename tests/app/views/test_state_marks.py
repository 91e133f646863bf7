"""The marks of a run: the masses that a chain has learnt, and divergent transitions."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.app.views.adaptation import covariance
from sgmcmc_lab.app.views.marks import diverged
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.kernels.adaptation import VECTORS
from sgmcmc_lab.samplers.targets.base import Whitening
from tests.helpers.checks_views import check, frames, records, scene_of

ADAPTING, FIRST, LAST = 150, 75, 100
"""Adapting steps, of which those from the first to the last, without it, are the one window."""
HMC = ("hmc", {"adapt_steps": ADAPTING, "step_size": 0.3})


def deviations(draws):
    """√M⁻¹ of the draws (n, dim) of a window, with Stan's shrinkage."""
    n = len(draws)
    return np.sqrt((n * draws.var(axis=0, ddof=1) + 5e-3) / (n + 5))


@pytest.mark.slow
def test_an_ellipse_has_the_deviations_that_the_first_chain_has_learnt():
    """Recomputed from its draws in the window; those of another chain, or of the other coordinate, are others."""
    made = records("banana", [HMC, "sgld"])
    view, run, draws = VIEWS["state"](scene_of(made)), made[0].run, []
    assert view.compute(frames(made))["mass 0"][0].size == 0
    for _ in range(ADAPTING):
        made[0].run.advance(1)
        draws.append(run.position.copy())
    data = view.compute(frames(made))
    check(view, data)
    assert data["mass 1"][0].size == 0
    ellipse = np.array(data["mass 0"])
    np.testing.assert_allclose((ellipse.max(axis=1) + ellipse.min(axis=1)) / 2, run.position[0], atol=1e-9)
    shown = np.ptp(ellipse, axis=1) / 2
    window = np.array(draws)[FIRST:LAST]
    one, other = deviations(window[:, 0]), deviations(window[:, 1])
    np.testing.assert_allclose(shown, one)
    assert (np.abs(shown - other) > 0.01).any() and np.abs(shown - one[::-1]).min() > 0.01
    said = view.captions(frames(made))[view._label.id]
    assert said.split("\n")[-1] == f"dashed: one standard deviation by M⁻¹, ● {one[0]:.3g} × {one[1]:.3g}"
    run.advance(5)
    moved = np.array(view.compute(frames(made))["mass 0"])
    np.testing.assert_allclose(moved - ellipse, np.tile((run.position[0] - draws[-1][0])[:, None], ellipse.shape[1]))


def test_masses_of_other_coordinates_are_carried_over_to_theta():
    """The variances of θ = Lz are the diagonal of L M⁻¹ Lᵀ; without L they are those of z."""
    factor, variances = np.array([[2.0, 0.0], [1.5, 0.5]]), np.array([0.3, 4.0])
    known = np.ones((1, 2 + VECTORS + 6))
    known[0, -2:] = variances
    run = SimpleNamespace(
        target=SimpleNamespace(dim=2),
        sampler=SAMPLERS["hmc"](adapt_steps=9),
        momentum=known,
        whitening=Whitening(np.zeros(2), factor),
    )
    np.testing.assert_allclose(covariance(run), factor @ np.diag(variances) @ factor.T)
    run.whitening = None
    np.testing.assert_allclose(covariance(run), np.diag(variances))
    known[0, -1] = np.inf
    assert covariance(run) is None


@pytest.mark.slow
def test_neither_a_chain_that_does_not_adapt_nor_a_live_page_has_an_ellipse():
    without, adapting = scene_of(records("banana", ["hmc"])), scene_of(records("banana", [HMC]))
    assert "mass 0" in VIEWS["state"](adapting).feeds
    for scene in (without, replace(adapting, live=True)):
        assert "mass 0" not in VIEWS["state"](scene).feeds


@pytest.mark.slow
def test_on_a_line_the_ends_are_a_deviation_from_the_chain():
    made = records("double_well", [HMC])
    view, run = VIEWS["state"](scene_of(made)), made[0].run
    run.advance(ADAPTING)
    x, y = view.compute(frames(made))["mass 0"]
    np.testing.assert_allclose(x - run.position[0, 0], np.sqrt(run.momentum[0, -1]) * np.array([-1, 1]))
    assert y[0] == y[1]


def diverging(key, *more):
    """The view, the frame and the draws of centred funnels, after a frame at half of the run."""
    made = records("funnel", ["hmc", *more], keep=True, n_steps=1500, burn_in=50, seed=5)
    view = VIEWS[key](scene_of(made))
    for n in (50, 700, 800):
        for record in made:
            record.run.advance(n)
        data = view.compute(frames(made))
        check(view, data)
    return view, made, data


@pytest.mark.slow
def test_divergent_transitions_are_marked_on_the_state_space_and_counted():
    """HMC's are where its chain was, in the neck; SGLD's lane, which has no trajectory, has none."""
    view, made, data = diverging("state", "sgld")
    run = made[0].run
    found, draws = run.divergent, run.trace().draws
    n = len(found.steps)
    assert 20 <= n < jit.N_MARKS
    places = np.array([draws[c, s - 51] for s, c in zip(found.steps, found.chains, strict=True)])
    np.testing.assert_array_equal(np.array(data["diverged 0"]).T, places)
    assert (places[:, 0] < -2).all()
    assert all(column.size == 0 for column in data.get("diverged 1", ()))
    said = view.captions(frames(made))[view._label.id].split("\n")
    assert said[0].endswith(f"%; {n:,} of 6,000 transitions diverged") and "diverged" not in "".join(said[1:])
    # The page keeps the marks that it was sent until the count begins again.
    assert "diverged 0" not in view.compute(frames(made))
    run.restart_statistics()
    assert view.compute(frames(made))["diverged 0"][0].size == 0
    assert "diverged" not in view.captions(frames(made))[view._label.id]


@pytest.mark.parametrize("more", [(), ("sgld",)])
def test_the_rug_of_a_trace_has_the_steps_of_the_drawn_chains(more):
    """One lane has those of four chains, several have those of the first; the axis begins at the first draw shown."""
    view, made, data = diverging("trace", *more)
    run = made[0].run
    steps, chains, _ = run.divergent
    shown = steps[chains < (1 if more else 4)]
    x, y = data["rug 0"]
    np.testing.assert_allclose(x, shown[shown >= data["x"][0][0]])
    assert len(x) >= 5 and set(y) == {view._low}
    sign = "● " if more else ""
    last = view.captions(frames(made))[view._kept.id].split("\n")[-1]
    assert last == f"{sign}{len(steps):,} of 6,000 transitions diverged"


def test_more_divergent_transitions_than_marks_are_said():
    run = records("double_well", [("hmc", {"step_size": 0.6})])[0].run
    run.advance(50)
    assert 0 < run.counts[jit.DIVERGED] <= jit.N_MARKS and diverged(run).endswith(" transitions diverged")
    run.advance(2000)
    assert run.counts[jit.DIVERGED] > jit.N_MARKS and diverged(run).endswith("diverged; the last 512 are marked")


@pytest.mark.slow
@pytest.mark.parametrize("key", ["state", "trace"])
def test_a_live_page_has_marks_where_a_lane_may_diverge(key):
    for sampler in ("nuts", "sgld"):
        scene = scene_of(records("funnel", [sampler]))
        for live in (False, True):
            feeds = VIEWS[key](replace(scene, live=live)).feeds
            assert any(name.startswith(("diverged", "rug")) for name in feeds) is (sampler == "nuts")


def test_an_energy_error_is_shown_while_steps_measure_it():
    """The axis names what ε follows. Fails where the error of the last adapting step stays after the adaptation."""
    made = records("correlated_gaussian", [("mclmc", {"adapt_steps": ADAPTING}), ("hmc", {"adapt_steps": ADAPTING})])
    view, errors = VIEWS["adaptation"](scene_of(made)), []
    assert view.figure.yaxis.axis_label.split() == ["ε,", "energy", "error²/d,", "acceptance,", "L"]
    for steps in (ADAPTING - 1, 2):
        for record in made:
            record.run.advance(steps)
        data = view.compute(frames(made))
        check(view, data)
        assert np.isfinite(data["y"][0]).all() and data["wanted 1"][0].tolist() == [0.651]
        errors.append((data.get("followed 0"), data["wanted 0"][0].tolist(), data["followed 1"][1][0]))
    # The statistic is the seventh number behind the direction and the gradient, or the momentum.
    known = [record.run.momentum[:, at + 7].mean() for record, at in zip(made, (4, 2), strict=True)]
    (first, wanted, _), (last, none, acceptance) = errors
    assert 0 < first[1][0] < 1 and wanted == [5e-4]
    assert last is None and none == [] and known[0] > 0
    assert acceptance == known[1]
