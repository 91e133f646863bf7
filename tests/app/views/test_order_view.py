"""The Order view's slope is of the asymptotic range alone; the other points are crosses, and a sentence says why."""

import numpy as np
import pytest

from sgmcmc_lab.app.views import order
from sgmcmc_lab.app.views.order import Order, fitted, settled, slope
from tests.helpers.checks_views import frames, records, scene_of


def view_of(sampler, batches=30, **params):
    """The view of one lane on the standard normal, and its frames, after so many batches of each step."""
    made = records("gaussian", [(sampler, params)])
    view = Order(scene_of(made))
    view.build()
    lanes = frames(made)
    while not view._rungs[0] or any(len(r.means) < batches and r.run.divergence is None for r in view._rungs[0]):
        view.background(lanes)
    return view, lanes


def caption(view, lanes):
    return view.captions(lanes)[view._label.id]


@pytest.mark.slow
def test_a_bias_beyond_a_tenth_of_the_spread_has_no_part_in_sglds_slope():
    """SGLD's variance on N(0, 1) is 1/(1 − ε/2): of first order in ε, and from ε = .5 on far steeper.

    Within 4 standard errors of the slope that its first four steps have exactly, 1.05 to 1.14; 1 of 10⁴ seeds fails.
    """
    view, lanes = view_of("sgld", step_size=0.08)
    found = view._found[0]
    k = [name for name, *_ in view._functions].index("Var θ")
    fit, kept = found.slope(k)
    assert fit is not None and abs(fit[0] - 1.1) < 0.06 + 4 * fit[1] and fit[1] < 0.1
    assert (found.steps[kept] < 0.32).all() and kept.sum() >= 3
    # Planted fault: all of the points.
    everything = slope(found.steps, found.bias[:, k], found.error[:, k])
    assert everything is not None and everything[0] > fit[0] + 0.05
    data = view.compute(lanes)
    assert len(data["dots 0"][0]) == kept.sum() and len(data["crosses 0"][0]) == (~kept).sum()
    assert f"slope {fit[0]:.2f}" in caption(view, lanes) and f"of {kept.sum()} of 7 points" in caption(view, lanes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "params"), [("hmc", {"step_size": 1.9, "n_leapfrog": 10}), ("sgld", {"step_size": 0.6})]
)
def test_without_an_asymptotic_range_there_is_no_slope(sampler, params, monkeypatch):
    """HMC whose paths are nearly all refused stands at its start; SGLD at such steps is far from its first order."""
    view, lanes = view_of(sampler, batches=12, **params)
    assert "no slope" in caption(view, lanes) or "no clear bias" in caption(view, lanes)
    assert "slope 0" not in caption(view, lanes) and len(view.compute(lanes)["dots 0"][0]) < 3
    if sampler == "hmc":
        return  # its biases are within their noise, whatever is taken for small
    # Planted fault: nothing is too large, and all chains move.
    monkeypatch.setattr(order, "SMALL", np.inf)
    monkeypatch.setattr(order, "settled", lambda means: True)
    view._evaluate()
    found = view._found[0]
    assert any(found.slope(k)[0] is not None for k in range(len(view._functions)))


def test_means_of_batches_say_whether_chains_move():
    rng = np.random.default_rng(1)
    noise = rng.standard_normal(40)
    assert settled(0.3 + noise)
    assert not settled(np.full(40, 2.3)) and not settled(2.3 + 1e-15 * noise)
    assert not settled(np.cumsum(noise)) and not settled(np.linspace(2, 0, 40) + 0.01 * noise)


def test_the_points_of_a_slope_are_clear_and_do_not_blow_up():
    steps, error = np.geomspace(0.05, 0.4, 7), np.full(7, 1e-4)
    bias = 0.3 * steps
    bias[0] = 1e-5
    bias[5:] *= 60
    assert fitted(steps, bias, error).tolist() == [False, True, True, True, True, False, False]
    assert slope(steps, bias, error)[0] == pytest.approx(1, abs=1e-9)
    assert fitted(steps, np.zeros(7), error).sum() == 0
